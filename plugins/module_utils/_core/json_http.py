# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of an HTTP API with JSON, which keeps its connection, so that latencies do not include the opening of connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
import typing as t
from urllib.parse import SplitResult, urlsplit

from .errors import InvalidInput, Unreachable
from .trust import trusting

Answer = tuple[int, dict[str, t.Any]]
OK = 200
_EVENTS = "text/event-stream"
_LONGEST = 200
"""Characters of a text that are shown as the reason for an error."""


def send(address: str, who: str, method: str, path: str, body: t.Any = None, *, size: int = 0, timeout: float) -> dict[str, t.Any]:
    """Send a body of SIZE bytes, which may be a file, and return the JSON of the response; raise Unreachable if there is none."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request(method, path, body, {"Content-Length": str(size)})
        found: dict[str, t.Any] = json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(f"{who} gives no answer: {error or type(error).__name__}.") from error
    finally:
        connection.close()
    return found


def parts_of(url: str) -> SplitResult:
    """The parts of the address of a server; InvalidInput if it is none."""
    try:
        parts = urlsplit(url)
        _checked = parts.port  # urlsplit reads the port only here, and raises ValueError for one that cannot be
    except ValueError as exc:
        raise InvalidInput(f"url: it is not the address of a server: {exc}.", "Write it as http://HOST:PORT.") from exc
    if parts.username or parts.password:
        raise InvalidInput("url: it has a login, which is not sent.", "Write it as http://HOST:PORT.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise InvalidInput(f"url: '{url}' is not the address of a server.", "Write it as http://HOST:PORT.")
    return parts


def events(text: str) -> list[tuple[str, str]]:
    """Return name and data of each server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html.

    A last event without its empty line is one, too, so that a stream that was cut is not taken for a whole one.
    """
    found: list[tuple[str, str]] = []
    name, data = "", []
    for line in [*re.split("\r\n|\n|\r", text.removeprefix("\ufeff")), ""]:
        field, _colon, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.strip()
        elif not line:
            found += [(name, "\n".join(data))] if data else []
            name, data = "", []
    return found


def parsed(name: str, data: str) -> dict[str, t.Any]:
    """The JSON object that an event has; ValueError or TypeError if there is none. One that is called error is one."""
    value: dict[str, t.Any] = {**json.loads(data)}
    return {"error": value} if name == "error" and not value.get("error") else value


class _Https(http.client.HTTPSConnection):
    """A connection to a server that has to prove that it is NAME, wherever it is reached."""

    def __init__(self, host: str, port: int | None, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._trusted = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


class JsonClient:
    """A client of the server at URL. WHO names it in messages; HOSTNAME replaces the host of the URL in requests.

    AUTHORITIES (PEM) are those that HTTPS trusts, instead of those of the system.
    """

    def __init__(self, url: str, who: str, *, timeout: float, hostname: str | None = None, authorities: str | None = None) -> None:
        self.who = who
        parts = parts_of(url)
        if not re.fullmatch("[!-~]*", hostname or ""):
            raise InvalidInput("hostname: it has other characters than those of a DNS name.")
        host = str(parts.hostname)
        self._prefix = parts.path.rstrip("/")
        self.headers = {"Host": hostname} if hostname else {}
        self._connection = (
            _Https(host, parts.port, hostname or host, trusting(authorities), timeout)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=timeout)
        )

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        self._connection.close()

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def ask(self, method: str, path: str, body: t.Any = None) -> Answer:
        """Return status and response; a response that is no JSON object is empty."""
        status, found = self.exchange(method, path, body)
        return status, found if isinstance(found, dict) else {}

    def exchange(self, method: str, path: str, body: t.Any) -> tuple[int, t.Any]:
        """Return status and JSON of the response, or nothing; its events are joined."""
        status, text, kind = self._answer(method, path, None if body is None else json.dumps(body))
        found: t.Any = {}
        with contextlib.suppress(AttributeError, OverflowError, RecursionError, TypeError, ValueError):
            found = self.joined(events(text)) if kind == _EVENTS or text.startswith("data:") else json.loads(text)
        if status != OK and not (isinstance(found, dict) and found.get("error")):
            # FastAPI has a detail, older servers and gateways a message, proxies a text.
            said = (found.get("detail") or found.get("message")) if isinstance(found, dict) else None
            found = {"error": str(said or ("" if text.lstrip().startswith("<") else text.strip()))[:_LONGEST]}
        return status, found

    def text(self, path: str) -> tuple[int, str]:
        """Return status and text of the response to GET."""
        return self._answer("GET", path, None)[:2]

    def joined(self, events: t.Sequence[tuple[str, str]]) -> t.Any:
        """The events of an answer in parts as one answer."""
        raise ValueError(events)

    def _answer(self, method: str, path: str, body: str | None) -> tuple[int, str, str]:
        """Status, text and media type of the response."""
        headers = {**self.headers, **({"Content-Type": "application/json"} if body else {})}
        try:
            self._connection.request(method, f"{self._prefix}{path}", body, headers)
            with self._connection.getresponse() as answer:
                return answer.status, answer.read().decode(errors="replace"), answer.headers.get_content_type()
        except (OSError, UnicodeError, http.client.HTTPException) as exc:
            self.close()
            raise Unreachable(f"{self.who} gives no answer: {exc or type(exc).__name__}.") from exc
