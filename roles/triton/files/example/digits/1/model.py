# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells which handwritten digit a picture of 8 x 8 pixels shows, whose values are 0 to 16."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

HERE = Path(__file__).parent


class TritonPythonModel:
    def initialize(self, _args: dict[str, str]) -> None:
        found = json.loads((HERE / "weights.json").read_text())
        self.weights, self.bias = np.array(found["weights"], np.float32), np.array(found["bias"], np.float32)
        self.labels = (HERE / "labels.txt").read_text().split()

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()) for request in requests]

    def _answer(self, pictures: np.ndarray) -> pb_utils.InferenceResponse:
        scores = np.exp(pictures / 16 @ self.weights + self.bias)
        best = scores.argmax(axis=1)
        labels = np.array([[self.labels[index].encode()] for index in best], dtype=np.object_)
        chances = (scores.max(axis=1) / scores.sum(axis=1)).astype(np.float32)[:, None]
        return pb_utils.InferenceResponse([pb_utils.Tensor("LABEL", labels), pb_utils.Tensor("PROBABILITY", chances)])
