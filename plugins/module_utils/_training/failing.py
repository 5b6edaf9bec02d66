# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures that a wait cannot outlast: a rank ends again and again with the same error, or does not get its image.

Kubernetes restarts such a rank as often as it may: a container without limit, a Job's pod up to its backoffLimit, with pauses that
double each time. Many failures at the start heal by themselves: a server that has not started yet, a part of the training that was
killed and makes others fail. The bound is therefore several runs in a row, all of them short, the last one during this wait:

* A run of SHORT seconds or more did some work; failures before it do not count.
* The pauses of Kubernetes (10, 20, 40 seconds) give missing dependencies more than a minute to start.
* Runs that ended before the wait began count, but do not suffice: after the cause was corrected, a new wait allows one more attempt.
* Failures that the Job itself does not count (podFailurePolicy), disruptions, and kills from outside are not counted.

An image is refused if the registry responds that it does not exist, or that this pod has no access. The image may still be uploaded, so
the kubelet's first attempts (after 10 and 20 seconds) are waited for. A registry that cannot be reached, or whose name does not resolve,
is waited for as long as option image_timeout says.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from .._core.clock import Clock
from .._kube.pod_status import EndedRun
from .status import JobStatus, Rank

RUNS = 4
"""The number of consecutive failed runs that ends a wait."""
SHORT = 60.0
"""Seconds below which a run did no work."""
REFUSED = 60.0
"""Seconds for which an image must have been refused."""


class RepeatedFailures:
    """The ended runs of every rank that one wait has seen. Kubernetes itself keeps two per container."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], set[EndedRun]] = {}
        self._before: frozenset[EndedRun] | None = None

    def find(self, status: JobStatus) -> tuple[Rank, Sequence[EndedRun]] | None:
        """Take note of STATUS; return the first rank that keeps failing, with its runs."""
        ranks = [(group, rank) for group in status.groups for rank in group.ranks]
        if self._before is None:
            self._before = frozenset(run for _group, rank in ranks for run in rank.ended_runs)
        found = None
        for group, rank in ranks:
            seen = self._runs.setdefault((group.name, rank.rank), set())
            seen.update(rank.ended_runs)
            last = failed_in_a_row(sorted(seen), group.expected_exit_codes)
            is_down = rank.phase == "Failed" or rank.stuck
            if found is None and is_down and len(last) >= RUNS and last[-1] not in self._before:
                found = rank, last
        return found


class MissingImages:
    """The time since when each rank does not get its image, as one wait has seen it. TIMEOUT: seconds for an image that is not refused."""

    def __init__(self, timeout: float, clock: Clock) -> None:
        self._timeout, self._clock = timeout, clock
        self._since: dict[tuple[str, bool], float] = {}

    def find(self, status: JobStatus) -> Rank | None:
        """Take note of STATUS; return the first rank that will not get its image."""
        now = self._clock.monotonic()
        ranks = [rank for group in status.groups for rank in group.ranks if rank.image_trouble[0]]
        # That it is missing counts from the first trouble of any kind, that it is refused from the first refusal.
        kinds = [(rank.pod, refused) for rank in ranks for refused in ((False, True) if rank.image_trouble[1] else (False,))]
        self._since = {kind: self._since.get(kind, now) for kind in kinds}
        limits = {True: REFUSED, False: max(self._timeout, REFUSED)}
        late = {pod for (pod, refused), since in self._since.items() if now - since >= limits[refused]}
        return next((rank for rank in ranks if rank.pod in late), None)


def failed_in_a_row(runs: Sequence[EndedRun], expected: frozenset[int]) -> list[EndedRun]:
    """The last of these RUNS that failed alike, without work in between; oldest first."""
    alike: list[EndedRun] = []
    for run in reversed(runs):
        if run.container != runs[-1].container:
            continue
        if _seconds(run) >= SHORT:
            break
        if run.was_ended or run.exit_code in expected:
            continue
        if run.exit_code == 0 or (alike and (run.reason, run.exit_code) != (alike[0].reason, alike[0].exit_code)):
            break
        alike.insert(0, run)
    return alike


def _seconds(run: EndedRun) -> float:
    """Return how long it ran. A container that never started has no times, or those of 1970."""
    try:
        return (dt.datetime.fromisoformat(run.finished) - dt.datetime.fromisoformat(run.started)).total_seconds()
    except ValueError:
        return 0.0
