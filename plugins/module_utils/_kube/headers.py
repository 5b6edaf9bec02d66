# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the headers of requests and read those of responses. Pure functions."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
import typing as t

from .._core.errors import InvalidInput

Pairs = tuple[tuple[str, str], ...]

# RFC 9110, section 5.5: a tab is allowed, other control characters are not.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# RFC 9110, section 5.6.2, but for the percent sign, which is what escapes the others.
_NO_NAME = re.compile(rb"[^!#$&'*+\-.^_`|~0-9A-Za-z]")
# RFC 7234, section 5.5. One header may hold several.
_WARNING = re.compile(r'(?P<code>\d{3}) (?P<agent>[^\s,"]+) "(?P<text>(?:[^"\\]|\\.)*)"')
_SHOWN_TO_USERS = "299"
_LONGEST_WARNING = 1000


def sendable(value: str, what: str) -> str:
    """The value, if it is valid in a header. The error names the header and the problem, but does not show the value."""
    found = _CONTROL.search(value)
    if not found:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass  # raised below, not chained to one that holds the value
        else:
            return value
        problem = "characters that are not text"
    elif found.start() == len(value.rstrip("\r\n")):
        problem = "a line break at its end"
    else:
        problem = f"the control character {ord(found.group()):#04x}"
    raise InvalidInput(f"{what} has {problem}, which no HTTP header may have.", hint="Its value is not shown here.")


def impersonation(user: str, groups: t.Iterable[str], uid: str, extra: t.Mapping[str, t.Iterable[str]]) -> Pairs:
    """https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation."""
    found = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
    if uid:
        found.append(("Impersonate-Uid", uid))
    for key, values in extra.items():
        name = _NO_NAME.sub(lambda char: b"%%%02X" % ord(char.group()), key.encode()).decode()
        found += [(f"Impersonate-Extra-{name}", value) for value in values]
    return tuple((name, sendable(value, name)) for name, value in found)


def retry_after(header: str | None, now: dt.datetime) -> float | None:
    """Seconds to wait, from a number of seconds or a date; None if the header is not understood."""
    if not header:
        return None
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        until = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if until.tzinfo is None:  # RFC 5322 says -0000 for "no zone known"; HTTP knows only GMT
        until = until.replace(tzinfo=dt.UTC)
    return max(0.0, (until - now).total_seconds())


def warnings(values: t.Iterable[str]) -> list[str]:
    """The API server's warnings for users. Like kubectl, leave out others, such as those of caches on the way."""
    found = []
    for value in values:
        # http.client reads headers as Latin-1, the API server writes UTF-8.
        text = value.encode("latin-1", "replace").decode("utf-8", "replace")
        for warning in _WARNING.finditer(text):
            if warning["code"] == _SHOWN_TO_USERS:
                said = re.sub(r"\\(.)", r"\1", warning["text"])
                found.append(_CONTROL.sub(" ", said)[:_LONGEST_WARNING])
    return [text for text in found if text]
