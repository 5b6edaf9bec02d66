# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP client of RabbitMQ's management API, with login, TLS, timeouts, and errors of the collection's classes.

http.client, as for Kubernetes: no redirect, proxy variable or .netrc can carry the password to another host.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import html
import http.client
import json
import re
import ssl
import typing as t
import urllib.parse
from collections.abc import Callable, Mapping, Sequence

from ..._core.clock import Clock
from ..._core.errors import Causes, Forbidden, InvalidInput, MusterError, NotFound, Rejected, ServerError, Unauthorized, Unreachable
from ..._core.pace import Backoff, with_retries
from ..._core.sensitive import Sensitive, revealed
from ..._core.trust import authorities, authorities_in, refusal, trusting

if t.TYPE_CHECKING:
    from ..._kube.tunnel import Tunnel

CONNECTION: dict[str, t.Any] = {
    "login_host": {"type": "str", "default": "127.0.0.1"},
    "login_port": {"type": "int"},
    "login_protocol": {"type": "str", "choices": ["https", "http"], "default": "https"},
    "login_kubernetes": {
        "type": "dict",
        "options": {
            "name": {"type": "str", "default": "rabbitmq"},
            "namespace": {"type": "str"},
            "kubeconfig": {"type": "raw"},
            "context": {"type": "str"},
        },
    },
    "login_user": {"type": "str"},
    "login_password": {"type": "str", "no_log": True},
    "ca_cert": {"type": "path"},
    "client_cert": {"type": "path"},
    # Also the name of a file.
    "client_key": {"type": "path", "no_log": False},
    "request_timeout": {"type": "int", "default": 10},
    "startup_timeout": {"type": "int", "default": 30},
}
CONSTRAINTS: dict[str, t.Any] = {
    "required_together": [("client_cert", "client_key"), ("login_user", "login_password")],
    # A broker in a cluster has them in a Secret.
    "required_one_of": [("login_password", "login_kubernetes")],
}
_PORTS = {"https": 15671, "http": 15672}
_PIECE = 1 << 16
_SHORTEST = 3
"""Least length of a secret that is searched for in the broker's messages; shorter ones occur in many words."""
# The error in the response to a wrong password, in 3.10 and 4.0. For a missing permission it is "not_authorised", with the same status.
_WRONG_PASSWORD = "not_authorized"  # noqa: S105
NOT_EMPTY = "not empty"
# What brokers say beside bad_request where a classic queue is to be deleted if-empty (tests/rabbitmq): "queue 'q' in vhost '/' not empty".
_CAUSES: Causes = ((NOT_EMPTY, re.compile("not empty")),)
_IN_VHOST = ("queues", "policies", "operator-policies", "permissions", "topic-permissions", "exchanges", "bindings")

Path = Sequence[str]
Body = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Address:
    """The address of the management API, the trusted certificates, and timeouts (seconds)."""

    host: str
    port: int
    protocol: str = "https"
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    request_timeout: float = 10.0
    """The timeout of one response."""
    startup_timeout: float = 30.0
    """The time for retries while the port is closed or the broker responds with a server error, as it does while it starts."""
    authority: str | None = None
    """The CA certificate of the broker (PEM), where it is in no file."""
    tunnel: Callable[[], Tunnel] | None = None
    """Opens a tunnel to the broker, instead of a connection to host and port."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclasses.dataclass(frozen=True)
class Login:
    """A user of the broker."""

    user: str
    password: Sensitive

    def header(self) -> str:
        """The header Authorization; RFC 7617 has UTF-8, and no colon in a name."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password.reveal()}'.encode()).decode()}"


def address_of(params: Mapping[str, t.Any]) -> Address:
    """The address in the options CONNECTION."""
    port = params["login_port"] or _PORTS[params["login_protocol"]]
    same = {key: params[key] for key in ("ca_cert", "client_cert", "client_key", "request_timeout", "startup_timeout")}
    return Address(host=params["login_host"], port=port, protocol=params["login_protocol"], **same)


def connect(params: Mapping[str, t.Any], clock: Clock) -> ManagementApi:
    """The management API at the options CONNECTION; nothing is sent to it yet."""
    if params.get("login_kubernetes"):
        from .inside import connect_inside

        return connect_inside(params, clock)
    if ":" in params["login_user"]:
        raise InvalidInput("login_user: a name with a colon cannot log in by HTTP (RFC 7617).", "Use another user.")
    return ManagementApi(address_of(params), Login(params["login_user"], Sensitive(params["login_password"])), clock)


