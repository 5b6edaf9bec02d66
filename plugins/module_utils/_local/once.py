# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What clusters on this machine share is read and changed by one of them at a time.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import typing as t
from pathlib import Path

from . import spec


@contextlib.contextmanager
def locked(lock: Path) -> t.Iterator[None]:
    """Wait until nobody else holds the lock. The kernel ends the lock of a killed process."""
    with _lock(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _lock(lock: Path) -> t.IO[str]:
    while True:
        # The last holder removes the file, and the last cluster its folder: then this one locks nobody out.
        with contextlib.suppress(FileExistsError):
            lock.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as opened:
            held = opened.enter_context(lock.open("w", encoding="utf-8"))
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(held.fileno()), lock.stat()):
                opened.pop_all()
                return held


def machine() -> t.ContextManager[None]:
    """Nobody else changes mount points and forwarding, which all clusters on this machine share."""
    return locked(Path(spec.STATE_ROOT) / ".lock")


@contextlib.contextmanager
def making(target: Path) -> t.Iterator[bool]:
    """Wait until nobody else makes this file of the cache, and return whether it is still missing."""
    with locked(target.with_name(f".{target.name}.lock")):
        yield not target.is_file()
