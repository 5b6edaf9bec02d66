# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of OpenAI's HTTP API as vLLM serves it, and what a language model is to answer.

Recorded of 0.32.0 (tests/unit/recorded/vllm.json): a stream is server-sent events, each with the text that came since the one before, the
last one ``[DONE]``, also where the server ended in the middle: only ``finish_reason`` tells that (``abort``). An error is an object
``error`` with a ``message``; without its key the server answers 401 below ``/v1``.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.clock import Clock
from ..._core.errors import Failed, InvalidInput, Unauthorized
from ..._core.json_http import OK, Answer, JsonClient, parsed
from ..._core.sensitive import Sensitive

_ASKING = ("messages", "prompt")
_UNAUTHORIZED = 401
_DONE = "[DONE]"
_CUT = (None, "abort", "error")
"""Values of finish_reason of an answer that is not whole (vllm/v1/engine/__init__.py, FINISH_REASON_STRINGS)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Completion:
    """A request to a language model, by the names of OpenAI's API, and the outputs that are expected."""

    model: str
    parameters: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    expected: Sequence[Mapping[str, t.Any]] = ()
    stream: bool = False
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not self.model or not self.model.isprintable():
            raise InvalidInput(f"model: {self.model!r} is not a name of a model.")
        for name in ("model", "stream"):
            if name in self.parameters:
                raise InvalidInput(f"parameters: {name} is an option of its own.")
        if len(self.inputs) > 1:
            raise InvalidInput("parameters: messages are for a chat, and prompt is for a completion.", "Give one of them.")
        if not self.inputs and (self.expected or self.parameters):
            raise InvalidInput("parameters: the model is asked nothing.", "Give messages or prompt, as in OpenAI's API.")

    @property
    def inputs(self) -> list[str]:
        """The parameter that the model answers."""
        return [name for name in _ASKING if self.parameters.get(name)]

    @property
    def path(self) -> str:
        """The path of the request."""
        return "/v1/chat/completions" if "messages" in self.inputs else "/v1/completions"


class OpenAiClient(JsonClient):
    """A client of one server. KEY: its API key."""

    def __init__(self, url: str, who: str, *, timeout: float, key: Sensitive | None = None, **more: t.Any) -> None:
        super().__init__(re.sub("/v1/?$", "", url), who, timeout=timeout, **more)
        if key and not re.fullmatch("[!-~]+", key.reveal()):
            # The library would print it in its refusal. A newline at the end is what echo leaves.
            raise InvalidInput(
                "api_key_secret: the key has characters that no header can have, such as a newline.", "Write it without them."
            )
        if key:
            self.headers["Authorization"] = f"Bearer {key.reveal()}"

    def is_ready(self, asked: Completion) -> bool:
        """Whether the server lists the model."""
        return bool(self.model(asked))

    def server(self) -> dict[str, t.Any]:
        """The version of the server, where it can be asked for it."""
        status, found = self.ask("GET", "/version")
        return found if status == OK else {}

    def model(self, asked: Completion) -> dict[str, t.Any]:
        """The model in the list of the server; empty if it is not there."""
        status, found = self.ask("GET", "/v1/models")
        if status != OK:
            raise self._refused((status, found), "list its models")
        return next((row for row in _mappings(found.get("data")) if row.get("id") == asked.model), {})

    def infer(self, asked: Completion, clock: Clock) -> tuple[dict[str, t.Any], float]:
        """The answer of the model, as outputs, and the seconds that it took."""
        body = {"model": asked.model, **asked.parameters, **({"stream": True} if asked.stream else {})}
        began = clock.monotonic()
        answer = self.ask("POST", asked.path, body)
        took = clock.monotonic() - began
        status, found = answer
        choices = _mappings(found.get("choices"))
        if status != OK or found.get("error"):
            raise self._refused(answer, f"answer with model {asked.model}")
        if not choices or any(one.get("finish_reason") in _CUT for one in choices):
            raise Failed(f"{self.who}, model {asked.model}: the answer is not whole.", details={"choices": choices})
        return {"model_version": "", "outputs": _outputs(choices)}, took

    def _refused(self, answer: Answer, doing: str) -> Failed | Unauthorized:
        status, found = answer
        error = found.get("error")
        said = (error.get("message") if isinstance(error, dict) else error) or "no reason given"
        text = f"{self.who} refuses to {doing}: {str(said).rstrip('.')} (status {status})."
        return Unauthorized(text, "Give its key by api_key_secret.") if status == _UNAUTHORIZED else Failed(text)

    def joined(self, events: Sequence[tuple[str, str]]) -> dict[str, t.Any]:
        """The events of a stream as one answer; without the last event it has no choices."""
        choices: dict[int, dict[str, t.Any]] = {}
        ended = False
        for name, data in events:
            if data.strip() == _DONE:
                ended = True
                continue
            event = parsed(name, data)
            if event.get("error"):
                return event
            for part in event.get("choices") or []:
                _append(choices.setdefault(int(part.get("index") or 0), {"text": "", "token_ids": []}), part)
        return {"choices": [choices[index] for index in sorted(choices)] if ended else []}


def _mappings(rows: t.Any) -> list[dict[str, t.Any]]:
    """The rows of an answer; none if it has something else in their place."""
    return rows if isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows) else []


def _text(choice: Mapping[str, t.Any]) -> str:
    """The text of a choice, or of its part in an event."""
    said = choice.get("message") or choice.get("delta")
    return str(choice.get("text") or (said.get("content") if isinstance(said, Mapping) else None) or "")


def _append(choice: dict[str, t.Any], part: Mapping[str, t.Any]) -> None:
    choice["text"] += _text(part)
    choice["token_ids"] += part.get("token_ids") or []
    choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")


def _outputs(choices: Sequence[Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The outputs, each with a value for every choice; the numbers of the tokens only where they were asked for."""
    tokens = [number for one in choices for number in one.get("token_ids") or []]
    return [
        {"name": "text", "data": [_text(one) for one in choices]},
        {"name": "finish_reason", "data": [one["finish_reason"] for one in choices]},
        *([{"name": "token_ids", "data": tokens}] if tokens else []),
    ]
