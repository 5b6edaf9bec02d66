# SPDX-License-Identifier: GPL-3.0-or-later
"""A Triton server with the models ``add`` and ``echo``, as 2.51.0 answers over gRPC: a real server of gRPC, with Triton's own messages."""

import pathlib
import struct
import typing as t
import warnings
from concurrent.futures import ThreadPoolExecutor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import grpc
    from tritonclient.grpc import service_pb2 as messages
    from tritonclient.grpc import service_pb2_grpc as methods


class FakeGrpcTriton(methods.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """The server at ``port``, with TLS where there is a file with its certificate and key."""

    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.ready = True
        self.error = 0.0
        """Added to every output."""
        self.decoupled: set[str] = set()
        """Names of models."""
        self.peers: set[str] = set()
        self.parameters: dict[str, str] = {}
        """Names of parameters of the last stream, with their types."""
        self.pool = ThreadPoolExecutor(4)
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.server = grpc.server(self.pool, options=options)
        methods.add_GRPCInferenceServiceServicer_to_server(self, self.server)
        if certificate:
            pem = certificate.read_bytes()
            self.port = self.server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pem, pem)]))
        else:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def stop(self) -> None:
        self.server.stop(None).wait()
        self.pool.shutdown()

    def known(self, context: t.Any, name: str) -> None:
        if name not in ("add", "echo"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"Request for unknown model: '{name}' is not found")

    def ServerMetadata(self, _request: t.Any, _context: t.Any) -> t.Any:  # noqa: N802
        return messages.ServerMetadataResponse(name="triton", version="2.51.0")

    def ModelReady(self, request: t.Any, _context: t.Any) -> t.Any:  # noqa: N802
        return messages.ModelReadyResponse(ready=self.ready and request.name in ("add", "echo"))

    def ModelMetadata(self, request: t.Any, context: t.Any) -> t.Any:  # noqa: N802
        self.known(context, request.name)
        tensor = messages.ModelMetadataResponse.TensorMetadata(name="A", datatype="FP32", shape=[-1, 2])
        return messages.ModelMetadataResponse(name="add", versions=["1"], platform="python", inputs=[tensor])

    def ModelConfig(self, request: t.Any, _context: t.Any) -> t.Any:  # noqa: N802
        found = messages.ModelConfigResponse()
        found.config.model_transaction_policy.decoupled = request.name in self.decoupled
        return found

    def ModelInfer(self, request: t.Any, context: t.Any) -> t.Any:  # noqa: N802
        self.known(context, request.model_name)
        self.peers.add(context.peer())
        answer = messages.ModelInferResponse(model_name=request.model_name, model_version="1")
        if request.model_name == "echo":
            for row in request.inputs:
                answer.outputs.add(name=row.name, datatype=row.datatype, shape=row.shape)
            if not self.error:  # another server of this protocol has its values elsewhere
                answer.raw_output_contents.extend(request.raw_input_contents)
            return answer
        if [row.name for row in request.inputs] != ["A", "B"]:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected 2 inputs but got 1 inputs for model 'add'.")
        a, b = (struct.unpack("<2f", raw) for raw in request.raw_input_contents)
        answer.outputs.add(name="SUM", datatype="FP32", shape=request.inputs[0].shape)
        answer.raw_output_contents.append(struct.pack("<2f", *(x + y + self.error for x, y in zip(a, b, strict=True))))
        return answer

    def ModelStreamInfer(self, requests: t.Any, _context: t.Any) -> t.Any:  # noqa: N802
        for request in requests:
            self.parameters = {name: value.WhichOneof("parameter_choice") for name, value in request.parameters.items()}
            if request.model_name != "echo":
                yield messages.ModelStreamInferResponse(error_message="unexpected inference input 'A' for model 'add'")
                return
            for _number in range(3):
                answer = messages.ModelInferResponse(model_name="echo", model_version="1")
                row = request.inputs[0]
                answer.outputs.add(name=row.name, datatype=row.datatype, shape=row.shape)
                answer.raw_output_contents.append(request.raw_input_contents[0])
                yield messages.ModelStreamInferResponse(infer_response=answer)
            # The last one has nothing, and says so.
            last = messages.ModelInferResponse()
            last.parameters["triton_final_response"].bool_param = True
            yield messages.ModelStreamInferResponse(infer_response=last)
