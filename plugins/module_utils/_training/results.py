# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of a training: as values, and as lines of text."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Sequence

from .._kube.cluster import Cluster
from .kind import Kind, Observed
from .logs import read_logs

Found: t.TypeAlias = "dict[str, str | None]"
_WIDTH = 10


def results(cluster: Cluster, kind: Kind, observed: Observed, pattern: re.Pattern[str] | None = None) -> dict[str, t.Any]:
    """The keys ``summary`` and ``table`` of the modules, and the further keys of the kind."""
    status = observed.status
    reported: dict[str, t.Any] = kind.results(observed) if kind.results else {"summary": status.summary(), "table": status.table()}
    if pattern is None or status.state != "Succeeded":
        return reported
    # Later attempts log after earlier ones, so the last line of an epoch counts.
    texts = read_logs(cluster, status.namespace, kind.trainers(status))
    found = [m.groupdict() for text in texts for m in pattern.finditer(text)]
    summary = {**reported["summary"], **_values(pattern, found), "ok": bool(found)}
    more = kind.logged(texts) if kind.logged else {}
    return {**reported, **more, "found": found, "summary": summary, "table": _lines(f"{kind.title} {status}", pattern, found)}


def _values(pattern: re.Pattern[str], found: Sequence[Found]) -> dict[str, t.Any]:
    """The values that were logged last, and the number of epochs."""
    last = found[-1] if found else {}
    values = {name: _number(last.get(name)) for name in pattern.groupindex if name != "epoch"}
    epochs = [row["epoch"] for row in found if row.get("epoch") is not None]
    return {**values, "epochs": _number(epochs[-1]) if epochs else 0}


def _lines(title: str, pattern: re.Pattern[str], found: Sequence[Found]) -> list[str]:
    """One line for each epoch, and one for the end."""
    columns, last = list(pattern.groupindex), found[-1] if found else {}
    rows = [[row[column] or "" for column in columns] for row in found if row.get("epoch") is not None]
    values = ", ".join(f"{name} {last.get(name) or '?'}" for name in columns if name != "epoch")
    lines = ["".join(f"{cell:>{_WIDTH}}" for cell in row) for row in [columns, *rows]]
    return [*lines, f"{title}: {values} on held-out data"]


def _number(text: str | None) -> int | float | str | None:
    """A text as a number."""
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    return text
