# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one file that talks HTTP to Kubernetes: kept-alive connections, any number of threads, raw JSON.

Why http.client and no Kubernetes library: docs/architecture.md, section "Kubernetes client".

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import http.client
import json
import math
import os
import pathlib
import queue
import re
import ssl
import tempfile
import threading
import typing as t
import urllib.parse
import urllib.request

from . import answers, kinds
from .credentials import Proof
from .errors import InvalidInput, MusterError, NotFound, Unreachable
from .kubeconfig import Connection, Params, load
from .objects import FIELD_MANAGER, Event, Listing, Manifest, Ref, Resource
from .pace import SYSTEM_CLOCK, Clock, Limits, Patience, TokenBucket

_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_ANYTHING = "*/*"
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_RATE, _BURST = 1000.0, 2000
# What holds us back is the number of connections, and the server itself by 429: this bucket only stops a loop that went wrong.
_PIECE = 1 << 20
_GRACE = 2.0
"""Seconds that a watch may be late in ending by itself."""
_SETTLING = 10.0
"""Seconds in which an API server that came back may still forbid what it allows, or not know what it serves."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Status and body of one HTTP exchange."""

    status: int
    body: bytes
    retry_after: float | None = None

    def json(self) -> Manifest:
        """The body as an object; a message where it is not JSON (a proxy's page, a server of another protocol)."""
        if self._parsed is None:
            return {"message": self.body[:200].decode(errors="replace")}
        return self._parsed

    @property
    def whole(self) -> bool:
        """Whether the body is JSON to its end."""
        return self._parsed is not None

    @functools.cached_property
    def _parsed(self) -> Manifest | None:
        try:
            parsed = json.loads(self.body)
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else {}


class _Headers(list[tuple[str, str]]):
    """What http.client asks of headers (names, and pairs), where a name may be there several times (Impersonate-Group)."""

    def __iter__(self) -> t.Iterator[t.Any]:
        return (name for name, _value in super().__iter__())

    def items(self) -> list[tuple[str, str]]:
        return self[:]


class _TlsConnection(http.client.HTTPSConnection):
    """As HTTPSConnection, but the name in the certificate may differ from the host (tls-server-name)."""

    def __init__(self, *args: t.Any, context: ssl.SSLContext, server_name: str | None, **kwargs: t.Any) -> None:
        super().__init__(*args, context=context, **kwargs)
        self._tls_context = context
        self._server_name = server_name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        name = self._server_name or self._tunnel_host or self.host  # type: ignore[attr-defined]
        self.sock = self._tls_context.wrap_socket(self.sock, server_hostname=name)


