# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes as long as it is told to."""

from __future__ import annotations

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        seconds = pb_utils.get_input_tensor_by_name(request, "SECONDS").as_numpy()
        time.sleep(float(seconds[0]))
        return pb_utils.InferenceResponse([pb_utils.Tensor("SLEPT", seconds)])
