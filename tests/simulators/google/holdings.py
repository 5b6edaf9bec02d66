# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that the project has, kind by kind: what a teardown has to leave as it was before.

From the store itself and not by the API's methods, so that what nobody lists is seen as well. Soft-deleted buckets and service accounts are
kinds of their own.
"""

import json
from typing import Any

from .discovery import Body
from .state import BUCKETS, Project

# What moves by itself.
RESTLESS = (
    "usage", "updated", "updateTime", "etag", "fingerprint", "lastStartTimestamp", "users", "status", "subnetworks", "metageneration",
)  # fmt: skip


def holdings(found: Project) -> dict[str, dict[str, Any]]:
    """Kind of resource: {name: its description}."""
    kinds: dict[str, dict[str, Any]] = {
        kind: {key: _still(thing.body) for key, thing in shelf.items()} for kind, shelf in found.shelves.items() if shelf
    }
    own = {name: thing for name, thing in BUCKETS.items() if thing.extra["project"] == found.id}
    kinds["buckets"] = {name: _bucket(thing.body, thing.extra) for name, thing in own.items() if not thing.extra.get("deleted")}
    kinds["deletedBuckets"] = {name: {} for name, thing in own.items() if thing.extra.get("deleted")}
    kinds["services"] = {name: {} for name in found.services}
    rows = [(row, member) for row in found.policy["bindings"] for member in row["members"]]
    kinds["bindings"] = {f"{row['role']} {member}": row.get("condition", {}) for row, member in rows}
    kinds["accountBindings"] = _bindings(found, "serviceAccounts")
    kinds["repositoryBindings"] = _bindings(found, "repositories")
    kinds["hmacKeys"] = {name: row for name, row in kinds.get("hmacKeys", {}).items() if row["state"] != "DELETED"}
    return {kind: rows_ for kind, rows_ in kinds.items() if rows_}


def _bindings(found: Project, kind: str) -> dict[str, Any]:
    return {
        f"{key} {row['role']} {member}": {}
        for key, thing in found.shelf(kind).items()
        for row in thing.extra.get("policy", {}).get("bindings", [])
        for member in row["members"]
    }


def _bucket(body: Body, extra: Body) -> Body:
    rows = {name: len(rows) for name, rows in extra["objects"].items() if rows}
    members = sorted(f"{row['role']} {member}" for row in extra["policy"].get("bindings", []) for member in row["members"])
    return {**_still(body), "objects": rows, "members": members}


def _still(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _still(item) for key, item in value.items() if key not in RESTLESS}
    return [_still(item) for item in value] if isinstance(value, list) else json.loads(json.dumps(value, default=str))
