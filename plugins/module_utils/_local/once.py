# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the cache are made once, also if two clusters need the same one at the same time.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import fcntl
import typing as t
from pathlib import Path


@contextlib.contextmanager
def making(target: Path) -> t.Iterator[bool]:
    """Wait until nobody else makes the file, and return whether it is still missing. The kernel ends the lock of a killed process."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield not target.is_file()
        finally:
            lock.unlink(missing_ok=True)
