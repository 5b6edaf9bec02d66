# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a test asks for, and the journal of what was asked of the account."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .api import Asked


@dataclass
class Fault:
    """``kind`` happens to the next ``times`` requests for ``operation``; ``detail`` is the kind's own.

    With ``after`` in it, only once a request for that operation has been answered.
    """

    kind: str
    operation: str
    times: int = 1
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass
class Journal:
    """Every request, in order, and the faults that are still to happen."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def note(self, asked: Asked, status: int) -> None:
        with self.guard:
            self.entries.append(
                {
                    "service": asked.service,
                    "operation": asked.operation,
                    "region": asked.region,
                    "writes": asked.writes,
                    "status": status,
                }
            )
            for fault in self.faults:
                if status < 400 and fault.detail.get("after") == asked.operation:
                    del fault.detail["after"]

    def inject(self, fault: Fault) -> None:
        with self.guard:
            self.faults.append(fault)

    def fault(self, kind: str, operation: str) -> Fault | None:
        """The fault of this kind that is due for an operation, used up by one."""
        with self.guard:
            for fault in self.faults:
                if fault.kind == kind and fault.operation in (operation, "*") and "after" not in fault.detail:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                    return fault
        return None

    def clear(self) -> None:
        with self.guard:
            self.entries.clear()
            self.faults.clear()


JOURNAL = Journal()
