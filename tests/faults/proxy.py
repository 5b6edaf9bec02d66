# SPDX-License-Identifier: GPL-3.0-or-later
"""A TLS proxy before a real API server that breaks chosen requests, each in its own way.

It ends TLS with a certificate of its own authority and asks the API server with the kubeconfig's credentials, so that what lies between
can be cut at any byte. It listens on the loopback interface and ends with its `with` block.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import http.server
import json
import pathlib
import re
import socket
import ssl
import struct
import threading
import typing as t
from collections.abc import Callable, Iterator

from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed

PASSED_ON = ("Accept", "Content-Type", "User-Agent")
Fault = Callable[["Exchange"], None]


@dataclasses.dataclass
class Rule:
    """Which requests break: method, pattern of the target, how many of them are let through before, how many break."""

    fault: Fault
    method: str = "PATCH"
    target: str = ""
    after: int = 0
    times: int = 1
    seen: int = 0

    def takes(self, method: str, target: str) -> bool:
        """Whether this request is one that breaks; counts those that match."""
        if method != self.method or not re.search(self.target, target):
            return False
        self.seen += 1
        return self.after < self.seen <= self.after + self.times


class Exchange(http.server.BaseHTTPRequestHandler):
    """The requests of one connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *args: t.Any) -> None:  # noqa: A002
        """Quiet."""

    def setup(self) -> None:
        super().setup()
        self.up: http.client.HTTPSConnection | None = None

    def finish(self) -> None:
        if self.up:
            self.up.close()
        with contextlib.suppress(OSError):
            super().finish()

    def relay(self) -> None:
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_for(self.command, self.path, self.headers.get("Authorization"))
        if fault:
            fault(self)
        else:
            self.forward()

    do_GET = do_PATCH = do_DELETE = do_POST = relay

    def ask(self) -> http.client.HTTPResponse:
        """The request, sent to the API server."""
        for attempt in (1, 2):
            if self.up is None:
                self.up = self.server.upstream()
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            try:
                self.up.request(self.command, self.path, self.content or None, headers)
                answer = self.up.getresponse()
            except (OSError, http.client.HTTPException):
                self.up.close()
                self.up = None
                if attempt == 2:
                    raise
            else:
                self.server.passed(self.command, self.path)
                return answer
        raise AssertionError

    def forward(self) -> None:
        """Ask, and give the answer back as it comes."""
        try:
            answer = self.ask()
            self.send_response(answer.status)
            for name in ("Content-Type", "Retry-After", "Warning"):
                for value in answer.headers.get_all(name) or []:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            answer.close()
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.reset()  # the API server broke off, and so do we

    def reply(self, status: int, body: t.Any, headers: dict[str, str], *, length: int | None = None) -> None:
        """An answer of our own; with another length than it has, it is cut off."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        if length is not None:
            self.close_connection = True

    def reset(self) -> None:
        """Break off: the client sees a connection reset, not an orderly end."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Not through TLS, which would say good-bye first.
            socket.socket(fileno=self.connection.detach()).close()


class Proxy(http.server.ThreadingHTTPServer):
    """See the module's docstring."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, upstream: Callable[[], http.client.HTTPSConnection], tls: ssl.SSLContext) -> None:
        self.upstream = upstream
        self.rules: list[Rule] = []
        self.token: str | None = None
        """The only bearer token that is taken; None takes everybody."""
        self.requests: list[tuple[str, str]] = []
        """What reached the API server."""
        self.closing = threading.Event()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), Exchange)
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A connection that breaks is what this is for."""

    def fault_for(self, method: str, target: str, authorization: str | None) -> Fault | None:
        with self._guard:
            hits = [rule for rule in self.rules if rule.takes(method, target)]
            expired = self.token is not None and authorization != f"Bearer {self.token}"
        if expired:
            return answer_with(401, "Unauthorized", "Unauthorized")
        return hits[0].fault if hits else None

    def passed(self, method: str, target: str) -> None:
        with self._guard:
            self.requests.append((method, target))

    @property
    def writes(self) -> list[str]:
        """The writes that reached the API server, dry runs left out."""
        return [f"{method} {target}" for method, target in self.requests if method != "GET" and "dryRun" not in target]


def answer_with(status: int, reason: str, message: str, details: t.Any = None, **headers: str) -> Fault:
    """An answer as the API server words it, without asking it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason, "message": message}
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.reply(status, {**body, **({"details": details} if details else {})}, shown)


def reset_before(exchange: Exchange) -> None:
    """The connection breaks before the API server has the request."""
    exchange.reset()


def reset_after(exchange: Exchange) -> None:
    """The API server does what it is asked; its answer is lost."""
    exchange.ask().read()
    exchange.reset()


def silent(exchange: Exchange) -> None:
    """Not a byte, until the client gives up."""
    exchange.server.closing.wait(30)
    exchange.reset()


def cut_off(exchange: Exchange) -> None:
    """The API server does what it is asked; half of its answer arrives."""
    answer = exchange.ask()
    data = answer.read()
    exchange.reply(answer.status, data[: len(data) // 2], {}, length=len(data))


def cut_and_counted(exchange: Exchange) -> None:
    """As cut_off, but the length is that of the half: only the JSON is broken."""
    answer = exchange.ask()
    data = answer.read()
    exchange.reply(answer.status, data[: len(data) // 2], {})


def event_of_error(exchange: Exchange) -> None:
    """A watch that begins well and then says that its history is gone."""
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    exchange.reply(200, json.dumps({"type": "ERROR", "object": status}).encode() + b"\n", {})


def half_an_event(exchange: Exchange) -> None:
    """A watch that breaks in the middle of a line."""
    exchange.reply(200, b'{"type": "MODIFIED", "object": {"metada', {}, length=4000)


def certificates(folder: pathlib.Path, address: str = "127.0.0.1") -> tuple[pathlib.Path, str]:
    """A new authority and a certificate by it for an address: file with key and certificate, and the authority as PEM."""
    authority = signed("faults", ca=True)
    own, path = signed("proxy", authority, host=address), folder / "proxy.pem"
    path.touch(mode=0o600)
    path.write_text(own.key_pem() + own.pem)
    return path, authority.pem


@contextlib.contextmanager
def proxied(upstream: Callable[[], http.client.HTTPSConnection], folder: pathlib.Path) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy for the time of the with block; yield it and the PEM of its authority."""
    path, authority = certificates(folder)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(path)
    proxy = Proxy(upstream, tls)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy, authority
    finally:
        proxy.closing.set()
        proxy.shutdown()
        thread.join(timeout=10)
        proxy.server_close()
