# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop that waits.

Every wait of the collection observes something again and again until nothing is missing: are the nodes ready, does the training run, is
the EKS cluster active, does etcd have a leader. What is observed, and when to observe it again, differs, so the caller passes ``observe``
and ``pause``. The rest is the same:

* It ends at its deadline, even without any answer: each turn checks it, also after an error.
* It survives what passes by itself. An API server that restarts refuses connections, then answers 5xx, then forbids what it allowed
  before, because it has not read all roles yet; a long watch loses its history (410).
* It reports what was seen last, and which errors came since.
* It shows progress when something changed, but not more often than people can read.
"""

from __future__ import annotations

import typing as t

from .brief import Missing
from .clock import Clock, Deadline
from .errors import Forbidden, Gone, MusterError, ServerError, Unreachable, WaitTimeout
from .pool import Progress

T = t.TypeVar("T")
Observe: t.TypeAlias = "t.Callable[[], tuple[T, str | None]]"
"""The answer, and what is still missing in words: None when the wait is over."""
Pause = t.Callable[[float], None]
"""Called between two observations with the seconds that are left; returns when it is time for the next one."""

PASSES = (Gone, Unreachable, ServerError)
"""Errors that a server which is still there, or comes back, stops giving by itself."""
_AFTER_TROUBLE = 1.0


def wait_for(
    observe: Observe[T], *, goal: str, deadline: Deadline, pause: Pause, progress: Progress | None = None, hint: str | None = None
) -> T:
    """Return the answer of OBSERVE as soon as nothing is missing; WaitTimeout at the deadline.

    A WaitTimeout begins with GOAL, a clause that says what is not reached: ``x is not ready``.
    """
    seen: str | None = None
    trouble: MusterError | None = None
    while True:
        try:
            answer, seen = observe()
            trouble = None
            if seen is None:
                return answer
            if progress:
                progress.report(seen)
            if not deadline.passed:
                pause(deadline.left)
        except (*PASSES, Forbidden) as exc:
            if isinstance(exc, Forbidden) and seen is None:
                raise  # the permission never existed
            trouble = None if isinstance(exc, Gone) else exc
            deadline.clock.sleep(min(_AFTER_TROUBLE, deadline.left))
        if deadline.passed:
            raise _timed_out(goal, deadline.seconds, seen, trouble, hint) from trouble


def last_answer(observe: Observe[T], *, deadline: Deadline, pause: Pause) -> T:
    """Wait like wait_for, but return the last answer at the deadline instead of failing."""
    answers: list[T] = []

    def noting() -> tuple[T, str | None]:
        answer, pending_reason = observe()
        answers[:] = [answer]
        return answer, pending_reason

    try:
        return wait_for(noting, goal="There is no answer", deadline=deadline, pause=pause)
    except WaitTimeout as exc:
        if answers:
            return answers[0]
        raise exc.__cause__ or exc from None  # the timeout is this function's own, and the trouble its cause


def fixed_interval(seconds: float, clock: Clock) -> Pause:
    """Observe again after SECONDS."""

    def pause(left: float) -> None:
        if seconds > 0:
            clock.sleep(min(seconds, left))

    return pause


def growing_interval(first: float, longest: float, clock: Clock) -> Pause:
    """Observe again after FIRST seconds, then each time after half as long again, up to LONGEST.

    So an operation of seconds is observed often, and one of a quarter of an hour rarely."""
    following = [first]

    def pause(left: float) -> None:
        clock.sleep(min(following[0], left))
        following[0] = min(following[0] * 1.5, longest)

    return pause


def _timed_out(goal: str, seconds: float, seen: str | None, trouble: MusterError | None, hint: str | None) -> WaitTimeout:
    last = [f"Last seen: {(seen.told() if isinstance(seen, Missing) else seen).rstrip('.')}"] if seen else []
    last += [trouble.message.rstrip(".")] if trouble else []
    what = ". ".join(last) or "Nothing was seen yet"
    return WaitTimeout(f"{goal} after {round(seconds, 1):g} s. {what}.", hint, last_seen=[what.removeprefix("Last seen: ")])
