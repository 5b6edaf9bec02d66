# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a CSV file as ID features, dense features and labels; who sends which batch. No PERSIA, no torch.

The file is read twice at the start, to check it and to know its scales, and after that only the rows of the next batch: it may be larger
than the memory, which holds some 25 bytes of each row.
A file packed by gzip is unpacked into memory, because rows are read from any place of it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import random
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from settings import Settings, SettingsError


@dataclass(frozen=True)
class Row:
    ids: list[list[int]]  # by ID column: those of its values
    dense: list[float]
    label: float


@dataclass(frozen=True)
class Dataset:
    settings: Settings
    place: dict[str, int]  # column -> its number in the file
    offsets: array[int]  # where each row begins
    scales: list[tuple[float, float]]  # mean and deviation of each dense column
    train: array[int]  # row numbers
    held_out: array[int]

    def rows(self, numbers: Sequence[int]) -> list[Row]:
        found = []
        with _opened(self.settings.data) as handle:
            for number in numbers:
                handle.seek(self.offsets[number])
                _offset, _line, values = next(_records(handle))
                ids = [_ids(self.settings, column, values[self.place[column]]) for column in self.settings.id_columns]
                dense, label = _numbers(self.settings, self.place, values, f"row {number}")
                scaled = [(value - mean) / spread for value, (mean, spread) in zip(dense, self.scales)]
                found.append(Row(ids, scaled, label))
        return found


def stable_id(column: str, value: str) -> int:
    """The same value has the same ID in every process and every run; Python's own hash() does not."""
    return int.from_bytes(hashlib.blake2b(f"{column}={value}".encode(), digest_size=8).digest(), "big")


def _ids(settings: Settings, column: str, text: str) -> list[int]:
    """One ID, or with a separator as many as there are values; none is allowed."""
    values = [part.strip() for part in text.split(settings.id_separator)] if settings.id_separator else [text]
    return [stable_id(column, value) for value in values if value or not settings.id_separator]


def load(settings: Settings) -> Dataset:
    try:
        with _opened(settings.data) as handle:
            return _scan(settings, handle)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {settings.data}: {error}; set MUSTER_DATA to a CSV file in the pod") from error


def _opened(path: str) -> BinaryIO:
    return io.BytesIO(_unpacked(path)) if path.endswith(".gz") else open(path, "rb")


@lru_cache(maxsize=1)
def _unpacked(path: str) -> bytes:
    with gzip.open(path) as packed:
        return packed.read()


def _scan(settings: Settings, handle: BinaryIO) -> Dataset:
    _offset, _line, header = next(_records(handle), (0, 0, []))
    desired = [settings.label_column, *settings.id_columns, *settings.dense_columns]
    missing = [column for column in desired if column not in header]
    if missing:
        raise SettingsError(
            f"{settings.data} has no column {', '.join(missing)}; it has {', '.join(header)}. Set "
            "MUSTER_LABEL_COLUMN, MUSTER_ID_COLUMNS and MUSTER_DENSE_COLUMNS to columns of the file"
        )
    offsets = array("Q", _offsets(settings.data, handle, len(header)))
    if len(offsets) < 10:
        raise SettingsError(f"{settings.data} has {len(offsets)} rows; training and a held-out part need at least 10")
    place = {column: header.index(column) for column in desired}
    train, held_out = split(len(offsets), settings.holdout, settings.seed)
    handle.seek(offsets[0])
    scales = _scales(settings, place, handle, held_out)
    return Dataset(settings, place, offsets, scales, train, held_out)


def _records(handle: BinaryIO) -> Iterator[tuple[int, int, list[str]]]:
    """Where each row begins, the number of its last line, and its values. A value in quotes may have several lines."""
    start = handle.tell()
    reader = csv.reader(iter(lambda: handle.readline().decode("utf-8"), ""))
    for values in reader:
        if values:
            yield start, reader.line_num, [value.strip() for value in values]
        start = handle.tell()


def _offsets(path: str, handle: BinaryIO, columns: int) -> Iterator[int]:
    for offset, line, values in _records(handle):
        if len(values) != columns:
            # The header was read by a reader of its own.
            raise SettingsError(f"{path}, line {line + 1}: {len(values)} values for {columns} columns; repair it")
        yield offset


def _scales(settings: Settings, place: dict[str, int], handle: BinaryIO, held_out: Sequence[int]) -> list[tuple[float, float]]:
    """Mean and deviation of each dense column, both of the training rows alone."""
    labels: tuple[set[float], set[float]] = (set(), set())  # of the training rows, of the others
    held = bytearray(max(held_out) + 1)
    for number in held_out:
        held[number] = 1
    count, means, squares = 0, [0.0] * len(settings.dense_columns), [0.0] * len(settings.dense_columns)
    for number, (_offset, line, values) in enumerate(_records(handle)):
        dense, label = _numbers(settings, place, values, f"line {line + 1}")
        is_held = number < len(held) and held[number]
        labels[is_held].add(label)
        if is_held:
            continue
        count += 1
        for column, value in enumerate(dense):
            distance = value - means[column]
            means[column] += distance / count
            squares[column] += distance * (value - means[column])
    if min(map(len, labels)) < 2:
        raise SettingsError(
            f"{settings.data}: with the rule '{settings.label_column} {settings.label_rule.operator} "
            f"{settings.label_rule.operand}' all labels are the same; change MUSTER_LABEL_RULE"
        )
    return [(mean, math.sqrt(square / count) or 1.0) for mean, square in zip(means, squares)]


def _numbers(settings: Settings, place: dict[str, int], values: Sequence[str], where: str) -> tuple[list[float], float]:
    """The dense values of a row as they are in the file, and its label."""
    dense = [_float(settings, column, values[place[column]], where) for column in settings.dense_columns]
    return dense, float(_matches(settings, values[place[settings.label_column]], where))


def _matches(settings: Settings, value: str, where: str) -> bool:
    try:
        return settings.label_rule.matches(value)
    except ValueError:
        raise SettingsError(
            f"{settings.data}, {where}: {settings.label_column}={value!r} is not a number; use '== value' in MUSTER_LABEL_RULE for text"
        ) from None


def _float(settings: Settings, column: str, text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SettingsError(
            f"{settings.data}, {where}: {column}={text!r} is not a number; make it an ID column (MUSTER_ID_COLUMNS) or repair the file"
        )
    return value


def split(rows: int, holdout: float, seed: int) -> tuple[array[int], array[int]]:
    order = array("Q", range(rows))
    random.Random(seed).shuffle(order)
    held_out = max(1, round(rows * holdout))
    return order[held_out:], order[:held_out]


def epoch_order(train: Sequence[int], seed: int, epoch: int) -> array[int]:
    order = array("Q", train)
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
        return [(start * self.world_size, min(self.steps_per_request, self.steps - start) * self.world_size) for start in cuts]


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
