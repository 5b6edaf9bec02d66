# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files with secrets, on the controller or a host."""

from __future__ import annotations

import contextlib
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
