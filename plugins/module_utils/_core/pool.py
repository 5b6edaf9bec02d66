# SPDX-License-Identifier: GPL-3.0-or-later
"""Many requests at once, with their results and failures."""

from __future__ import annotations

import concurrent.futures
import threading
import typing as t

from .brief import in_brief
from .clock import Clock
from .errors import ApplyFailed, MusterError

T = t.TypeVar("T")
R = t.TypeVar("R")
OnProgress = t.Callable[[str], None]

_EVERY = 5.0

PARALLEL = 16
"""Requests in flight, which is also the number of connections. Far below what the API server takes from all (400 reads, 200 writes)."""


def run_all(work: t.Callable[[T], R], items: t.Sequence[T], *, parallel: int) -> tuple[list[R], list[MusterError]]:
    """Call WORK for every item, at most PARALLEL at once, also after failures: (results, expected failures), both in the order of ITEMS."""

    def attempt(item: T) -> R | MusterError:
        try:
            return work(item)
        except MusterError as exc:
            return exc

    if len(items) <= 1 or parallel <= 1:
        outcomes = [attempt(item) for item in items]
    else:
        with concurrent.futures.ThreadPoolExecutor(min(parallel, len(items))) as pool:
            outcomes = list(pool.map(attempt, items))
    failures = [outcome for outcome in outcomes if isinstance(outcome, MusterError)]
    return [outcome for outcome in outcomes if not isinstance(outcome, MusterError)], failures


def run_all_or_raise(work: t.Callable[[T], R], items: t.Sequence[T], *, parallel: int) -> list[R]:
    """Run all items like run_all, and raise the failures together once all are done."""
    results, failures = run_all(work, items, parallel=parallel)
    raise_all(failures)
    return results


def raise_all(failures: t.Sequence[MusterError], details: dict[str, t.Any] | None = None) -> None:
    """Raise the failure, or one ApplyFailed that lists all of them; nothing if there is none. Equal ones are listed once."""
    if not failures:
        return
    if len({str(failure) for failure in failures}) == 1:
        failure = failures[0]
        failure.details = {**(details or {}), **failure.details}
        raise failure
    messages = list(dict.fromkeys(failure.message for failure in failures))
    hints = list(dict.fromkeys(failure.hint for failure in failures if failure.hint))
    message = f"{len(failures)} objects failed: " + " ".join(f"({number}) {text}" for number, text in enumerate(messages, 1))
    raise ApplyFailed(f"{message} {' '.join(hints)}".strip(), errors=failures, details=details)


class Progress:
    """Shows a message in brief, when it has changed and 5 seconds have passed since the last one: short waits are silent. Thread safe."""

    def __init__(self, show: OnProgress | None, clock: Clock) -> None:
        self._show = show
        self._clock = clock
        self._last = clock.monotonic()
        self._shown = ""
        self._lock = threading.Lock()

    def report(self, message: str) -> None:
        """Show MESSAGE, if it is time for one."""
        if self._show is None:
            return
        with self._lock:
            now = self._clock.monotonic()
            if now - self._last < _EVERY or (message := in_brief(message)) == self._shown:
                return
            self._last, self._shown = now, message
        self._show(message)
