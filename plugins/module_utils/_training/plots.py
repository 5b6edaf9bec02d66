# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots of a training over time, as paths of SVG and as sparklines: loss, rate, processes that train, and faults. No I/O."""

from __future__ import annotations

import datetime as dt
import math
import typing as t
from collections.abc import Iterable, Sequence

from .._kube.pod_status import EndedRun
from .progress import Point, duration

WIDTH, HEIGHT = 600, 100
_MOST = 300
"""Points of a path; more would not be seen."""
_RATES = 60
"""Rates of a plot; of two lines that follow at once there is none."""
_BARS = "▁▂▃▄▅▆▇█"
_SPARKS = 24

Series = t.Sequence[tuple[float, float]]


def plots(points: Sequence[Point], faults: Iterable[EndedRun]) -> list[dict[str, t.Any]]:
    """A plot for each quantity that the log tells, all with the same times, in which faults are marked."""
    marks = sorted((dt.datetime.fromisoformat(one.finished).timestamp(), f"{one.pod}: {one}") for one in faults if one.finished)
    times = [*(point.at for point in points), *(at for at, _what in marks)]
    if not points or min(times) == max(times):
        return []
    begin, end = min(times), max(times)
    series: dict[str, Series] = {
        "loss": [(point.at, point.loss) for point in points if point.loss is not None],
        "steps a second": _rates(points, (end - begin) / _RATES),
        "processes": [(point.at, point.world) for point in points if point.world is not None],
        "faults": [(begin, 0), *((at, number) for number, (at, _what) in enumerate(marks, 1)), (end, len(marks))] if marks else [],
    }
    rows = ((name, _thinned([one for one in values if math.isfinite(one[1])])) for name, values in series.items())
    return [_plot(name, values, begin, end, marks) for name, values in rows if len(values) > 1]


def plot_of(name: str, values: Series) -> list[dict[str, t.Any]]:
    """The plot of one quantity, if it was read at two times."""
    return [_plot(name, values, values[0][0], values[-1][0], [])] if values and values[0][0] < values[-1][0] else []


def _rates(points: Sequence[Point], apart: float) -> Series:
    """Steps a second between lines that are at least so far apart; none where a training went back to its checkpoint."""
    found, last = [], points[0]
    for point in points[1:]:
        if point.at - last.at >= apart:
            found += [(point.at, (point.place - last.place) / (point.at - last.at))] if point.place >= last.place else []
            last = point
    return found


def _thinned(values: Series) -> Series:
    return values[:: math.ceil(len(values) / _MOST) or 1]


def _plot(name: str, values: Series, begin: float, end: float, marks: Iterable[tuple[float, str]]) -> dict[str, t.Any]:
    low, high = min(value for _at, value in values), max(value for _at, value in values)
    stepped = name in ("processes", "faults")  # they stay what they are until the next line

    def x(at: float) -> float:
        return round(WIDTH * (at - begin) / (end - begin), 1)

    def y(value: float) -> float:
        return round(HEIGHT * (1 - (value - low) / (high - low)), 1) if high > low else HEIGHT / 2

    path = f"M{x(values[0][0])},{y(values[0][1])}" + "".join(f"{f'H{x(at)}V' if stepped else f'L{x(at)},'}{y(v)}" for at, v in values[1:])
    faults = [{"x": x(at), "what": what} for at, what in marks]
    figures = {"low": f"{low:.4g}", "high": f"{high:.4g}", "last": f"{values[-1][1]:.4g}", "lasts": duration(end - begin)}
    return {"name": name, "path": path, "spark": sparkline([v for _at, v in values]), "faults": faults, **figures}


def sparkline(values: Sequence[float]) -> str:
    """The values as a line of bars; of many the last of each part."""
    size = max(1, len(values) / _SPARKS)
    shown = [values[min(len(values), math.ceil((number + 1) * size)) - 1] for number in range(min(len(values), _SPARKS))]
    low, high = min(shown), max(shown)
    return "".join(_BARS[round((len(_BARS) - 1) * (value - low) / (high - low or 1))] for value in shown)
