# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which fields of an object are ours, according to ``metadata.managedFields``.

The API server keeps the set of fields that each manager applied, and takes a field out of ours as soon as anybody else changes its
value. So "we still own everything we asked for" means "nothing of it was changed", exactly, without knowing defaults, quantities or
webhooks. (https://kubernetes.io/docs/reference/using-api/server-side-apply/ and structured-merge-diff's fieldpath.)

Private to the collection.
"""

from __future__ import annotations

import functools
import json
import typing as t

from .._core.quantity import canonical
from .objects import FIELD_MANAGER, Manifest

Trie = dict[str, t.Any]

_NEVER_OWNED = ("apiVersion", "kind")
_METADATA_OWNED = ("labels", "annotations", "finalizers", "ownerReferences")


def owned_fields(live: Manifest, manager: str) -> Trie:
    """The fieldsV1 that a manager applied, or created the object with; empty where it has none."""
    found = [entry.get("fieldsV1") or {} for entry in _entries(live) if entry.get("manager") == manager]
    return functools.reduce(_united, found) if found else {}


def is_created_by(live: Manifest, manager: str) -> bool:
    """Whether a manager has fields because it created the object (by POST). To the server they are not those that it applies."""
    return any((entry.get("manager"), entry.get("operation")) == (manager, "Update") for entry in _entries(live))


def managers(live: Manifest) -> set[str]:
    """Every manager of a field of the object itself (not of its status)."""
    return {str(entry.get("manager")) for entry in _entries(live)}


def _entries(live: Manifest) -> list[Manifest]:
    """The managed fields, except those of the status and single ones that we patched (to suspend a Job)."""
    found = live.get("metadata", {}).get("managedFields") or []
    patched = (FIELD_MANAGER, "Update")
    return [e for e in found if not e.get("subresource") and (e.get("manager"), e.get("operation")) != patched]


def transferred_fields(live: Manifest, givers: t.Collection[str], taker: str) -> list[Manifest]:
    """``managedFields`` with the givers' fields, and those that the taker created, as applied by the taker.

    The taker's next apply then drops those that are not desired.

    What ``kubectl apply --server-side`` does with the fields of an earlier client-side apply, which would stay for ever otherwise.
    """
    own = [entry for entry in _entries(live) if (entry.get("manager"), entry.get("operation")) == (taker, "Apply")]
    givers = {*givers, taker}
    given = [entry for entry in _entries(live) if entry.get("manager") in givers and entry not in own]
    rest = [entry for entry in live["metadata"].get("managedFields") or [] if entry not in given and entry not in own]
    if not given:
        return [*rest, *own]
    union: Trie = {}
    for entry in (*own, *given):
        union = _united(union, entry.get("fieldsV1") or {})
    return [*rest, {**(own or given)[0], "manager": taker, "operation": "Apply", "fieldsV1": union}]


def _united(one: Trie, other: Trie) -> Trie:
    return {key: _united(one.get(key) or {}, other.get(key) or {}) for key in {**one, **other}}


def unowned_paths(desired: Manifest, live: Manifest, manager: str) -> list[str]:
    """Desired paths that the manager does not own (any more)."""
    owned = owned_fields(live, manager)
    spec = {key: value for key, value in desired.items() if key not in (*_NEVER_OWNED, "metadata")}
    metadata = {key: value for key, value in desired["metadata"].items() if key in _METADATA_OWNED}
    return [*_missing(metadata, owned.get("f:metadata") or {}, "metadata"), *_missing(spec, owned, "")]


def other_manager(live: Manifest, path: str, manager: str) -> str | None:
    """The other manager that set the field at a path from ``unowned_paths``; None if none did."""
    for entry in live.get("metadata", {}).get("managedFields") or []:
        if entry.get("manager") != manager and path in _paths(entry.get("fieldsV1") or {}, ""):
            return str(entry.get("manager"))
    return None


def last_write(live: Manifest) -> str:
    """When one of our field managers wrote the object last; empty if none did."""
    entries = live.get("metadata", {}).get("managedFields") or []
    return max((entry.get("time", "") for entry in entries if entry["manager"].startswith(FIELD_MANAGER)), default="")


def owned_keys(live: Manifest, manager: str, *path: str) -> set[str]:
    """The keys that a manager owns below a path of maps, such as ``metadata`` and ``labels``."""
    node = owned_fields(live, manager)
    for key in path:
        node = node.get(f"f:{key}") or {}
    return {key[2:] for key in node if key.startswith("f:")}


def differing_paths(live: t.Any, desired: t.Any, path: str = "") -> t.Iterator[str]:
    """The paths at which a value that the server completed differs from the desired one."""
    if isinstance(desired, dict) and isinstance(live, dict):
        for key, value in desired.items():
            yield from differing_paths(live.get(key), value, f"{path}.{key}" if path else key)
    elif isinstance(desired, list) and isinstance(live, list) and len(live) == len(desired):
        for index, value in enumerate(desired):
            yield from differing_paths(live[index], value, f"{path}[{index}]")
    elif canonical(live) != canonical(desired):
        yield path


def covers(live: t.Any, desired: t.Any) -> bool:
    """Whether a value that the server completed still contains the desired one."""
    return not any(True for _path in differing_paths(live, desired))


def _missing(desired: dict[str, t.Any], node: Trie, path: str) -> t.Iterator[str]:
    for key, value in desired.items():
        below = f"{path}.{key}" if path else key
        child = node.get(f"f:{key}")
        if child is None:
            yield below
        else:
            yield from _below(value, child, below)


def _below(value: t.Any, node: Trie, path: str) -> t.Iterator[str]:
    """A node without children is a leaf, or a list or map that is owned as a whole."""
    if not any(key != "." for key in node):
        return
    if isinstance(value, dict):
        yield from _missing(value, node, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            key = _element(item, index, node)
            if key is None:
                yield f"{path}[{index}]"
            else:
                yield from _below(item, node[key], _element_path(path, key))


def _element(item: t.Any, index: int, node: Trie) -> str | None:
    """The entry of a list element: ``k:{its keys}``, ``v:value`` or ``i:index``.

    A key that the element leaves out was filled with its default (``protocol`` of a port), so only the keys that it has must match.
    """
    for key in node:
        mark, _colon, rest = key.partition(":")
        if mark == "k" and isinstance(item, dict):
            if all(item.get(name, value) == value for name, value in json.loads(rest).items()):
                return key
        elif (mark == "v" and json.loads(rest) == item) or (mark == "i" and int(rest) == index):
            return key
    return None


def _element_path(path: str, key: str) -> str:
    mark, _colon, rest = key.partition(":")
    if mark != "k":
        return f"{path}[{rest}]"
    return f"{path}[{','.join(f'{name}={value}' for name, value in json.loads(rest).items())}]"


def _paths(node: Trie, path: str) -> set[str]:
    found = set()
    for key, child in node.items():
        if key == ".":
            continue
        name = key.partition(":")[2]
        below = (f"{path}.{name}" if path else name) if key.startswith("f:") else _element_path(path, key)
        found |= {below} | _paths(child, below)
    return found
