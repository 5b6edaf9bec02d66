# SPDX-License-Identifier: GPL-3.0-or-later
"""Observe again whenever something changes: a watch is the pause between two observations.

For waits that ask more than the watched objects say (logs, the servers inside of pods, a count of nodes). What is waited for by its own
status is in wait.py.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.clock import Deadline
from .._core.pool import OnProgress, Progress
from .._core.waiting import fixed_interval, wait_for
from .cluster import Cluster

T = t.TypeVar("T")

_TELLS_WHAT_IS = 0.2
"""Seconds in which a watch without a version lists what exists already, which is no change."""
_QUIET = 1.0
"""Least seconds between two observations where nothing changed."""


@dataclasses.dataclass
class Changes:
    """The objects whose changes are the time to observe again.

    ``version``: the resource version from which to watch, if the observation knows it; otherwise a watch begins by listing what exists.
    ``longest``: seconds between two observations where nothing changes, because these objects do not show everything that is observed.
    """

    api_version: str
    kind: str
    namespace: str | None = None
    selector: str | None = None
    version: str = ""
    longest: float = 2.0

    @classmethod
    def of_pods(cls, namespace: str, selector: str) -> Changes:
        """Select the pods that a label selector matches."""
        return cls("v1", "Pod", namespace, selector)


def watch_until(
    cluster: Cluster,
    changes: Changes,
    observe: t.Callable[[Cluster], tuple[T, str | None]],
    *,
    goal: str,
    timeout: float,
    progress: OnProgress,
    hint: str | None = None,
) -> T:
    """Call OBSERVE whenever one of the objects changes, until nothing is missing; WaitTimeout after TIMEOUT seconds.

    OBSERVE gets the cluster with as much time for its answers as is left, so however much it asks, it ends with the wait.
    """
    clock, deadline = cluster.clock, Deadline(timeout, cluster.clock)
    began = clock.monotonic()

    def bounded() -> tuple[T, str | None]:
        nonlocal began
        began = clock.monotonic()
        return observe(cluster.within(deadline.answer_timeout))

    def watch(left: float) -> None:
        looked, watching = clock.monotonic(), cluster.watch(
            changes.api_version, changes.kind, changes.namespace, label_selector=changes.selector,
            resource_version=changes.version, timeout=min(changes.longest, left),
        )  # fmt: skip
        for event in watching:
            passed = clock.monotonic() - looked
            if event.type != "BOOKMARK" and (changes.version or passed > _TELLS_WHAT_IS):
                # After an observation that took long, wait as long: the next one sees all changes of that time.
                fixed_interval(looked - began - passed, clock)(left)
                return
        # A proxy before the server may end every watch at once; without a pause we would then send requests without end.
        fixed_interval(_QUIET - (clock.monotonic() - looked), clock)(left)

    return wait_for(bounded, goal=goal, deadline=deadline, pause=watch, progress=Progress(progress, clock), hint=hint)
