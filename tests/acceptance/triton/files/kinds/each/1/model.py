# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers each number of a request by a response of its own."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests: list[pb_utils.InferenceRequest]) -> None:
        for request in requests:
            sender = request.get_response_sender()
            for number in pb_utils.get_input_tensor_by_name(request, "A").as_numpy().reshape(-1, 1):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("ONE", number)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
