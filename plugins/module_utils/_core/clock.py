# SPDX-License-Identifier: GPL-3.0-or-later
"""Time: the one clock of the collection, so that tests need not wait."""

from __future__ import annotations

import datetime as dt
import time
import typing as t

LEAST_FOR_AN_ANSWER = 1.0
"""Seconds that an answer may always take, however little time is left; otherwise the last request of a wait could not be answered."""


class Clock(t.Protocol):
    """Time as everything here sees it; the module ``time`` is one."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...

    def time(self) -> float: ...


SYSTEM_CLOCK: Clock = t.cast(Clock, time)


def utc(clock: Clock) -> dt.datetime:
    """The date and time of CLOCK."""
    return dt.datetime.fromtimestamp(clock.time(), dt.UTC)


def system_utc() -> dt.datetime:
    """The date and time of this machine, by which the programs on it judge what they read."""
    return utc(SYSTEM_CLOCK)


def awake_or_not(clock: Clock) -> float:
    """The seconds of CLOCK, and those that this machine was suspended, where the system counts them (Linux: CLOCK_BOOTTIME).

    For what others do meanwhile: Linux stops ``time.monotonic()`` while the machine sleeps (man 2 clock_gettime).
    """
    if clock is SYSTEM_CLOCK and hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return clock.monotonic()


class Deadline:
    """A deadline, so many seconds from now, that several steps share."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self.seconds = seconds
        self.clock = clock
        self._end = clock.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left, 0 once it has passed."""
        return max(0.0, self._end - self.clock.monotonic())

    @property
    def passed(self) -> bool:
        return self.left <= 0

    @property
    def answer_timeout(self) -> float:
        """Seconds that one answer may take now: those that are left, but at least LEAST_FOR_AN_ANSWER."""
        return max(LEAST_FOR_AN_ANSWER, self.left)
