# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a test asks for, and the journal of what was asked of a simulated cloud."""

import threading
from dataclasses import dataclass, field
from typing import Any

Entry = dict[str, Any]


@dataclass
class Fault:
    """``kind`` happens to the next ``times`` requests for ``operation``, or of all (``*``), or of each operation (``each``).

    ``detail`` is the kind's own. With ``after`` in it, only once a request for that operation has been answered.
    """

    kind: str
    operation: str
    times: int = 1
    detail: dict[str, Any] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    """How often it happened, by operation."""

    def happens(self, kind: str, operation: str) -> bool:
        """Whether it is due for a request of OPERATION, used up by one."""
        if self.kind != kind or self.operation not in (operation, "*", "each") or "after" in self.detail:
            return False
        met = self.met.get(operation, 0)
        if self.operation == "each":
            self.met[operation] = met + 1
            return met < self.times
        self.times -= 1
        return True


@dataclass
class Journal:
    """Every request, in order, and the faults that are still to happen."""

    entries: list[Entry] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, operation: str, entry: Entry) -> None:
        """Note a request with its ``status``."""
        with self.guard:
            self.entries.append(entry)
            for fault in self.faults:
                if entry["status"] < 400 and fault.detail.get("after") == operation:
                    del fault.detail["after"]

    def inject(self, fault: Fault) -> None:
        with self.guard:
            self.faults.append(fault)

    def fault(self, kind: str, operation: str) -> Fault | None:
        """The fault of this kind that is due for an operation."""
        with self.guard:
            for fault in self.faults:
                if fault.happens(kind, operation):
                    if fault.times <= 0:
                        self.faults.remove(fault)
                    return fault
        return None

    def clear(self) -> None:
        with self.guard:
            self.entries.clear()
            self.faults.clear()
