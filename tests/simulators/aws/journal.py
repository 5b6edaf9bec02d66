# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a test asks for, and the journal of what was asked of the account."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .api import Asked, Refused


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
    """Every request, in order, and the faults that are still to happen.

    ``needed`` is never cleared: which permissions requests of the playbooks needed, by the policies that they had.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    needed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
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
                    "role": asked.role,
                }
            )
            for fault in self.faults:
                if status < 400 and fault.detail.get("after") == asked.operation:
                    del fault.detail["after"]

    def need(self, phase: str, needed: list[dict[str, Any]]) -> None:
        with self.guard:
            known = self.needed.setdefault(phase, [])
            known += [one for one in needed if one not in known]

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


@dataclass
class Cut:
    """The end of a run between two calls: after so many more writes nothing of the caller's is answered any more.

    A caller that can be killed is held until the tests have done so; one in the tests' own process is refused.
    """

    writes: int = 0
    holds: bool = True
    set: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def prepare(self, writes: int, holds: bool) -> None:
        self.writes, self.holds, self.set = writes, holds, True
        self.reached.clear()
        self.released.clear()

    def release(self) -> None:
        self.set = False
        self.released.set()

    def meet(self, asked: Asked) -> None:
        """A request of the caller's arrives."""
        if not self.set:
            return
        if self.writes and not self.reached.is_set():
            self.writes -= asked.writes
            return
        if asked.writes or self.reached.is_set():
            self.reached.set()
            if self.holds:
                self.released.wait(60)
            raise Refused("RunWasCut", "the run ends here", 400)


CUT = Cut()
JOURNAL = Journal()
