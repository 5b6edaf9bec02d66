# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A model as a folder of this machine: its configuration, its versions, and their files by content.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..._core.errors import InvalidInput
from .model_config import FILE, ModelConfig, parsed

_VERSION = re.compile(r"[1-9][0-9]*")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Source:
    """A folder. ``files``: path in it -> SHA-256, without the configuration."""

    folder: Path
    config: ModelConfig
    files: Mapping[str, str]


def check_model(model: str) -> str:
    """MODEL, if it can be the name of a folder and part of an address."""
    if not _NAME.fullmatch(model):
        raise InvalidInput(
            f"model: '{model}' is not a name of a model.", "It has letters, digits, '_', '-' and '.' only."
        )
    return model


def versions_of(paths: Iterable[str]) -> list[int]:
    """The versions that these files belong to."""
    first = {path.partition("/")[0] for path in paths if "/" in path}
    return sorted(int(part) for part in first if _VERSION.fullmatch(part))


def version_of(path: str) -> int | None:
    """The version that a file belongs to; None for one of all versions, such as labels."""
    return next(iter(versions_of([path])), None)


def read_source(folder: Path, model: str) -> Source:
    """What is in FOLDER, checked."""
    if not folder.is_dir():
        raise InvalidInput(f"src: {folder} is not a folder.")
    try:
        text = (folder / FILE).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"src: {folder / FILE} cannot be read: {error}.", "A model has its configuration there."
        ) from error
    config = parsed(text, str(folder / FILE))
    config.check(model)
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts)
    files = {path.relative_to(folder).as_posix(): path for path in paths if path != folder / FILE}
    for name, path in files.items():
        if path.is_symlink() or not path.is_file():
            raise InvalidInput(f"src: {path} is not a plain file.", "Put the file itself there.")
        if "/" in name and version_of(name) is None:
            raise InvalidInput(
                f"src: {name} is in a folder that is no version.", "Folders are called 1, 2, 3 and so on."
            )
        if any(part.startswith(".") for part in name.split("/")):
            raise InvalidInput(f"src: {name} is hidden, so Triton would not read it.", "Remove it from the folder.")
    for version in versions_of(files):
        _check_version(config, version, list(files))
    return Source(folder, config, {name: _sha256(path) for name, path in files.items()})


def _check_version(config: ModelConfig, version: int, files: Sequence[str]) -> None:
    needed = config.model_file
    below = f"{version}/{needed}"
    if needed and not any(name == below or name.startswith(f"{below}/") for name in files):
        raise InvalidInput(
            f"src: version {version} has no {needed}, which its backend reads.",
            "Or name its file as default_model_filename.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
