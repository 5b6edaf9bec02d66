# SPDX-License-Identifier: GPL-3.0-or-later
"""The one file that talks HTTP to Kubernetes: kept-alive connections, any number of threads, raw JSON.

Why http.client and no Kubernetes library: docs/architecture.md, section "Kubernetes client".
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import email.utils
import functools
import http.client
import io
import json
import math
import os
import queue
import re
import socket
import ssl
import threading
import typing as t
import urllib.parse

from .._core.clock import Clock, Deadline, utc
from .._core.errors import InvalidInput, MissingKind, MusterError, NotFound, Unreachable
from .._core.pace import Backoff, Limits, TokenBucket
from .._core.sensitive import Sensitive
from . import headers, kinds, redact, responses, tls
from .credentials import RequestAuth
from .kubeconfig import Connection, Params, load
from .objects import FIELD_MANAGER, Event, Listing, Manifest, Ref, ServedKind, ref_of
from .pod_status import main_container

if t.TYPE_CHECKING:
    from .tunnel import Tunnel

_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_ANYTHING = "*/*"
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_RATE, _BURST = 1000.0, 2000
# The number of connections and the server's 429 limit us; this bucket only stops a loop that went wrong.
_PIECE = 1 << 20
_LONGEST_HEAD = 1 << 16
_GRACE = 2.0
"""Seconds that a watch may be late in ending by itself."""
_EVENTS = 100
"""Most events of one object that are read; senders combine those that are much alike."""
_SETTLING = 10.0
"""Seconds in which a restarted API server may still refuse what it allows, or not know kinds that it serves."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Status and body of one HTTP exchange."""

    status: int
    body: bytes
    retry_after: float | None = None
    location: str | None = None
    """The target of a redirect."""

    def json(self) -> Manifest:
        """The body as an object; if it is not JSON (a proxy's page, another protocol), an object with its text as the message."""
        return {"message": self.body[:200].decode(errors="replace")} if self.parsed is None else self.parsed

    @functools.cached_property
    def parsed(self) -> Manifest | None:
        """The body as an object; None if it is none, or cut off."""
        try:
            parsed = json.loads(self.body)
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else None


class _Headers(list[tuple[str, bytes]]):
    """The part of a mapping that http.client uses (names, and pairs), with names that may repeat (Impersonate-Group)."""

    def __iter__(self) -> t.Iterator[t.Any]:
        return (name for name, _value in super().__iter__())

    def items(self) -> list[tuple[str, bytes]]:
        return self[:]


Pair: t.TypeAlias = "tuple[str | None, Sensitive | None]"


