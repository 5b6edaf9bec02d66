# SPDX-License-Identifier: GPL-3.0-or-later
"""Strategic merge of a user's overrides into a manifest, by the rules Kubernetes itself uses for its own types."""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Mapping

from .._core import shapes
from .._core.errors import InvalidInput
from .meta import Manifest

# Lists that Kubernetes merges item by item, and the key that identifies an item. All other lists are replaced as a whole.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "ephemeralContainers": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
}


def strategic_merge(base: Manifest, patch: Mapping[str, t.Any]) -> Manifest:
    """Return BASE with PATCH merged in: null deletes a key. Its directives ($patch and others) are those of a strategic merge patch."""
    return t.cast(Manifest, _merge_dict(base, patch))


def apply_overrides(manifest: Manifest, overrides: Mapping[str, t.Any] | None) -> Manifest:
    """strategic_merge, refusing to touch what identifies the object and ties it to its pods."""
    if not overrides:
        return manifest
    merged = strategic_merge(manifest, overrides)
    for path in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("spec", "selector")):
        if _dig(merged, path) != _dig(manifest, path):
            raise InvalidInput(
                f"overrides: {'.'.join(path)} of {manifest['kind']} {manifest['metadata']['name']} cannot be overridden.",
                "Use the module's own option for it.",
            )
    if misshapen := shapes.of_manifest(merged):
        raise InvalidInput(f"overrides: {'; '.join(misshapen)}.")
    return merged


def _dig(value: t.Any, path: tuple[str, ...]) -> t.Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _merge_dict(base: t.Any, patch: Mapping[str, t.Any]) -> t.Any:
    directive = patch.get("$patch", "merge")
    _refuse(directive not in ("merge", "replace", "delete"), f"$patch: {directive}")
    if directive == "delete":
        return {}
    kept = patch.get("$retainKeys")
    for key, item in patch.items():
        _refuse(not isinstance(key, str), f"the key {key}")
        of_list = key.startswith(("$deleteFromPrimitiveList", "$setElementOrder"))
        _refuse((of_list or key == "$retainKeys") and not (isinstance(item, list) and of_list is ("/" in key)), f"{key}: {item}")
    _refuse(kept is not None and any(key not in kept for key in patch if not key.startswith("$")), "$retainKeys without all keys beside it")
    found = base if isinstance(base, Mapping) and directive == "merge" else {}
    merged: dict[str, t.Any] = {key: copy.deepcopy(item) for key, item in found.items() if kept is None or key in kept}
    orders: list[tuple[str, t.Any]] = []
    for key, item in patch.items():
        name, _slash, field = key.partition("/")
        if name == "$deleteFromPrimitiveList":
            merged[field] = [one for one in merged.get(field) or [] if one not in item]
        elif name == "$setElementOrder":
            orders.append((field, item))
        elif key.startswith("$"):
            _refuse(key not in ("$patch", "$retainKeys"), key)
        elif item is None:
            merged.pop(key, None)
        elif isinstance(item, Mapping):
            merged[key] = _merge_dict(merged.get(key), item)
        elif isinstance(item, list):
            merged[key] = _merge_list(key, merged.get(key), item)
        else:
            merged[key] = item
    for field, order in orders:
        merged[field] = _in_order(field, merged.get(field) or [], order)
    return merged


def _merge_list(name: str, base: t.Any, patch: list[t.Any]) -> list[t.Any]:
    directed = [item for item in patch if isinstance(item, Mapping) and "$patch" in item]
    plain = [item for item in patch if item not in directed]
    if any(item["$patch"] == "replace" for item in directed):
        base, patch, directed = [], plain, []
    key = _merge_key(name, patch)
    if needed := isinstance(base, list) and base and patch and key is None and _merge_key(name, base):
        raise InvalidInput(f"overrides: an element of {name} has no {needed}, by which it would be merged.")
    for item in directed:
        _refuse(key is None or item["$patch"] != "delete", f"$patch: {item['$patch']} in {name}")
    merged = list(base) if key and isinstance(base, list) else []
    for item in patch:
        at = next((i for i, old in enumerate(merged) if isinstance(old, Mapping) and old.get(key) == item[key]), None) if key else None
        if item in directed:
            merged = [old for i, old in enumerate(merged) if i != at]
        elif at is None:
            merged.append(_merge_dict({}, item) if isinstance(item, Mapping) else item)
        else:
            merged[at] = _merge_dict(merged[at], item)
    return merged


def _merge_key(name: str, items: list[t.Any]) -> str | None:
    """The key that identifies an item of this list; None where the list is one value."""
    return next((k for k in _MERGE_KEYS.get(name, ()) if all(isinstance(i, Mapping) and k in i for i in items)), None)


def _in_order(name: str, items: list[t.Any], order: list[t.Any]) -> list[t.Any]:
    """The items that ORDER names in that order, at the places that they have together."""
    key = _merge_key(name, order)

    def rank(item: t.Any) -> int | None:
        named = [one[key] for one in order] if key else order
        value = item.get(key) if key and isinstance(item, Mapping) else item
        return named.index(value) if value in named else None

    ordered = iter(sorted((item for item in items if rank(item) is not None), key=lambda item: rank(item) or 0))
    return [item if rank(item) is None else next(ordered) for item in items]


def _refuse(wrong: bool, directive: str) -> None:
    if wrong:
        raise InvalidInput(
            f"overrides: {directive} is no directive of a strategic merge patch there.",
            "There are $patch (replace, delete), $retainKeys, $deleteFromPrimitiveList/LIST and $setElementOrder/LIST.",
        )
