# SPDX-License-Identifier: GPL-3.0-or-later
"""The broker's URL as the runner reads it (its AMQP_URL), which is stricter than the URL format. No I/O.

Read in the code of leaf-ai/studio-go-runner (0.14, cmd/runner/rabbit.go and internal/runner/rmq.go):

- ``$NAME`` is replaced by an environment variable first, in the password, too;
- user and password are escaped again (``@`` as ``%40``) and the result is split at colons; it must have two parts. They are used escaped,
  so a password with a character that is escaped never equals that of the broker;
- queues are found by the management API, at the port plus 10000 (or AMQP_MGT_URL). Without a port, the runner would connect to 10000.
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse

from ..._core.errors import InvalidInput
from ..._core.sensitive import Sensitive

_PLAIN = re.compile(r"[-_.~&+,;=A-Za-z0-9]+")
"""Characters of user and password that the runner neither escapes nor replaces."""
_MANAGEMENT = 10_000


@dataclasses.dataclass(frozen=True)
class Broker:
    """The parts of a broker's URL that may be shown."""

    user: str
    host: str
    port: int
    vhost: str
    management_url: str


def check_amqp_url(url: Sensitive, what: str = "AMQP_URL") -> Broker:
    """Return the broker that the runner reads from URL; raise with the reason if it could not use URL. The password is not quoted."""
    try:
        parts = urllib.parse.urlsplit(url.reveal())
        port = parts.port
    except ValueError:
        raise InvalidInput(f"{what} is not an address.", "amqp://USER:PASSWORD@HOST:5672/%2f is one.") from None
    if parts.scheme not in ("amqp", "amqps"):
        raise InvalidInput(f"{what} does not begin with amqp:// or amqps://.")
    credentials, at, _host = parts.netloc.rpartition("@")
    if not at:
        raise InvalidInput(f"{what} has no user and password before its host.", "A '/', '?' or '#' in one of them would hide them.")
    user, _colon, password = credentials.partition(":")
    check_credential(Sensitive(user), f"{what}: the user")
    check_credential(Sensitive(password), f"{what}: the password")
    if not parts.hostname:
        raise InvalidInput(f"{what} has no host.")
    if not port:
        raise InvalidInput(f"{what} has no port.", "The runner derives that of the management API: 5672 gives 15672.")
    scheme = "http" if parts.scheme == "amqp" else "https"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    vhost = urllib.parse.unquote(parts.path.removeprefix("/")) or "/"
    return Broker(user, parts.hostname, port, vhost, f"{scheme}://{host}:{port + _MANAGEMENT}")


def check_credential(value: Sensitive, what: str) -> None:
    """Raise with the reason, if the runner could not log in with this user or password."""
    text = value.reveal()
    if not text:
        raise InvalidInput(f"{what} is empty.", "The runner needs both.")
    if ":" in text or "%3a" in text.lower():
        raise InvalidInput(f"{what} has a colon, at which the runner would split it.", _HINT)
    if "$" in text:
        raise InvalidInput(f"{what} has a $, which the runner would replace by an environment variable.", _HINT)
    if "%" in text:
        raise InvalidInput(f"{what} has a %, and the runner would not decode what follows.", _HINT)
    if not _PLAIN.fullmatch(text):
        raise InvalidInput(f"{what} has a character that the runner would send in its escaped form.", _HINT)


_HINT = "Letters, digits and the characters - _ . ~ & + , ; = can be used."
