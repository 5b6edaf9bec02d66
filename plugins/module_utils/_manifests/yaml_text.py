# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain values as YAML text, without PyYAML: builders may only use the standard library.

Block style for dicts and lists, JSON for scalars (JSON scalars are YAML scalars), insertion order kept,
so the text is the same on every run and reads well in `kubectl describe configmap`.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
# Texts that readers of YAML 1.1 take for another type.
_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "inf", "nan"}


def to_yaml(value: t.Any) -> str:
    """Return VALUE (dicts, lists, strings, numbers, booleans, None) as a YAML document."""
    return "\n".join(_lines(value, 0)) + "\n"


def _scalar(value: t.Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    text = json.dumps(value)
    # YAML 1.1 needs a point in a number with an exponent.
    return text.replace("e", ".0e", 1) if isinstance(value, float) and "e" in text and "." not in text else text


def _is_block(value: t.Any) -> bool:
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _lines(value: t.Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            if _is_block(item):
                yield f"{pad}{_scalar(str(key))}:"
                yield from _lines(item, depth + 1)
            else:
                yield f"{pad}{_scalar(str(key))}: {_scalar(item)}"
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for item in value:
            if _is_block(item):
                first, *rest = _lines(item, depth + 1)
                yield f"{pad}- {first.lstrip()}"
                yield from rest
            else:
                yield f"{pad}- {_scalar(item)}"
    else:
        yield f"{pad}{_scalar(value)}"
