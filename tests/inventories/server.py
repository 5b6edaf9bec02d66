# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of an API server as a run asks that installs nothing: version, nodes, and that there are no objects.

Plain HTTP, which Muster takes on the loopback address only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from simulators.apiserver import node

ANSWERS: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.1"},
    "/api/v1/nodes": {
        "kind": "NodeList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "1"},
        "items": [node("node-1")],
    },
    "/api": {"kind": "APIGroupDiscoveryList", "items": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {"kind": "APIGroupDiscoveryList", "items": []},
}


class Server:
    """Listens on a free port until :meth:`stop`. ``before`` is called at each request."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[str] = []
        self.before: Callable[[], object] = lambda: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                outer.requests.append(f"{self.command} {self.path.split('?')[0]}")
                outer.before()
                admitted = self.headers.get("Authorization") == f"Bearer token-of-{name}"
                found = ANSWERS.get(self.path.split("?")[0]) if admitted and self.command == "GET" else None
                status = (200 if found else 404) if admitted else 401
                body = json.dumps(found or {"kind": "Status", "code": status, "message": self.path}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        for method in ("GET", "PATCH", "POST", "PUT", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.answer)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": {"server": self.url}}],
            "users": [{"name": self.name, "user": {"token": f"token-of-{self.name}"}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
            "current-context": self.name,
        }
