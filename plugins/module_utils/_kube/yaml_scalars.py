# SPDX-License-Identifier: GPL-3.0-or-later
"""The value that kubectl reads from a word of YAML.

kubectl reads with sigs.k8s.io/yaml over go.yaml.in/yaml/v2 (its resolve.go), which is neither YAML 1.1 nor 1.2: ``y`` and ``off`` are
booleans, 017 and 0o17 are 15, 08 is 8, 12:30:45 and dates are text, and ``=`` is nothing special. tests/differential holds both side by
side.
"""

from __future__ import annotations

import array
import base64
import contextlib
import decimal
import math
import re
import typing as t

Scalar: t.TypeAlias = "str | int | float | bool | None"

TAG = "tag:yaml.org,2002:"
UNKNOWN_TAG = "the tag is not known, or not for such a value; text that begins with ! needs quotes"
"""It does not say the tag, which may be a password."""

_INT64 = 2**63
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_TEXT = {"!", f"{TAG}str", f"{TAG}timestamp"}
# Python reads more as a number: digits of other scripts, "infinity", spaces around.
_NUMERIC = re.compile(r"[-+.0-9][-+.0-9a-fA-FoOxX_]*")
_OCTAL = re.compile(r"[-+]?0[0-7]+")


def plain_value(text: str) -> Scalar:
    """The value of text without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMERIC.fullmatch(text):
        return text
    digits = text.replace("_", "")
    with contextlib.suppress(ValueError):
        value = int(digits, 8 if _OCTAL.fullmatch(digits) else 0)
        if -_INT64 <= value < (_INT64 if digits[0] == "+" else 2 * _INT64):
            return value
    with contextlib.suppress(ValueError):  # go-yaml leaves the underscores in what begins with a dot
        if math.isfinite(value_float := float(text if text[0] == "." else digits)):
            return value_float
    return text


def scalar_value(tag: str, text: str) -> Scalar:
    """The value of text with a tag, an empty one for a plain word; ValueError where that tag has no such value."""
    if tag in _TEXT:
        return text
    value = plain_value(text)
    if not tag:
        return value
    name = "null" if value is None else type(value).__name__
    if tag == f"{TAG}float" and name == "int":
        return float(value)  # type: ignore[arg-type]
    if tag == TAG + name:
        return value
    with contextlib.suppress(ValueError):
        if tag == f"{TAG}binary":
            return base64.b64decode(text.replace("\n", ""), validate=True).decode(errors="replace")
    raise ValueError(UNKNOWN_TAG)


def json_number(value: t.Any) -> t.Any:
    """A number as JSON passes it on: 64 bits of integer, everything else a float, and 1e3 the integer 1000.

    ValueError for what JSON has no number for.
    """
    if type(value) not in (int, float):
        return value
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity, and nothing that is not a number")
    return int(value) if -_INT64 <= value < _INT64 and value == int(value) else float(value)


def key_text(value: Scalar) -> str:
    """The text that kubectl makes of a key; ValueError where it makes none."""
    if value is None:
        raise ValueError("null cannot be a key")
    if isinstance(value, bool):
        return str(value).lower()
    return _float_text(value) if isinstance(value, float) else str(value)


def _float_text(value: float) -> str:
    """Format a number like Go's FormatFloat(value, 'g', -1, 32): the fewest digits that tell it from other numbers of 32 bits."""
    (single,) = array.array("f", [value])
    if not math.isfinite(single):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(single, ".nan")
    texts = (f"{single:.{digits}e}" for digits in range(9))
    text = next(text for text in texts if array.array("f", [float(text)])[0] == single)
    return text if not -4 <= int(text[-3:]) < 6 else format(decimal.Decimal(text), "f")