class _Wire(http.client.HTTPConnection):
    """A connection to the API server, perhaps through a proxy. ``pair`` is the client certificate of its TLS session."""

    def __init__(self, connection: Connection, context: ssl.SSLContext | None, pair: Pair, timeout: float) -> None:
        url = connection.url
        self.default_port = 443 if context else 80
        super().__init__(url.hostname or "", url.port or self.default_port, timeout=timeout)
        self._connection = connection
        self._tls_context = context
        self.pair = pair
        self._body = b""

    def ask(self, method: str, target: str, given: _Headers, body: bytes | None) -> None:
        """Send a request, head and body in one write and so in one record of TLS: http.client takes two."""
        self._body = body or b""
        if body:
            given.append(("Content-Length", b"%d" % len(body)))
        self.request(method, target, headers=t.cast("t.Any", given))

    def send(self, data: t.Any) -> None:
        body, self._body = self._body, b""
        super().send(data + body)

    def connect(self) -> None:
        proxy = self._connection.proxy
        if proxy is None:
            sock = socket.create_connection((self.host, self.port), self.timeout)
        elif proxy.speaks_http and self._tls_context is None:  # it gets the whole URL, without a tunnel
            sock = socket.create_connection((proxy.host, proxy.port), self.timeout)
        else:
            sock = proxy.connect(self.host, self.port, self.timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls_context:
            # The name in the certificate may differ from the host (tls-server-name).
            name = self._connection.tls_server_name or self.host
            sock = self._tls_context.wrap_socket(sock, server_hostname=name)
        self.sock = sock


class Transport:
    """HTTP to one API server. Threads share a pool of connections."""

    def __init__(self, connection: Connection, clock: Clock, limits: Limits | None = None) -> None:
        self.connection = connection
        self.limits = limits or Limits()
        self._base = _base(connection)
        run = os.environ.get("MUSTER_RUN", "")
        self._agent = f"muster/{run}" if run.isalnum() else "muster"
        """The user agent, with the identifier of the run by which callback summary counts requests."""
        self._idle: queue.LifoQueue[_Wire] = queue.LifoQueue()
        self.clock = clock
        self._bucket = TokenBucket(_RATE, _BURST, clock)
        self._answered = False
        self._broken_at = -math.inf
        self._tls: tuple[Pair, ssl.SSLContext] | None = None
        self._lock = threading.Lock()
        self.warnings: dict[str, None] = {}

    def call(
        self, method: str, path: str, query: t.Mapping[str, str], body: Manifest | None = None, *,
        content_type: str = _JSON, accept: str = _JSON, timeout: float | None = None, within: float = math.inf,
        before: t.Callable[[], None] | None = None,
    ) -> Answer:  # fmt: skip
        """Send one request, and again as long as that makes sense. The last answer is returned whatever its status.

        ``timeout`` bounds one attempt, ``within`` all of them together. ``before`` is called before each attempt; its errors are raised.
        """
        data = request_body(body) if body is not None else None
        began, deadline = self.now, self.now + within
        # Counted from the first failure on: one answer may take as long as an outage is waited for.
        backoff, refreshed = Backoff(self.clock, from_failure=True), False
        # A conflict about a given version would be the same the second time, and so would a name that is taken.
        pinned = "resourceVersion" in ((body or {}).get("metadata") or {})
        while True:
            self._bucket.take()
            limit, until = self.limits.outage, deadline if self._answered else min(deadline, began + self.limits.first_contact)
            auth = self.connection.credentials.auth()
            left = max(0.1, min(timeout or self.limits.answer, deadline - self.now))
            if before:
                before()
            try:
                answer = self._exchange(method, self._target(path, query), data, content_type, accept, left, auth)
                if accept != _ANYTHING and answer.status < 300 and answer.parsed is None:
                    limit = self.limits.first_contact  # it may not be an API server at all
                    raise http.client.HTTPException("its answer is cut off, or no JSON object, as of a login page")
            except ssl.SSLCertVerificationError as exc:
                raise self._untrusted(exc) from exc
            except (OSError, http.client.HTTPException) as exc:
                # TLS that never worked will not start to. TLS that did breaks off with the server, or after 90 idle seconds.
                if (isinstance(exc, ssl.SSLError) and not self._answered) or not backoff.wait_for_retry(limit=limit, until=until):
                    raise self._unreachable(exc) from exc
                self._broken_at = self.now
                continue
            if answer.status == 401 and not refreshed:
                refreshed = True
                if self.connection.credentials.refresh(auth):
                    continue
            if 300 <= answer.status < 400:
                raise self._redirected(answer)
            payload, restarted = answer.json(), self.now - self._broken_at < _SETTLING
            taken = method == "POST" and payload.get("reason") == "AlreadyExists"
            final = answer.status < 300 or (answer.status == 409 and (pinned or taken))
            again = responses.is_retryable(answer.status, payload) or (restarted and responses.is_startup_answer(answer.status, payload))
            if final or not again or not backoff.wait_for_retry(limit=limit, retry_after=answer.retry_after, until=deadline):
                return answer

    def stream(self, path: str, query: t.Mapping[str, str], *, timeout: float) -> t.Iterator[bytes]:
        """Yield the lines of a streaming response, over a connection of its own, until it ends or breaks."""
        refreshed = False
        while True:
            self._bucket.take()
            auth = self.connection.credentials.auth()
            try:
                with self._reached(), contextlib.suppress(TimeoutError):  # the server's clock differs a little from ours
                    yield from self._lines(self._target(path, query), timeout, auth)
            except StreamRefused as exc:
                if 300 <= exc.answer.status < 400:
                    raise self._redirected(exc.answer) from None
                if exc.answer.status != 401 or refreshed or not self.connection.credentials.refresh(auth):
                    raise
                refreshed = True
            else:
                return

    @contextlib.contextmanager
    def _reached(self) -> t.Iterator[None]:
        """Raise what goes wrong on the way to the server as Unreachable."""
        try:
            yield
        except ssl.SSLCertVerificationError as exc:
            raise self._untrusted(exc) from exc
        except (OSError, http.client.HTTPException) as exc:
            self._broken_at = self.now
            raise self._unreachable(exc) from exc

    def _lines(self, target: str, timeout: float, auth: RequestAuth) -> t.Iterator[bytes]:
        connection = self._new(auth)
        try:
            connection.timeout = timeout
            connection.ask("GET", target, self._headers(_JSON, None, auth), None)
            response = connection.getresponse()
            if response.status >= 300:
                raise StreamRefused(_answer(response, response.read(), self.clock))
            self._note_warnings(response)
            while line := response.readline():
                yield line
        finally:
            connection.close()

    def upgrade(self, path: str, query: t.Mapping[str, str | t.Sequence[str]], *, timeout: float) -> socket.socket | Answer:
        """The socket of a new WebSocket, or the answer of a server that gave none."""
        refreshed = False
        while True:
            self._bucket.take()
            auth = self.connection.credentials.auth()
            with self._reached():
                found = self._upgraded(self._target(path, query), timeout, auth)
            expired = isinstance(found, Answer) and found.status == 401
            if not expired or refreshed or not self.connection.credentials.refresh(auth):
                return found
            refreshed = True

    def _upgraded(self, target: str, timeout: float, auth: RequestAuth) -> socket.socket | Answer:
        from . import tunnel

        connection = self._new(auth)
        try:
            connection.timeout = timeout
            asked = tunnel.request_headers()
            given = self._headers(_ANYTHING, None, auth)
            given.extend((name, value.encode()) for name, value in asked.items())
            connection.ask("GET", target, given, None)
            wire = connection.sock
            status, found = _head(wire)
            if status == 101 and tunnel.is_accepted(asked["Sec-WebSocket-Key"], found):
                connection.sock = None
                return wire
            if status < 300:
                raise http.client.HTTPException("it opens no WebSocket")
            return Answer(status, wire.recv(_PIECE) if int(found.get("Content-Length") or 0) else b"")
        finally:
            connection.close()

    def _exchange(
        self, method: str, target: str, data: bytes | None, content_type: str, accept: str, timeout: float, auth: RequestAuth
    ) -> Answer:
        given = self._headers(accept, content_type if data else None, auth)
        connection = self._borrowed(auth)
        connection.timeout = min(connection.timeout or timeout, timeout)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.ask(method, target, given, data)
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            response = connection.getresponse()
            body = self._body(response, timeout)
        except BaseException:
            connection.close()
            raise
        self._answered = True
        self._note_warnings(response)
        if response.will_close:
            connection.close()
        else:
            self._idle.put(connection)
        return _answer(response, body, self.clock)

    def _borrowed(self, auth: RequestAuth) -> _Wire:
        """An idle connection, or a new one. A client certificate belongs to its connection, so connections with an old one are closed."""
        while True:
            try:
                found = self._idle.get_nowait()
            except queue.Empty:
                return self._new(auth)
            if found.pair == self._pair(auth):
                return found
            found.close()

    def _body(self, response: http.client.HTTPResponse, timeout: float) -> bytes:
        """The whole body. The socket's timeout only covers the next byte, so a server that sends slowly is stopped here."""
        deadline, pieces = self.now + timeout, []
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            if self.now > deadline:
                raise TimeoutError(f"the answer was not complete after {timeout:g} s")
        body, missing = b"".join(pieces), response.length
        response.close()
        if missing:
            raise http.client.IncompleteRead(body, missing)
        return body

    def _target(self, path: str, query: t.Mapping[str, str | t.Sequence[str]]) -> str:
        asked = tuple((name, value if isinstance(value, str) else tuple(value)) for name, value in query.items())
        return f"{self._base}{path}?{_encoded(asked)}" if asked else f"{self._base}{path}"

    def _headers(self, accept: str, content_type: str | None, auth: RequestAuth) -> _Headers:
        """The headers as they are sent; only here are secrets revealed. Invalid values are refused before http.client prints them."""
        given: list[tuple[str, t.Any]] = [*self.connection.headers, ("Accept", accept), ("User-Agent", self._agent)]
        if content_type:
            given.append(("Content-Type", content_type))
        if auth.authorization:
            given.append(("Authorization", auth.authorization.reveal()))
        proxy = self.connection.proxy
        if proxy and proxy.speaks_http and proxy.authorization and self.connection.url.scheme == "http":
            given.append(("Proxy-Authorization", proxy.authorization.reveal()))
        return _Headers((name, headers.sendable(value, f"The header {name}").encode()) for name, value in given)

    def _new(self, auth: RequestAuth) -> _Wire:
        pair = self._pair(auth)
        context = self._context(pair, auth) if self.connection.url.scheme == "https" else None
        return _Wire(self.connection, context, pair, self.limits.connect)

    def _pair(self, auth: RequestAuth) -> Pair:
        return auth.client_cert, auth.client_key

    def _context(self, pair: Pair, auth: RequestAuth) -> ssl.SSLContext:
        with self._lock:
            if self._tls is None or self._tls[0] != pair:
                self._tls = pair, tls.context_for(self.connection, auth)
            return self._tls[1]

    @property
    def now(self) -> float:
        """The time of its clock."""
        return self.clock.monotonic()

    def close(self) -> None:
        """Close the idle connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _note_warnings(self, response: http.client.HTTPResponse) -> None:
        for text in headers.warnings(response.headers.get_all("Warning") or []):
            self.warnings.setdefault(text)

    def _unreachable(self, exc: BaseException) -> MusterError:
        reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        hint = "Check the address, and that the cluster is running."
        if self.connection.proxy:
            hint = f"Check the address, and the proxy {self.connection.proxy}; hosts that need none belong in NO_PROXY."
        return self._error(f"does not answer: {reason}.", hint)

    def _untrusted(self, exc: ssl.SSLCertVerificationError) -> MusterError:
        reason, hint = tls.reason_and_hint(exc, self.connection)
        return self._error(f"has a certificate that is not trusted: {reason}.", hint)

    def _redirected(self, answer: Answer) -> MusterError:
        """The error for a redirect, which no API server sends us. It names only the host: the rest may hold a session key."""
        return self._error(
            f"answered with a redirect (status {answer.status}) to {_host_of(answer.location, self.connection)}.",
            "A login page, a load balancer or a proxy answers in its place: check the address.",
        )

    def _error(self, what: str, hint: str) -> MusterError:
        connection = self.connection
        return Unreachable(
            f"The API server {connection.server} ({connection.source}) {what}",
            hint=hint,
            details={"server": connection.server, "kubeconfig": connection.source},
        )


class StreamRefused(Exception):
    """A stream that was answered with an error status."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class HttpCluster:
    """The Cluster protocol over HTTP."""

    def __init__(self, transport: Transport) -> None:
        self._http, self.clock = transport, transport.clock
        self._resources: dict[str, dict[str, ServedKind]] = {}
        self._check: t.Callable[[], None] | None = None
        """Called before each try of a request that writes, because a request may be tried again for a minute."""
        self._until = math.inf
        """The deadline that all requests share; streams have their own."""

    @property
    def server(self) -> str:
        return self._http.connection.server

    @property
    def namespace(self) -> str:
        return self._http.connection.namespace

    @property
    def certificates(self) -> t.Mapping[str, str | None]:
        settings = self._http.connection
        return {"client certificate": settings.client_cert, "ca certificate": settings.ca}

    def warnings(self) -> t.Sequence[str]:
        return list(self._http.warnings)

    def close(self) -> None:
        self._http.close()

    def resource(self, api_version: str, kind: str, *, refresh: bool = False) -> ServedKind | None:
        known = kinds.BUILT_IN.get((api_version, kind))
        if known:
            return known
        if refresh or api_version not in self._resources:
            answer = self._call("GET", _group_path(api_version), {})
            if answer.status not in (200, 404):
                raise responses.to_error(answer.status, answer.json(), verb="discover", ref=None, what=api_version)
            self._resources[api_version] = kinds.resources_of(answer.json())
        return self._resources[api_version].get(kind)

    def kinds(self) -> kinds.Kinds:
        found = kinds.Kinds()
        for path in ("/api", "/apis"):
            listing = self._json(path, {}, verb="discover", what=path, accept=f"{_DISCOVERY},{_JSON}")
            if listing.get("kind") != "APIGroupDiscoveryList":
                raise InvalidInput("This API server has no aggregated discovery; Kubernetes 1.30 or later is needed to prune.")
            found += kinds.discovered_kinds(listing)
            found.unknown += kinds.unavailable_groups(listing)
        return found

    def get(self, ref: Ref) -> Manifest | None:
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            return None
        answer = self._call("GET", _path(ref.api_version, resource, ref.namespace, ref.name), {})
        if answer.status == 404:
            return None
        return self._checked(answer, verb="get", ref=ref, what=str(ref))

    def list(self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None) -> Listing:
        try:
            return self._list(api_version, kind, namespace, label_selector, _JSON)
        except NotFound:
            return Listing()

    def list_metadata(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None, *, limit: int | None = None
    ) -> Listing:
        return self._list(api_version, kind, namespace, label_selector, _METADATA, limit)

    def apply(self, manifest: Manifest, *, dry_run: bool, force_conflicts: bool = False, manager: str = FIELD_MANAGER) -> Manifest:
        ref = ref_of(manifest)
        query = {"fieldManager": manager, "force": str(force_conflicts).lower(), "fieldValidation": "Strict"}
        return self._object(ref, _with_dry_run(query, dry_run), manifest, verb="apply", content_type=_APPLY)

    def create(self, manifest: Manifest, *, dry_run: bool, manager: str = FIELD_MANAGER) -> Manifest:
        metadata = manifest["metadata"]
        # A review has no name.
        ref = Ref(manifest["apiVersion"], manifest["kind"], metadata.get("name", ""), metadata.get("namespace"))
        query = _with_dry_run({"fieldManager": manager, "fieldValidation": "Strict"}, dry_run)
        path = _path(ref.api_version, self._served(ref.api_version, ref.kind), ref.namespace)
        answer = self._call("POST", path, query, manifest)
        return self._checked(answer, verb="create", ref=ref, what=str(ref), sent=manifest)

    def patch(self, ref: Ref, patch: Manifest, *, subresource: str | None = None, dry_run: bool) -> Manifest:
        query = _with_dry_run({"fieldManager": FIELD_MANAGER}, dry_run)
        return self._object(ref, query, patch, verb="patch", content_type=_MERGE, subresource=subresource)

    def delete(
        self, ref: Ref, *, dry_run: bool, propagation: str = "Background", uid: str | None = None,
        resource_version: str | None = None, grace_period_seconds: int | None = None,
    ) -> bool:  # fmt: skip
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            return False
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        known = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            options["preconditions"] = {key: value for key, value in known.items() if value}
        path = _path(ref.api_version, resource, ref.namespace, ref.name)
        answer = self._call("DELETE", path, _with_dry_run({}, dry_run), options)
        if answer.status == 404 or responses.is_overtaken(answer.status, answer.json()):
            return False
        self._checked(answer, verb="delete", ref=ref, what=str(ref))
        return True

    def watch(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        name: str | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> t.Iterator[Event]:
        resource = self._served(api_version, kind)
        seconds = max(1, int(timeout))
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if resource_version:
            query["resourceVersion"] = resource_version
        if label_selector:
            query["labelSelector"] = label_selector
        if name:
            query["fieldSelector"] = f"metadata.name={name}"
        what = f"{kind} of {namespace or 'all namespaces'}"
        try:
            for line in self._http.stream(_path(api_version, resource, namespace), query, timeout=seconds + _GRACE):
                yield _event(line, what)
        except StreamRefused as exc:
            raise responses.to_error(exc.answer.status, exc.answer.json(), verb="watch", ref=None, what=what) from exc

    def logs(self, namespace: str, pod: str, *, container: str | None = None, tail_lines: int | None = None, **flags: bool) -> str:
        query = {"container": container, "tailLines": tail_lines, **{name: "true" for name, on in flags.items() if on}}
        given = {key: str(value) for key, value in query.items() if value is not None}
        ref = Ref("v1", "Pod", pod, namespace)
        path = _path("v1", kinds.BUILT_IN["v1", "Pod"], namespace, pod, "log")
        answer = self._call("GET", path, given, accept=_ANYTHING)
        if answer.status >= 400:
            refused = responses.to_error(answer.status, answer.json(), verb="read the log of", ref=ref, what=str(ref))
            live = self.get(ref) if refused.cause == responses.WHICH_CONTAINER else None
            if live is None:
                raise refused
            return self.logs(namespace, pod, container=main_container(live)["name"], tail_lines=tail_lines, **flags)
        return answer.body.decode(errors="replace")

    def read(self, path: str, *, timeout: float) -> Manifest:
        return self._checked(self._call("GET", path, {}, timeout=timeout, within=timeout), verb="read", ref=None, what=path)

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        base = _path("v1", kinds.BUILT_IN["v1", "Pod"], namespace, f"{pod}:{port}", "proxy")
        url, _mark, query = path.partition("?")
        target = f"{base}/{url.lstrip('/')}"
        asked = dict(urllib.parse.parse_qsl(query))
        # The API server answers 503 for a pod that does not answer, which Transport.call would retry for a minute.
        answer = self._call("GET", target, asked, accept=_ANYTHING, timeout=timeout, within=timeout)
        return answer.status, answer.body.decode(errors="replace")

    def port_forward(self, namespace: str, pod: str, port: int, *, timeout: float) -> Tunnel:
        from .tunnel import Tunnel

        return Tunnel(self._upgraded(namespace, pod, "portforward", {"ports": str(port)}, timeout, "forward a port of"))

    def execute(self, namespace: str, pod: str, container: str, command: t.Sequence[str], *, timeout: float) -> tuple[str, str]:
        from .tunnel import output_of

        deadline = Deadline(timeout, self.clock)
        query = {"container": container, "command": command, "stdout": "true", "stderr": "true"}
        wire = self._upgraded(namespace, pod, "exec", query, timeout, "execute a command in")
        try:
            return output_of(wire, deadline)
        except OSError as exc:
            raise Unreachable(f"The command in Pod {namespace}/{pod} gives no answer: {exc}.") from exc

    def _upgraded(
        self, namespace: str, pod: str, what: str, query: t.Mapping[str, str | t.Sequence[str]], timeout: float, verb: str
    ) -> socket.socket:
        """A WebSocket to this subresource of a pod."""
        path = _path("v1", kinds.BUILT_IN["v1", "Pod"], namespace, pod, what)
        found = self._http.upgrade(path, query, timeout=timeout)
        if isinstance(found, Answer):
            ref = Ref("v1", "Pod", pod, namespace)
            raise responses.to_error(found.status, found.json(), verb=verb, ref=ref, what=str(ref))
        return found

    def version(self) -> str:
        return str(self._json("/version", {}, verb="ask", what="the version").get("gitVersion", ""))

    def events_of(self, ref: Ref, uid: str | None = None) -> t.Sequence[Manifest]:
        about = {"kind": ref.kind, "name": ref.name, "uid": uid}
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in about.items() if value)
        # Events about cluster-wide objects are in "default".
        path = _path("v1", kinds.BUILT_IN["v1", "Event"], ref.namespace or "default")
        query = {"fieldSelector": selector, "limit": str(_EVENTS)}
        return list(self._json(path, query, verb="list", what=f"events of {ref}").get("items") or [])

    def guarded(self, check: t.Callable[[], None]) -> HttpCluster:
        guarded = copy.copy(self)  # the cache of kinds stays shared
        guarded._check = check
        return guarded

    def within(self, seconds: float) -> HttpCluster:
        bounded = copy.copy(self)
        bounded._until = min(self._until, self._http.now + seconds)
        return bounded

    def _call(
        self, method: str, path: str, query: t.Mapping[str, str], body: Manifest | None = None, *, within: float = math.inf, **more: t.Any
    ) -> Answer:
        """Call the transport. A request after the deadline is still sent, with a tenth of a second for its response."""
        before = None if method == "GET" or "dryRun" in query else self._check
        left = min(within, max(0.0, self._until - self._http.now))
        return self._http.call(method, path, query, body, within=left, before=before, **more)

    def _list(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str | None, accept: str,
        limit: int | None = None,
    ) -> Listing:  # fmt: skip
        resource = self.resource(api_version, kind)
        if resource is None:
            return Listing()
        query = {"labelSelector": label_selector} if label_selector else {}
        if limit:
            query["limit"] = str(limit)
        path = _path(api_version, resource, namespace)
        answer = self._call("GET", path, query, accept=accept)
        found = self._checked(answer, verb="list", ref=Ref(api_version, kind, "", namespace), what=f"objects of kind {kind}")
        # Items of a list lack apiVersion and kind.
        items = (redact.seal_secrets({**item, "apiVersion": api_version, "kind": kind}) for item in found.get("items") or [])
        about = found.get("metadata") or {}
        return Listing(items, about.get("resourceVersion") or "", partial=bool(about.get("continue")))

    def _object(
        self, ref: Ref, query: dict[str, str], body: Manifest, *, verb: str, content_type: str,
        subresource: str | None = None,
    ) -> Manifest:  # fmt: skip
        path = _path(ref.api_version, self._served(ref.api_version, ref.kind), ref.namespace, ref.name, subresource)
        answer = self._call("PATCH", path, query, body, content_type=content_type)
        return self._checked(answer, verb=verb, ref=ref, what=str(ref), sent=body)

    def _served(self, api_version: str, kind: str) -> ServedKind:
        # Ask once more: a definition may be established a moment before discovery lists it.
        resource = self.resource(api_version, kind) or self.resource(api_version, kind, refresh=True)
        if resource is None:
            raise MissingKind(f"The cluster does not serve {kind} of {api_version}.")
        return resource

    def _json(self, path: str, query: dict[str, str], *, verb: str, what: str, accept: str = _JSON) -> Manifest:
        return self._checked(self._call("GET", path, query, accept=accept), verb=verb, ref=None, what=what)

    @staticmethod
    def _checked(answer: Answer, *, verb: str, ref: Ref | None, what: str, sent: Manifest | None = None) -> Manifest:
        if answer.status >= 400:
            raise responses.to_error(answer.status, answer.json(), verb=verb, ref=ref, what=what, sent=sent)
        return redact.seal_secrets(answer.json())


def connect(params: Params, clock: Clock) -> HttpCluster:
    """A cluster from the connection options of a module. Nothing is sent yet."""
    return HttpCluster(Transport(load(params), clock))


def request_body(body: Manifest) -> bytes:
    """The body as JSON that is also valid YAML, because the API server reads applied objects as YAML.

    YAML refuses the surrogate pairs by which JSON escapes characters beyond U+FFFF, and breaks lines at some that JSON leaves as they are.
    """
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(body, ensure_ascii=False, default=_revealed)).encode()


