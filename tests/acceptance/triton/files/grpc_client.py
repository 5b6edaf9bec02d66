# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a Gateway for model add over gRPC, and what it says to loading a model. Prints both.

grpc_client.py ADDRESS HOSTNAME
"""

from __future__ import annotations

import json
import sys

import grpc
import tritonclient.grpc.service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

ADDRESS, HOSTNAME = sys.argv[1:]
TIMEOUT_S = 30
request = messages.ModelInferRequest(model_name="add")
for name, values in (("A", [1.5, 2.0]), ("B", [1.0, 1.0])):
    tensor = request.inputs.add(name=name, datatype="FP32", shape=[1, 2])
    tensor.contents.fp32_contents.extend(values)
with grpc.insecure_channel(ADDRESS, options=[("grpc.default_authority", HOSTNAME)]) as channel:
    server = GRPCInferenceServiceStub(channel)
    answer = server.ModelInfer(request, timeout=TIMEOUT_S)
    added = memoryview(answer.raw_output_contents[0]).cast("f").tolist()
    try:
        server.RepositoryModelUnload(messages.RepositoryModelUnloadRequest(model_name="add"), timeout=TIMEOUT_S)
        unloaded = "unloaded"
    except grpc.RpcError as error:
        unloaded = error.code().name
print(json.dumps({"added": added, "unload": unloaded}))  # noqa: T201
