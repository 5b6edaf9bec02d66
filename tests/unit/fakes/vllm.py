# SPDX-License-Identifier: GPL-3.0-or-later
"""A vLLM server that replays what 0.32.0 answered (tests/unit/recorded/vllm.json)."""

import json
import typing as t
from pathlib import Path

from .served import Answering, Served

RECORDED: dict[str, t.Any] = json.loads((Path(__file__).parents[1] / "recorded" / "vllm.json").read_text(encoding="utf-8"))
KEY = "test-key-1"


class FakeVllm(Served):
    """The server with the model ``tiny``."""

    def __init__(self) -> None:
        self.answer: dict[str, t.Any] | None = None
        """To every request with a body, instead of the recorded one."""
        self.bodies: list[t.Any] = []
        vllm = self

        class Handler(Answering):
            def do_GET(self) -> None:
                known = {"/version": "version", "/health": "health", "/v1/models": "models"}
                self.tell(RECORDED[known[self.path]])

            def do_POST(self) -> None:
                body = json.loads(self.body())
                vllm.bodies.append(body)
                kind = {"/v1/completions": "completion", "/v1/chat/completions": "chat"}[self.path]
                self.tell(vllm.answer or RECORDED[f"{kind}_stream" if body.get("stream") else kind])

            def tell(self, recorded: dict[str, t.Any]) -> None:
                if self.path.startswith("/v1") and self.headers["Authorization"] != f"Bearer {KEY}":
                    recorded = RECORDED["no_key"]
                self.reply(recorded["status"], recorded["text"])

        super().__init__(Handler)
