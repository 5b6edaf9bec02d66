# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The value that kubectl reads from a word of YAML.

kubectl reads with sigs.k8s.io/yaml over go.yaml.in/yaml/v2 (its resolve.go), which is neither YAML 1.1 nor 1.2: ``y`` and ``off`` are
booleans, 017 and 0o17 are 15, 08 is 8, 12:30:45 and dates are text, and ``=`` is nothing special. tests/differential holds both side by
side.

Private to the collection.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import math
import re
import struct
import typing as t

Scalar: t.TypeAlias = "str | int | float | bool | None"

TAG = "tag:yaml.org,2002:"

_INT64, _UINT64 = 2**63, 2**64
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_BEGINS = frozenset("+-.0123456789")
# As Go's strconv reads an integer whose base follows from its prefix; a leading zero means octal.
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES = (16, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])")
# Far more digits than 64 bits need; Python refuses integers with some thousand digits.
_LONGEST_INTEGER = 200


def plain_value(text: str) -> Scalar:
    """The value of text without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_BEGINS else text


def _number(text: str) -> str | int | float:
    # Go's ParseFloat, for what begins with a dot, accepts underscores between two digits; go-yaml removes all of them from the rest.
    digits = _BETWEEN_DIGITS.sub("", text) if text[0] == "." else text.replace("_", "")
    found = _INTEGER.fullmatch(digits) if len(digits) < _LONGEST_INTEGER else None
    if found:
        value = next(int(group, base) for group, base in zip(found.groups()[1:], _BASES, strict=True) if group)
        value = -value if found[1] == "-" else value
        if -_INT64 <= value < (_INT64 if found[1] else _UINT64):
            return value
    if _FLOAT.fullmatch(digits):
        value_float = float(digits)
        return text if math.isinf(value_float) else value_float
    return text


def tagged_value(tag: str, text: str) -> Scalar:
    """The value of text with one of YAML's own tags; ValueError where it has none."""
    name = tag.removeprefix(TAG) if tag.startswith(TAG) else ""
    if name in ("str", "timestamp"):
        return text
    if name == "binary":
        return _binary(text)
    value, kinds = (
        plain_value(text),
        {"bool": (bool,), "int": (int,), "float": (int, float), "null": (type(None),)}.get(name),
    )
    if kinds is None:
        raise ValueError(f"the tag {tag!r} is not known")
    if type(value) not in kinds:
        raise ValueError(f"what is tagged !!{name} is none")
    return float(value) if name == "float" else value  # type: ignore[arg-type]


def _binary(text: str) -> str:
    try:
        return base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True).decode(errors="replace")
    except binascii.Error:
        raise ValueError("what is tagged !!binary is not base64") from None


def json_number(value: int | float) -> int | float:
    """The number as JSON passes it on: 64 bits of integer, everything else a float, and 1e3 the integer 1000.

    ValueError for what JSON has no number for.
    """
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else float(value)
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity, and nothing that is not a number")
    return int(value) if value.is_integer() and -_INT64 <= value < _INT64 else value


def key_text(value: Scalar) -> str:
    """The text that kubectl makes of a key; ValueError where it makes none."""
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("null cannot be a key")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _float_text(value)


def _float_text(value: float) -> str:
    """As Go's FormatFloat(value, 'g', -1, 32): the fewest digits that tell it from other numbers of 32 bits."""
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = math.copysign(math.inf, value)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    text = next(
        text
        for digits in range(9)
        if struct.pack("f", float(text := f"{single:.{digits}e}")) == struct.pack("f", single)
    )
    return text if not -4 <= int(text.partition("e")[2]) < 6 else format(decimal.Decimal(text), "f")
