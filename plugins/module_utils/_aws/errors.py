# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What AWS says when it refuses, without the secrets that may stand in it.

Private to the collection.
"""

from __future__ import annotations

import re

from .._core.errors import Rejected

# What may stand in an error and must not be printed. A refused signature is answered with the request that was signed, and with it the
# session token; addresses of proxies may have a password.
_SECRET = (
    (
        re.compile(r"(?i)\b(authorization|x-amz-(?:security-token|credential|signature))(\s*[:=]\s*)[^\n]+"),
        r"\1\2(not shown)",
    ),
    (re.compile(r"(?i)\b(Credential|Signature)=[^\s,'\"]+"), r"\1=(not shown)"),
    (re.compile(r"://[^/@\s'\"]+@"), "://(not shown)@"),
)


def without_secrets(text: str) -> str:
    """A message of somebody else's as it may be shown."""
    for pattern, instead in _SECRET:
        text = pattern.sub(instead, text)
    return text


class CallRefused(Rejected):
    """AWS refused a request, or could not be asked. ``code`` is its word for the reason, by which callers decide what it means.

    The user reads the reason and the hint: most often a permission that is missing, or a limit of the account.
    """

    def __init__(self, message: str, hint: str | None = None, *, code: str) -> None:
        super().__init__(message, hint, details={"code": code})
        self.code = code
