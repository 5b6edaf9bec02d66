# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of Triton's HTTP API."""

from __future__ import annotations

import dataclasses
import functools
import typing as t
from collections.abc import Sequence

from ..._core.clock import Clock
from ..._core.errors import Failed
from ..._core.json_http import OK, Answer, JsonClient, parsed
from .inference import Inference, flat, refused

READY = "READY"
_ABOUT = ("model_name", "model_version", "error")
"""The keys of a response of Generate that are no outputs."""


@dataclasses.dataclass(frozen=True)
class Version:
    """The state of a model's version, as the server reports it."""

    state: str
    reason: str = ""


class Client(JsonClient):
    """A client of one server."""

    def is_ready(self, inference: Inference) -> bool:
        """Whether the server reports that the model is ready."""
        return self.ask("GET", f"{inference.path}/ready")[0] == OK

    def server(self) -> dict[str, t.Any]:
        """The metadata of the server."""
        return self.read("/v2")

    def model(self, inference: Inference) -> dict[str, t.Any]:
        """The metadata of the model."""
        return self.read(inference.path)

    def read(self, path: str) -> dict[str, t.Any]:
        """The metadata at PATH."""
        return self._needed(self.ask("GET", path), f"tell about {path}")

    def index(self, model: str) -> dict[int, Version]:
        """The versions of the model in the server's index. It omits versions that the server never tried to load."""
        status, found = self.exchange("POST", "/v2/repository/index", None)
        if status != OK or not isinstance(found, list):
            said = found.get("error") if isinstance(found, dict) else None
            raise Failed(f"{self.who} refuses to list its models: {said or 'no reason given'} (status {status}).")
        rows = [row for row in found if row.get("name") == model and str(row.get("version") or "").isdecimal()]
        return {int(row["version"]): Version(row.get("state") or "", row.get("reason") or "") for row in rows}

    def load(self, model: str, config: str | None = None) -> None:
        """Load the model, with the configuration that it has in the store, or with CONFIG (JSON) instead.

        If that fails, the versions loaded before stay loaded.
        """
        body = {"parameters": {"config": config}} if config else {}
        self._needed(self.ask("POST", f"/v2/repository/models/{model}/load", body), f"load model {model}")

    def unload(self, model: str) -> None:
        """Unload the model, with all its versions."""
        self._needed(self.ask("POST", f"/v2/repository/models/{model}/unload", {}), f"unload model {model}")

    @functools.lru_cache(maxsize=16)  # noqa: B019 -- of one client, which is closed with the check
    def _decoupled(self, path: str) -> bool:
        """Whether the model may answer a request any number of times. A gateway need not show its configuration: then it is no."""
        policy = self.ask("GET", f"{path}/config")[1].get("model_transaction_policy")
        return isinstance(policy, dict) and bool(policy.get("decoupled"))

    def infer(self, inference: Inference, clock: Clock) -> tuple[dict[str, t.Any], float]:
        """The answer of the model, and the seconds that it took."""
        generates = inference.stream or self._decoupled(inference.path)
        path, body = inference.asked(generates=generates), inference.body(generates=generates)
        began = clock.monotonic()
        answer = self.ask("POST", path, body)
        took = clock.monotonic() - began
        found = self._needed(answer, f"infer with model {inference.model}")
        result = _generated([found]) if found and generates and "outputs" not in found else found
        rows = result.get("outputs")
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
            raise Failed(f"{self.who}, model {inference.model}: the answer has no outputs. Is this the address of a Triton?")
        return result, took

    def _needed(self, answer: Answer, doing: str) -> dict[str, t.Any]:
        status, found = answer
        if status != OK or found.get("error"):
            said = str(found.get("error") or "no reason given")
            raise refused(self.who, doing, said, status)
        return found

    def joined(self, events: Sequence[tuple[str, str]]) -> dict[str, t.Any]:
        """The responses of Generate, an event for each, as one answer of inference. One of them may be an error."""
        return _generated([parsed(*event) for event in events])


def _generated(responses: Sequence[dict[str, t.Any]]) -> dict[str, t.Any]:
    """Responses of Generate as one answer of inference."""
    found: dict[str, t.Any] = {"outputs": []}
    for one in responses:
        found |= {name: one[name] for name in _ABOUT if name in one}
        found["outputs"] += [{"name": name, "data": flat(value)} for name, value in one.items() if name not in _ABOUT]
    return found
