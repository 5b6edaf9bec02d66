# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds of several kinds at the same time, so that where one has work for a single core, another one uses the rest."""

from __future__ import annotations

import functools
import threading
import typing as t
from collections.abc import Callable, Sequence

from .._core.pool import run_all_or_raise

Progress = Callable[[str], None]


class Build(t.NamedTuple):
    title: str
    """The message while it is built, such as ``building kubelet (5 of 14)``."""
    run: Callable[[Progress], object]
    """The function that builds it, and reports its current step."""


def side_by_side(queues: Sequence[Sequence[Build]], progress: Progress) -> None:
    """Build the queues at the same time, and those of one queue in turn.

    After a failure no other build begins; those that run end first, because what is built whole is kept. Then the failures are raised.
    """
    display = _Display(progress)
    failed = threading.Event()

    def work(number: int) -> None:
        show = functools.partial(display.show, number)
        for build in queues[number]:
            if failed.is_set():
                break
            show(build.title)
            try:
                build.run(show)
            except Exception:
                failed.set()
                show(f"{build.title} failed, the others end what they build")
                raise
        show("")

    run_all_or_raise(work, range(len(queues)), parallel=len(queues))


class _Display:
    """A display of the current steps of all queues in one line; a queue that is done has an empty message."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._shown: dict[int, str] = {}

    def show(self, queue: int, message: str) -> None:
        with self._lock:
            self._shown[queue] = message
            if message:
                self._progress("; ".join(text for _queue, text in sorted(self._shown.items()) if text))
