# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expected failures on the host. Only the edge (_edge/host.py) turns them into a failed task.

Private to the collection.
"""

from __future__ import annotations

import typing as t


class HostError(Exception):
    """A failure that the user can understand: what, on what, and the next step."""

    def __init__(self, message: str, *, hint: str | None = None, details: dict[str, t.Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidOption(HostError):
    """What was asked for makes no sense; found before anything changed."""


class CommandFailed(HostError):
    """A program on the host exited with an error."""


class NotReady(HostError):
    """A deadline passed; the message says what was last seen."""
