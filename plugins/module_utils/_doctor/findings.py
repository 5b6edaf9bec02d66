# SPDX-License-Identifier: GPL-3.0-or-later
"""A finding of the doctor: a fault of one object, or the same fault of several, with its cause, the evidence and the next step."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Iterable

Severity = t.Literal["error", "warning"]
_ORDER: tuple[Severity, ...] = ("error", "warning")


@dataclasses.dataclass(frozen=True)
class Finding:
    """CAUSE is the same text for all findings of its kind; EVIDENCE is what Kubernetes or the program itself reports."""

    severity: Severity
    object: str
    cause: str
    evidence: str
    next: str
    group: str = ""
    """Objects of one workload with the same cause are one finding; empty for an object of its own."""
    log: Callable[[], str] | None = None
    """Reads the last lines of a log for the evidence. It is called once for a workload, however many of its pods fail."""

    def with_log(self) -> Finding:
        """The same with the last lines of its log, if it has one."""
        lines = self.log() if self.log else ""
        return dataclasses.replace(self, evidence=f"{self.evidence}; its log ends with: {lines}" if lines else self.evidence, log=None)

    def result(self) -> dict[str, str]:
        """The finding as the module returns it."""
        return {name: getattr(self, name) for name in ("severity", "object", "cause", "evidence", "next")}


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, in a stable order; of several objects of one workload with one cause the first, which tells how many more there are."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: (_ORDER.index(one.severity), one.object, one.cause, one.evidence)):
        groups.setdefault((one.group or one.object, one.cause), []).append(one)
    return [_of_all(same) for same in groups.values()]


def _of_all(same: list[Finding]) -> Finding:
    more = len({one.object for one in same}) - 1
    return dataclasses.replace(same[0], object=f"{same[0].object} and {more} more") if more else same[0]
