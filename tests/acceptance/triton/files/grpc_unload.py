# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries to unload model add through a Gateway, and prints the status.

grpc_unload.py ADDRESS HOSTNAME
"""

from __future__ import annotations

import sys

import grpc
import tritonclient.grpc.service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

ADDRESS, HOSTNAME = sys.argv[1:]
TIMEOUT_S = 30
with grpc.insecure_channel(ADDRESS, options=[("grpc.default_authority", HOSTNAME)]) as channel:
    server = GRPCInferenceServiceStub(channel)
    try:
        server.RepositoryModelUnload(messages.RepositoryModelUnloadRequest(model_name="add"), timeout=TIMEOUT_S)
        print("OK")  # noqa: T201
    except grpc.RpcError as error:
        print(error.code().name)  # noqa: T201