class ManagementApi(contextlib.AbstractContextManager["ManagementApi"]):
    """A client that logs in as one user. Paths are given in parts, such as ``("queues", "/", "name")``; the API wants ``/`` as ``%2F``."""

    def __init__(self, address: Address, login: Login, clock: Clock) -> None:
        self.address = address
        self.login = login
        self.clock = clock
        self._context = _context(address) if address.protocol == "https" else None
        self._wire: http.client.HTTPConnection | None = None
        self._tunnel: Tunnel | None = None

    def __exit__(self, *_exc: object) -> None:
        self._hang_up()

    @property
    def user(self) -> str:
        return self.login.user

    def log_in(self, password: Sensitive) -> None:
        """Use another password of the same user from now on."""
        self.login = dataclasses.replace(self.login, password=password)

    def get(self, *path: str, **query: str) -> t.Any:
        """The object at PATH, None if there is none."""
        try:
            return self.call("GET", path, query=query)
        except NotFound:
            return None

    def call(
        self, method: str, path: Path, body: Body | None = None, *, query: Mapping[str, str] | None = None, answers: Sequence[int] = ()
    ) -> t.Any:
        """Return the response to one request; a DELETE of a missing object succeeds. ``answers``: other statuses that are no failure.

        PUT and DELETE are idempotent, so they are retried while the broker starts. A POST publishes or takes a message: it is retried only
        if no connection was established.
        """
        backoff = Backoff(self.clock, first=0.2, longest=2.0)

        def again(exc: MusterError) -> bool:
            unanswered = isinstance(exc, _NoAnswer) and exc.passes and (method != "POST" or not exc.sent)
            failed = isinstance(exc, ServerError) and method != "POST"
            return (unanswered or failed) and backoff.wait_for_retry(limit=self.address.startup_timeout)

        return with_retries(lambda: self._checked(method, path, body, self._exchange(method, path, body, query), answers), again)

    def _exchange(self, method: str, path: Path, body: Body | None, query: Mapping[str, str] | None) -> _Answer:
        given = urllib.parse.urlencode(query) if query else ""
        target = "/api/" + "/".join(urllib.parse.quote(part, safe="") for part in path) + (f"?{given}" if given else "")
        data = None if body is None else json.dumps(revealed(body)).encode()
        # Any type: a PUT of a limit with "Accept: application/json" is answered with 406 (3.10 and 4.0).
        headers = {"Authorization": self.login.header(), "Accept": "*/*", "User-Agent": "muster"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        sent = False
        try:
            wire = self._wire or self._dial()
            self._wire, sent = wire, True
            wire.request(method, target, body=data, headers=headers)
            response = wire.getresponse()
            text = self._body(response)
        except ssl.SSLCertVerificationError as exc:
            raise self._untrusted(exc) from exc
        except (OSError, UnicodeError, http.client.HTTPException) as exc:
            trouble = self._tunnel.trouble if self._tunnel else ""
            self._hang_up()
            raise self._unreachable(exc, trouble, sent=sent) from exc
        if response.will_close:
            self._hang_up()
        return _Answer(response.status, text)

    def _dial(self) -> http.client.HTTPConnection:
        where, seconds = self.address, self.address.request_timeout
        wire: http.client.HTTPConnection
        if self._context:
            wire = http.client.HTTPSConnection(where.host, where.port, timeout=seconds, context=self._context)
        else:
            wire = http.client.HTTPConnection(where.host, where.port, timeout=seconds)
        if where.tunnel is None:
            wire.connect()
            return wire
        self._tunnel = where.tunnel()
        wire.sock = self._tunnel.socket
        wire.sock.settimeout(seconds)
        if self._context:
            wire.sock = self._context.wrap_socket(wire.sock, server_hostname=where.host)
        return wire

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """The whole body. The socket's timeout covers the next byte only, so a slow response is stopped here."""
        end, pieces = self.clock.monotonic() + self.address.request_timeout, []
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            if self.clock.monotonic() > end:
                raise TimeoutError(f"the answer was not complete after {self.address.request_timeout:g} s")
        missing = response.length
        response.close()  # or the connection could not be used for another request
        if missing:
            raise http.client.IncompleteRead(b"", missing)
        return b"".join(pieces)

    def _hang_up(self) -> None:
        if self._wire:
            self._wire.close()
            self._wire = None
        if self._tunnel:
            self._tunnel.close()
            self._tunnel = None

    def _checked(self, method: str, path: Path, body: Body | None, answer: _Answer, answers: Sequence[int]) -> t.Any:
        if 300 <= answer.status < 400 or (answer.text and not answer.is_json):
            raise Unreachable(
                f"{self.address} answers with status {answer.status}, but not as RabbitMQ's management API does.",
                "Another server or a proxy may answer at this port: check login_host, login_port and the plugin rabbitmq_management.",
            )
        if answer.status < 300 or answer.status in answers:
            return json.loads(answer.text) if answer.text else None
        if answer.status == 404 and method == "DELETE":
            return None
        raise self._refused(method, path, answer, self._without_secrets(answer.reason, body))

    def _refused(self, method: str, path: Path, answer: _Answer, reason: str) -> MusterError:
        what = f"{method} {'/'.join(path)}"
        if answer.status == 401 and answer.error == _WRONG_PASSWORD:
            return Unauthorized(
                f"The broker at {self.address} refuses the password of user {self.user}, or does not know the user.",
                "Correct login_user and login_password. The user guest can log in from the broker's own host only.",
            )
        if answer.status in (401, 403):
            return Forbidden(
                f"User {self.user} may not {what} at {self.address}: {reason}.",
                "Log in as a user with the tag administrator, or give this one the tag or permission.",
            )
        if answer.status == 404 or reason == "vhost_or_user_not_found":
            vhost = path[1] if path[0] in _IN_VHOST and len(path) > 1 else None
            if vhost is None:
                return NotFound(f"{what}: the broker at {self.address} has no such object.")
            return NotFound(
                f"{what}: the broker at {self.address} has no vhost {vhost}, or not what it names.",
                "Create it first, with muster.ml.rabbitmq_definitions.",
            )
        if answer.status >= 500:
            said = f": {reason}" if reason else ""
            return ServerError(f"The broker at {self.address} failed at {what} (status {answer.status}){said}.", "Its log says why.")
        return Rejected(f"The broker at {self.address} refuses {what}: {reason or answer.status}.").with_cause(reason, _CAUSES)

    def _without_secrets(self, text: str, body: Body | None) -> str:
        for value in [self.login.password, *(body or {}).values()]:
            if isinstance(value, Sensitive) and len(str(value.reveal())) >= _SHORTEST:
                text = text.replace(str(value.reveal()), "<redacted>")
        return text

    def _untrusted(self, exc: ssl.SSLCertVerificationError) -> MusterError:
        hints = {
            "time": "Renew the certificate, or set the clock of this machine.",
            "name": "The certificate is for other names: set login_host to one of them.",
            "authority": (
                f"{self.address.ca_cert} did not sign it: set ca_cert to the broker's authority."
                if self.address.ca_cert
                else "The authorities of this system did not sign it: set ca_cert to the broker's authority."
            ),
            "other": "The certificate itself, or that of its authority, is not in order.",
        }
        reason = exc.verify_message.rstrip(".")
        return Unreachable(f"The broker at {self.address} has a certificate that is not trusted: {reason}.", hints[refusal(exc)])

    def _unreachable(self, exc: BaseException, trouble: str, *, sent: bool) -> MusterError:
        reason = trouble or getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        hint = "Check login_host and login_port, and that the broker runs with the plugin rabbitmq_management."
        passes = sent or not isinstance(exc, ssl.SSLError) or isinstance(exc, ssl.SSLEOFError)
        if isinstance(exc, ssl.SSLError) and "ALERT" in (exc.reason or ""):
            passes, hint = False, "It may ask for a client certificate, or not accept this one: check client_cert."
        elif not passes:
            hint = f"Check that port {self.address.port} is the one with TLS (15671 by default)."
        elif isinstance(exc, http.client.HTTPException | ConnectionResetError) and self.address.protocol == "http":
            hint += " A port with TLS also breaks off so: then set login_protocol to https."
        return _NoAnswer(f"The broker's management API at {self.address} does not answer: {reason}.", hint, sent, passes)


class _NoAnswer(Unreachable):
    """An error without a usable response. ``sent``: the request may have arrived; ``passes``: the broker may be starting."""

    def __init__(self, message: str, hint: str, sent: bool, passes: bool) -> None:
        super().__init__(message, hint)
        self.sent = sent
        self.passes = passes


@dataclasses.dataclass(frozen=True)
class _Answer:
    status: int
    text: bytes

    @property
    def _parsed(self) -> t.Any:
        try:
            return json.loads(self.text)
        except ValueError:
            return _NOT_JSON

    @property
    def is_json(self) -> bool:
        return self._parsed is not _NOT_JSON

    @property
    def error(self) -> str:
        return str(self._parsed.get("error", "")) if isinstance(self._parsed, dict) else ""

    @property
    def reason(self) -> str:
        """The broker's error message, in one line. It escapes its texts for HTML, and returns some as lists of character codes."""
        found = self._parsed.get("reason", "") if isinstance(self._parsed, dict) else ""
        return " ".join(html.unescape(_words(found)).split()).rstrip(".")


_NOT_JSON = object()


def _words(value: t.Any) -> str:
    if not isinstance(value, list):
        return str(value)
    if value and all(isinstance(item, int) and 31 < item < 0x110000 for item in value):
        return "".join(map(chr, value))
    return " ".join(_words(item) for item in value)


def _context(address: Address) -> ssl.SSLContext:
    text = address.authority
    if address.ca_cert:
        text = authorities_in(address.ca_cert, "ca_cert")
    elif text is not None:
        text = authorities(text, f"ca_cert: {address.ca_cert}")
    context = trusting(text)
    if address.client_cert:
        try:
            context.load_cert_chain(address.client_cert, address.client_key, password=_no_password)
        except (OSError, ValueError) as exc:
            reason = getattr(exc, "reason", None) or getattr(exc, "strerror", None) or exc
            raise InvalidInput(f"client_cert: {address.client_cert} and its key cannot be used: {reason}.") from exc
    return context


def _no_password() -> str:
    """Refuse an encrypted key. Without this callback OpenSSL would prompt for its passphrase at the terminal."""
    raise ValueError("the key is encrypted with a pass phrase")
