# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a test asks for, and the journal of what was asked of the project."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Fault:
    """``kind`` happens to the next ``times`` requests for ``method`` (its id in the discovery document, or `*`).

    ``detail`` is the kind's own. With ``after`` in it, only once a request for that method has been answered.
    """

    kind: str
    method: str
    times: int = 1
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass
class Journal:
    """Every request, in order, and the faults that are still to happen."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def note(self, method: str, host: str, path: str, writes: bool, status: int) -> None:
        with self.guard:
            self.entries.append({"method": method, "host": host, "path": path, "writes": writes, "status": status})
            for fault in self.faults:
                if status < 400 and fault.detail.get("after") == method:
                    del fault.detail["after"]

    def inject(self, fault: Fault) -> None:
        with self.guard:
            self.faults.append(fault)

    def fault(self, kind: str, method: str) -> Fault | None:
        """The fault of this kind that is due for a method, used up by one."""
        with self.guard:
            for fault in self.faults:
                if fault.kind == kind and fault.method in (method, "*") and "after" not in fault.detail:
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