@functools.lru_cache(maxsize=64)
def _encoded(query: tuple[tuple[str, str | tuple[str, ...]], ...]) -> str:
    """The query of a URL. All writes of a run have the same one."""
    return urllib.parse.urlencode(query, doseq=True)


@functools.lru_cache(maxsize=64)
def _group_path(api_version: str) -> str:
    quoted = urllib.parse.quote(api_version)
    return f"/apis/{quoted}" if "/" in api_version else f"/api/{quoted}"


def _path(api_version: str, resource: ServedKind, namespace: str | None = None, name: str | None = None,
          subresource: str | None = None) -> str:  # fmt: skip
    parts = [_group_path(api_version)]
    if resource.namespaced and namespace:
        parts += ["namespaces", _segment(namespace)]
    parts.append(resource.plural)
    if name is not None:
        parts.append(_segment(name))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def _segment(name: str) -> str:
    """A name as one segment of a path. An empty one would address all objects, and dots a parent path."""
    if name in ("", ".", ".."):
        raise InvalidInput(f"{name!r} is not the name of an object.")
    return urllib.parse.quote(name, safe=":")


def _with_dry_run(query: dict[str, str], dry_run: bool) -> dict[str, str]:
    return {**query, "dryRun": "All"} if dry_run else query


def _event(line: bytes, what: str) -> Event:
    try:
        parsed = json.loads(line)
    except ValueError as exc:
        raise Unreachable(f"The watch of {what} broke off in the middle of an event.") from exc
    if parsed["type"] == "ERROR":
        status = parsed["object"]
        raise responses.to_error(int(status.get("code") or 500), status, verb="watch", ref=None, what=what)
    return Event(parsed["type"], redact.seal_secrets(parsed["object"]))


