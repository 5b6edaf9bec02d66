# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a CSV file as ID features, dense features and labels; who sends which batch. No PERSIA, no torch."""

from __future__ import annotations

import csv
import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from settings import Settings, SettingsError


@dataclass(frozen=True)
class Dataset:
    ids: list[list[list[int]]]  # by row and ID column: those of its values
    dense: list[list[float]]
    labels: list[float]
    train: list[int]  # row numbers
    held_out: list[int]


def stable_id(column: str, value: str) -> int:
    """The same value has the same ID in every process and every run; Python's own hash() does not."""
    return int.from_bytes(hashlib.blake2b(f"{column}={value}".encode(), digest_size=8).digest(), "big")


def _ids(settings: Settings, column: str, text: str) -> list[int]:
    """One ID, or with a separator as many as there are values; none is allowed."""
    values = [part.strip() for part in text.split(settings.id_separator)] if settings.id_separator else [text]
    return [stable_id(column, value) for value in values if value or not settings.id_separator]


def load(settings: Settings) -> Dataset:
    header, rows = _read(settings.data)
    desired = [settings.label_column, *settings.id_columns, *settings.dense_columns]
    missing = [column for column in desired if column not in header]
    if missing:
        raise SettingsError(
            f"{settings.data} has no column {', '.join(missing)}; it has {', '.join(header)}. Set "
            "MUSTER_LABEL_COLUMN, MUSTER_ID_COLUMNS and MUSTER_DENSE_COLUMNS to columns of the file"
        )
    place = {column: header.index(column) for column in desired}
    train, held_out = split(len(rows), settings.holdout, settings.seed)
    dense = [_floats(settings, place[column], column, rows) for column in settings.dense_columns]
    labels = [float(_matches(settings, row[place[settings.label_column]], number)) for number, row in rows]
    if len({labels[row] for row in held_out}) < 2 or len({labels[row] for row in train}) < 2:
        raise SettingsError(
            f"{settings.data}: with the rule '{settings.label_column} {settings.label_rule.operator} "
            f"{settings.label_rule.operand}' all labels are the same; change MUSTER_LABEL_RULE"
        )
    return Dataset(
        ids=[[_ids(settings, column, row[place[column]]) for column in settings.id_columns] for _line, row in rows],
        dense=[list(values) for values in zip(*(_standardise(column, train) for column in dense))]
        or [[] for _row in rows],
        labels=labels,
        train=train,
        held_out=held_out,
    )


def _read(path: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.reader(handle)
            header = [name.strip() for name in next(reader, [])]
            rows = [(reader.line_num, [value.strip() for value in row]) for row in reader if row]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}; set MUSTER_DATA to a CSV file in the pod") from error
    if len(rows) < 10:
        raise SettingsError(f"{path} has {len(rows)} rows; training and a held-out part need at least 10")
    for number, row in rows:
        if len(row) != len(header):
            raise SettingsError(f"{path}, line {number}: {len(row)} values for {len(header)} columns; repair it")
    return header, rows


def _matches(settings: Settings, value: str, line: int) -> bool:
    try:
        return settings.label_rule.matches(value)
    except ValueError:
        raise SettingsError(
            f"{settings.data}, line {line}: {settings.label_column}={value!r} is not a number; use '== value' in "
            "MUSTER_LABEL_RULE for text"
        ) from None


def _floats(settings: Settings, place: int, column: str, rows: Sequence[tuple[int, list[str]]]) -> list[float]:
    values = []
    for number, row in rows:
        try:
            value = float(row[place])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise SettingsError(
                f"{settings.data}, line {number}: {column}={row[place]!r} is not a number; make it an ID column "
                "(MUSTER_ID_COLUMNS) or repair the file"
            )
        values.append(value)
    return values


def _standardise(values: list[float], train: Sequence[int]) -> list[float]:
    """Mean 0 and deviation 1, both taken from the training rows alone."""
    mean = sum(values[row] for row in train) / len(train)
    spread = math.sqrt(sum((values[row] - mean) ** 2 for row in train) / len(train)) or 1.0
    return [(value - mean) / spread for value in values]


def split(rows: int, holdout: float, seed: int) -> tuple[list[int], list[int]]:
    order = list(range(rows))
    random.Random(seed).shuffle(order)
    held_out = max(1, round(rows * holdout))
    return order[held_out:], order[:held_out]


def epoch_order(train: Sequence[int], seed: int, epoch: int) -> list[int]:
    order = list(train)
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


@dataclass(frozen=True)
class Plan:
    """How an epoch is cut.

    PERSIA gives batch number ``k * loaders + loader`` to rank ``number % world_size``. When every request asks each
    loader for the same number of batches, each rank gets the same number too, which DDP needs to end together.
    """

    world_size: int
    loaders: int
    steps: int  # of each rank in an epoch
    steps_per_request: int

    def requests(self) -> list[tuple[int, int]]:
        """(first batch, number of batches) of each request of an epoch."""
        cuts = range(0, self.steps, self.steps_per_request)
        return [
            (start * self.world_size, min(self.steps_per_request, self.steps - start) * self.world_size)
            for start in cuts
        ]


def plan(train_rows: int, settings: Settings, world_size: int, loaders: int) -> Plan:
    unit = loaders // math.gcd(loaders, world_size)
    steps = train_rows // (settings.batch_size * world_size) // unit * unit
    if steps == 0:
        raise SettingsError(
            f"{train_rows} training rows are too few for {world_size} trainers, {loaders} data loaders and batches of "
            f"{settings.batch_size}; lower MUSTER_BATCH_SIZE or the number of replicas"
        )
    return Plan(world_size, loaders, steps, max(unit, settings.steps_per_request // unit * unit))


def share(first: int, count: int, loader: int, loaders: int) -> range:
    """The batches of a request that one loader sends, in this order."""
    return range(first + loader, first + count, loaders)
