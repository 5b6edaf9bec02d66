# SPDX-License-Identifier: GPL-3.0-or-later
"""Has no config.pbtxt: the server asks the model for its configuration."""

from __future__ import annotations

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config: pb_utils.ModelConfig) -> pb_utils.ModelConfig:
        auto_complete_model_config.set_max_batch_size(8)
        auto_complete_model_config.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [2]})
        auto_complete_model_config.add_output({"name": "MINUS", "data_type": "TYPE_FP32", "dims": [2]})
        return auto_complete_model_config

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        found = (pb_utils.get_input_tensor_by_name(request, "A").as_numpy() for request in requests)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("MINUS", -tensor)]) for tensor in found]
