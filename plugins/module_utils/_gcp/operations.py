# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations: what a request to Google started, its progress, and its result.

Compute, container and the newer APIs (google.longrunning) each have their own.
"""

from __future__ import annotations

import re
import typing as t

from .._cloud.plan import Body
from .api import Api
from .errors import Problem, problem, word
from .plan import Step


class Ended(t.NamedTuple):
    """An operation that ended badly."""

    name: str
    problem: Problem


def place_of(step: Step, answer: Body) -> str:
    """The path of the operation that a step started; empty if it started none, or the answer is its end."""
    name = str(answer.get("name", ""))
    if answer.get("kind") == "compute#operation":
        parts = step.path.split("/")
        where = "global"
        for kind in ("zone", "region"):
            if answer.get(kind):
                where = f"{kind}s/{answer[kind].rsplit('/', 1)[-1]}"
        return f"projects/{parts[1]}/{where}/operations/{name}"
    if "operationType" in answer:
        return "/".join([*step.path.split("/")[:4], "operations", name])
    if re.search(r"(?:^|/)operations/", name):
        return name
    return ""


def look(api: Api, label: str, step: Step, answer: Body) -> str | Ended | None:
    """The progress of the operation, as a clause; its end if it failed; None if it succeeded, or none was started."""
    path = place_of(step, answer)
    if not path:
        return None
    # An operation that is done is not read again: it may be deleted (serviceusage's operations/noop.DONE_OPERATION).
    found = answer if _done(answer) else api.read(label, step.service, path)
    name = path.rsplit("/", 1)[-1]
    if found is None:
        return f"operation {name} does not appear yet"
    if not _done(found):
        return f"operation {name} is {_progress(found)}"
    error = _error(found)
    return Ended(name, error) if error else None


def _done(operation: Body) -> bool:
    return operation.get("status") == "DONE" or bool(operation.get("done"))


def _progress(operation: Body) -> str:
    """The state of an operation with whatever it tells of its progress."""
    told = [str(operation.get("status", "RUNNING"))]
    progress = operation.get("progress")
    if isinstance(progress, int):
        told.append(f"{progress} %")
    elif isinstance(progress, dict):
        told += [f"{row.get('name')} {_value(row)}" for row in progress.get("metrics") or ()]
    told += [str(operation[key]) for key in ("detail", "statusMessage") if operation.get(key)]
    return ", ".join(told)


def _value(metric: Body) -> t.Any:
    return next((metric[key] for key in ("intValue", "doubleValue", "stringValue") if key in metric), "")


def _error(operation: Body) -> Problem | None:
    """Compute has ``error.errors``; container a Status, and conditions with words of their own; the newer APIs a Status."""
    error = operation.get("error")
    rows = [*(operation.get("nodepoolConditions") or ()), *(operation.get("clusterConditions") or ())]
    conditions = [row for row in rows if row.get("canonicalCode") != "OK"]
    if not error and not conditions:
        return None
    found = problem(error or {"message": operation.get("statusMessage", "")})
    told = [word(row["code"]) for row in conditions if row.get("code")]
    message = found.message or "; ".join(str(row.get("message", "")).rstrip(".") for row in conditions)
    codes = list(dict.fromkeys([*(code for code in told if code != "UNKNOWN"), *found.codes]))
    return Problem(codes, message or "Google gave no reason", found.metadata)
