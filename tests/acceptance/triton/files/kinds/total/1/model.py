# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds up what the requests of a sequence bring."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        self.totals: dict[int, np.ndarray] = {}

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        tensor, start, sequence = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("A", "START", "CORRID"))
        key = int(sequence.flat[0])
        self.totals[key] = tensor if start.flat[0] else self.totals[key] + tensor
        return pb_utils.InferenceResponse([pb_utils.Tensor("TOTAL", self.totals[key])])
