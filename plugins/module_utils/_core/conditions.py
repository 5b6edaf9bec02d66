# SPDX-License-Identifier: GPL-3.0-or-later
"""Status conditions, in which Kubernetes' controllers report the state of an object."""

from __future__ import annotations

import typing as t

Condition = t.Mapping[str, t.Any]


def conditions(live: t.Mapping[str, t.Any]) -> t.Sequence[Condition]:
    """All conditions of an object; a custom resource may use the field status for anything."""
    status = live.get("status")
    return (status.get("conditions") or []) if isinstance(status, dict) else []


def condition(live: t.Mapping[str, t.Any], kind: str) -> Condition:
    """The condition of that type; empty if the object has none."""
    return next((row for row in conditions(live) if row.get("type") == kind), {})


def is_true(live: t.Mapping[str, t.Any], *kinds: str) -> bool:
    """Whether any of these conditions is True."""
    return any(condition(live, kind).get("status") == "True" for kind in kinds)


def reason_of(row: Condition) -> str:
    """Reason and message of a condition or of a container state, joined by a colon; empty if it has neither."""
    return ": ".join(part for part in (row.get("reason"), row.get("message")) if part)
