# SPDX-License-Identifier: GPL-3.0-or-later
"""What to train on and how: every setting comes from an environment variable (README.md lists them)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_RUN_DIR = "/workspace/shared/run"


class SettingsError(ValueError):
    """A setting or the data does not fit; the message names it, the cause and what to do."""


@dataclass(frozen=True)
class LabelRule:
    """``> 0``: which values of the label column count as positive."""

    operator: str
    operand: str

    OPERATORS = ("==", "!=", ">=", "<=", ">", "<")

    @classmethod
    def parse(cls, text: str) -> LabelRule:
        for operator in cls.OPERATORS:
            if text.startswith(operator):
                operand = text[len(operator) :].strip()
                if operand:
                    return cls(operator, operand)
        raise SettingsError(
            f"MUSTER_LABEL_RULE={text!r} is not a rule; write an operator ({', '.join(cls.OPERATORS)}) and a "
            "value, for example '> 0' or '== yes'"
        )

    def matches(self, value: str) -> bool:
        if self.operator in ("==", "!="):
            same = value == self.operand or _numbers_equal(value, self.operand)
            return same == (self.operator == "==")
        left, right = float(value), float(self.operand)
        return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[self.operator]


def _numbers_equal(left: str, right: str) -> bool:
    try:
        return float(left) == float(right)
    except ValueError:
        return False


@dataclass(frozen=True)
class Settings:
    """One training run. Defaults train on the survey that lies beside this file."""

    data: str = str(Path(__file__).with_name("fair.csv.gz"))
    label_column: str = "affairs"
    label_rule: LabelRule = field(default_factory=lambda: LabelRule(">", "0"))
    id_columns: tuple[str, ...] = ("rate_marriage", "religious", "educ", "occupation", "occupation_husb")
    dense_columns: tuple[str, ...] = ("age", "yrs_married", "children")
    id_separator: str = ""
    run_dir: str = DEFAULT_RUN_DIR
    epochs: int = 10
    batch_size: int = 64
    holdout: float = 0.2
    seed: int = 7
    dense_lr: float = 0.005
    embedding_lr: float = 0.05
    hidden: int = 32
    steps_per_request: int = 50
    timeout: float = 60.0
    checkpoint_epochs: int = 1
    keep_checkpoints: int = 2
    reproducible: int = 0
    success_file: str = ""

    def fingerprint(self) -> str:
        """What must not change between a checkpoint and the run that goes on from it."""
        names = ("label_column", "id_columns", "dense_columns", "holdout", "seed", "batch_size", "hidden")
        text = json.dumps([[name, getattr(self, name)] for name in names])
        if self.id_separator:
            text += self.id_separator
        rule = f"{self.label_rule.operator} {self.label_rule.operand}"
        return hashlib.sha256((text + rule).encode()).hexdigest()[:16]


def _columns(name: str, text: str) -> tuple[str, ...]:
    columns = tuple(part.strip() for part in text.split(",") if part.strip())
    if len(set(columns)) != len(columns):
        raise SettingsError(f"{name}={text!r} names a column twice; name each column once")
    return columns


def _number(name: str, text: str, kind: type[int] | type[float], low: float, high: float) -> float:
    try:
        value = kind(text)
    except ValueError:
        raise SettingsError(f"{name}={text!r} is not a number; give a {kind.__name__}") from None
    if not low <= value <= high:
        raise SettingsError(f"{name}={text} is out of range; it must lie between {low:g} and {high:g}")
    return value


# variable -> (field, kind, lowest, highest)
_NUMBERS = {
    "MUSTER_EPOCHS": ("epochs", int, 1, 1_000_000),
    "MUSTER_BATCH_SIZE": ("batch_size", int, 1, 65_535),  # 65,535 is PERSIA's own limit of a batch
    "MUSTER_HOLDOUT": ("holdout", float, 0.01, 0.9),
    "MUSTER_SEED": ("seed", int, 0, 2**31),
    "MUSTER_DENSE_LR": ("dense_lr", float, 1e-9, 10),
    "MUSTER_EMBEDDING_LR": ("embedding_lr", float, 1e-9, 10),
    "MUSTER_HIDDEN": ("hidden", int, 1, 65_536),
    "MUSTER_STEPS_PER_REQUEST": ("steps_per_request", int, 1, 1_000_000),
    "MUSTER_TIMEOUT": ("timeout", float, 1, 86_400),
    "MUSTER_CHECKPOINT_EPOCHS": ("checkpoint_epochs", int, 1, 1_000_000),
    "MUSTER_KEEP_CHECKPOINTS": ("keep_checkpoints", int, 1, 1000),
    "MUSTER_REPRODUCIBLE": ("reproducible", int, 0, 1),
}
_TEXTS = {
    "MUSTER_DATA": "data",
    "MUSTER_LABEL_COLUMN": "label_column",
    "MUSTER_ID_SEPARATOR": "id_separator",
    "MUSTER_RUN_DIR": "run_dir",
    "MUSTER_SUCCESS_FILE": "success_file",
}
_COLUMNS = {"MUSTER_ID_COLUMNS": "id_columns", "MUSTER_DENSE_COLUMNS": "dense_columns"}


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {}
    for variable, (name, kind, low, high) in _NUMBERS.items():
        if environ.get(variable):
            values[name] = _number(variable, environ[variable], kind, low, high)
    for variable, name in _TEXTS.items():
        if environ.get(variable):
            values[name] = environ[variable]
    for variable, name in _COLUMNS.items():
        if variable in environ:
            values[name] = _columns(variable, environ[variable])
    if environ.get("MUSTER_LABEL_RULE"):
        values["label_rule"] = LabelRule.parse(environ["MUSTER_LABEL_RULE"].strip())
    settings = Settings(**values)  # type: ignore[arg-type]
    if not settings.id_columns:
        raise SettingsError("MUSTER_ID_COLUMNS is empty; PERSIA trains embeddings, so name at least one column")
    twice = set(settings.id_columns) & set(settings.dense_columns)
    if twice or settings.label_column in settings.id_columns + settings.dense_columns:
        raise SettingsError(
            f"the column {', '.join(sorted(twice)) or settings.label_column} is used twice; a column is either the "
            "label (MUSTER_LABEL_COLUMN), an ID (MUSTER_ID_COLUMNS) or dense (MUSTER_DENSE_COLUMNS)"
        )
    return settings


def check_slots(settings: Settings, embedding_config: Mapping[str, object], source: str) -> dict[str, int]:
    """The dimension of every ID column's embedding; PERSIA itself would crash a server on an unknown slot."""
    slots = embedding_config.get("slots_config")
    slots = slots if isinstance(slots, Mapping) else {}
    missing = [column for column in settings.id_columns if column not in slots]
    if missing:
        raise SettingsError(
            f"{source} has no slot for the ID column {', '.join(missing)}; add it under slots_config with a dim, "
            "or take it out of MUSTER_ID_COLUMNS"
        )
    return {column: int(slots[column]["dim"]) for column in settings.id_columns}
