# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress that a training program prints: step, epoch, metrics, rate and time left. No I/O.

Each format was recorded from its program, see tests/unit/plugins/module_utils/_training/test_progress.py. Other lines are skipped. A rate
that the program does not print is computed from the times of its lines, the time left from the rate and the totals.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime as dt
import math
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping

_INTEGER, _DECIMAL = r"\d{1,15}", r"\d{1,15}(?:\.\d{0,30})?"
"""Longer numbers count no steps, epochs or seconds."""
_NUMBER = rf"(?:(?:nan|inf)\b|[-+]?{_DECIMAL}(?:e[-+]?\d{{1,3}})?(?!\d|\.\d))"
_MOST = 1e15
"""A larger number is none of steps or epochs."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?")
"""The time that the kubelet writes before a line."""
_LEAST = 1.0
"""Seconds between two lines that a rate is computed from, at least."""
_TERMINAL = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_METRIC = re.compile(rf"\b(?:train_)?(loss|accuracy|auc)\b[\"']?\s*[:=]?\s*[\"']?({_NUMBER})", re.IGNORECASE)
_PAIR = re.compile(rf"[\"']?\b(steps?|epochs?|time)[\"']?\s*[:=]\s*[\"']?({_NUMBER})", re.IGNORECASE)
_WORLD = re.compile(rf"[\"'](?:world_size|hosts)[\"']: ?({_INTEGER})\b")
_OBJECT = re.compile(r"(?:muster\.ml/(?P<counts_from_0>elastic) )?\{.*[\"'](?:step|epoch)s?[\"']: ?.*\}|MUSTER \w+.*=")
"""A JSON or Python object, or words of NAME=VALUE: the examples of the roles, Hugging Face Transformers. Steps count the whole training."""
_WHOLE = (
    # tqdm, such as the bar of Hugging Face Transformers: a bar without description, or one for the training.
    r"(?:train\w*: +)? *\d+%(?:\|[^|]*\|)? *(?P<step>\d+)/(?P<steps>\d+) \[[\d:]+<(?P<left>[\d:]+|\?),"
    r" *(?:(?P<rate>[\d.]+)it/s|(?P<s>[\d.]+)s/it|\?it/s)",
    # MaxText.
    r".*\bcompleted step: (?P<step>\d+), seconds: (?P<s>[\d.]+),",
    # Megatron-LM.
    r".*\biteration +(?P<step>\d+)/ *(?P<steps>\d+) \|.*elapsed time per iteration \(ms\): (?P<ms>[\d.]+)",
)
_IN_EPOCH = (
    # PyTorch Lightning.
    r"Epoch (?P<epoch>\d+): +\d+%(?:\|[^|]*\|)? *(?P<step>\d+)/(?P<steps>\d+) \[[\d:]+<(?P<left>[\d:]+|\?),"
    r" *(?:(?P<rate>[\d.]+)it/s|(?P<s>[\d.]+)s/it|\?it/s)",
    # Keras.
    r"Epoch (?P<epoch>\d+)/(?P<epochs>\d+)$",
    r" *(?P<step>\d+)/(?P<steps>\d+) (?:[━=>.[\]]+ [\d:]+s?|- \d+s -) (?:(?P<us>\d+)us|(?P<ms>\d+)ms|(?P<s>\d+)s)/step",
    # The examples of PyTorch (imagenet), and the reference trainings of torchvision.
    r"Epoch: \[(?P<epoch>\d+)\]\s*\[ *(?P<step>\d+)/ *(?P<steps>\d+)\](?:\s+eta: (?P<left>[\d:]+))?",
    # The example of PyTorch (mnist), in samples.
    r"Train Epoch: (?P<epoch>\d+) \[(?P<sample>\d+)/(?P<samples>\d+) \(",
)
_FORMATS = [
    (re.compile(text.replace(r"[\d.]+", _DECIMAL).replace(r"\d+", _INTEGER), re.IGNORECASE), in_epoch)
    for in_epoch, texts in ((False, _WHOLE), (True, _IN_EPOCH))
    for text in texts
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """The newest values that were printed; None where the program printed none.

    ``in_epoch``: steps and their total count one epoch. ``rate``: units a second. ``left``: seconds until the end of the training, or of
    the epoch if the number of epochs is unknown. ``at``: time of the newest line, in seconds since 1970.
    """

    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rate: float | None = None
    left: float | None = None
    unit: str = "steps"
    in_epoch: bool = False
    at: float = 0.0

    @property
    def done(self) -> tuple[float, float] | None:
        """The part that is done and the whole; None if the whole is unknown."""
        if self.step is not None and self.steps:
            if not self.in_epoch:
                return self.step, self.steps
            return (self.step + (self.epoch - 1) * self.steps, self.epochs * self.steps) if self.epoch and self.epochs else None
        return (self.epoch, self.epochs) if self.epoch is not None and self.epochs and not self.in_epoch else None

    @property
    def percent(self) -> int | None:
        """The share of the training that is done."""
        return min(100, int(100 * self.done[0] / self.done[1])) if self.done else None

    def line(self) -> str:
        """The progress as a clause, what matters most first; empty where nothing was printed."""
        of_epoch = " of the epoch" if self.in_epoch and not self.done else ""
        single = self.unit.removesuffix("s")
        parts = [
            "" if self.percent is None else f"{self.percent} %",
            f"{duration(self.left)}{of_epoch} left" if self.left else "",
            "" if self.epoch is None else f"epoch {self.epoch:.4g}{f' of {self.epochs}' if self.epochs else ''}",
            "" if self.step is None else f"{single} {self.step}{f' of {self.steps}' if self.steps else ''}",
            *(f"{name} {value:.4g}" for name, value in sorted(self.metrics.items(), key=lambda item: item[0] != "loss")),
            f"{self.rate:.3g} {self.unit}/s" if self.rate else "",
        ]
        return ", ".join(filter(None, parts))

    def result(self) -> dict[str, t.Any]:
        """Return the progress as the modules return it."""
        names = ("step", "steps", "epoch", "epochs", "percent")
        figures = {name: value if math.isfinite(value) else str(value) for name, value in self.metrics.items()}
        values = {name: getattr(self, name) for name in names}
        return {**values, "metrics": figures, "rate": self.rate, "seconds_left": self.left, "line": self.line()}


class Point(t.NamedTuple):
    """A line of progress: its time in seconds since 1970, steps (or epochs) so far, loss, and number of processes that train."""

    at: float
    place: float
    loss: float | None
    world: int | None


def newest(texts: Iterable[str]) -> Progress:
    """The progress of the log with the newest line of progress."""
    return max(map(read, texts), key=lambda found: found.at, default=Progress())


def read(text: str) -> Progress:
    """The progress in the log of one process."""
    last = collections.deque(_readings(text), maxlen=1)
    seen, points, _line = last[0] if last else ({}, [], "")
    return _with_time_left(Progress(**seen), points)


def points_of(text: str) -> list[Point]:
    """Each line of progress with a time in the log of one process."""
    found = []
    for seen, _points, line in _readings(text):
        loss, world = (seen["metrics"].get("loss") if "loss" in line.lower() else None), _WORLD.search(line)
        if seen["at"] > 1.0:
            found.append(Point(seen["at"], _place(seen), loss, int(world[1]) if world else None))
    return found


def _readings(text: str) -> Iterator[tuple[dict[str, t.Any], list[tuple[float, float]], str]]:
    """After each line of progress: the newest values, the times and places that a rate is computed from, and the line."""
    seen: dict[str, t.Any] = {}
    points: list[tuple[float, float]] = []
    for when, line in _lines(text):
        found = _object(line) or _formatted(line)
        metrics = {name.lower(): float(value) for name, value in _METRIC.findall(line)[::-1]} if found else {}
        if not found or (found.get("in_epoch") is False and found.get("steps", 0) < seen.get("steps", 0) > seen["step"]):
            continue  # a bar within the one of the training, such as that of an evaluation
        own = found.pop("time", 0.0)
        when = own if when is None else when
        unit = seen.get("unit")
        given = {"rate": None, "left": None, "unit": "steps", **found} if "step" in found else {"unit": "epochs", **seen, **found}
        seen = {**seen, **given, "metrics": {**seen.get("metrics", {}), **metrics}, "at": when or seen.get("at", 1.0)}
        place = _place(seen)
        if points and (place < points[-1][1] or seen["unit"] != unit):
            points = []  # another attempt, or from a checkpoint
        if when and ("step" in found or "step" not in seen):
            points.append((when, place))
        yield seen, points, line


def _lines(text: str) -> Iterator[tuple[float | None, str]]:
    """The lines with their times. What a program overwrites on a terminal is a line, too."""
    when: float | None = None
    for line in re.split(r"[\r\n\b]+", text):
        if stamp := _STAMP.match(line):
            with contextlib.suppress(ValueError):  # a program may print what looks like a time
                when, line = dt.datetime.fromisoformat(stamp[1]).timestamp(), line[stamp.end() :]
        yield when, _TERMINAL.sub("", line)


def _object(line: str) -> dict[str, t.Any]:
    """The values of an object; one with a total and no step has ended."""
    match = _OBJECT.match(line.strip())
    if not match:
        return {}
    found: dict[str, t.Any] = {name.lower(): float(value) for name, value in _PAIR.findall(line)}
    for name, total in (("step", "steps"), ("epoch", "epochs")):
        if name in found and match["counts_from_0"] and name == "epoch":
            found[name] += 1
        if total in found:
            found.setdefault(name, found[total])
    return {name: int(value) if name in ("step", "steps", "epochs") else value for name, value in found.items() if abs(value) < _MOST}


def _formatted(line: str) -> dict[str, t.Any]:
    """The values of a line in one of the other formats."""
    for pattern, in_epoch in _FORMATS:
        if match := pattern.match(line):
            given = {name: value for name, value in match.groupdict().items() if value is not None and value != "?"}
            found: dict[str, t.Any] = {"in_epoch": in_epoch}
            found |= {name: int(given[name]) for name in ("step", "steps", "epoch", "epochs") if name in given}
            if "sample" in given:
                found |= {"step": int(given["sample"]), "steps": int(given["samples"]), "unit": "samples"}
            if in_epoch and "step" not in found:
                found["step"] = 0
            if "rate" in given:
                found["rate"] = float(given["rate"])
            for name, parts in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
                if name in given and float(given[name]):
                    found["rate"] = parts / float(given[name])
            if "left" in given:
                found["left"] = _seconds(given["left"])
            return found
    return {}


def _seconds(text: str) -> float:
    """Seconds of a time such as 4:43:31."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part or 0)
    return seconds


def _place(seen: Mapping[str, t.Any]) -> float:
    """The progress in steps, or in epochs if no steps are printed."""
    if seen.get("in_epoch"):
        return float(seen["step"] + seen.get("epoch", 0) * seen.get("steps", 0))
    return float(seen.get("step", seen.get("epoch", 0)))


def _with_time_left(progress: Progress, points: list[tuple[float, float]]) -> Progress:
    """The progress with the rate and the time left that the program does not print."""
    rate = progress.rate
    # Before the second line there are preparations, such as compiling.
    times = [when for when, _place in points[1:]]
    if rate is None and times and times[-1] - times[0] >= _LEAST:
        rate = (points[-1][1] - points[1][1]) / (times[-1] - times[0])
    left = progress.left
    if rate and progress.done and (progress.in_epoch or left is None):
        left = (progress.done[1] - progress.done[0]) / rate
    elif rate and left is None and progress.in_epoch and progress.steps and progress.step is not None:
        left = (progress.steps - progress.step) / rate
    return dataclasses.replace(progress, rate=rate or None, left=left)


def duration(seconds: float) -> str:
    """A duration for people: 16 s, 12 min, 2 h 5 min, 3 days 4 h."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days {hours % 24} h"
