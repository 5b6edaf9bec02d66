# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers with the number of requests that were only zeros, which are those of its warm-up."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        self.zeros = 0

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        tensor = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        self.zeros += not tensor.any()
        return pb_utils.InferenceResponse([pb_utils.Tensor("BEFORE", np.full_like(tensor, self.zeros))])
