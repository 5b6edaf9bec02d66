# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of what was asked of the project. Operations are methods, by their ids in the discovery documents."""

from __future__ import annotations

from .. import journal
from ..journal import Fault

__all__ = ["JOURNAL", "Fault"]


class Journal(journal.Journal):
    def note(self, method: str, host: str, path: str, writes: bool, status: int) -> None:
        self.add(method, {"method": method, "host": host, "path": path, "writes": writes, "status": status})


JOURNAL = Journal()
