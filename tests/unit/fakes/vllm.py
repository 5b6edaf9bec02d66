# SPDX-License-Identifier: GPL-3.0-or-later
"""A vLLM server that replays what 0.32.0 answered (tests/unit/recorded/vllm.json)."""

import http.server
import json
import typing as t
from pathlib import Path

from .triton import Served

RECORDED: dict[str, t.Any] = json.loads((Path(__file__).parents[1] / "recorded" / "vllm.json").read_text(encoding="utf-8"))
KEY = "test-key-1"


class FakeVllm(Served):
    """The server with the model ``tiny``."""

    def __init__(self) -> None:
        self.answer: dict[str, t.Any] | None = None
        """To every request with a body, instead of the recorded one."""
        self.bodies: list[t.Any] = []
        vllm = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                known = {"/version": "version", "/health": "health", "/v1/models": "models"}
                self.reply(RECORDED[known[self.path]])

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                vllm.bodies.append(body)
                kind = {"/v1/completions": "completion", "/v1/chat/completions": "chat"}[self.path]
                self.reply(vllm.answer or RECORDED[f"{kind}_stream" if body.get("stream") else kind])

            def reply(self, recorded: dict[str, t.Any]) -> None:
                if self.path.startswith("/v1") and self.headers["Authorization"] != f"Bearer {KEY}":
                    recorded = RECORDED["no_key"]
                text = recorded["text"].encode()
                self.send_response(recorded["status"])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_args: object) -> None:
                """Print nothing."""

        super().__init__(Handler)
