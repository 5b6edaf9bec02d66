# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of an API server as playbooks/eks.yml asks by itself: its version and nodes, over TLS, for who has the token.

A stand-in where no cluster runs; the simulator gives any other address as the cluster's endpoint just as well.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Body = dict[str, object]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated API server")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    crt, pem = folder / "ca.crt", folder / "ca.key"
    crt.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem.touch(mode=0o600)
    plain = serialization.NoEncryption()
    pem.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return crt, pem


def node(name: str) -> Body:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    resources = {"cpu": "4", "memory": "16Gi", "pods": "58"}
    status = {
        "conditions": [ready],
        "allocatable": resources,
        "capacity": resources,
        "nodeInfo": {"kubeletVersion": "v1.34.1-eks"},
    }
    labels = {"eks.amazonaws.com/nodegroup": "system", "kubernetes.io/hostname": name}
    return {"metadata": {"name": name, "labels": labels, "resourceVersion": "1"}, "spec": {}, "status": status}


class ApiServer:
    """Listens on a free port until :meth:`stop`."""

    warm_up = 0.0
    """Seconds from the first connection on in which each ends without an answer: the name of a new cluster's endpoint is known everywhere
    only minutes later (github.com/aws/containers-roadmap/issues/654; terraform-aws-modules/terraform-aws-eks, issue 621)."""

    def __init__(self, folder: Path, token: str, nodes: int) -> None:
        self.ca, key = certificate(folder)
        answers = {
            "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.1"},
            "/api/v1/nodes": {
                "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                "items": [node(f"ip-10-40-0-{number}") for number in range(nodes)],
            },
        }  # fmt: skip

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                admitted = self.headers.get("Authorization") == f"Bearer {token}"
                found = answers.get(self.path.split("?")[0]) if admitted else None
                status = (200 if found else 404) if admitted else 401
                body = json.dumps(found or {"kind": "Status", "code": status, "message": self.path}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        api, first = self, [0.0]

        class Server(ThreadingHTTPServer):
            def verify_request(self, request: object, client_address: object) -> bool:
                first[0] = first[0] or time.monotonic()
                return time.monotonic() - first[0] >= api.warm_up

        self._server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
