# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that pods claim by dynamic resource allocation (API resource.k8s.io/v1, Kubernetes 1.34 and newer)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import Manifest, check_count, check_name, compact, spec_hash

TEMPLATE = ("resource.k8s.io/v1", "ResourceClaimTemplate")
_MOST = 32
"""Number of devices that a claim can have (AllocationResultsMaxSize of Kubernetes 1.36)."""
_NAMED = {"resource_claim_name": "resourceClaimName", "resource_claim_template_name": "resourceClaimTemplateName"}
_SOURCES = (*_NAMED, "device_class_name")

Rows = Sequence[Mapping[str, t.Any]]


def named(rows: Rows, name: str) -> tuple[Manifest, ...]:
    """The option resource_claims, checked. Claims by DeviceClass get the name of their template, for the pods of the object NAME.

    There is a name for each content, because a template is immutable, and pods with another one are other pods.
    """
    found: dict[str, Manifest] = {}
    for row in rows:
        claim = check_name(str(row["name"]), "resource_claims: name")
        where, given = f"resource_claims {claim}", [source for source in _SOURCES if row.get(source)]
        if len(given) != 1:
            raise InvalidInput(f"{where}: {' and '.join(given) or 'nothing'} is given.", f"Give one of {', '.join(_SOURCES)}.")
        if claim in found:
            raise InvalidInput(f"{where} is there twice.")
        found[claim] = {key: value for key, value in row.items() if value not in (None, "", [])}
        if given[0] in _NAMED:
            if found[claim].keys() & {"count", "selectors"}:
                raise InvalidInput(f"{where}: count and selectors are for device_class_name.", "The claim or its template has its own.")
        else:
            found[claim]["resource_claim_template_name"] = f"{name}-{claim}-{spec_hash(_request(row))[:8]}"
    return tuple(found.values())


def claims_of_pod(rows: Rows) -> list[Manifest]:
    """The field resourceClaims of a pod."""
    return [{"name": row["name"], **{field: row[key] for key, field in _NAMED.items() if key in row}} for row in rows]


def claims_of_container(asked: Sequence[t.Any] | None, rows: Rows) -> list[Manifest]:
    """The field claims in the resources of the program: those that are asked for, or all of the pod."""
    known = [row["name"] for row in rows]
    if not asked:
        return [{"name": name} for name in known]
    for one in asked:
        if not isinstance(one, Mapping) or one.get("name") not in known:
            name = one.get("name") if isinstance(one, Mapping) else one
            raise InvalidInput(f"resources.claims: '{name}' is not among resource_claims.", f"There: {', '.join(known) or 'none'}.")
    return [dict(one) for one in asked]


def claim_templates(rows: Rows, metadata: Manifest) -> list[Manifest]:
    """The ResourceClaimTemplates of the claims by DeviceClass, with METADATA but names of their own."""
    api_version, kind = TEMPLATE
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {**metadata, "name": row["resource_claim_template_name"]},
            "spec": {"spec": {"devices": {"requests": [_request(row)]}}},
        }
        for row in rows
        if "device_class_name" in row
    ]


def templates_named_by(value: t.Any) -> set[str]:
    """The names of the ResourceClaimTemplates in objects that make pods."""
    found: set[str] = set()
    for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
        if key == "resourceClaimTemplateName":
            found.add(one)
        elif isinstance(one, Mapping | list | tuple):
            found |= templates_named_by(one)
    return found


def _request(row: Mapping[str, t.Any]) -> Manifest:
    where, selectors = f"resource_claims {row['name']}", row.get("selectors") or ()
    count = check_count(1 if row.get("count") is None else row["count"], f"{where}: count", minimum=1)
    if count > _MOST:
        raise InvalidInput(f"{where}: {count} devices are too many for one claim.", f"It can have {_MOST}.")
    exactly = {
        "deviceClassName": row["device_class_name"],
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    return {"name": row["name"], "exactly": compact(exactly)}
