# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log of the first rank of an elastic training tells, as figures.

Agent and script print one line an event, ``muster.ml/elastic {"event": ..., "time": ...}``. Times are seconds since 1970.
"""

import datetime as dt
import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

Event = dict[str, Any]

EVENT = re.compile(r"muster\.ml/elastic (\{.*\})")
PROGRESS = ("step", "epoch")
# Of the digits that roles/elastic/files/example/train.py trains on.
SAMPLES = 1440
STEPS_AN_EPOCH = 24


def elastic_events(log: str) -> list[Event]:
    """Every event that a log tells, in its order."""
    return [json.loads(text) for text in EVENT.findall(log)]


def events_after(events: Iterable[Event], since: float | str, *kinds: str) -> list[Event]:
    """The events of these kinds after a time."""
    return [event for event in events if event["event"] in kinds and event["time"] > float(since)]


def trains_with(events: list[Event], pods: int | str) -> bool:
    """Whether the newest world has so many pods and has made steps."""
    starts = events_after(events, 0, "start")
    if not starts or starts[-1]["world_size"] != int(pods):
        return False
    return len(events_after(events, starts[-1]["time"], "step")) > 1


def first_progress(events: list[Event]) -> float:
    """When the newest world made its first step."""
    start = events_after(events, 0, "start")[-1]
    return float(events_after(events, start["time"], *PROGRESS)[0]["time"])


def reaction(events: list[Event], since: float | str) -> dict[str, Any] | None:
    """How long the training stood still after something happened: until the pods had met again, and until the next step.

    None as long as the log does not tell it.
    """
    starts = events_after(events, since, "start")
    steps = events_after(events, starts[0]["time"], *PROGRESS) if starts else []
    met = [event["formed"] for event in events if event["event"] == "rendezvous" and event["formed"] > float(since)]
    if not steps or not met:
        return None
    return {
        "seconds": round(steps[0]["time"] - float(since), 1),
        "seconds_to_rendezvous": round(met[0] - float(since), 1),
        "step": steps[0]["step"],
        "world_size": starts[0]["world_size"],
    }


def longest_silence(events: list[Event], since: float | str) -> float:
    """The longest time without a sign of progress after a time."""
    times = [float(since), *(event["time"] for event in events_after(events, since, *PROGRESS))]
    return round(max(float(later - earlier) for earlier, later in pairwise(times)), 1)


def training_result(events: list[Event]) -> Event | None:
    """The last result that the training told; None before its end."""
    results = events_after(events, 0, "result")
    return results[-1] if results else None


def lost_epochs(events: list[Event], epochs: int | str) -> list[str]:
    """What is wrong with the history of a training that has ended; nothing where each epoch was trained once, with all its samples."""
    result = training_result(events)
    if result is None:
        return ["the training told no result"]
    told = [event["epoch"] for event in events_after(events, 0, "epoch")]
    history, steps = result["history"], int(epochs) * STEPS_AN_EPOCH
    wrong = [f"epoch {e['epoch']} had {e['samples']} samples" for e in history if e["samples"] != SAMPLES]
    wrong += [f"epoch {number} was told twice" for number in sorted(set(told)) if told.count(number) > 1]
    if [epoch["epoch"] for epoch in history] != list(range(int(epochs))):
        wrong.append(f"the history is not that of {epochs} epochs: {[epoch['epoch'] for epoch in history]}")
    if result["steps"] != steps:
        wrong.append(f"{result['steps']} steps count, not {steps}")
    return wrong


def deletion_asked(metadata: dict[str, Any]) -> float:
    """When the API server was asked to delete an object: the deadline that it wrote down, less the grace it gave."""
    deadline = dt.datetime.fromisoformat(metadata["deletionTimestamp"])
    return deadline.timestamp() - float(metadata["deletionGracePeriodSeconds"])


def durations(marks: list[float | str], names: list[str]) -> dict[str, float]:
    """Seconds between each two times, by name, and ``total_s``."""
    times = [float(mark) for mark in marks]
    steps = {name: round(later - earlier, 1) for name, (earlier, later) in zip(names, pairwise(times), strict=True)}
    return {**steps, "total_s": round(times[-1] - times[0], 1)}


class FilterModule:
    """Filters of the claims of system elastic."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Every filter by its name."""
        return {
            "deletion_asked": deletion_asked,
            "durations": durations,
            "elastic_events": elastic_events,
            "events_after": events_after,
            "first_progress": first_progress,
            "longest_silence": longest_silence,
            "lost_epochs": lost_epochs,
            "reaction": reaction,
            "training_result": training_result,
            "trains_with": trains_with,
        }
