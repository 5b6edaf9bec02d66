# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server on the loopback interface that has the objects that a test gives it, and takes none but in a dry run."""

from __future__ import annotations

import http.server
import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.muster.ml.tests.unit.fakes.cluster import KINDS

Body = dict[str, Any]
DISCOVERY = "apidiscovery.k8s.io"
MISSING = {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}


class ApiServer(http.server.ThreadingHTTPServer):
    """``objects``: by path."""

    daemon_threads = True

    def __init__(self, objects: Mapping[str, Body]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects = {**dict(_discovery()), **objects}
        self.lists = {resource.plural for resource in KINDS.values()}
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def kubeconfig(self) -> Body:
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}
        users: list[Body] = [{"name": "u", "user": {}}]
        return {
            "apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": users, "contexts": [context], "current-context": "c",
        }  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        aggregated = (
            self.server.objects.get(f"{path} {DISCOVERY}") if DISCOVERY in self.headers.get("Accept", "") else None
        )
        found = aggregated or self.server.objects.get(path)
        if found is None and path.rsplit("/", 1)[-1] in self.server.lists:
            found = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        self._answer(200 if found else 404, found or MISSING)

    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        dry = "dryRun=All" in self.path
        self._answer(201 if dry else 403, json.loads(body) if dry else {**MISSING, "code": 403, "reason": "Forbidden"})

    def _answer(self, status: int, found: Body) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Quiet."""


def _discovery() -> Iterator[tuple[str, Body]]:
    """What every server says of its kinds, in both forms."""
    served: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)
    for (version, kind), resource in KINDS.items():
        served[version].append((kind, resource.plural, resource.namespaced))
    verbs = ["get", "list", "create", "patch", "delete"]
    groups: dict[str, list[Body]] = defaultdict(list)
    for version, rows in served.items():
        group, _slash, number = version.rpartition("/")
        listed = [{"name": plural, "kind": kind, "namespaced": inside, "verbs": verbs} for kind, plural, inside in rows]
        yield (
            f"/{'apis' if group else 'api'}/{version}",
            {"kind": "APIResourceList", "groupVersion": version, "resources": listed},
        )
        resources = [
            {
                "resource": plural,
                "responseKind": {"kind": kind},
                "scope": "Namespaced" if inside else "Cluster",
                "verbs": verbs,
            }
            for kind, plural, inside in rows
        ]
        groups[group].append({"version": number, "freshness": "Current", "resources": resources})
    for path, core in (("/api", True), ("/apis", False)):
        items = [
            {"metadata": {"name": name}, "versions": versions}
            for name, versions in groups.items()
            if core != bool(name)
        ]
        yield f"{path} {DISCOVERY}", {"kind": "APIGroupDiscoveryList", "metadata": {}, "items": items}
    yield "/version", {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
