# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of a simulated cluster: the unit tests' cluster, with its field ownership and dry runs, behind HTTPS and a token.

A stand-in where no cluster runs; the simulator gives any other address as the cluster's endpoint just as well.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, MusterError, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from simulators.aws.apiserver import certificate

Body = dict[str, Any]
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def node(name: str, pool: str) -> Body:
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    status = {
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "allocatable": resources,
        "capacity": resources,
        "nodeInfo": {"kubeletVersion": "v1.36.3-gke.1"},
    }
    labels = {"cloud.google.com/gke-nodepool": pool, "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }


class ApiServer:
    """Listens on a free port until :meth:`stop`. ``cluster`` is what it serves."""

    def __init__(self, folder: Path, token: str, nodes: int) -> None:
        self.ca, key = certificate(folder)
        self.cluster = FakeCluster()
        self.cluster.add(*(node(f"gke-muster-management-{number}", "management") for number in range(nodes)))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.cluster, token))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

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


def _handler(cluster: FakeCluster, token: str) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {token}":
                self.reply(401, _status(401, "Unauthorized"))
                return
            path, _mark, query = self.path.partition("?")
            with lock:
                self.reply(
                    *_served(cluster, self.command, path, dict(parse_qsl(query)), json.loads(raw) if raw else {})
                )

        def do_GET(self) -> None:
            self.answer()

        def do_PATCH(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

        def reply(self, status: int, body: Any) -> None:
            content = json.dumps(revealed(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def _served(cluster: FakeCluster, verb: str, path: str, query: dict[str, str], body: Body) -> tuple[int, Any]:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if verb == "GET" and (found := _discovery(cluster, parts)) is not None:
        return 200, found
    api_version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = None
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kinds = {
        resource.plural: kind for (version, kind), resource in cluster.kinds_served.items() if version == api_version
    }
    if not rest or rest[0] not in kinds:
        return 404, _status(404, f"the server could not find the requested resource {path}")
    try:
        return 200, _asked(
            cluster, verb, Ref(api_version, kinds[rest[0]], rest[1] if len(rest) > 1 else "", namespace), query, body
        )
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
        return cluster.apply(
            body, dry_run=dry_run, force_conflicts=query["force"] == "true", manager=query["fieldManager"]
        )
    if verb == "PATCH":
        return cluster.patch(ref, body, dry_run=dry_run)
    if verb == "DELETE":
        wanted = body.get("preconditions") or {}
        if not cluster.delete(
            ref, dry_run=dry_run, uid=wanted.get("uid"), resource_version=wanted.get("resourceVersion")
        ):
            raise NotFound(f"{ref.kind} {ref.name} not found", ref=ref)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    live = cluster.get(ref)
    if live is None:
        raise NotFound(f"{ref.kind} {ref.name} not found", ref=ref)
    return live


def _discovery(cluster: FakeCluster, parts: list[str]) -> Body | None:
    versions = sorted({version for version, _kind in cluster.kinds_served})
    answers: dict[str, Callable[[], Body]] = {
        "version": lambda: {"major": "1", "minor": "36", "gitVersion": cluster.server_version},
        "api": lambda: {"kind": "APIVersions", "versions": ["v1"]},
        "apis": lambda: {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(v) for v in versions if "/" in v],
        },
    }
    if len(parts) == 1 and parts[0] in answers:
        return answers[parts[0]]()
    version = parts[1] if parts[0] == "api" and len(parts) == 2 else "/".join(parts[1:]) if len(parts) == 3 else ""
    if version not in versions or (parts[0] == "api") != (version == "v1"):
        return None
    rows = [
        {
            "name": resource.plural,
            "singularName": kind.lower(),
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": VERBS,
        }
        for (served, kind), resource in cluster.kinds_served.items()
        if served == version
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": rows}


def _group(version: str) -> Body:
    row = {"groupVersion": version, "version": version.split("/")[1]}
    return {"name": version.split("/", maxsplit=1)[0], "versions": [row], "preferredVersion": row}


def _status(code: int, message: str) -> Body:
    reasons = {401: "Unauthorized", 404: "NotFound", 409: "Conflict", 422: "Invalid"}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reasons[code],
        "message": message,
    }
