# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP servers for tests: each listens at a port of its own until it is stopped, and prints nothing."""

import http.server
import json
import pathlib
import ssl
import sys
import threading
import typing as t


class Answering(http.server.BaseHTTPRequestHandler):
    """Reads and writes whole bodies."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets; the second would wait 40 ms

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, body: t.Any = None, headers: t.Mapping[str, str] | None = None) -> None:
        """A body of bytes or text is sent as it is, None as an empty one, and everything else as JSON."""
        text = "" if body is None else body if isinstance(body, (bytes, str)) else json.dumps(body)
        raw = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """Print nothing of a client that went in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Served:
    """An HTTP server at ``port`` until it is stopped; with a CERTIFICATE (a file, with its key) an HTTPS server."""

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler], certificate: pathlib.Path | None = None) -> None:
        self.server = _Server(("127.0.0.1", 0), handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
