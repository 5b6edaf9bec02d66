# SPDX-License-Identifier: GPL-3.0-or-later
"""A model as a folder of this machine: its configuration, its versions, and their files by content."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..._core.errors import InvalidInput
from ..._core.files import entries
from .model_config import FILE, ModelConfig, parsed

_VERSION = re.compile(r"[1-9][0-9]*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_KEEPS = "empty-version"
"""The file, without content, by which a version without files is in a bucket too. The version of an ensemble has none."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A folder. ``files``: path in it -> SHA-256, without the configuration; ``hidden``: the files that are left out."""

    folder: Path
    config: ModelConfig
    files: Mapping[str, str]
    hidden: Sequence[str] = ()

    def path(self, name: str) -> Path:
        """Return the path of the content of one of ``files``."""
        return _content(self.folder / name)

    @property
    def warnings(self) -> list[str]:
        """The warnings for the user."""
        return [f"src: hidden files are left out: {', '.join(self.hidden)}."] if self.hidden else []


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
    return Source(folder, config, files, sorted({*found} - {*names}))


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


def _content(path: Path) -> Path:
    return Path(os.devnull) if path.name == _KEEPS else path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
