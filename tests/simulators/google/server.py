# SPDX-License-Identifier: GPL-3.0-or-later
"""The server: an HTTPS proxy that is Google behind it, for clients that trust its certificate authority.

    python -m simulators.google.server --folder FOLDER --port 0 [--cluster-endpoint https://... --cluster-ca FILE]

Clients need HTTPS_PROXY=http://127.0.0.1:PORT and FOLDER/ca.pem; credentials are in FOLDER. A host that is not Google's, or that the
simulator does not stand for, is refused and noted. `/_simulator/...` on the same port is the tests' side door.
"""

import argparse
import base64
import ipaddress
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..processes import end_with
from . import oauth, world
from .api import Raw
from .discovery import hosts
from .gate import JSON, Dropped, Gate
from .journal import JOURNAL
from .sidedoor import SIDE_DOOR, side_door
from .state import PROJECT, SETTINGS
from .tls import Authority


def handler(gate: Gate, authority: Authority) -> type[BaseHTTPRequestHandler]:
    known = hosts() | {oauth.HOST}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # The host that a tunnel leads to.
        host = ""

        def do_CONNECT(self) -> None:
            host = self.path.rpartition(":")[0]
            if host not in known:
                self.refuse(host)
                return
            self.send_response(200, "Connection established")
            self.end_headers()
            self.wfile.flush()
            try:
                self.connection = authority.context(host).wrap_socket(self.connection, server_side=True)
            except (ssl.SSLError, OSError) as error:
                print(f"{host}: {error}", flush=True)  # a client that does not trust us
                self.close_connection = True
                return
            self.rfile, self.wfile = self.connection.makefile("rb", -1), self.connection.makefile("wb", -1)
            self.host = host
            self.close_connection = False

        def refuse(self, host: str) -> None:
            JOURNAL.note("stranger", host, self.path, False, 403)
            text = f"The simulator of Google Cloud does not stand for {host}, and nothing outside it may be asked.\n"
            self.reply(Raw(text.encode(), 403, {"Content-Type": "text/plain"}))
            self.close_connection = True

        def do_any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.startswith(SIDE_DOOR):
                self.reply(Raw(json.dumps(side_door(gate, self.path.removeprefix(SIDE_DOOR), raw)).encode()))
                return
            if not self.host:
                self.refuse(self.path.split("/")[2] if "://" in self.path else self.headers.get("Host", ""))
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                self.reply(gate.serve(self.host, self.command, self.path, headers, raw))
            except Dropped:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_any

        def reply(self, answer: Raw) -> None:
            self.send_response(answer.status)
            for name, value in {"Content-Type": JSON, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.content)
            self.wfile.flush()

        def finish(self) -> None:
            super().finish()
            self.connection.close()

        def log_message(self, *_: Any) -> None:
            """The journal has it."""

    return Handler


def options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A Google Cloud project on this machine.")
    parser.add_argument("--folder", type=Path, required=True, help="where its certificate authority and credentials go")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; it is printed")
    parser.add_argument("--cluster-endpoint", default="https://127.0.0.1:6443", help="API server of every GKE cluster")
    parser.add_argument("--cluster-ca", type=Path, help="its certificate authority (PEM)")
    parser.add_argument("--addresses", type=ipaddress.IPv4Network, default=SETTINGS.addresses, help="network of external addresses")
    parser.add_argument("--polls", type=int, default=2, help="how often an operation is read before it ends")
    parser.add_argument("--while", type=int, dest="during", metavar="PID", help="end with this process")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    asked = options(argv)
    if asked.during:
        end_with(asked.during)
    ca = asked.cluster_ca.read_bytes() if asked.cluster_ca else b"no certificate authority was given"
    SETTINGS.endpoint = asked.cluster_endpoint.removeprefix("https://")
    SETTINGS.certificate_authority = base64.b64encode(ca).decode()
    SETTINGS.polls, SETTINGS.addresses = asked.polls, asked.addresses
    asked.folder.mkdir(parents=True, exist_ok=True)
    gate = Gate(oauth.Tokens(asked.folder))
    world.reset()
    server = ThreadingHTTPServer(("127.0.0.1", asked.port), handler(gate, Authority(asked.folder)))
    server.daemon_threads = True
    print(f"listening on http://127.0.0.1:{server.server_address[1]} for project {PROJECT}", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
