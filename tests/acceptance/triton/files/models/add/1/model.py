# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        a, b = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("A", "B"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", a + b)])
