# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of Triton's gRPC API, which keeps its connection. Messages and methods are those of Triton's own package, tritonclient.

gRPC is loaded when a client is made, because few runs need it.

Values of tensors as bytes, as gRPC carries them: little-endian, one after the other; BYTES each with its length in front.

Source: Triton's protocol extension "Binary Tensor Data", and the comment of raw_input_contents in its grpc_service.proto.
"""

from __future__ import annotations

import contextlib
import functools
import ssl
import struct
import typing as t
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..._core.clock import Clock
from ..._core.errors import Failed, InvalidInput, Unreachable
from ..._core.json_http import parts_of
from .inference import Inference, flat, hint_of, refused

_CODES = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
    "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip
"""Datatype -> its letter in the module struct, which knows neither BF16 nor BYTES."""
_HIDDEN = 16
"""Bits of an FP32 that a BF16 lacks, the lowest ones."""


def packed(name: str, datatype: str, values: Sequence[t.Any]) -> bytes:
    """The values of input NAME as bytes; InvalidInput where they are of another type."""
    if datatype != "BYTES" and any(isinstance(value, bool) != (datatype == "BOOL") for value in values):
        raise InvalidInput(f"inputs: {name} has values that are not {datatype}: true and false are BOOL, and nothing else is.")
    try:
        if datatype == "BYTES":
            return b"".join(struct.pack("<I", len(text)) + text for text in (value.encode() for value in values))
        if datatype == "BF16":
            return b"".join(struct.pack("<H", _shortened(value)) for value in values)
        return struct.pack(f"<{len(values)}{_CODES[datatype]}", *values)
    except (AttributeError, OverflowError, struct.error) as error:
        raise InvalidInput(f"inputs: {name} has values that are not {datatype}: {error}.") from error


def _shortened(value: t.Any) -> int:
    """Return the upper half of an FP32, rounded to the nearest, ties to even."""
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    return (bits + 0x7FFF + (bits >> _HIDDEN & 1)) >> _HIDDEN


def unpacked(datatype: str, content: bytes) -> list[t.Any]:
    """The values in CONTENT; bytes that are no UTF-8 as escapes."""
    try:
        if datatype == "BYTES":
            return _texts(content)
        if datatype == "BF16":
            halves = struct.unpack(f"<{len(content) // 2}H", content)
            return [struct.unpack("<f", struct.pack("<I", half << _HIDDEN))[0] for half in halves]
        code = _CODES[datatype]
        return list(struct.unpack(f"<{len(content) // struct.calcsize(code)}{code}", content))
    except (KeyError, struct.error) as error:
        raise Failed(f"The server sends {len(content)} bytes of {datatype}, which cannot be read: {error}.") from error


def _texts(content: bytes) -> list[t.Any]:
    found, at = [], 0
    while at < len(content):
        (size,) = struct.unpack_from("<I", content, at)
        at += 4
        (text,) = struct.unpack_from(f"{size}s", content, at)
        found.append(text.decode(errors="backslashreplace"))
        at += size
    return found


_OPTIONS = (
    # The same as over HTTP: no proxy, and no limit for the size of a message.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Otherwise a new client of the same address would inherit the reconnection backoff of the last one.
    ("grpc.use_local_subchannel_pool", 1),
)
_FIELDS = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
"""Type of a parameter -> its field; a boolean is also an int."""


def _library() -> tuple[t.Any, t.Any, t.Any]:
    """gRPC, Triton's messages, and its methods."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another version of protobuf that is still compatible
            import grpc
            from tritonclient.grpc import service_pb2, service_pb2_grpc
    except RuntimeError as error:  # raised by tritonclient in the place of the ImportError
        raise ImportError(str(error), name="tritonclient") from error
    return grpc, service_pb2, service_pb2_grpc


