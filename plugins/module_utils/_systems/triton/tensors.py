# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of tensors as bytes, as gRPC carries them: little-endian, one after the other; BYTES each with its length in front.

Source: Triton's protocol extension "Binary Tensor Data", and the comment of raw_input_contents in its grpc_service.proto.
"""

from __future__ import annotations

import struct
import typing as t
from collections.abc import Sequence

from ..._core.errors import Failed, InvalidInput

_CODES = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
    "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
"""Datatype -> its letter in the module struct, which knows neither BF16 nor BYTES."""
_HIDDEN = 16
"""Bits of an FP32 that a BF16 lacks, the lowest ones."""


def packed(name: str, datatype: str, values: Sequence[t.Any]) -> bytes:
    """The values of input NAME as bytes; InvalidInput where they are of another type."""
    try:
        if datatype == "BYTES":
            return b"".join(struct.pack("<I", len(text)) + text for text in (value.encode() for value in values))
        if datatype == "BF16":
            return b"".join(struct.pack("<H", _shortened(value)) for value in values)
        return struct.pack(f"<{len(values)}{_CODES[datatype]}", *values)
    except (AttributeError, OverflowError, struct.error) as error:
        raise InvalidInput(f"inputs: {name} has values that are not {datatype}: {error}.") from error


def _shortened(value: t.Any) -> int:
    """Return the upper half of an FP32, rounded to the nearest, ties to even."""
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    return (bits + 0x7FFF + (bits >> _HIDDEN & 1)) >> _HIDDEN


def unpacked(datatype: str, content: bytes) -> list[t.Any]:
    """The values in CONTENT; bytes that are no UTF-8 as escapes."""
    try:
        if datatype == "BYTES":
            return _texts(content)
        if datatype == "BF16":
            halves = struct.unpack(f"<{len(content) // 2}H", content)
            return [struct.unpack("<f", struct.pack("<I", half << _HIDDEN))[0] for half in halves]
        code = _CODES[datatype]
        return list(struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content))
    except (KeyError, struct.error) as error:
        raise Failed(f"The server sends {len(content)} bytes of {datatype}, which cannot be read: {error}.") from error


def _texts(content: bytes) -> list[t.Any]:
    found, at = [], 0
    while at < len(content):
        (size,) = struct.unpack_from("<I", content, at)
        at += 4
        (text,) = struct.unpack_from(f"{size}s", content, at)
        found.append(text.decode(errors="backslashreplace"))
        at += size
    return found
