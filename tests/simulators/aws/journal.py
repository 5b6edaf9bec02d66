# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of what was asked of the account, and the end of a run in the middle."""

import threading
from dataclasses import dataclass, field
from typing import Any

from .. import journal
from ..journal import Fault
from .api import Asked, Refused

__all__ = ["CUT", "JOURNAL", "Fault"]


@dataclass
class Journal(journal.Journal):
    """``needed`` is never cleared: which permissions requests of the playbooks needed, by the policies that they had."""

    needed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def note(self, asked: Asked, status: int) -> None:
        entry = {name: getattr(asked, name) for name in ("service", "operation", "region", "writes", "role")}
        self.add(asked.operation, {**entry, "status": status})

    def need(self, phase: str, needed: list[dict[str, Any]]) -> None:
        with self.guard:
            known = self.needed.setdefault(phase, [])
            known += [one for one in needed if one not in known]


@dataclass
class Cut:
    """The end of a run between two calls: after so many more writes nothing of the caller's is answered, until the tests have killed it."""

    writes: int = 0
    set: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def prepare(self, writes: int) -> None:
        self.writes, self.set = writes, True
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
            self.released.wait(60)
            raise Refused("RunWasCut", "the run ends here", 400)


CUT = Cut()
JOURNAL = Journal()