class Transport:
    """HTTP to one API server. Connections are kept and lent to whichever thread needs one."""

    def __init__(self, connection: Connection, clock: Clock = SYSTEM_CLOCK, limits: Limits | None = None) -> None:
        self.connection = connection
        self.limits = limits or Limits()
        self._url = urllib.parse.urlsplit(connection.server)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise InvalidInput(f"{connection.server!r} is not the URL of an API server ({connection.source}).")
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        self._clock = clock
        self._bucket = TokenBucket(_RATE, _BURST, clock)
        self._answered = False
        self._broken_at = -math.inf
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self.warnings: dict[str, None] = {}

    def call(
        self, method: str, path: str, query: t.Mapping[str, str], body: Manifest | None = None, *,
        content_type: str = _JSON, accept: str = _JSON, timeout: float | None = None, within: float | None = None,
    ) -> Answer:  # fmt: skip
        """One request, tried again while that makes sense. The last answer is returned whatever its status.

        ``timeout`` bounds one attempt, ``within`` all of them together.
        """
        data = encoded(body) if body is not None else None
        longest = math.inf if within is None else within
        deadline = self._clock.monotonic() + longest
        patience, renewed = Patience(self._clock), False
        while True:
            self._bucket.take()
            limit = min(self.limits.outage if self._answered else self.limits.first_contact, longest)
            proof = self.connection.credentials.proof()
            left = max(0.1, min(timeout or self.limits.answer, deadline - self._clock.monotonic()))
            try:
                answer = self._exchange(method, self._target(path, query), data, content_type, accept, left)
                if accept != _ANYTHING and answer.status < 300 and not answer.whole:
                    limit = min(limit, self.limits.first_contact)  # it may not be an API server at all
                    raise http.client.HTTPException("its answer is cut off, or not JSON")
            except ssl.SSLCertVerificationError as exc:
                raise self._untrusted(exc) from exc
            except (OSError, http.client.HTTPException) as exc:
                # TLS that never worked will not begin to. One that did breaks off so: with the server, or after 90 idle seconds.
                if (isinstance(exc, ssl.SSLError) and not self._answered) or not patience.again(limit=limit):
                    raise self._unreachable(exc) from exc
                self._broken_at = self._clock.monotonic()
                continue
            if answer.status == 401 and not renewed:
                renewed = True
                if self._renew(proof):
                    continue
            if answer.status < 400 or not self._worth_again(answer):
                return answer
            if not patience.again(limit=min(self.limits.outage, longest), retry_after=answer.retry_after):
                return answer

    def _renew(self, refused: Proof) -> bool:
        """Whether there are other credentials than those that were refused."""
        if not self.connection.credentials.renew(refused):
            return False
        self.close()
        return True

    def _worth_again(self, answer: Answer) -> bool:
        restarted = self._clock.monotonic() - self._broken_at < _SETTLING
        return answers.worth_again(answer.status, answer.json()) or (
            restarted and answers.unsettled(answer.status, answer.json())
        )

    def stream(self, path: str, query: t.Mapping[str, str], *, timeout: float) -> t.Iterator[bytes]:
        """The lines of one long answer, over a connection of its own. Ends when the server ends it, or breaks off."""
        renewed = False
        while True:
            self._bucket.take()
            proof = self.connection.credentials.proof()
            try:
                yield from self._lines(self._target(path, query), timeout)
            except Refused as exc:
                if exc.answer.status != 401 or renewed or not self._renew(proof):
                    raise
                renewed = True
            except ssl.SSLCertVerificationError as exc:
                raise self._untrusted(exc) from exc
            except TimeoutError:
                return  # the server keeps its own time a little differently
            except (OSError, http.client.HTTPException) as exc:
                self._broken_at = self._clock.monotonic()
                raise self._unreachable(exc) from exc
            else:
                return

    def _lines(self, target: str, timeout: float) -> t.Iterator[bytes]:
        connection = self._new()
        try:
            connection.timeout = timeout
            connection.request("GET", target, headers=self._headers(_JSON, None))
            response = connection.getresponse()
            if response.status >= 400:
                raise Refused(Answer(response.status, response.read()))
            while line := response.readline():
                yield line
        finally:
            connection.close()

    def _exchange(
        self, method: str, target: str, data: bytes | None, content_type: str, accept: str, timeout: float
    ) -> Answer:
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._new()
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, target, body=data, headers=self._headers(accept, content_type if data else None))
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
        return Answer(response.status, body, _seconds(response.getheader("Retry-After")))

    def _body(self, response: http.client.HTTPResponse, timeout: float) -> bytes:
        """The whole body. The socket's timeout is only for the next byte, so a server that drips is stopped here."""
        deadline, pieces = self._clock.monotonic() + timeout, []
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            if self._clock.monotonic() > deadline:
                raise TimeoutError(f"the answer was not complete after {timeout:g} s")
        body, missing = b"".join(pieces), response.length
        response.close()
        if missing:
            raise http.client.IncompleteRead(body, missing)
        return body

    def _target(self, path: str, query: t.Mapping[str, str]) -> str:
        base = self._url.path.rstrip("/")
        return f"{base}{path}?{urllib.parse.urlencode(query)}" if query else f"{base}{path}"

    def _headers(self, accept: str, content_type: str | None) -> t.Any:
        headers = [*self.connection.headers, ("Accept", accept), ("User-Agent", "muster")]
        if content_type:
            headers.append(("Content-Type", content_type))
        authorization = self.connection.credentials.proof().authorization
        if authorization:
            headers.append(("Authorization", authorization))
        return _Headers(headers)

    def _new(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port or (443 if self._url.scheme == "https" else 80)
        proxy = self._proxy(host)
        at_host, at_port, tunnel = (proxy.hostname or "", proxy.port or 3128, True) if proxy else (host, port, False)
        if self._url.scheme == "http":
            connection = http.client.HTTPConnection(at_host, at_port, timeout=self.limits.connect)
        else:
            connection = _TlsConnection(at_host, at_port, timeout=self.limits.connect, context=self._context(),
                                        server_name=self.connection.tls_server_name)  # fmt: skip
        if tunnel and proxy:
            connection.set_tunnel(host, port, headers=_proxy_authorization(proxy))
        return connection

    def _proxy(self, host: str) -> urllib.parse.SplitResult | None:
        given = self.connection.proxy
        if not given and not urllib.request.proxy_bypass(host):
            given = urllib.request.getproxies_environment().get(self._url.scheme)
        return urllib.parse.urlsplit(given) if given else None

    def _context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls is None:
                self._tls = _tls_context(self.connection)
            return self._tls

    def close(self) -> None:
        """Give up the idle connections. After new credentials, too: a client certificate belongs to its connection."""
        with self._lock:
            self._tls = None
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _note_warnings(self, response: http.client.HTTPResponse) -> None:
        for value in response.headers.get_all("Warning") or []:
            text = value.split('"')[1] if value.count('"') >= 2 else value
            self.warnings.setdefault(text)

    def _unreachable(self, exc: BaseException) -> MusterError:
        reason = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        return Unreachable(
            f"The API server {self.connection.server} ({self.connection.source}) does not answer: {reason}.",
            hint="Check the address, and that the cluster is running.",
            details={"server": self.connection.server, "kubeconfig": self.connection.source},
        )

    def _untrusted(self, exc: ssl.SSLCertVerificationError) -> MusterError:
        return Unreachable(
            f"The certificate of the API server {self.connection.server} is not trusted: {exc.verify_message}.",
            hint=f"The certificate authority in {self.connection.source} belongs to another cluster, or set ca_cert.",
            details={"server": self.connection.server, "kubeconfig": self.connection.source},
        )


class Refused(Exception):
    """A stream that was answered with an error status."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class HttpCluster:
    """The Cluster protocol over HTTP."""

    def __init__(self, transport: Transport) -> None:
        self._http = transport
        self._resources: dict[str, dict[str, Resource]] = {}

    @property
    def namespace(self) -> str:
        return self._http.connection.namespace

    def warnings(self) -> t.Sequence[str]:
        return list(self._http.warnings)

    def close(self) -> None:
        self._http.close()

    def resource(self, api_version: str, kind: str, *, refresh: bool = False) -> Resource | None:
        known = kinds.BUILT_IN.get((api_version, kind))
        if known:
            return known
        if refresh or api_version not in self._resources:
            answer = self._http.call("GET", _group_path(api_version), {})
            if answer.status not in (200, 404):
                raise answers.to_error(answer.status, answer.json(), verb="discover", ref=None, what=api_version)
            self._resources[api_version] = kinds.resources_of(answer.json())
        return self._resources[api_version].get(kind)

    def kinds(self) -> list[tuple[str, str, Resource]]:
        found: list[tuple[str, str, Resource]] = []
        for path in ("/api", "/apis"):
            listing = self._json("GET", path, {}, verb="discover", what=path, accept=f"{_DISCOVERY},{_JSON}")
            if listing.get("kind") != "APIGroupDiscoveryList":
                raise InvalidInput(
                    "This API server has no aggregated discovery; Kubernetes 1.30 or later is needed to prune."
                )
            found += kinds.discovered(listing)
        return found

    def get(self, ref: Ref, *, within: float | None = None) -> Manifest | None:
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            return None
        answer = self._http.call("GET", _path(ref.api_version, resource, ref.namespace, ref.name), {}, within=within)
        if answer.status == 404:
            return None
        return self._checked(answer, verb="get", ref=ref, what=str(ref))

    def list(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None, *,
        within: float | None = None,
    ) -> Listing:  # fmt: skip
        return self._list(api_version, kind, namespace, label_selector, _JSON, within)

    def list_metadata(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        *,
        limit: int | None = None,
    ) -> Listing:
        return self._list(api_version, kind, namespace, label_selector, _METADATA, limit=limit)

    def apply(self, manifest: Manifest, *, dry_run: bool, force_conflicts: bool = False) -> Manifest:
        metadata = manifest["metadata"]
        ref = Ref(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace"))
        query = {"fieldManager": FIELD_MANAGER, "force": str(force_conflicts).lower(), "fieldValidation": "Strict"}
        return self._object("PATCH", ref, _with_dry_run(query, dry_run), manifest, verb="apply", content_type=_APPLY)

    def patch(self, ref: Ref, patch: Manifest, *, subresource: str | None = None, dry_run: bool) -> Manifest:
        query = _with_dry_run({"fieldManager": FIELD_MANAGER}, dry_run)
        return self._object("PATCH", ref, query, patch, verb="patch", content_type=_MERGE, subresource=subresource)

    def delete(self, ref: Ref, *, dry_run: bool, propagation: str = "Background", uid: str | None = None) -> bool:
        resource = self.resource(ref.api_version, ref.kind)
        if resource is None:
            return False
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid}
        path = _path(ref.api_version, resource, ref.namespace, ref.name)
        answer = self._http.call("DELETE", path, _with_dry_run({}, dry_run), options)
        if answer.status == 404 or (uid and answer.status == 409):
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
        except Refused as exc:
            raise answers.to_error(exc.answer.status, exc.answer.json(), verb="watch", ref=None, what=what) from exc

    def logs(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        tail_lines: int | None = None,
        previous: bool = False,
        since_seconds: int | None = None,
    ) -> str:
        query = {"container": container, "tailLines": tail_lines, "sinceSeconds": since_seconds}
        given = {key: str(value) for key, value in query.items() if value is not None}
        if previous:
            given["previous"] = "true"
        ref = Ref("v1", "Pod", pod, namespace)
        path = _path("v1", kinds.BUILT_IN["v1", "Pod"], namespace, pod, "log")
        answer = self._http.call("GET", path, given, accept=_ANYTHING)
        if answer.status >= 400:
            raise answers.to_error(answer.status, answer.json(), verb="read the log of", ref=ref, what=str(ref))
        return answer.body.decode(errors="replace")

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        base = _path("v1", kinds.BUILT_IN["v1", "Pod"], namespace, f"{pod}:{port}", "proxy")
        url, _mark, query = path.partition("?")
        target = f"{base}/{url.lstrip('/')}"
        answer = self._http.call("GET", target, dict(urllib.parse.parse_qsl(query)), accept=_ANYTHING, timeout=timeout)
        return answer.status, answer.body.decode(errors="replace")

    def version(self) -> str:
        return str(self._json("GET", "/version", {}, verb="ask", what="the version").get("gitVersion", ""))

    def _list(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str | None, accept: str,
        within: float | None = None, limit: int | None = None,
    ) -> Listing:  # fmt: skip
        resource = self.resource(api_version, kind)
        if resource is None:
            return Listing()
        query = {"labelSelector": label_selector} if label_selector else {}
        if limit:
            query["limit"] = str(limit)
        path = _path(api_version, resource, namespace)
        answer = self._http.call("GET", path, query, accept=accept, within=within)
        if answer.status == 404:
            return Listing()
        found = self._checked(
            answer, verb="list", ref=Ref(api_version, kind, "", namespace), what=f"objects of kind {kind}"
        )
        # Items of a list come without the two fields that say what they are.
        items = ({**item, "apiVersion": api_version, "kind": kind} for item in found.get("items") or [])
        about = found.get("metadata") or {}
        return Listing(items, about.get("resourceVersion") or "", partial=bool(about.get("continue")))

    def _object(
        self, method: str, ref: Ref, query: dict[str, str], body: Manifest, *, verb: str, content_type: str,
        subresource: str | None = None,
    ) -> Manifest:  # fmt: skip
        path = _path(ref.api_version, self._served(ref.api_version, ref.kind), ref.namespace, ref.name, subresource)
        answer = self._http.call(method, path, query, body, content_type=content_type)
        return self._checked(answer, verb=verb, ref=ref, what=str(ref))

    def _served(self, api_version: str, kind: str) -> Resource:
        # Asked again before giving up: a definition may be established a moment before discovery knows of it.
        resource = self.resource(api_version, kind) or self.resource(api_version, kind, refresh=True)
        if resource is None:
            raise NotFound(f"The cluster does not serve {kind} of {api_version}.")
        return resource

    def _json(
        self, method: str, path: str, query: dict[str, str], *, verb: str, what: str, accept: str = _JSON
    ) -> Manifest:
        return self._checked(self._http.call(method, path, query, accept=accept), verb=verb, ref=None, what=what)

    @staticmethod
    def _checked(answer: Answer, *, verb: str, ref: Ref | None, what: str) -> Manifest:
        if answer.status >= 400:
            raise answers.to_error(answer.status, answer.json(), verb=verb, ref=ref, what=what)
        return answer.json()


def connect(params: Params) -> HttpCluster:
    """A cluster by the connection options of a module. Nothing is sent yet."""
    return HttpCluster(Transport(load(params)))


def encoded(body: Manifest) -> bytes:
    """A body as JSON that is YAML, too: the API server reads what is applied as YAML, which refuses the halves of a character that JSON
    writes for what lies beyond U+FFFF, and breaks lines at some characters that JSON leaves as they are.
    """
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(body, ensure_ascii=False)).encode()


def _group_path(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _path(api_version: str, resource: Resource, namespace: str | None = None, name: str | None = None,
          subresource: str | None = None) -> str:  # fmt: skip
    parts = [_group_path(api_version)]
    if resource.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(resource.plural)
    if name:
        parts.append(urllib.parse.quote(name, safe=":"))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def _with_dry_run(query: dict[str, str], dry_run: bool) -> dict[str, str]:
    return {**query, "dryRun": "All"} if dry_run else query


def _event(line: bytes, what: str) -> Event:
    try:
        parsed = json.loads(line)
    except ValueError as exc:
        raise Unreachable(f"The watch of {what} broke off in the middle of an event.") from exc
    if parsed["type"] == "ERROR":
        status = parsed["object"]
        raise answers.to_error(int(status.get("code") or 500), status, verb="watch", ref=None, what=what)
    return Event(parsed["type"], parsed["object"])


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None


def _proxy_authorization(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    pair = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _tls_context(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=connection.ca)
    except ssl.SSLError as exc:
        raise InvalidInput(f"The certificate authority in {connection.source} is not a PEM certificate.") from exc
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    proof = connection.credentials.proof()
    cert, key = proof.client_cert or connection.client_cert, proof.client_key or connection.client_key
    if cert:
        _load_pair(context, cert, key, connection.source)
    return context


def _load_pair(context: ssl.SSLContext, cert: str, key: str | None, source: str) -> None:
    """The ssl module reads keys only from files, so give it one that nobody else can read and that is gone at once."""
    handle, name = tempfile.mkstemp(prefix="muster-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{cert}\n{key or ''}")
        context.load_cert_chain(name)
    except ssl.SSLError as exc:
        raise InvalidInput(
            f"The client certificate and key in {source} do not fit together: {exc.reason or exc}."
        ) from exc
    finally:
        pathlib.Path(name).unlink()
