# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a PERSIA training came to: values for programs, lines for people."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Sequence

from ..._core.errors import InvalidInput
from ..._training.status import TRAINER_ROLE, JobStatus, Rank

Found = dict[str, str | None]
_WIDTH = 10


def pattern_of(text: str | None) -> re.Pattern[str] | None:
    """The option results_pattern; empty: no results are looked for."""
    if not text:
        return None
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as exc:
        raise InvalidInput(f"results_pattern: '{text}' is not a regular expression: {exc}.") from exc


def trainers(status: JobStatus) -> list[tuple[str, Rank]]:
    """The ranks whose logs have the results."""
    return [(group.name, rank) for group in status.groups if group.role == TRAINER_ROLE for rank in group.ranks]


def find(pattern: re.Pattern[str], logs: Iterable[str]) -> list[Found]:
    """The named groups of each match. Lines of later attempts come after those of earlier ones; the last of an epoch counts."""
    return [match.groupdict() for text in logs for match in pattern.finditer(text)]


def summary(status: JobStatus, pattern: re.Pattern[str] | None, found: Sequence[Found]) -> dict[str, t.Any]:
    """The values: how it is doing, and once it has ended what its trainers logged last."""
    values = status.summary()
    if pattern is None or status.state != "Succeeded":
        return values
    last = found[-1] if found else {}
    results = {name: _number(last.get(name)) for name in pattern.groupindex if name != "epoch"}
    epochs = [row["epoch"] for row in found if row.get("epoch") is not None]
    return {**values, **results, "epochs": _number(epochs[-1]) if epochs else 0, "ok": bool(found)}


def table(status: JobStatus, pattern: re.Pattern[str] | None, found: Sequence[Found]) -> list[str]:
    """The same as lines: one for each epoch, or how many pods of each group run."""
    if pattern is None or status.state != "Succeeded":
        return status.table()
    columns, last = list(pattern.groupindex), found[-1] if found else {}
    rows = [[row[column] or "" for column in columns] for row in found if row.get("epoch") is not None]
    told = ", ".join(f"{name} {last.get(name) or '?'}" for name in columns if name != "epoch")
    lines = ["".join(f"{cell:>{_WIDTH}}" for cell in row) for row in [columns, *rows]]
    return [*lines, f"PERSIA {status.namespace}/{status.name}: {told} on held-out data"]


def _number(text: str | None) -> int | float | str | None:
    """A value as the number that it is."""
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    return text
