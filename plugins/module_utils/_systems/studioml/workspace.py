# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an experiment as one tar file, stored under the sum of its content as the client stores it (``blobstore/SHA256.tar``).

Unlike the client's, the file is the same for the same content: names are sorted, and times and owners left out. So a second run finds it in
the bucket.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import hashlib
import pathlib
import tarfile
import tempfile
import typing as t
from collections.abc import Iterator, Sequence

from ..._core.errors import InvalidInput
from ..._core.files import entries

_IN_MEMORY = 1 << 24


@dataclasses.dataclass(frozen=True)
class Packed:
    """The tar file, open at its beginning, with its key in the bucket and the number of its files."""

    file: t.IO[bytes]
    key: str
    files: int


@contextlib.contextmanager
def packed(paths: Sequence[str], exclude: Sequence[str], filename: str) -> Iterator[Packed]:
    """Pack files and the contents of folders. ``filename``: the program, which must be among them."""
    found = _files(paths, exclude)
    if filename not in found:
        listed = ", ".join(sorted(name for name in found if name.endswith(".py"))[:5])
        raise InvalidInput(
            f"filename: {filename} is not among the {len(found)} files of the workspace.",
            f"Programs in it: {listed}." if listed else "Is it left out by exclude?",
        )
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name, path in sorted(found.items()):
                _add(tar, name, path)
        yield Packed(file, f"blobstore/{_sum(file)}.tar", len(found))


def _files(paths: Sequence[str], exclude: Sequence[str]) -> dict[str, pathlib.Path]:
    """Paths by their names in the workspace."""
    found: dict[str, pathlib.Path] = {}
    for text in paths:
        top = pathlib.Path(text)
        if not top.exists():
            raise InvalidInput(f"workspace: {top} does not exist on the host that the task runs on.")
        below = sorted(entries(top, "workspace")) if top.is_dir() else [top]
        for path in below:
            name = path.relative_to(top).as_posix() if top.is_dir() else path.name
            if _is_left_out(name, exclude) or (path.is_dir() and not path.is_symlink()):
                continue
            if path.is_symlink() or not path.is_file():
                raise InvalidInput(
                    f"workspace: {path} is no plain file.", "Only files and folders are packed. A name or pattern in exclude leaves it out."
                )
            if name in found:
                raise InvalidInput(f"workspace: {found[name]} and {path} have the same name in the workspace.")
            found[name] = path
    return found


def _is_left_out(name: str, exclude: Sequence[str]) -> bool:
    """Whether a pattern fits the whole name, or one of its parts."""
    return any(fnmatch.fnmatchcase(part, pattern) for pattern in exclude for part in (name, *name.split("/")))


def _add(tar: tarfile.TarFile, name: str, path: pathlib.Path) -> None:
    status = path.stat()
    info = tarfile.TarInfo(name)
    info.size = status.st_size
    info.mode = 0o755 if status.st_mode & 0o100 else 0o644
    with path.open("rb") as content:
        tar.addfile(info, content)


def _sum(file: tempfile.SpooledTemporaryFile[bytes]) -> str:
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return found
