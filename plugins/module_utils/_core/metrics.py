# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics in Prometheus' text format, and the figures of servers in them. No I/O.

The format: prometheus.io/docs/instrumenting/exposition_formats. A line that is not of it is passed over, and so is one without its end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .brief import listed, plural

_LINE = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{((?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*)\})?[ \t]+(\S+).*\n', re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LARGEST = 1e200
"""The largest number that is one: sums of such are finite."""
_SHARES = {"p50": "0.5", "p99": "0.99"}
"""The quantiles, as a summary writes them."""
_NUMBERS = ("served", "failed", "running", "ended", "waiting")
_TEXTS = ("leader", "alarm")
_COUNTED = {
    "members": ("member", ""), "keys": ("key", ""),
    "messages_ready": ("message", " ready"), "messages_unacked": ("message", " unacked"), "consumers": ("consumer", ""),
    "alarms": ("alarm", ""), "connections": ("connection", ""), "in_msgs": ("message", " in"), "out_msgs": ("message", " out"),
    "slow_consumers": ("slow consumer", ""),
}  # fmt: skip
_BYTES = {"used_bytes": "used", "free_bytes": "free", "quota_bytes": "quota"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Sample(t.NamedTuple):
    """One line: a metric with its labels, and a finite value."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples(text: str) -> Iterator[Sample]:
    """The samples in TEXT. A quantile of no requests is not a number, and left out."""
    for name, labels, value in _LINE.findall(text):
        with contextlib.suppress(ValueError):
            if abs(number := float(value)) < _LARGEST:
                yield Sample(name, {key: re.sub(r"\\(.)", _unescaped, said) for key, said in _LABEL.findall(labels)}, number)


def samples_of_json(text: str, prefix: str) -> Iterator[Sample]:
    """The numbers of an object in JSON as samples, each with PREFIX before its key; none if TEXT is something else."""
    with contextlib.suppress(ValueError, AttributeError):
        yield from (Sample(f"{prefix}{key}", {}, value) for key, value in json.loads(text).items() if type(value) in (int, float))


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


Fits = t.Callable[[Sample], bool]
Reader = t.Callable[[str], t.Iterable[Sample]]


def named(name: str) -> Fits:
    """Fits each sample of a metric."""
    return lambda one: one.name == name


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """The metrics of a kind of servers, by figure. A figure that a server does not have is left out."""

    prefix: str
    """Begins every name of its own."""
    counts: Mapping[str, Fits]
    """Figure -> the samples whose sum it is."""
    paths: Mapping[str, Reader] = dataclasses.field(default_factory=lambda: {"/metrics": samples})
    """Paths that are asked, each with what reads the answer."""
    answers: Sequence[int] = (200,)
    """The statuses of an answer that is read."""
    model: str = ""
    """The label with the name of a model, or of a queue."""
    means: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    """Figure -> the sum of all times, and their number."""
    latency: str = ""
    """A summary or histogram of the times of requests."""
    in_ms: float = 1
    """Milliseconds of one unit of these times."""
    largest: Mapping[str, tuple[str, float]] = dataclasses.field(default_factory=dict)
    """Figure -> a metric, and by what its largest value is multiplied."""
    texts: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    """Figure -> a metric, and the label whose texts it is, of the samples that are not zero; empty if all of them are."""

    def of(self, found: Sequence[Sample]) -> dict[str, t.Any]:
        """The figures of the samples of all replicas together."""
        sums = {name: [one.value for one in found if fits(one)] for name, fits in self.counts.items()}
        times = {**self._means(found), **quantiles(self.latency, found)}
        return {
            **{name: round(sum(values)) for name, values in sums.items() if values},
            **{name: round(by * max(values)) for name, (metric, by) in self.largest.items() if (values := _values(metric, found))},
            **{
                name: ", ".join(sorted({one.labels[label] for one in found if one.name == metric and one.value} - {""}))
                for name, (metric, label) in self.texts.items()
                if _values(metric, found)
            },
            "latency_ms": {name: round(value * self.in_ms, 3) for name, value in times.items()},
        }

    def by_model(self, found: Sequence[Sample]) -> list[dict[str, t.Any]]:
        """The figures of each model."""
        names = sorted({one.labels[self.model] for one in found if one.name.startswith(self.prefix) and self.model in one.labels})
        return [{"name": name, **self.of([one for one in found if one.labels.get(self.model) == name])} for name in names]

    def _means(self, found: Sequence[Sample]) -> dict[str, float]:
        values = {figure: [_values(name, found) for name in names] for figure, names in self.means.items()}
        return {figure: sum(times) / sum(numbers) for figure, (times, numbers) in values.items() if times and sum(numbers)}


def _values(name: str, found: Sequence[Sample]) -> list[float]:
    return [one.value for one in found if one.name == name]


def quantiles(name: str, found: Sequence[Sample]) -> dict[str, float]:
    """The quantiles of a summary: the largest among its series, which cannot be added. Of a histogram: those of all its series together."""
    series = [one for one in found if one.name == name]
    told = {share: [one.value for one in series if one.labels.get("quantile") == text] for share, text in _SHARES.items()}
    buckets = _buckets(f"{name}_bucket", found)
    counted = {share: _within(buckets, float(text)) for share, text in _SHARES.items()} if buckets and buckets[-1][1] > 0 else {}
    return {share: max(values) for share, values in told.items() if values} | counted


def _buckets(name: str, found: Sequence[Sample]) -> list[tuple[float, float]]:
    """The bounds that all series have, the last of them infinite, each with the number of requests that took no longer."""
    series: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
    for one in found:
        if one.name == name:
            with contextlib.suppress(KeyError, ValueError):
                series.setdefault(frozenset(one.labels.items() - {("le", one.labels["le"])}), {})[float(one.labels["le"])] = one.value
    bounds = sorted(set.intersection(*map(set, series.values()))) if series else []
    return [(bound, sum(one[bound] for one in series.values())) for bound in bounds] if math.inf in bounds[-1:] else []


def _within(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """The time that this share of the requests did not exceed: linear in its bucket, and the last finite bound beyond it, as by
    histogram_quantile of Prometheus (prometheus.io/docs/prometheus/latest/querying/functions)."""
    rank, below, under = share * buckets[-1][1], 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return below if math.isinf(bound) else below + (bound - below) * (rank - under) / (count - under)
        below, under = bound, count
    return below


def rate(now: Mapping[str, float], earlier: Mapping[str, float], seconds: float) -> float | None:
    """Requests a second between two readings of the counts of each replica; a replica that was restarted meanwhile begins at 0 again."""
    grown = [now[name] - earlier[name] for name in now.keys() & earlier.keys() if now[name] >= earlier[name]]
    return round(sum(grown) / seconds, 3) if grown and seconds > 0 else None


def line_of(row: Mapping[str, t.Any]) -> str:
    """The row of a server in inference_info as one text."""
    parts = [f"{row['ready']} of {row['wanted']} ready", *(f"{row[name]} {name}" for name in _NUMBERS if name in row)]
    parts += [f"{plural(row[name], noun)}{more}" for name, (noun, more) in _COUNTED.items() if name in row]
    parts += [f"KV cache {row['cache_percent']} %"] if "cache_percent" in row else []
    parts += [f"{row['requests_per_s']:.3g} a second"] if "requests_per_s" in row else []
    parts += [f"{name} {ms:.3g} ms" if ms < 1000 else f"{name} {ms / 1000:.3g} s" for name, ms in row["latency_ms"].items()]
    parts += [f"{_size(row[name])} {what}" for name, what in _BYTES.items() if name in row]
    parts += [f"{name} {row[name]}" if row[name] else f"no {name}" for name in _TEXTS if name in row]
    parts += [f"{kind} {listed([one['name'] for one in row[kind]])}" for kind in ("models", "queues") if row.get(kind)]
    text = ", ".join(parts) + (f": {listed(row['unread'])}" if row["unread"] else "")
    return " ".join(text.split())  # a name may have other ends of lines


def _size(number: int) -> str:
    """A number of bytes in the largest unit of which it has one."""
    power = min(max(number.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{number / 1024**power:.4g} {_UNITS[power]}"
