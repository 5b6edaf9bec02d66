# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of AWS, without the secrets that they may contain."""

from __future__ import annotations

import re

# Parts of an error that must not be printed. The answer to a refused signature contains the signed request, and so the session token;
# addresses of proxies may contain a password.
_SECRET = (
    (re.compile(r"(?i)\b(authorization|x-amz-(?:security-token|credential|signature))(\s*[:=]\s*)[^\n]+"), r"\1\2(not shown)"),
    (re.compile(r"(?i)\b(Credential|Signature)=[^\s,'\"]+"), r"\1=(not shown)"),
    (re.compile(r"://[^/@\s'\"]+@"), "://(not shown)@"),
)


def without_secrets(text: str) -> str:
    """A message of AWS or botocore as it may be shown."""
    for pattern, instead in _SECRET:
        text = pattern.sub(instead, text)
    return text
