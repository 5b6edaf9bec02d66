# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors, node affinity and tolerations, as the scheduler matches them. No I/O."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

Labels = Mapping[str, str]
Row = Mapping[str, t.Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selects(selector: Row | None, labels: Labels) -> bool:
    """Whether a label selector matches; None matches nothing, an empty one everything."""
    if selector is None:
        return False
    return (selector.get("matchLabels") or {}).items() <= labels.items() and all(
        _meets(labels, row) for row in selector.get("matchExpressions") or ()
    )


def _meets(labels: Labels, row: Row) -> bool:
    """Whether labels meet one requirement of a selector."""
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


def allows_node(spec: Row, name: str, labels: Labels) -> bool:
    """Whether the node selector of a pod and its required node affinity allow a node."""
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return required is None or any(_matches(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def _matches(term: Row, name: str, labels: Labels) -> bool:
    """Whether a node selector term matches a node; an empty one matches none."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    rows = [*((labels, row) for row in expressions), *(({"metadata.name": name}, row) for row in fields)]
    return bool(rows) and all(_meets(*pair) for pair in rows)


def tolerates(toleration: Row, taint: Row) -> bool:
    """Whether a toleration matches a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def pod_terms(spec: Row, kind: str) -> list[Row]:
    """The required terms of a pod's podAffinity or podAntiAffinity."""
    return list(((spec.get("affinity") or {}).get(kind) or {}).get(REQUIRED) or ())


def may_repel(pod: Row, namespace: str, labels: Labels) -> bool:
    """Whether the required anti-affinity of a live pod may keep pods with LABELS off nodes. Selectors of namespaces count as matching."""
    return any(
        selects(term.get("labelSelector"), labels)
        for term in pod_terms(pod["spec"], "podAntiAffinity")
        if term.get("namespaces") or term.get("namespaceSelector") is not None or pod["metadata"]["namespace"] == namespace
    )
