# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' way in: the journal, faults, what the caller may, and everything that the project has."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from . import holdings, workloads, world
from .gate import Gate
from .journal import JOURNAL, Fault
from .state import PROJECT, SETTINGS, project

SIDE_DOOR = "/_simulator/"


def side_door(gate: Gate, name: str, raw: bytes) -> Any:
    body = json.loads(raw) if raw else None
    with gate.lock:
        return ANSWERS[name](gate, body)


def _fault(_gate: Gate, body: Any) -> Any:
    JOURNAL.inject(Fault(**body))


def _clear(_gate: Gate, _body: Any) -> Any:
    JOURNAL.clear()


def _reset(gate: Gate, _body: Any) -> Any:
    JOURNAL.clear()
    gate.seen.clear()
    SETTINGS.permissions = None
    world.reset()


def _permissions(_gate: Gate, body: Any) -> Any:
    SETTINGS.permissions = body


def _enable(_gate: Gate, body: Any) -> Any:
    """Enable services as an administrator did long ago: they are seen everywhere."""
    world.enable(project(PROJECT), body, late=0)


def _guest(_gate: Gate, body: Any) -> Any:
    """Replace the guest attributes of machines, by their names."""
    for thing in project(PROJECT).shelf("instances").values():
        if thing.body["name"] in body:
            thing.extra["guest"] = body[thing.body["name"]]


ANSWERS: dict[str, Callable[[Gate, Any], Any]] = {
    "requests": lambda _gate, _body: list(JOURNAL.entries),
    "faults": lambda _gate, _body: [asdict(fault) for fault in JOURNAL.faults],
    "holdings": lambda _gate, _body: holdings.holdings(project(PROJECT)),
    "fault": _fault,
    "clear": _clear,
    "reset": _reset,
    "permissions": _permissions,
    "enable": _enable,
    "guest": _guest,
    "workload": lambda _gate, body: workloads.make(project(PROJECT), **body),
}
