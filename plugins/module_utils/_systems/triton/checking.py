# SPDX-License-Identifier: GPL-3.0-or-later
"""Check servers, however they are reached: is the model ready, and does it infer what is expected."""

from __future__ import annotations

import contextlib
import typing as t
from collections.abc import Mapping

from ..._core.clock import Clock
from ..._core.errors import Failed, NotFound
from .inference import Expecting, answers, differences, latencies


class Asked(t.Protocol):
    """A client of a server, by one of its APIs."""

    who: str

    def is_ready(self, inference: t.Any, /) -> bool:
        """Whether the model is ready."""

    def server(self) -> dict[str, t.Any]:
        """The metadata of the server."""

    def model(self, inference: t.Any, /) -> dict[str, t.Any]:
        """The metadata of the model."""

    def infer(self, inference: t.Any, clock: Clock, /) -> tuple[dict[str, t.Any], float]:
        """The answer of the model, and the seconds that it took."""


Opened = t.Callable[[], contextlib.AbstractContextManager[Asked]]
"""Opens a connection to one server."""


def unready(found: Mapping[str, Opened], inference: Expecting) -> str | None:
    """Return a clause for each server on which the model is not ready; None if there is none."""
    missing = []
    for name, opened in found.items():
        with opened() as client:
            if not client.is_ready(inference):
                missing.append(f"{name}: the model is not ready")
    return "; ".join(missing) or None


def check_replica(
    client: Asked, inference: Expecting, requests: int, clock: Clock
) -> tuple[dict[str, t.Any], dict[str, t.Any], list[float]]:
    """The model's metadata, the last answer, and the seconds of each request."""
    if not client.is_ready(inference):
        raise NotFound(
            f"{client.who}: model {inference.model} is not ready, or there is none.", "Its log says why. wait: true waits for it."
        )
    model, seconds = client.model(inference), []
    answer: dict[str, t.Any] = {}
    for number in range(1, requests + 1) if inference.inputs else ():
        answer, took = client.infer(inference, clock)
        seconds.append(took)
        wrong = differences(inference, answer)
        if wrong:
            raise Failed(
                f"{client.who}, model {inference.model}, request {number}: {' '.join(wrong)}",
                details={"outputs": answer.get("outputs") or []},
            )
    return model, answer, seconds


def checked(found: Mapping[str, Opened], inference: Expecting, requests: int, clock: Clock) -> dict[str, t.Any]:
    """Check all servers, and return their results as one."""
    server: dict[str, t.Any] = {}
    results = []
    for opened in found.values():
        with opened() as client:
            results.append(check_replica(client, inference, requests, clock))
            server = server or client.server()
    model, answer, _seconds = results[0]
    seconds = [one for _model, _answer, took in results for one in took]
    return {
        "replicas": list(found),
        "server": server,
        "model": model,
        "outputs": answer.get("outputs") or [],
        "answers": answers(answer),
        "model_version": str(answer.get("model_version") or ""),
        "requests": len(seconds),
        "latency_ms": latencies(seconds),
    }
