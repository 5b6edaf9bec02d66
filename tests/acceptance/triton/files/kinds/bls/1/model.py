# SPDX-License-Identifier: GPL-3.0-or-later
"""Doubles by a request to another model of the server (business logic scripting)."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        tensor = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        inputs = [pb_utils.Tensor(name, tensor) for name in ("A", "B")]
        answer = pb_utils.InferenceRequest(model_name="add", requested_output_names=["SUM"], inputs=inputs).exec()
        if answer.has_error():
            raise pb_utils.TritonModelException(answer.error().message())
        return pb_utils.InferenceResponse([pb_utils.Tensor("TWICE", pb_utils.get_output_tensor_by_name(answer, "SUM").as_numpy())])
