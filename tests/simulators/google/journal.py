# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of what was asked of the project. Operations are methods, by their ids in the discovery documents."""

from .. import journal
from ..journal import Fault

__all__ = ["JOURNAL", "Fault"]


class Journal(journal.Journal):
    def note(self, method: str, host: str, path: str, writes: bool, status: int) -> None:
        self.add(method, {"method": method, "host": host, "path": path, "writes": writes, "status": status})


JOURNAL = Journal()
