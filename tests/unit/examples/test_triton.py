# SPDX-License-Identifier: GPL-3.0-or-later
"""The example of role triton: its model reads the digit of the picture beside it."""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "roles" / "triton" / "files" / "example"


def test_the_model_reads_the_digit_of_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = types.ModuleType("triton_python_backend_utils")
    vars(backend).update(
        get_input_tensor_by_name=lambda request, name: types.SimpleNamespace(as_numpy=lambda: request[name]),
        Tensor=lambda name, value: (name, value),
        InferenceResponse=dict,
    )
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    found = importlib.util.spec_from_file_location("digits_model", EXAMPLE / "digits" / "1" / "model.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize({})
    kind, width, height, deepest, *pixels = (EXAMPLE / "seven.pgm").read_text(encoding="ascii").split()
    assert (kind, width, height, deepest) == ("P2", "8", "8", "16")
    (answer,) = model.execute([{"IMAGE": np.array([pixels], np.float32)}])
    assert answer["LABEL"].tolist() == [[b"seven"]]
    assert 0.5 < answer["PROBABILITY"][0][0] <= 1