def _revealed(value: t.Any) -> t.Any:
    """The only place that writes out a sensitive value of an object: into the request."""
    if isinstance(value, Sensitive):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} is no JSON")


def _answer(response: http.client.HTTPResponse, body: bytes, clock: Clock) -> Answer:
    wait = None
    if asked := response.getheader("Retry-After"):
        # The server's own time, if it sends it, because clocks may differ.
        try:
            now = email.utils.parsedate_to_datetime(response.getheader("Date") or "")
        except (ValueError, TypeError):
            now = utc(clock)
        wait = headers.retry_after(asked, now)
    return Answer(response.status, body, wait, response.getheader("Location"))


def _head(wire: socket.socket) -> tuple[int, http.client.HTTPMessage]:
    """Status and headers of an answer, and not a byte more: what follows is no HTTP."""
    found = bytearray()
    while not found.endswith(b"\r\n\r\n"):
        piece = wire.recv(1)
        if not piece or len(found) > _LONGEST_HEAD:
            raise http.client.HTTPException("its answer is cut off, or not HTTP")
        found += piece
    first, _line, rest = bytes(found).partition(b"\r\n")
    words = first.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise http.client.HTTPException("its answer is not HTTP")
    return int(words[1]), http.client.parse_headers(io.BytesIO(rest))


def _base(connection: Connection) -> str:
    """The prefix of the path in a request: the server's own path or, to an HTTP proxy without a tunnel, the whole URL."""
    url, proxy = connection.url, connection.proxy
    path = urllib.parse.quote(url.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
    return f"http://{url.netloc}{path}" if proxy and proxy.speaks_http and url.scheme == "http" else path


def _host_of(location: str | None, connection: Connection) -> str:
    try:
        url = urllib.parse.urlsplit(location or "")
        host = url.hostname
    except ValueError:
        return "nowhere"
    return f"{url.scheme or connection.url.scheme}://{host}" if host else "a path of its own"
