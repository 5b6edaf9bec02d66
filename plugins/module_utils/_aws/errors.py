# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong with AWS, by meaning. The edge turns these into a module's failure.

Private to the collection.
"""

from __future__ import annotations

import re
import typing as t

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


class AwsError(Exception):
    """Something expected went wrong. ``details`` become keys of the module's result."""

    def __init__(self, message: str, *, hint: str = "", **details: t.Any) -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.details = details


class InvalidInput(AwsError):
    """What is asked for cannot be; nothing was changed."""


class CallRefused(AwsError):
    """AWS said no. ``code`` is its word for the reason."""

    def __init__(self, message: str, *, code: str, hint: str = "", **details: t.Any) -> None:
        super().__init__(message, hint=hint, code=code, **details)
        self.code = code


class Failed(AwsError):
    """AWS accepted and then did not manage; the message has its reasons."""


class WaitTimeout(AwsError):
    """Not there in time; the message says what was seen last."""
