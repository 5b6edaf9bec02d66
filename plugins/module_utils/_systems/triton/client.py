# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""A client of Triton's HTTP API, which keeps its connection, so that latencies do not include the opening of connections."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import re
import ssl
import typing as t
from urllib.parse import SplitResult, urlsplit

from ..._core.clock import Clock
from ..._core.errors import Failed, InvalidInput, Unreachable
from ..._core.trust import trusting
from .inference import Inference, flat, refused

READY = "READY"
Answer = tuple[int, dict[str, t.Any]]
_OK = 200
_EVENT = "data: "


@dataclasses.dataclass(frozen=True)
class Version:
    """The state of a model's version, as the server reports it."""

    state: str
    reason: str = ""


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
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise InvalidInput(f"url: '{url}' is not the address of a server.", "Write it as http://HOST:PORT.")
    return parts


class _Https(http.client.HTTPSConnection):
    """A connection to a server that has to prove that it is NAME, wherever it is reached."""

    def __init__(self, host: str, port: int | None, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._trusted = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


class Client(contextlib.AbstractContextManager["Client"]):
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
        self._headers = {"Host": hostname} if hostname else {}
        self._connection = (
            _Https(host, parts.port, hostname or host, trusting(authorities), timeout)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=timeout)
        )

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        self._connection.close()

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def ask(self, method: str, path: str, body: t.Any = None) -> Answer:
        """Return status and response; a response that is no JSON object is empty."""
        status, found = self._exchange(method, path, body)
        return status, found if isinstance(found, dict) else {}

    def _exchange(self, method: str, path: str, body: t.Any) -> tuple[int, t.Any]:
        try:
            status, text = self._answer(method, path, None if body is None else json.dumps(body))
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            raise Unreachable(f"{self.who} gives no answer: {exc or type(exc).__name__}.") from exc
        found: t.Any = {}
        with contextlib.suppress(ValueError):
            found = _joined(text) if text.startswith(_EVENT) else json.loads(text)
        return status, found

    def _answer(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        self._connection.request(method, f"{self._prefix}{path}", body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def is_ready(self, inference: Inference) -> bool:
        """Whether the server reports that the model is ready."""
        return self.ask("GET", f"{inference.path}/ready")[0] == _OK

    def server(self) -> dict[str, t.Any]:
        """The metadata of the server."""
        return self.read("/v2")

    def model(self, inference: Inference) -> dict[str, t.Any]:
        """The metadata of the model."""
        return self.read(inference.path)

    def read(self, path: str) -> dict[str, t.Any]:
        """The metadata at PATH."""
        return self._needed(self.ask("GET", path), f"tell about {path}")

    def index(self, model: str) -> dict[int, Version]:
        """The versions of the model in the server's index. It omits versions that the server never tried to load."""
        status, found = self._exchange("POST", "/v2/repository/index", None)
        if status != _OK or not isinstance(found, list):
            said = found.get("error") if isinstance(found, dict) else None
            raise Failed(f"{self.who} refuses to list its models: {said or 'no reason given'} (status {status}).")
        rows = [row for row in found if row.get("name") == model and str(row.get("version") or "").isdecimal()]
        return {int(row["version"]): Version(row.get("state") or "", row.get("reason") or "") for row in rows}

    def load(self, model: str, config: str | None = None) -> None:
        """Load the model, with the configuration that it has in the store, or with CONFIG (JSON) instead.

        If that fails, the versions loaded before stay loaded.
        """
        body = {"parameters": {"config": config}} if config else {}
        self._needed(self.ask("POST", f"/v2/repository/models/{model}/load", body), f"load model {model}")

    def unload(self, model: str) -> None:
        """Unload the model, with all its versions."""
        self._needed(self.ask("POST", f"/v2/repository/models/{model}/unload", {}), f"unload model {model}")

    def infer(self, inference: Inference, clock: Clock) -> tuple[dict[str, t.Any], float]:
        """The answer of the model, and the seconds that it took."""
        body = inference.body
        began = clock.monotonic()
        answer = self.ask("POST", inference.asked, body)
        return self._needed(answer, f"infer with model {inference.model}"), clock.monotonic() - began

    def _needed(self, answer: Answer, doing: str) -> dict[str, t.Any]:
        status, found = answer
        if status != _OK or "error" in found:
            said = str(found.get("error") or "no reason given")
            raise refused(self.who, doing, said, status)
        return found


def _joined(text: str) -> dict[str, t.Any]:
    """The responses of Generate, an event for each, as one answer of inference. One of them may be an error."""
    found: dict[str, t.Any] = {"outputs": []}
    for line in text.splitlines():
        if line.startswith(_EVENT):
            event = json.loads(line.removeprefix(_EVENT))
            found |= {name: event.pop(name) for name in ("model_name", "model_version", "error") if name in event}
            found["outputs"] += [{"name": name, "data": flat(value)} for name, value in event.items()]
    return found
