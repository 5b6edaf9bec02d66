# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a rank ends again and again with the same error, so that waiting longer is of no use.

Kubernetes starts such a rank again for as long as it may: a container for ever, a Job's pod as often as its backoffLimit says, each time
after twice as long a pause. Much of what fails at its start also heals: a server that is not there yet, a part of the training that was
killed and takes others with it. The bound is therefore several runs in a row, all of them short, the last one during this wait:

* A run of SHORT seconds or more did some work; what failed before it does not count.
* The pauses of Kubernetes (10, 20, 40 seconds) give what is missing more than a minute to come.
* What ended before the wait began counts, but does not suffice: whoever corrected the cause and waits again sees one more attempt.
* Not counted is what the Job itself does not count (podFailurePolicy), a disruption, and who was killed from outside.

Private to the collection.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from .._kube.pod_status import EndedRun
from .status import JobStatus, Rank

RUNS = 4
"""So many failed runs in a row end a wait."""
SHORT = 60.0
"""Seconds below which a run did no work."""


class RepeatedFailures:
    """The ended runs of every rank that one wait has seen. Of a container Kubernetes itself remembers two."""

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
    """How long it ran. A container that never started has no times, or those of 1970."""
    try:
        return (dt.datetime.fromisoformat(run.finished) - dt.datetime.fromisoformat(run.started)).total_seconds()
    except ValueError:
        return 0.0
