# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for pods: look again whenever one of them changes.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from .._core.clock import SYSTEM_CLOCK, Clock
from .._core.errors import Forbidden, Gone, ServerError, Unreachable, WaitTimeout

if t.TYPE_CHECKING:
    from .cluster import Cluster

T = t.TypeVar("T")
Progress = Callable[[str], None]

# Seconds between two looks where no pod says anything: conditions of Jobs change a moment after their pods.
_SLICE = 2.0
# What one look may take where no time is left, and the pause after trouble.
_LEAST = 1.0


def follow(
    cluster: Cluster,
    namespace: str,
    selector: str,
    look: Callable[[Cluster], tuple[T, str | None]],
    *,
    goal: str,
    timeout: float,
    progress: Progress,
    hint: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> T:
    """Call LOOK whenever a pod changes, until it has nothing to complain about; WaitTimeout says what it did last.

    LOOK gets the cluster with as much time for its answers as is left, so however much it asks, it ends with the wait.
    """
    deadline = clock.monotonic() + timeout
    said, trouble = None, ""
    while True:
        began = clock.monotonic()
        try:
            answer, complaint = look(cluster.within(max(_LEAST, deadline - began)))
            if complaint is None:
                return answer
            if complaint != said:
                progress(complaint)
            said, trouble = complaint, ""
            left = deadline - clock.monotonic()
            if left > 0:
                watch = cluster.watch("v1", "Pod", namespace, label_selector=selector, timeout=min(_SLICE, left))
                _first_change(watch, clock, max(0.2, clock.monotonic() - began))
        except Gone:
            clock.sleep(_LEAST)
        except (Forbidden, Unreachable, ServerError) as exc:
            # It may be restarting, and begins with refusing what it allowed before; the deadline bounds our patience.
            if isinstance(exc, Forbidden) and said is None:
                raise
            trouble = exc.message
            clock.sleep(_LEAST)
        if clock.monotonic() >= deadline:
            last = ". ".join(part.rstrip(".") for part in (said, trouble) if part) or "was not seen yet"
            raise WaitTimeout(f"{goal}: not after {timeout:g} s. {last}.", last_seen=[last], hint=hint)


def _first_change(events: t.Iterator[t.Any], clock: Clock, pause: float) -> None:
    """Return at the first event that is news: a watch begins by telling what there is. A costly look comes less often."""
    began = clock.monotonic()
    for event in events:
        if event.type != "BOOKMARK" and clock.monotonic() - began > pause:
            return
