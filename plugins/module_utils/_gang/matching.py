# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which labels a selector matches, which nodes a pod may be on, which taints it tolerates: the scheduler's rules. No I/O.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

Labels = Mapping[str, str]
Rows = Sequence[Mapping[str, t.Any]]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

KEEPS_OUT = ("NoSchedule", "NoExecute")
"""Effects of taints that keep out a pod."""


def selects(selector: Mapping[str, t.Any] | None, labels: Labels) -> bool:
    """Whether a label selector matches; None matches nothing, an empty one everything."""
    if selector is None:
        return False
    plain = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in plain.items()) and all(
        fits(row, labels) for row in selector.get("matchExpressions") or ()
    )


def fits(row: Mapping[str, t.Any], labels: Labels) -> bool:
    """Whether labels meet one requirement of a selector of objects or of nodes."""
    value, given, operator = labels.get(row["key"]), row.get("values") or [], row["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return bool((value is not None) == (operator == "Exists"))
    if operator in ("In", "NotIn"):
        return bool((value in given) == (operator == "In"))
    try:
        have, limit = int(str(value)), int(given[0])
    except (IndexError, ValueError):
        return False
    return have > limit if operator == "Gt" else have < limit


def may_be_on(spec: Mapping[str, t.Any], labels: Labels, name: str) -> bool:
    """Whether the pod's node selector and its required node affinity allow a node."""
    plain = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in plain.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return any_term(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), labels, name)


def any_term(required: Mapping[str, t.Any] | None, labels: Labels, name: str) -> bool:
    """Whether one of the terms of a node selector matches. Without a selector every node does; an empty term matches none."""
    if required is None:
        return True
    return any(_term(term, labels, name) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Mapping[str, t.Any], labels: Labels, name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(expressions or fields) and (
        all(fits(row, labels) for row in expressions) and all(fits(row, {"metadata.name": name}) for row in fields)
    )


def keeping_out(tolerations: Rows, taints: Rows) -> Mapping[str, t.Any] | None:
    """The first taint that keeps the pod out."""
    return next(
        (
            taint
            for taint in taints
            if taint.get("effect") in KEEPS_OUT and not any(_tolerates(row, taint) for row in tolerations)
        ),
        None,
    )


def _tolerates(row: Mapping[str, t.Any], taint: Mapping[str, t.Any]) -> bool:
    if row.get("effect") and row["effect"] != taint.get("effect"):
        return False
    if row.get("key") and row["key"] != taint["key"]:
        return False
    if row.get("operator") == "Exists":
        return True
    return bool(row.get("key")) and (row.get("value") or "") == (taint.get("value") or "")


def taint_text(taint: Mapping[str, t.Any]) -> str:
    """As kubectl writes it: key=value:effect."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect')}"
