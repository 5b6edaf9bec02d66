# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error for requests that a cloud refused."""

from __future__ import annotations

from .._core.errors import Rejected


class CallRefused(Rejected):
    """The cloud refused a request, or could not be asked. ``code`` is the cloud's error code, by which callers decide what it means.

    Reason and hint are for the user: most often a permission is missing, or a limit of the account or project is reached.
    """

    def __init__(self, message: str, hint: str | None = None, *, code: str) -> None:
        super().__init__(message, hint, details={"code": code})
        self.code = code
