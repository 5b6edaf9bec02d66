# SPDX-License-Identifier: GPL-3.0-or-later
"""A model as a folder of this machine: its configuration, its versions, and their files by content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..._core.errors import InvalidInput
from ..._core.files import entries
from .model_config import FILE, VLLM, VLLM_FILE, ModelConfig, parsed

_VERSION = re.compile(r"[1-9][0-9]*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_ON_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?")
_KEEPS = "empty-version"
"""The file, without content, by which a version without files is in a bucket too. The version of an ensemble has none."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A folder. ``files``: path in it -> SHA-256, without the configuration; ``hidden``: the files that are left out; ``hub``: models of
    the Hugging Face hub that its versions name."""

    folder: Path
    config: ModelConfig
    files: Mapping[str, str]
    hidden: Sequence[str] = ()
    hub: Sequence[str] = ()

    def path(self, name: str) -> Path:
        """Return the path of the content of one of ``files``."""
        return _content(self.folder / name)

    @property
    def warnings(self) -> list[str]:
        """The warnings for the user."""
        left_out = [f"src: hidden files are left out: {', '.join(self.hidden)}."] if self.hidden else []
        fetched = f"src: each replica fetches {', '.join(self.hub)} from the hub when it loads the model, so it needs a way there;"
        return left_out + ([f"{fetched} the path of a folder in the pods needs none."] if self.hub else [])


def check_model(model: str) -> str:
    """MODEL, if it can be the name of a folder and part of an address."""
    if not _NAME.fullmatch(model):
        raise InvalidInput(f"model: '{model}' is not a name of a model.", "It has letters, digits, '_', '-' and '.' only.")
    return model


def versions_of(paths: Iterable[str]) -> list[int]:
    """The versions that these files belong to."""
    first = {path.partition("/")[0] for path in paths if "/" in path}
    return sorted(int(part) for part in first if _VERSION.fullmatch(part))


def version_of(path: str) -> int | None:
    """The version that a file belongs to; None for one of all versions, such as labels."""
    return next(iter(versions_of([path])), None)


def read_source(folder: Path, model: str) -> Source:
    """Read and check the model in FOLDER.

    The server ignores folders beside the versions, unless it knows them (``warmup``, ``initial_state``, ``configs``) or the configuration
    names them: VersionsToLoad in src/model_repository_manager/model_lifecycle.cc of triton-inference-server/core 73aad7c.
    """
    if not folder.is_dir():
        raise InvalidInput(f"src: {folder} is not a folder.")
    config, found = _config(folder), _names(folder)
    names = [name for name in found if not any(part.startswith(".") for part in name.split("/"))]
    folders = {*versions_of(f"{path.name}/" for path in folder.iterdir() if path.is_dir())}
    names += [f"{version}/{_KEEPS}" for version in sorted(folders - {*versions_of(names)})]
    config.check(model, [name.split("/")[1] for name in names if version_of(name) is not None])
    for version in versions_of(names):
        _check_version(config, version, names)
    files = {name: _sha256(_content(folder / name)) for name in sorted(names)}
    hub = _hub_models(folder, config, names) if config.backend == VLLM else []
    return Source(folder, config, files, sorted({*found} - {*names}), hub)


def _config(folder: Path) -> ModelConfig:
    """Read the configuration. It is empty if there is no file, because the server completes it."""
    path = folder / FILE
    try:
        return parsed(path.read_text("utf-8") if path.exists() else "", str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"src: {path} cannot be read: {error}.", "A model has its configuration there.") from error


def _names(folder: Path) -> list[str]:
    """List the files of FOLDER without its configuration and without __pycache__."""
    paths = [path for path in entries(folder, "src", 20_000) if "__pycache__" not in path.parts and path != folder / FILE]
    for path in paths:
        if not path.is_file() and (path.is_symlink() or not path.is_dir()):
            raise InvalidInput(f"src: {path} is not a plain file.", "Put the file itself there.")
    return [path.relative_to(folder).as_posix() for path in paths if path.is_file()]


def _check_version(config: ModelConfig, version: int, files: Sequence[str]) -> None:
    needed = config.model_file
    below = f"{version}/{needed}"
    if needed and not any(name == below or name.startswith(f"{below}/") for name in files):
        raise InvalidInput(
            f"src: version {version} has no {needed}, which its backend reads.", "Or name its file as default_model_filename."
        )


def _hub_models(folder: Path, config: ModelConfig, files: Sequence[str]) -> list[str]:
    """Check the arguments of vLLM's engine in each version, and return the models that are none of a folder."""
    found = set()
    for version in versions_of(files):
        path = folder / str(version) / VLLM_FILE
        try:
            given = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"src: {path} is not JSON: {error}.", "It has the arguments of vLLM's engine.") from error
        model = given.get("model") if isinstance(given, dict) else None
        if not isinstance(model, str) or not model:
            # The engine would load its own default from the hub.
            raise InvalidInput(
                f"src: {path} names no model.", 'It is an object such as {"model": "OWNER/NAME"}, or with the path of a folder.'
            )
        parts = [given.get(name, 1) for name in ("tensor_parallel_size", "pipeline_parallel_size")]
        if parts != [1, 1] and config.may_be_on_one_gpu:
            raise InvalidInput(
                f"src: {path} has several GPUs, and an instance may be given one.", f"{FILE}: instance_group [{{kind: KIND_MODEL}}]."
            )
        if model.startswith("."):
            raise InvalidInput(f"src: {path} names {model}, and the server starts in a folder of its image.", "Give the path from /.")
        found |= {model} if _ON_HUB.fullmatch(model) else set()
    return sorted(found)


def _content(path: Path) -> Path:
    return Path(os.devnull) if path.name == _KEEPS else path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
