# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities: read, compare, and say what is wrong with one.

The grammar is that of apimachinery's resource.Quantity: a decimal number with a binary suffix (Ki ... Ei), a decimal suffix
(n u m k M ... E) or an exponent.

Private to the collection.
"""

from __future__ import annotations

import decimal
import re
import typing as t

from .._kube.objects import Manifest, group_of
from .._kube.order import BUILT_IN_GROUPS

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?")
_BINARY = {f"{letter}i": decimal.Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {
    letter: decimal.Decimal(10) ** power
    for letter, power in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}
_CONTEXT = decimal.Context(prec=60)

_MAPS = ("limits", "requests", "hard", "capacity", "allocatable", "overhead", "emptyDir")
"""Fields of Kubernetes' own kinds whose values are quantities by name (of emptyDir, those that look like one)."""


def parse(value: str | int | float) -> decimal.Decimal:
    """The number that a quantity stands for; ValueError where it is none."""
    found = _QUANTITY.fullmatch(str(value)) if not isinstance(value, bool) else None
    if found is None:
        raise ValueError(
            f"{value!r} is not a quantity: a number with at most a suffix, such as 500m, 12G or 12Gi, without spaces"
        )
    number, suffix = decimal.Decimal(found[1]), found[2] or ""
    if suffix in _BINARY:
        return _CONTEXT.multiply(number, _BINARY[suffix])
    if suffix in _DECIMAL:
        return _CONTEXT.multiply(number, _DECIMAL[suffix])
    return _CONTEXT.scaleb(number, int(suffix[1:])) if suffix else number


def canonical(value: t.Any) -> t.Any:
    """The same text for all ways to write the same quantity; anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        number = parse(value)
    except ValueError:
        return value
    return format(number.normalize(_CONTEXT), "f")


def quantities(manifest: Manifest) -> t.Iterator[tuple[str, t.Any]]:
    """Every (path, value) in an object where the Kubernetes API has a quantity."""
    if _has_them(manifest):
        yield from _below(manifest, "")


def _below(value: t.Any, path: str) -> t.Iterator[tuple[str, t.Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
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
    return t.cast(Manifest, _with_canonical(manifest)) if _has_them(manifest) else manifest


def _with_canonical(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _canonical_field(key, item) for key, item in value.items()}
    return [_with_canonical(item) for item in value] if isinstance(value, list) else value


def _canonical_field(key: str, item: t.Any) -> t.Any:
    if key in _MAPS and isinstance(item, dict):
        return {name: canonical(amount) for name, amount in item.items()}
    return _with_canonical(item)


def _has_them(manifest: Manifest) -> bool:
    """To a custom resource, and in a definition of one, limits and 1.10 can mean anything."""
    group = group_of(str(manifest.get("apiVersion")))
    return group in BUILT_IN_GROUPS and manifest.get("kind") != "CustomResourceDefinition"
