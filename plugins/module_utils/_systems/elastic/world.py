# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of an elastic job: agents log the rendezvous, the script logs its steps or reports to Kubeflow Trainer."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import math
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..._pod_programs.elastic_launch import LOG_PREFIX
from ..._training.progress import Progress, newest

_REASONS = ("failed", "rendezvous_lost", "rendezvous_unreachable", "waiting")
_COUNTS = ("nodes", "world_size", "round", "epoch", "step")
_NUMBERS = dict.fromkeys(_COUNTS, (int,)) | dict.fromkeys(("time", "formed", "accuracy"), (int, float))
"""Types of an event's numbers, which a script may write, too."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class World:
    """The newest rendezvous and the newest step that were logged."""

    nodes: int | None = None
    world_size: int | None = None
    round: int | None = None
    formed: float = 0.0
    epoch: int | None = None
    step: int | None = None
    stepped: float = 0.0
    accuracy: float | None = None
    percent: int | None = None
    reason: str = ""
    progress: Progress = dataclasses.field(default_factory=Progress)

    @property
    def makes_progress(self) -> bool:
        """Whether a step was logged since the pods met."""
        return self.stepped > self.formed > 0

    def result(self) -> dict[str, t.Any]:
        """Return the world as the modules return it."""
        names = ("nodes", "world_size", "round", "epoch", "step", "accuracy", "percent", "reason")
        return {name: getattr(self, name) for name in names}


def events(logs: Iterable[str]) -> list[dict[str, t.Any]]:
    """All events in these logs, ordered by time; other lines are skipped."""
    found = []
    for text in logs:
        for line in text.splitlines():
            _before, mark, rest = line.partition(LOG_PREFIX)
            if not mark:
                continue
            try:
                event = json.loads(rest)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict) and _is_number("time", event.get("time")):
                found.append({name: value for name, value in event.items() if name not in _NUMBERS or _is_number(name, value)})
    return sorted(found, key=lambda event: float(event["time"]))


def _is_number(name: str, value: t.Any) -> bool:
    """Whether VALUE can be that number of an event. Accuracies of a model that diverged are NaN."""
    finite = type(value) in _NUMBERS[name] and abs(value) < 2**63
    return finite or (name == "accuracy" and isinstance(value, float) and math.isnan(value))


def world(logs: Sequence[str]) -> World:
    """The state according to the events of the logs."""
    seen: dict[str, t.Any] = {}
    lost = False
    for event in events(logs):
        kind, when = event.get("event"), float(event["time"])
        if kind == "rendezvous":
            # Agents log a round one after the other; the first line has the time at which it was formed. The first rank repeats it.
            formed = float(event.get("formed", when))
            if formed < seen.get("formed", 0.0):
                continue
            met = {"nodes": event.get("nodes"), "round": event.get("round")}
            # After the rendezvous itself was lost, the numbers of rounds start again.
            if lost or met != {key: seen.get(key) for key in met}:
                seen |= {"formed": formed, "world_size": None}
            lost = False
            seen |= {**met, "reason": ""}
        elif kind in ("step", "epoch", "result") and "world_size" in event:
            seen |= {"stepped": when, "world_size": event["world_size"]}
        elif kind in _REASONS:
            seen["reason"] = f"pod {event.get('index')}: {event.get('reason') or kind}"
            lost = lost or kind == "rendezvous_lost"
        seen |= {key: event[key] for key in ("epoch", "step", "accuracy") if key in event}
    return World(**seen, progress=newest(logs))


def with_reported(found: World, reported: Mapping[str, t.Any]) -> World:
    """FOUND with the .status.trainerStatus of a TrainJob, which outlives the pods; logs are newer and come first."""
    values = {str(row.get("name")): row.get("value") for row in reported.get("metrics") or []}
    numbers: dict[str, Callable[[float], t.Any]] = {"epoch": int, "step": int, "accuracy": float}
    seen: dict[str, t.Any] = {"percent": reported.get("progressPercentage")}
    for name, number in numbers.items():
        # Pods name and write metrics as they like.
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            seen[name] = number(float(values[name] or "")) if getattr(found, name) is None else getattr(found, name)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        seen["stepped"] = max(found.stepped, dt.datetime.fromisoformat(reported["lastUpdatedTime"]).timestamp())
    return dataclasses.replace(found, **seen)
