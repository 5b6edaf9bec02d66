# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced whole, and locks, on the controller or a host."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import pathlib
import tempfile
import typing as t
from collections.abc import Iterator

from .errors import InvalidInput

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a file system, or the share of one user, that is full."""


def draft_prefix(path: pathlib.Path) -> str:
    """The prefix of the file to which new content of PATH is written first; a run that is killed leaves it."""
    return f".{path.name}.muster-"


@contextlib.contextmanager
def naming(path: pathlib.Path) -> Iterator[None]:
    """Name PATH in an error of the system that names no file: one of write(2), such as that of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def replaced(path: pathlib.Path, mode: int = 0o600) -> Iterator[t.IO[bytes]]:
    """Open a file that replaces PATH as a whole at the end. Until it has its MODE, only its owner can read it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=draft_prefix(path))
    draft = pathlib.Path(name)
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            yield file
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(lock: pathlib.Path) -> Iterator[None]:
    """Wait until no other process holds the lock. The kernel releases the lock of a killed process."""
    with _lock(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _lock(lock: pathlib.Path) -> t.IO[str]:
    while True:
        # The last holder removes the file, and the last cluster its folder: a lock on a removed file excludes no other process.
        with contextlib.suppress(FileExistsError):
            lock.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as opened:
            held = opened.enter_context(lock.open("a", encoding="utf-8"))  # a link in its place may lead to a file of others
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(held.fileno()), lock.stat()):
                opened.pop_all()
                return held


def entries(folder: pathlib.Path, option: str, most: int = 100_000) -> list[pathlib.Path]:
    """List all files and folders below a folder. Raises InvalidInput beyond MOST of them, which only a mistake such as ``/`` has."""
    found = list(itertools.islice(folder.rglob("*"), most + 1))
    if len(found) > most:
        raise InvalidInput(f"{option}: {folder} has more than {most:,} files.", hint="Name a folder further down.")
    return found
