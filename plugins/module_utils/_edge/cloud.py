# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that the edges of AWS and of Google Cloud share, for the options of a wait and the result that each module returns."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Sequence

from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict

from .._cloud.converge import Outcome
from .options import Spec, options_of

K = t.TypeVar("K")


Option = dict[str, t.Any]
NUMBER: Option = {"type": "int"}
YES: Option = {"type": "bool"}
WORDS: Option = {"type": "dict"}
STRINGS: Option = {"type": "list", "elements": "str"}


def text(*choices: str, **more: t.Any) -> Option:
    """An option with a text, one of the choices if there are any."""
    return {"type": "str", **({"choices": list(choices)} if choices else {}), **more}


def group(**options: Option) -> Option:
    """An option with options of its own."""
    return {"type": "dict", "options": options}


def rows(**options: Option) -> Option:
    """A list of rows with options of their own."""
    return {"type": "list", "elements": "dict", "options": options}


_EFFECTS = ("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE")
TAINTS = rows(key=text(required=True, no_log=False), value=text(default=""), effect=text(*_EFFECTS, required=True))
"""The taints of nodes, by the names that EKS and GKE have for effects."""


def spec_of(kind: type, shared: Spec, hidden: Sequence[str], wait: int | None, more: Spec) -> Spec:
    """The options of a module for one resource: those that all modules of its cloud have, and the fields of KIND, a dataclass.

    WAIT is the default of ``wait_timeout`` in seconds, where the module waits. HIDDEN are fields that are no options. MORE are options of
    which the field does not say all, such as the choices, and those without a field.
    """
    waits: Spec = {"wait": {"type": "bool", "default": True}, "wait_timeout": {"type": "int", "default": wait}} if wait else {}
    return {**shared, **waits, **options_of(kind, hidden=[*hidden, *more], required=True), **more}


def from_options(kind: type[K], params: dict[str, t.Any]) -> K:
    """The kind, a dataclass, with the options of its fields' names."""
    names = [field.name for field in dataclasses.fields(t.cast(t.Any, kind))]
    return kind(**{name: params[name] for name in names if name in params})


def snake_case_result(body: dict[str, t.Any], words: Sequence[str]) -> dict[str, t.Any]:
    """A resource as its cloud describes it, in snake_case, without our internal keys.

    WORDS: fields whose keys are user-defined, and keep their spelling.
    """
    public = {key: value for key, value in body.items() if not key.startswith("_")}
    result: dict[str, t.Any] = camel_dict_to_snake_dict(public, ignore_list=list(words))
    return result


def result_of(outcome: Outcome, key: str, label: str, *, diff: bool, words: Sequence[str]) -> dict[str, t.Any]:
    """The result keys that every module returns; the resource itself is under KEY. LABEL names it in the diff."""
    plan = outcome.plan
    result: dict[str, t.Any] = {
        "changed": plan.changed,
        "actions": [str(step) for step in (*plan.steps, *plan.later)],
        key: snake_case_result(outcome.live, words) if outcome.live else {},
    }
    if outcome.kept:
        result["kept"] = outcome.kept
    if diff:
        after = f"{label} (absent)" if not plan.after else f"{label} (created again)" if plan.replaces and plan.before else label
        result["diff"] = {
            "before_header": label if plan.before else f"{label} (absent)",
            "after_header": after if plan.changed else label,
            "before": snake_case_result(plan.before, words),
            "after": snake_case_result(plan.after, words),
        }
    return result
