# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks for the files and settings that clusters on this machine share: one process at a time reads and changes them."""

from __future__ import annotations

import contextlib
import glob
import shutil
import typing as t
from pathlib import Path

from .._core.errors import InvalidInput
from .._core.files import draft_prefix, locked
from . import spec


def machine() -> t.ContextManager[None]:
    """Hold the lock of mount points and forwarding, which all clusters on this machine share."""
    return locked(Path(spec.STATE_ROOT) / ".lock")


@contextlib.contextmanager
def making(target: Path) -> t.Iterator[bool]:
    """Wait until no other process makes this file of the cache, and return whether it is still missing.

    Drafts of it (``draft_prefix``) that killed runs left are deleted first: with one of each image, they would fill the disk.
    """
    if not target.name:
        raise InvalidInput(f"{target} is a folder.", "Give the path of a file in it.")
    with locked(target.with_name(f".{target.name}.lock")):
        for left in target.parent.glob(f"{glob.escape(draft_prefix(target))}*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield not target.is_file()
