# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strategic merge of a user's overrides into a manifest, by the rules Kubernetes itself uses for its own types."""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Mapping

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
}


def strategic_merge(base: Manifest, patch: Mapping[str, t.Any]) -> Manifest:
    """Return BASE with PATCH merged in: null deletes a key, `$patch: delete` an item, `$patch: replace` a whole dict."""
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
    return merged


def _dig(value: t.Any, path: tuple[str, ...]) -> t.Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _merge_dict(base: t.Any, patch: Mapping[str, t.Any]) -> t.Any:
    directive = patch.get("$patch")
    if directive == "replace" or not isinstance(base, Mapping):
        return {key: _without_directives(item) for key, item in patch.items() if key != "$patch" and item is not None}
    merged: dict[str, t.Any] = copy.deepcopy(dict(base))
    for key, item in patch.items():
        if key == "$patch":
            continue
        if item is None:
            merged.pop(key, None)
        elif isinstance(item, Mapping):
            merged[key] = _merge_dict(merged.get(key), item)
        elif isinstance(item, list) and isinstance(merged.get(key), list):
            merged[key] = _merge_list(key, merged[key], item)
        else:
            merged[key] = _without_directives(item)
    return merged


def _merge_list(name: str, base: list[t.Any], patch: list[t.Any]) -> list[t.Any]:
    key = next((k for k in _MERGE_KEYS.get(name, ()) if all(isinstance(i, Mapping) and k in i for i in patch)), None)
    if key is None:
        return t.cast("list[t.Any]", _without_directives(patch))
    merged = list(base)
    for item in patch:
        at = next((i for i, old in enumerate(merged) if isinstance(old, Mapping) and old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                merged.pop(at)
        elif at is None:
            merged.append(_without_directives(item))
        else:
            merged[at] = _merge_dict(merged[at], item)
    return merged


def _without_directives(value: t.Any) -> t.Any:
    if isinstance(value, Mapping):
        return {key: _without_directives(item) for key, item in value.items() if key != "$patch"}
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return value
