# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent, how outputs are compared, and what percentiles mean."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.inference import Inference, differences, flat, latencies

ROW = {"name": "A", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}


def answer(*data: t.Any, name: str = "SUM") -> dict[str, t.Any]:
    return {"outputs": [{"name": name, "datatype": "FP32", "shape": [len(data)], "data": list(data)}]}


def expecting(*data: t.Any, tolerance: float = 1e-6) -> Inference:
    return Inference(model="add", inputs=[ROW], expected=[{"name": "SUM", "data": list(data)}], tolerance=tolerance)


def test_a_request_has_flat_data_and_asks_for_what_is_expected() -> None:
    body = expecting(1).body(generates=False)
    assert body["inputs"] == [{**ROW, "data": [1, 2, 3, 4]}]
    assert body["outputs"] == [{"name": "SUM"}]
    assert "outputs" not in Inference(model="add", inputs=[ROW]).body(generates=False)


def test_a_version_is_part_of_the_path() -> None:
    assert Inference(model="add").path == "/v2/models/add"
    assert Inference(model="add", model_version="3").path == "/v2/models/add/versions/3"


@pytest.mark.parametrize(
    ("expected", "got", "tolerance"),
    [
        ([1, 2], [1.0, 2.0], 0),
        ([1.0], [1.0000001], 1e-6),
        ([1000.0], [1000.5], 1e-3),
        ([0.0], [0.0005], 1e-3),
        ([[1], [2]], [1, 2], 0),
        (["yes"], ["yes"], 0),
        ([True], [True], 0),
    ],
)
def test_equal_outputs(expected: list[t.Any], got: list[t.Any], tolerance: float) -> None:
    assert differences(expecting(*expected, tolerance=tolerance), answer(*got)) == []


@pytest.mark.parametrize(
    ("expected", "got", "told"),
    [
        ([1, 2, 3], [1, 2.1, 4], "Output SUM differs in 2 of 3 values: value 1 is 2.1 instead of 2."),
        ([1, 2], [1], "Output SUM has 1 values instead of 2."),
        (["yes"], ["no"], "Output SUM differs in 1 of 1 values: value 0 is 'no' instead of 'yes'."),
        ([True], [False], "Output SUM differs in 1 of 1 values: value 0 is False instead of True."),
        ([1], [None], "Output SUM differs in 1 of 1 values: value 0 is None instead of 1."),
    ],
)
def test_different_outputs(expected: list[t.Any], got: list[t.Any], told: str) -> None:
    assert differences(expecting(*expected), answer(*got)) == [told]


def test_a_missing_output() -> None:
    assert differences(expecting(1), answer(1, name="OTHER")) == ["Output SUM is missing."]
    assert differences(expecting(1), {}) == ["Output SUM is missing."]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": ""}, "is not a name of a model"),
        ({"model": "a/b"}, "is not a name of a model"),
        ({"expected": [{"name": "SUM", "data": [1]}]}, "no inference is made without inputs"),
        ({"inputs": [{**ROW, "shape": [1, 3]}]}, "A has 4 values, but its shape [1, 3] has 3"),
        ({"inputs": [ROW, ROW]}, "inputs: A is there twice"),
        ({"inputs": [ROW], "expected": [{"name": "S", "data": []}] * 2}, "expected: S is there twice"),
        ({"tolerance": -1.0}, "tolerance: -1.0 is less than 0"),
    ],
)
def test_inferences_that_cannot_be(changes: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Inference(**{"model": "add", **changes})
    assert told in caught.value.message


def test_nested_lists_are_read_in_order() -> None:
    assert flat([[[1], [2]], 3, []]) == [1, 2, 3]


def test_percentiles_are_times_of_requests() -> None:
    found = latencies([number / 1000 for number in range(100, 0, -1)])
    assert found == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "mean": 50.5, "max": 100.0}
    assert latencies([0.004]) == {"p50": 4.0, "p90": 4.0, "p99": 4.0, "mean": 4.0, "max": 4.0}
    assert latencies([]) == {}
