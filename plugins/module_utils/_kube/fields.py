# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which fields of an object are ours, told from ``metadata.managedFields``.

The API server keeps the set of fields that each manager applied, and takes a field out of ours as soon as anybody else changes its
value. So "we still own everything we asked for" means "nothing of it was changed", exactly, without knowing defaults, quantities or
webhooks. (https://kubernetes.io/docs/reference/using-api/server-side-apply/ and structured-merge-diff's fieldpath.)

Private to the collection.
"""

from __future__ import annotations

import json
import typing as t

from .objects import FIELD_MANAGER, Manifest
from .quantity import canonical

Trie = dict[str, t.Any]

_NEVER_OWNED = ("apiVersion", "kind")
_METADATA_OWNED = ("labels", "annotations", "finalizers", "ownerReferences")


def owned_fields(live: Manifest, manager: str = FIELD_MANAGER, operation: str = "Apply") -> Trie:
    """The fieldsV1 of a manager, empty where it has none."""
    for entry in live.get("metadata", {}).get("managedFields") or []:
        if entry.get("manager") == manager and entry.get("operation") == operation and not entry.get("subresource"):
            return entry.get("fieldsV1") or {}
    return {}


def unowned(wanted: Manifest, live: Manifest) -> list[str]:
    """Paths that we want and do not own (any more)."""
    owned = owned_fields(live)
    spec = {key: value for key, value in wanted.items() if key not in (*_NEVER_OWNED, "metadata")}
    metadata = {key: value for key, value in wanted["metadata"].items() if key in _METADATA_OWNED}
    return [*_missing(metadata, owned.get("f:metadata") or {}, "metadata"), *_missing(spec, owned, "")]


def holder(live: Manifest, path: str) -> str | None:
    """Who, other than us, set the field at a path that ``unowned`` gave; None where nobody did."""
    for entry in live.get("metadata", {}).get("managedFields") or []:
        if entry.get("manager") != FIELD_MANAGER and path in _paths(entry.get("fieldsV1") or {}, ""):
            return str(entry.get("manager"))
    return None


def owned_keys(live: Manifest, *path: str) -> set[str]:
    """The keys that we own below a path of maps, such as ``data``."""
    node = owned_fields(live)
    for key in path:
        node = node.get(f"f:{key}") or {}
    return {key[2:] for key in node if key.startswith("f:")}


def overlaid(live: Manifest, wanted: Manifest) -> Manifest:
    """``wanted`` together with the labels and annotations that we own already (for objects that several callers share)."""
    merged = {**wanted, "metadata": dict(wanted["metadata"])}
    for part in ("labels", "annotations"):
        ours = owned_keys(live, "metadata", part)
        kept = {key: value for key, value in (live["metadata"].get(part) or {}).items() if key in ours}
        merged["metadata"][part] = {**kept, **(wanted["metadata"].get(part) or {})}
    return merged


def covers(live: t.Any, wanted: t.Any) -> bool:
    """Whether a value that the server completed still says what was wanted."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(covers(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(covers, live, wanted))
    return bool(canonical(live) == canonical(wanted))


def _missing(wanted: dict[str, t.Any], node: Trie, path: str) -> t.Iterator[str]:
    for key, value in wanted.items():
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
