# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins, keys and certificates that are made once: the one way in which they are made, stored and replaced.

Two runs may start at the same moment and both find nothing. So an object of generated values is created (POST), and replaced only in the
version that was read. Where another run was faster, everything that was made of the old reading is dropped, and made again of what is
there now: of an authority by another run come the certificates of this one. What belongs together is written one after the other, in the
order in which it is made, so that a run that follows a killed one finds what the rest is made of.

No other file generates a value that is to be kept, but new_keys.py (tests/unit/test_architecture.py). What does takes a ``Fresh``, and
``apply_made_once`` and ``beside_an_opened_record`` give one out for what is stored.
"""

from __future__ import annotations

import dataclasses
import secrets
import typing as t
from collections.abc import Callable, Mapping, Sequence

from .._core.errors import MusterError, Overtaken
from .._core.sensitive import Sensitive
from .cluster import Cluster
from .objects import Manifest, Ref
from .plan import overtaken
from .report import Change, Report

T = t.TypeVar("T")
MadeOf = Mapping[Ref, "str | None"]
"""The version in which each object was read; None for one that was not there."""

_TRIES = 10
"""Each further try means that another run has written in the meantime, and each run writes an object once."""


class Fresh:
    """New random values; with new_keys.py also keys."""

    def text(self, size: int) -> Sensitive:
        """A password of SIZE random bytes, of characters that neither a shell, nor YAML, nor a URL reads as something else."""
        return Sensitive(secrets.token_urlsafe(size))

    def digits(self, size: int) -> Sensitive:
        """SIZE random bytes as hexadecimal digits, two for each."""
        return Sensitive(secrets.token_hex(size))


class MadeOnce(Fresh):
    """One try: what it has read of the cluster, each object once, and new values for what is not there."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.clock = cluster.clock
        self._read: dict[Ref, Manifest | None] = {}

    def get(self, ref: Ref) -> Manifest | None:
        """The object, or None if there is none."""
        if ref not in self._read:
            self._read[ref] = self._cluster.get(ref)
        return self._read[ref]

    @property
    def made_of(self) -> dict[Ref, str | None]:
        """The versions that were read, for the engine: it writes an object of these only if it still has that version."""
        return {ref: _version_of(item) for ref, item in self._read.items()}

    def made(self, make: Callable[[MadeOnce], T]) -> T:
        """Return the result of MAKE. An error of MAKE counts only if no other run has written between its reads."""
        try:
            return make(self)
        except MusterError as exc:
            for ref, version in self.made_of.items():
                if _version_of(self._cluster.get(ref)) != version:
                    raise overtaken(ref, version) from exc
            raise


def _version_of(item: Manifest | None) -> str | None:
    return str(item["metadata"]["resourceVersion"]) if item else None


def apply_made_once(
    cluster: Cluster, make: Callable[[MadeOnce], tuple[Sequence[Manifest], T]], apply: Callable[[Sequence[Manifest], MadeOf], Report]
) -> tuple[Report, T]:
    """Apply the objects that MAKE returns, and return the report and what MAKE returns beside them.

    MAKE is called again after another run was faster. It has to read, by its argument, every object in which it puts a generated value.
    APPLY hands both its arguments to ``engine.apply_objects``.
    """
    earlier: list[Overtaken] = []
    while True:
        once = MadeOnce(cluster)
        try:
            objects, more = once.made(make)
            return with_earlier_tries(apply(objects, once.made_of), earlier), more
        except Overtaken as exc:
            earlier.append(exc)
            if len(earlier) == _TRIES:
                raise


def with_earlier_tries(report: Report, tries: Sequence[Overtaken]) -> Report:
    """The report with what earlier tries wrote, and with what other runs did meanwhile."""
    if not tries:
        return report
    written = {change.ref: change for exc in tries if exc.done for change in exc.done.changes if change.changed}
    by_others = {exc.ref: f"{exc.message} It is used as it is." for exc in tries}
    report.changes = [_change(change, written.get(change.ref), by_others.get(change.ref)) for change in report.changes]
    report.warnings += by_others.values()
    return report


def _change(change: Change, earlier: Change | None, by_another: str | None) -> Change:
    if change.changed:
        return change
    if earlier:
        return earlier
    return dataclasses.replace(change, reason=by_another) if by_another else change


def to_be_dropped() -> Fresh:
    """New values for a look at what is missing: none of them is stored."""
    return Fresh()


def beside_an_opened_record() -> Fresh:
    """New values for files whose record is open (``created.opened``): meanwhile no other run makes any there."""
    return Fresh()
