# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server on the loopback address: the unit tests' cluster, with its field ownership and dry runs, behind a token.

That of a simulated cloud's cluster has HTTPS; a simulator gives any other address as the cluster's endpoint just as well.
"""

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, MusterError, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering

Body = dict[str, Any]
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    made = signed("simulated API server", ca=True, host="127.0.0.1")
    crt, pem = folder / "ca.crt", folder / "ca.key"
    crt.write_text(made.pem)
    pem.touch(mode=0o600)
    pem.write_text(made.key_pem())
    return crt, pem


def node(name: str, **labels: str) -> Body:
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "allocatable": resources,
        "capacity": resources,
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": status,
    }


class ApiServer:
    """Listens on a free port until :meth:`stop`. ``cluster`` is what it serves, ``requests`` what it was asked ("GET /version").

    ``before`` is called at each request. With a folder, which gets its certificate, it has HTTPS.
    """

    warm_up = 0.0
    """Seconds from the first connection on in which each ends without an answer: the name of a new cluster's endpoint is known everywhere
    only minutes later (github.com/aws/containers-roadmap/issues/654; terraform-aws-modules/terraform-aws-eks, issue 621)."""

    def __init__(self, folder: Path | None, token: str, *objects: Body) -> None:
        self.token = token
        self.cluster = FakeCluster()
        self.cluster.add(*objects)
        self.requests: list[str] = []
        self.before: Callable[[], object] = lambda: None
        api, first = self, [0.0]
        self.pods: dict[str, tuple[str, str]] = {}
        """Tokens of pods: (service account as namespace:name, audience)."""

        class Server(ThreadingHTTPServer):
            def verify_request(self, request: object, client_address: object) -> bool:
                first[0] = first[0] or time.monotonic()
                return time.monotonic() - first[0] >= api.warm_up

        self._server = Server(("127.0.0.1", 0), _handler(self))
        self.url = f"{'https' if folder else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        if folder:
            self.ca, key = certificate(folder)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.ca, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def kubeconfig(self) -> Body:
        """Of a server without a certificate."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }

    def writes(self) -> list[str]:
        """What was written since :meth:`clear`: "apply Secret ml/gcs-hmac"."""
        return [f"{one.verb} {one.ref.kind} {one.ref.namespace or ''}/{one.ref.name}" for one in self.cluster.writes]

    def clear(self) -> None:
        self.cluster.requests.clear()

    def empty(self) -> None:
        """A new cluster, with its nodes."""
        self.cluster.objects = {key: item for key, item in self.cluster.objects.items() if item["kind"] == "Node"}
        self.clear()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(api: ApiServer) -> type[Answering]:
    lock = threading.Lock()

    class Handler(Answering):
        def answer(self) -> None:
            raw = self.body()
            path, _mark, query = self.path.partition("?")
            api.requests.append(f"{self.command} {path}")
            api.before()
            if self.headers.get("Authorization") != f"Bearer {api.token}":
                self.reply(401, _status(401, "Unauthorized"))
                return
            asked, body, accept = dict(parse_qsl(query)), json.loads(raw) if raw else {}, self.headers.get("Accept", "")
            if path.endswith("/tokenreviews"):
                self.reply(200, _reviewed(api.pods, body["spec"]))
                return
            with lock:
                self.reply(*_served(api.cluster, self.command, path, asked, body, accept))

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def reply(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
            super().reply(status, revealed(body), {"Content-Type": "application/json", **(headers or {})})

    return Handler


def _reviewed(pods: dict[str, tuple[str, str]], spec: Body) -> Body:
    account, audience = pods.get(spec["token"], ("", ""))
    if audience not in spec["audiences"]:
        return {"status": {"authenticated": False, "error": "invalid bearer token"}}
    user = {"username": f"system:serviceaccount:{account}"}
    return {"status": {"authenticated": True, "user": user, "audiences": [audience]}}


def _served(cluster: FakeCluster, verb: str, path: str, query: dict[str, str], body: Body, accept: str) -> tuple[int, Any]:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if verb == "GET" and (found := _discovery(cluster, parts, accept)) is not None:
        return 200, found
    api_version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kinds = {resource.plural: kind for (version, kind), resource in cluster.kinds_served.items() if version == api_version}
    if not rest or rest[0] not in kinds:
        return 404, _status(404, f"the server could not find the requested resource {path}")
    try:
        return 200, _asked(cluster, verb, Ref(api_version, kinds[rest[0]], rest[1] if len(rest) > 1 else "", namespace), query, body)
    except NotFound as error:
        return 404, _status(404, str(error))
    except Conflict as error:
        return 409, _status(409, str(error))
    except MusterError as error:
        return 422, _status(422, str(error))


def _asked(cluster: FakeCluster, verb: str, ref: Ref, query: dict[str, str], body: Body) -> Any:
    dry_run = "dryRun" in query
    if verb == "GET" and not ref.name:
        found = cluster.list(ref.api_version, ref.kind, ref.namespace, query.get("labelSelector"))
        return {
            "kind": f"{ref.kind}List", "apiVersion": ref.api_version,
            "metadata": {"resourceVersion": found.resource_version}, "items": list(found),
        }  # fmt: skip
    if verb == "PATCH" and "fieldManager" in query and "force" in query:
        return cluster.apply(body, dry_run=dry_run, force_conflicts=query["force"] == "true", manager=query["fieldManager"])
    if verb == "POST":
        return cluster.create(body, dry_run=dry_run, manager=query["fieldManager"])
    if verb == "PATCH":
        return cluster.patch(ref, body, dry_run=dry_run)
    if verb == "DELETE":
        wanted = body.get("preconditions") or {}
        if not cluster.delete(ref, dry_run=dry_run, uid=wanted.get("uid"), resource_version=wanted.get("resourceVersion")):
            raise NotFound(f"{ref.kind} {ref.name} not found", ref=ref)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    live = cluster.get(ref)
    if live is None:
        raise NotFound(f"{ref.kind} {ref.name} not found", ref=ref)
    return live


def _discovery(cluster: FakeCluster, parts: list[str], accept: str) -> Body | None:
    """Its version, and the kinds that it serves: all of them for who accepts the aggregated form, and in that of old."""
    served: dict[str, dict[str, ServedKind]] = {}
    for (version, kind), resource in cluster.kinds_served.items():
        served.setdefault(version, {})[kind] = resource
    if parts == ["version"]:
        major, minor = cluster.server_version.removeprefix("v").split(".")[:2]
        return {"major": major, "minor": minor, "gitVersion": cluster.server_version}
    if parts in (["api"], ["apis"]):
        asked = {version: kinds for version, kinds in served.items() if ("/" in version) == (parts == ["apis"])}
        if AGGREGATED in accept.replace(" ", ""):
            items = [_aggregated(version, kinds) for version, kinds in asked.items()]
            return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": list(asked)}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(version) for version in asked]}
    version = "/".join(parts[1:])
    if version not in served or (parts[0] == "api") != (version == "v1"):
        return None
    rows = [
        {"name": one.plural, "singularName": kind.lower(), "namespaced": one.namespaced, "kind": kind, "verbs": VERBS}
        for kind, one in served[version].items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": rows}


def _group(api_version: str) -> Body:
    group, _slash, version = api_version.partition("/")
    row = {"groupVersion": api_version, "version": version}
    return {"name": group, "versions": [row], "preferredVersion": row}


def _aggregated(api_version: str, kinds: dict[str, ServedKind]) -> Body:
    group, _slash, version = api_version.rpartition("/")
    rows = [
        {
            "resource": one.plural,
            "responseKind": {"group": group, "version": version, "kind": kind},
            "scope": "Namespaced" if one.namespaced else "Cluster",
            "singularResource": kind.lower(),
            "verbs": VERBS,
        }
        for kind, one in kinds.items()
    ]
    return {"metadata": {"name": group}, "versions": [{"version": version, "resources": rows, "freshness": "Current"}]}


def _status(code: int, message: str) -> Body:
    reasons = {401: "Unauthorized", 404: "NotFound", 409: "Conflict", 422: "Invalid"}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": "AlreadyExists" if code == 409 and message.endswith("already exists") else reasons[code],
        "message": message,
    }
