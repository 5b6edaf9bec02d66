# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as the bytes that gRPC carries, beside what NumPy and ml_dtypes make of them."""

import math
import typing as t
import warnings

import numpy as np
import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.grpc_client import packed, unpacked
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.inference import DATATYPES

VALUES: dict[str, list[t.Any]] = {
    "BOOL": [True, False],
    **{f"UINT{bits}": [0, 1, 2**bits - 1] for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1] for bits in (8, 16, 32, 64)},
    "FP16": [1.5, -0.25, 65504.0],
    "BF16": [1.5, -0.25, 3.0e38],
    "FP32": [1.5, -0.25],
    "FP64": [0.1, -1e300],
    "BYTES": ["", "a", "ä€"],
}
NUMPY = {"BOOL": "?", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"} | {
    f"{name}{bits}": f"<{kind}{bits // 8}" for bits in (8, 16, 32, 64) for name, kind in (("INT", "i"), ("UINT", "u"))
}


def test_every_datatype_comes_back() -> None:
    assert set(VALUES) == set(DATATYPES)
    for datatype, values in VALUES.items():
        desired = values if datatype == "BYTES" else pytest.approx(values, rel=4e-3)
        assert unpacked(datatype, packed("A", datatype, values)) == desired, datatype


@pytest.mark.parametrize(("datatype", "kind"), NUMPY.items())
def test_bytes_are_those_of_numpy(datatype: str, kind: str) -> None:
    assert packed("A", datatype, VALUES[datatype]) == np.array(VALUES[datatype], dtype=kind).tobytes()


@pytest.mark.parametrize("value", [0.0, 1.0, 1.00390625, 1.01171875, 1 / 3, -2.7, 3.4e38, 1e-40, math.inf, math.nan])
def test_bf16_is_rounded_as_elsewhere(value: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ml_dtypes

        expected = np.array([value], dtype=ml_dtypes.bfloat16)
    (have,) = unpacked("BF16", packed("A", "BF16", [value]))
    assert have == float(expected[0]) or (math.isnan(value) and math.isnan(have))


def test_text_has_its_length_in_front_and_what_is_none_is_shown() -> None:
    assert packed("A", "BYTES", ["ab", ""]) == b"\x02\0\0\0ab\0\0\0\0"
    assert unpacked("BYTES", b"\x01\0\0\0\xff") == ["\\xff"]


@pytest.mark.parametrize(
    ("datatype", "value"), [("INT8", 128), ("UINT8", -1), ("INT32", 1.5), ("FP32", "1.5"), ("FP16", 1e6), ("BF16", "x"), ("BYTES", 1)]
)
def test_a_value_of_another_type_is_refused(datatype: str, value: t.Any) -> None:
    with pytest.raises(InvalidInput, match=f"inputs: A has values that are not {datatype}: "):
        packed("A", datatype, [value])


@pytest.mark.parametrize(("datatype", "content"), [("FP32", b"123"), ("BYTES", b"\x09\0\0\0a"), ("FP8", b"1"), ("BF16", b"1")])
def test_bytes_that_are_no_values_are_told(datatype: str, content: bytes) -> None:
    with pytest.raises(Failed, match=f"bytes of {datatype}, which cannot be read"):
        unpacked(datatype, content)
