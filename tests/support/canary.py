# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for secrets where none may be: in outputs, in files that others may read, in the list of processes."""

from __future__ import annotations

import base64
import contextlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from support.places import below


def spellings(secret: str) -> set[bytes]:
    """The forms in which a secret leaks: as it is, and as a Kubernetes Secret or a basic-auth header would carry it."""
    raw = secret.encode()
    return {raw, base64.b64encode(raw)}


def in_text(secrets: Mapping[str, str], text: bytes) -> set[str]:
    """The names of the secrets that a text contains."""
    return {name for name, secret in secrets.items() if any(form in text for form in spellings(secret))}


def in_open_files(secrets: Mapping[str, str], folders: Iterable[Path]) -> set[str]:
    """'NAME in FILE' for every secret in a file that anybody may read."""
    files = (path for folder in folders for path, about in files_below(folder) if about.st_mode & stat.S_IROTH)
    return {f"{name} in {path}" for path in files for name in in_file(secrets, path)}


def files_below(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files below a folder that are there at this moment."""
    for path in below(folder):
        with contextlib.suppress(FileNotFoundError):
            about = path.lstat()
            if stat.S_ISREG(about.st_mode):
                yield path, about


def in_file(secrets: Mapping[str, str], path: Path) -> set[str]:
    """The names of the secrets in a file; none are in one that is gone since its folder was listed."""
    try:
        return in_text(secrets, path.read_bytes())
    except FileNotFoundError:
        return set()


def processes() -> set[str]:
    """The ids of all processes."""
    return {name for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208  # five times a second, beside all else


def in_processes(secrets: Mapping[str, str], but: Set[str] = frozenset()) -> set[str]:
    """'NAME in the arguments of PROGRAM' for every secret that `ps` would show of processes, ``but`` for some."""
    found = set()
    for process in processes() - but:
        try:
            text = Path("/proc", process, "cmdline").read_bytes()
        except OSError:  # gone since the folder was listed
            continue
        program = text.split(b"\0", 1)[0].decode(errors="replace")
        found |= {f"{name} in the arguments of {program}" for name in in_text(secrets, text)}
    return found


class ProcessWatch:
    """Reads the list of processes over and over while a check runs: an argument that lives 200 ms is a leak as well.

    Processes that ran before the check are read once, because there are hundreds on a machine with clusters.
    """

    def __init__(self, secrets: Mapping[str, str], interval: float = 0.2) -> None:
        self._secrets = secrets
        self._interval = interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._before: set[str] = set()
        self.found: set[str] = set()

    def _watch(self) -> None:
        while not self._over.wait(self._interval):
            self._before &= processes()  # an id may be given again
            self.found |= in_processes(self._secrets, self._before)

    def __enter__(self) -> ProcessWatch:
        self._before = processes()
        self.found = in_processes(self._secrets)
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()
