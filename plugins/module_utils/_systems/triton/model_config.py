# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of a model, ``config.pbtxt``, read and written by Triton's own definition of it.

The definition is the generated file of the package tritonclient. That file alone is loaded: the package around it imports gRPC and NumPy,
of which nothing is used here.
"""

from __future__ import annotations

import functools
import importlib.util
import typing as t
import warnings
from collections.abc import Sequence
from pathlib import Path

from ..._core.errors import InvalidInput

FILE = "config.pbtxt"
if t.TYPE_CHECKING:
    from tritonclient.grpc import model_config_pb2

VLLM = "vllm"
VLLM_FILE = "model.json"
"""The file with the arguments of the engine, which that backend reads under no other name: src/model.py of
triton-inference-server/vllm_backend 8de0c14."""
_MODEL_FILES = {"python": "model.py", "onnxruntime": "model.onnx", "tensorrt": "model.plan", "pytorch": "model.pt"}
"""Backend -> the file that it looks for in each version, where ``default_model_filename`` names no other."""
_TELLING = {*_MODEL_FILES.values(), "model.xml", "model.pt2", "model.savedmodel", "model.graphdef"}
"""Files of a version by which the server knows the backend of a model whose configuration names none: AutoCompleteBackendFields in
src/model_config_utils.cc of triton-inference-server/core 73aad7c. It also takes a backend out of a name such as ``model.identity``."""


@functools.cache
def _definition() -> type[model_config_pb2.ModelConfig]:
    """The class of a configuration."""
    package = importlib.util.find_spec("tritonclient")
    places = [Path(place) / "grpc" / "model_config_pb2.py" for place in (package.submodule_search_locations or ())] if package else []
    found = [place for place in places if place.is_file()]
    if not found:
        raise ImportError(f"{FILE} is read by the definition in tritonclient, which is missing.", name="tritonclient")
    spec: t.Any = importlib.util.spec_from_file_location("muster_triton_model_config", found[0])
    module: t.Any = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another version of protobuf that is still compatible
        spec.loader.exec_module(module)
    found_class: type[model_config_pb2.ModelConfig] = module.ModelConfig
    return found_class


class ModelConfig:
    """A configuration."""

    def __init__(self, message: t.Any) -> None:
        self._message = message

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelConfig) and bool(self._message == other._message)

    __hash__ = None  # type: ignore[assignment]

    @property
    def text(self) -> str:
        """The text of config.pbtxt."""
        from google.protobuf import text_format

        return str(text_format.MessageToString(self._message))

    @property
    def json(self) -> str:
        """The JSON that the server accepts in a request to load."""
        from google.protobuf import json_format

        return str(json_format.MessageToJson(self._message, preserving_proto_field_name=True, indent=None))

    def chosen(self, versions: Sequence[int]) -> list[int]:
        """Return those of VERSIONS that its version policy serves."""
        policy, ordered = self._message.version_policy, sorted(versions)
        kind = policy.WhichOneof("policy_choice")
        if kind == "all":
            return ordered
        if kind == "specific":
            return sorted({int(version) for version in policy.specific.versions})
        return ordered[-max(1, policy.latest.num_versions if kind else 1) :]

    def serving(self, model: str, versions: Sequence[int]) -> ModelConfig:
        """Return the same configuration with a policy for exactly these versions."""
        changed = type(self._message)()
        changed.CopyFrom(self._message)
        changed.name = model
        changed.version_policy.Clear()
        changed.version_policy.specific.versions.extend(sorted(versions))
        return ModelConfig(changed)

    def check(self, model: str, files: Sequence[str]) -> None:
        """Refuse a model that no server would load. FILES: the entries of the versions' folders.

        The server completes types and dimensions that are left out, as far as the backend knows them.
        """
        config = self._message
        if config.name and config.name != model:
            raise InvalidInput(f"{FILE}: name is '{config.name}', but the model is {model}.", "Leave the name out, or correct it.")
        named = config.default_model_filename
        told = named in _TELLING if named else "." in model or bool(_TELLING & {*files})
        agents = config.model_repository_agents.agents  # which may make the model out of other files, with another configuration
        if not (config.backend or config.platform or told or agents):
            raise InvalidInput(
                f"{FILE}: there is neither a backend nor a platform, nor a file of a version that tells one.",
                f'Such as backend: "python", or one of {", ".join(sorted(_TELLING))}.',
            )
        if config.max_batch_size < 0:
            raise InvalidInput(f"{FILE}: max_batch_size is {config.max_batch_size}.", "0 is for a model without batches.")
        for what, rows in (("input", config.input), ("output", config.output)):
            names = [row.name for row in rows]
            for row in rows:
                if not row.name:
                    raise InvalidInput(f"{FILE}: an {what} has no name.")
                if names.count(row.name) > 1:
                    raise InvalidInput(f"{FILE}: {what} {row.name} is there twice.")
                wrong = [size for size in row.dims if size != -1 and size < 1]
                if wrong:
                    raise InvalidInput(f"{FILE}: {what} {row.name} has a dimension of {wrong[0]}.", "-1 is for any size.")

    @property
    def backend(self) -> str:
        """The backend that it names."""
        return str(self._message.backend)

    @property
    def may_be_on_one_gpu(self) -> bool:
        """Whether the server may give each instance one GPU, as it does where it has some and no kind of instance is named."""
        groups = self._message.instance_group
        return not groups or any(group.Kind.Name(group.kind) in ("KIND_AUTO", "KIND_GPU") for group in groups)

    @property
    def model_file(self) -> str | None:
        """The file that every version must have, where that is known. Runtimes, AOTInductor and other backends may read others."""
        config = self._message
        if config.backend == VLLM:
            return VLLM_FILE
        if config.cc_model_filenames or config.runtime or config.platform == "torch_aoti" or config.backend not in {"", *_MODEL_FILES}:
            return None
        return config.default_model_filename or _MODEL_FILES.get(config.backend)


def parsed(text: str, where: str) -> ModelConfig:
    """The configuration in TEXT; InvalidInput, with line and column, if it is none."""
    from google.protobuf import text_format

    message = _definition()()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        hint = "It is a template, whose ${...} are to be filled in first." if "${" in text else ""
        raise InvalidInput(f"{where} is not a configuration of a model: {str(error).rstrip('.')} (line:column).", hint) from error
    return ModelConfig(message)
