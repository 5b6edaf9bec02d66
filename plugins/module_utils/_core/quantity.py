# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities: read, compare, and say how one is written.

The grammar is that of apimachinery's resource.Quantity: a decimal number with a binary suffix (Ki ... Ei), a decimal suffix
(n u m k M ... E) or an exponent.
"""

from __future__ import annotations

import decimal
import functools
import re
import typing as t

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?")
_HUMAN = re.compile(r"\s*(\d+\.?\d*)\s*([kKMGTPE])i?[bB]?(?:ytes)?\s*")
_BINARY = {f"{letter}i": decimal.Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {
    letter: decimal.Decimal(10) ** power
    for letter, power in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}
_CONTEXT = decimal.Context(prec=60)
_LARGEST = decimal.Decimal(2**63 - 1)
"""Larger numbers are capped, as Quantity of k8s.io/apimachinery/pkg/api/resource does."""


@functools.lru_cache(maxsize=1024, typed=True)
def parse(value: str | int | float) -> decimal.Decimal:
    """The number that a quantity means, in its base unit (12Gi in bytes, 500m as 0.5); ValueError if it is not a quantity."""
    found = _QUANTITY.fullmatch(str(value)) if not isinstance(value, bool) else None
    if found is None:
        raise ValueError(f"{value!r} is not a quantity: a number with at most a suffix, such as 500m, 12G or 12Gi, without spaces")
    number, suffix = decimal.Decimal(found[1]), found[2] or ""
    factor = _BINARY.get(suffix) or _DECIMAL.get(suffix)
    if factor:
        number = _CONTEXT.multiply(number, factor)
    elif suffix:
        number = _CONTEXT.scaleb(number, int(suffix[1:]))
    return max(-_LARGEST, min(number, _LARGEST))


def canonical(value: t.Any) -> t.Any:
    """One text for all spellings of a quantity (1Gi and 1024Mi are both 1073741824); any other value unchanged."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    try:
        number = parse(value)
    except ValueError:
        return value
    return format(number.normalize(_CONTEXT), "f")


def suggestion(text: str) -> str:
    """Suggest how a quantity such as 12 GB is written for Kubernetes, as a hint."""
    human = _HUMAN.fullmatch(text)
    if not human:
        return "Examples: 500m, 2, 12Gi, 12G."
    number, unit = human.groups()
    decimal_unit = "k" if unit in "kK" else unit
    return f"Write {number}{decimal_unit} (powers of 1000) or {number}{unit.upper()}i (powers of 1024)."
