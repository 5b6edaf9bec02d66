# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files with secrets, on the controller or a host."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import tempfile
import typing as t
from collections.abc import Iterator


@contextlib.contextmanager
def replaced(path: pathlib.Path, mode: int = 0o600) -> Iterator[t.IO[bytes]]:
    """A file for the new content of PATH, which has it whole or stays as it was. Nobody else can read it before it has its MODE."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def locked_folder(folder: pathlib.Path) -> Iterator[bool]:
    """Create FOLDER, for its owner only, and wait until no other process has it locked.

    The kernel ends the lock of a killed process. False where the file system has no locks for folders, as NFS.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        locked = True
    except OSError:
        locked = False
    try:
        yield locked
    finally:
        os.close(handle)
