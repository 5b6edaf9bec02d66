# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of Kubernetes objects that have quantities."""

from __future__ import annotations

import typing as t

from .._core.quantity import canonical
from .objects import COLLECTIONS, DEFINITION, Manifest, group_kind
from .order import BUILT_IN_GROUPS

_MAPS = ("limits", "requests", "hard", "capacity", "allocatable", "overhead", "podFixed", "emptyDir", "default", "defaultRequest", "max",
         "min", "maxLimitRequestRatio")  # fmt: skip
"""Fields of Kubernetes' own kinds whose values are quantities by name (of emptyDir, those that look like one)."""
_SINGLE = ("averageValue", "divisor", "maximumVolumeSize")
"""Fields that are a quantity themselves."""
_FREE = frozenset({"metadata", "data", "parameters", "matchLabels", "nodeSelector", "selector", "opaque", "options", "volumeAttributes"})
"""Fields with keys of the user's own, which say nothing about the values."""


def quantities(manifest: Manifest) -> t.Iterator[tuple[str, t.Any]]:
    """Yield each (path, value) in an object where the Kubernetes API has a quantity."""
    if _has_them(manifest):
        yield from _below(manifest, "")


def _below(value: t.Any, path: str) -> t.Iterator[tuple[str, t.Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _FREE and isinstance(item, COLLECTIONS):
                below = f"{path}.{key}" if path else str(key)
                if key in _MAPS and isinstance(item, dict):
                    yield from ((f"{below}.{name}", amount) for name, amount in item.items())
                else:
                    yield from _below(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, f"{path}[{index}]")


def with_canonical_quantities(manifest: Manifest) -> Manifest:
    """A copy in which equal quantities are written equally."""
    return t.cast(Manifest, _with_canonical("", manifest)) if _has_them(manifest) else manifest


def _with_canonical(key: str, value: t.Any) -> t.Any:
    """The value of a field KEY; empty for an object, and for an item of a list."""
    if key in _MAPS and isinstance(value, dict):
        return {name: _with_canonical(name, amount) if isinstance(amount, dict) else canonical(amount) for name, amount in value.items()}
    if key in _FREE:
        return value
    if key in _SINGLE:
        return canonical(value)
    if isinstance(value, dict):
        return {name: _with_canonical(name, one) if isinstance(one, COLLECTIONS) or name in _SINGLE else one for name, one in value.items()}
    return [_with_canonical("", item) for item in value] if isinstance(value, list) else value


def _has_them(manifest: Manifest) -> bool:
    """Whether the object has quantities: in a custom resource, or a definition of one, limits and 1.10 can mean anything."""
    found = group_kind(manifest)
    return found[0] in BUILT_IN_GROUPS and found != DEFINITION
