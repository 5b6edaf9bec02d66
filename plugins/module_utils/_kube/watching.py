# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look again whenever something changes: a watch as the pause between two looks.

For waits that ask more than the watched objects say (logs, the servers inside of pods, a count of nodes). What is waited for by its own
status is in wait.py.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.clock import SYSTEM_CLOCK, Clock, Deadline
from .._core.pool import OnProgress, Progress
from .._core.waiting import fixed_interval, wait_for
from .cluster import Cluster

T = t.TypeVar("T")

_TELLS_WHAT_IS = 0.2
"""Seconds in which a watch without a version tells what there is already, which is no change."""
_QUIET = 1.0
"""Seconds between two looks where nothing changed, at least."""


@dataclasses.dataclass
class Changes:
    """The objects whose changes make it worth to look again.

    ``version``: from where to watch, where the look knows it; otherwise a watch begins by telling what there is. ``longest``: seconds
    between two looks where nothing changes, because not everything that is asked for shows in these objects.
    """

    api_version: str
    kind: str
    namespace: str | None = None
    selector: str | None = None
    version: str = ""
    longest: float = 2.0

    @classmethod
    def of_pods(cls, namespace: str, selector: str) -> Changes:
        """Those of the pods that a label selector means."""
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
    clock: Clock = SYSTEM_CLOCK,
) -> T:
    """Call OBSERVE whenever one of the objects changes, until it has nothing to complain about.

    OBSERVE gets the cluster with as much time for its answers as is left, so however much it asks, it ends with the wait.
    """
    deadline = Deadline(timeout, clock)
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
                # A costly look comes less often: what changes meanwhile is seen by the next one.
                fixed_interval(looked - began - passed, clock)(left)
                return
        # Something between us and the server may end every watch at once, which must not make us ask as fast as it does.
        fixed_interval(_QUIET - (clock.monotonic() - looked), clock)(left)

    return wait_for(bounded, goal=goal, deadline=deadline, pause=watch, progress=Progress(progress, clock), hint=hint)
