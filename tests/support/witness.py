# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program, and writes down what others could see of it meanwhile: for secrets that nobody knows before it has made them.

    python tests/support/witness.py RECORD PROGRAM ...

RECORD gets, as JSON, the arguments of every process and the new files in the temporary folder that everybody may read.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

INTERVAL = 0.2
DEEPEST = 3
LARGEST = 1 << 20


def arguments(proc: Path = Path("/proc")) -> Iterator[str]:
    """The arguments of every process."""
    for path in proc.glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone since the folder was listed
            continue


def open_files(folder: Path, since: float, depth: int = DEEPEST) -> Iterator[tuple[str, str]]:
    """The new files in FOLDER that everybody may read: each folder above has to let them in, too."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IXOTH and depth > 1:
                yield from open_files(Path(entry.path), since, depth - 1)
            elif stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IROTH and status.st_mtime >= since:
                with Path(entry.path).open("rb") as file:
                    yield entry.path, file.read(LARGEST).decode(errors="replace")
        except OSError:
            continue


class Witness:
    """Looks again and again until it is stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arguments: set[str] = set()
        self.files: dict[str, str] = {}
        self.since = time.time()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def look(self) -> None:
        self.arguments |= set(arguments())
        self.files |= dict(open_files(self.folder, self.since))

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL):
            self.look()

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()

    def write(self, record: Path) -> None:
        record.unlink(missing_ok=True)
        record.touch(mode=0o600)
        record.write_text(json.dumps({"arguments": sorted(self.arguments), "files": self.files}), encoding="utf-8")


def main(record: str, *program: str) -> int:
    """Run the program; its exit status."""
    with Witness(Path(tempfile.gettempdir())) as witness:
        status = subprocess.run(program, check=False).returncode
    witness.write(Path(record))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
