# SPDX-License-Identifier: GPL-3.0-or-later
"""The error for requests that a cloud refused, and messages without the secrets that they may contain."""

from __future__ import annotations

import re

from .._core.errors import Rejected

# Parts of an error that must not be printed. AWS's answer to a refused signature contains the signed request, and so the session token;
# addresses of proxies may contain a password.
_SECRET = (
    (re.compile(r"(?i)\b(authorization|x-amz-(?:security-token|credential|signature))(\s*[:=]\s*)[^\n]+"), r"\1\2(not shown)"),
    (re.compile(r"(?i)\b(Credential|Signature)=[^\s,'\"]+"), r"\1=(not shown)"),
    (re.compile(r"(?i)\b(bearer\s+)[^\s,'\"]+"), r"\1(not shown)"),
    (re.compile(r"\bya29\.[\w.-]+"), "(not shown)"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), "(not shown)"),
    (re.compile(r"(?i)(['\"]?(?:private_key|client_secret|refresh_token|access_token|assertion)['\"]?\s*[:=]\s*)['\"]?[^\s,'\"}]+"),
     r"\1(not shown)"),
    (re.compile(r"://[^/@\s'\"]+@"), "://(not shown)@"),
)  # fmt: skip


def without_secrets(text: str) -> str:
    """A message of a cloud, or of its libraries, as it may be shown."""
    for pattern, instead in _SECRET:
        text = pattern.sub(instead, text)
    return text


class CallRefused(Rejected):
    """The cloud refused a request, or could not be asked. ``code`` is the cloud's error code, by which callers decide what it means;
    ``http`` is the status of its answer, 0 without one.

    Reason and hint are for the user: most often a permission is missing, or a limit of the account or project is reached.
    """

    def __init__(self, message: str, hint: str | None = None, *, code: str, http: int = 0) -> None:
        super().__init__(message, hint, details={"code": code})
        self.code = code
        self.http = http
