# SPDX-License-Identifier: GPL-3.0-or-later
"""Request rate limits, time limits, and retry back-off. Pure except for the given clock."""

from __future__ import annotations

import dataclasses
import math
import threading
import typing as t

from .clock import Clock
from .errors import MusterError

T = t.TypeVar("T")


class TokenBucket:
    """At most ``rate`` requests a second in the long run, ``burst`` at once. The API server has no other defence against us."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._last = clock.monotonic()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Wait until one more request may be sent. Tokens are taken in advance, so that threads queue instead of racing."""
        with self._lock:
            now = self._clock.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate) - 1
            self._last = now
            wait = -self._tokens / self._rate
        if wait > 0:
            self._clock.sleep(wait)


@dataclasses.dataclass(frozen=True)
class Limits:
    """Time limits of one request, in seconds. Together they bound every call, whatever the server does."""

    connect: float = 10.0
    answer: float = 60.0
    """Until one answer has arrived completely."""
    first_contact: float = 3.0
    """The time for retries when the server has never answered: the address is probably wrong."""
    outage: float = 60.0
    """The time for retries, from the first failure on, when the server has answered before: it may be restarting, or busy."""


class Backoff:
    """The number of retries of one request, with pauses that grow from FIRST to LONGEST seconds. They may be counted from a failure.

    All requests to Kubernetes may be tried again: an apply or a delete twice is the same as once.
    """

    def __init__(self, clock: Clock, *, first: float = 0.2, factor: float = 2.0, longest: float = 3.0, from_failure: bool = False) -> None:
        self._clock = clock
        self._started = None if from_failure else clock.monotonic()
        self._pause, self._factor, self._longest = first, factor, longest

    def wait_for_retry(self, *, limit: float, retry_after: float | None = None, until: float = math.inf) -> bool:
        """Sleep until the next try and return True; return False, at once, if that would be over LIMIT seconds after this was made.

        ``retry_after``: seconds that the server asked for, instead of our own pause. ``until``: the time of the clock at which the caller
        gives up in any case.
        """
        # Pause also after Retry-After: 0, or requests would be sent as fast as they are answered.
        pause = max(retry_after, 0.1) if retry_after is not None else self._pause
        self._pause = min(self._pause * self._factor, self._longest)
        now = self._clock.monotonic()
        self._started = now if self._started is None else self._started
        if now + pause > min(self._started + limit, until):
            return False
        self._clock.sleep(pause)
        return True


def with_retries(call: t.Callable[[], T], again: t.Callable[[MusterError], bool]) -> T:
    """Return the result of CALL, repeating it after each error for which AGAIN returns True. AGAIN also sleeps, with a Backoff."""
    while True:
        try:
            return call()
        except MusterError as exc:
            if not again(exc):
                raise