class GrpcClient(contextlib.AbstractContextManager["GrpcClient"]):
    """A client of the server at URL. WHO names it in messages; HOSTNAME replaces the host of the URL in requests."""

    def __init__(self, url: str, who: str, *, timeout: float, hostname: str | None = None, authorities: str | None = None) -> None:
        self.who = who
        self._timeout = timeout
        parts = parts_of(url)
        if parts.path.strip("/"):
            raise InvalidInput(f"url: '{url}' has a path, which gRPC has not.", "Write it as http://HOST:PORT.")
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        secure = parts.scheme == "https"
        target = f"{host}:{parts.port or (443 if secure else 80)}"
        options = [*_OPTIONS, *([("grpc.default_authority", hostname)] if hostname else [])]
        self._grpc, self._messages, methods = _library()
        if secure:
            trusted = self._grpc.ssl_channel_credentials(authorities.encode() if authorities else _of_the_system())
            self._channel = self._grpc.secure_channel(target, trusted, options)
        else:
            self._channel = self._grpc.insecure_channel(target, options)
        self._server = methods.GRPCInferenceServiceStub(self._channel)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _call(self, method: t.Any, request: t.Any, doing: str) -> t.Any:
        try:
            return method(request, timeout=self._timeout)
        except self._grpc.RpcError as error:
            code, said = error.code(), str(error.details() or "no reason given").rstrip(".")
            if code in (self._grpc.StatusCode.UNAVAILABLE, self._grpc.StatusCode.DEADLINE_EXCEEDED):
                raise Unreachable(f"{self.who} gives no answer: {said}.") from error
            raise refused(self.who, doing, said, code.name) from error

    def is_ready(self, inference: Inference) -> bool:
        """Whether the server reports that the model is ready."""
        request = self._messages.ModelReadyRequest(name=inference.model, version=inference.model_version or "")
        return bool(self._call(self._server.ModelReady, request, "tell whether the model is ready").ready)

    def server(self) -> dict[str, t.Any]:
        """The metadata of the server."""
        found = self._call(self._server.ServerMetadata, self._messages.ServerMetadataRequest(), "tell about itself")
        return {"name": found.name, "version": found.version, "extensions": list(found.extensions)}

    def model(self, inference: Inference) -> dict[str, t.Any]:
        """The metadata of the model."""
        request = self._messages.ModelMetadataRequest(name=inference.model, version=inference.model_version or "")
        found = self._call(self._server.ModelMetadata, request, f"tell about model {inference.model}")
        tensors = {
            what: [{"name": row.name, "datatype": row.datatype, "shape": list(row.shape)} for row in rows]
            for what, rows in (("inputs", found.inputs), ("outputs", found.outputs))
        }
        return {"name": found.name, "versions": list(found.versions), "platform": found.platform, **tensors}

    @functools.lru_cache(maxsize=16)  # noqa: B019 -- of one client, which is closed with the check
    def _decoupled_at(self, model: str, version: str) -> bool:
        request = self._messages.ModelConfigRequest(name=model, version=version)
        found = self._call(self._server.ModelConfig, request, f"tell the configuration of model {model}")
        return bool(found.config.model_transaction_policy.decoupled)

    def infer(self, inference: Inference, clock: Clock) -> tuple[dict[str, t.Any], float]:
        """The answer of the model, as over HTTP, and the seconds that it took."""
        request, doing = self._request(inference), f"infer with model {inference.model}"
        streams = inference.stream or self._decoupled_at(inference.model, inference.model_version or "")
        began = clock.monotonic()
        answers = self._call(self._streamed if streams else self._one, request, doing)
        took = clock.monotonic() - began
        if not inference.stream and sum(bool(one.outputs) for one in answers) > 1:
            raise refused(self.who, doing, "the model does not make exactly 1 response", "OK")
        if not answers or any(len(one.outputs) != len(one.raw_output_contents) for one in answers):
            raise Failed(f"{self.who}, model {inference.model}: the answer has no outputs as Triton sends them (raw_output_contents).")
        outputs = [
            {"name": row.name, "datatype": row.datatype, "shape": list(row.shape), "data": unpacked(row.datatype, raw)}
            for answer in answers
            for row, raw in zip(answer.outputs, answer.raw_output_contents, strict=True)
        ]
        return {"model_name": answers[0].model_name, "model_version": answers[0].model_version, "outputs": outputs}, took

    def _one(self, request: t.Any, timeout: float) -> list[t.Any]:
        return [self._server.ModelInfer(request, timeout=timeout)]

    def _streamed(self, request: t.Any, timeout: float) -> list[t.Any]:
        """Return all responses. The last one may be empty, and only mark the end."""
        request.parameters["triton_enable_empty_final_response"].bool_param = True
        found = list(self._server.ModelStreamInfer(iter([request]), timeout=timeout))
        wrong = next((one.error_message for one in found if one.error_message), "")
        if wrong:
            raise Failed(f"{self.who} refuses to infer with model {request.model_name}: {wrong.rstrip('.')}.", hint_of(wrong))
        return [one.infer_response for one in found]

    def _request(self, inference: Inference) -> t.Any:
        request = self._messages.ModelInferRequest(model_name=inference.model, model_version=inference.model_version or "")
        for name, value in inference.parameters.items():
            field = next(field for kind, field in _FIELDS.items() if isinstance(value, kind))
            request.parameters[name].MergeFrom(self._messages.InferParameter(**{field: value}))
        for row in inference.inputs:
            request.inputs.add(name=row["name"], datatype=row["datatype"], shape=row["shape"])
            request.raw_input_contents.append(packed(row["name"], row["datatype"], flat(row["data"])))
        for row in inference.expected:
            request.outputs.add(name=row["name"])
        return request


def _of_the_system() -> bytes | None:
    """Return the CA certificates of the system, as HTTPS uses them: gRPC would use those of its own package."""
    file = ssl.get_default_verify_paths().cafile
    return Path(file).read_bytes() if file else None
