# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what Python compiles of the archives in which modules come: each task would compile all files of its module anew."""
# Nothing is imported here that Python has not imported before: each of these processes reads this.
# ruff: noqa: PTH103, PTH105, PTH118, PTH123, S302

import _imp
import contextlib
import marshal
import os
import sys
import zipimport
from types import CodeType
from typing import Any

_zipimport: Any = zipimport
_compile: Any = getattr(_zipimport, "_compile_source", None)
_FOLDER = os.path.join(os.environ.get("QUICK_FOLDER", ""), str(sys.implementation.cache_tag))


def _compiled(path: str, source: bytes) -> CodeType:
    kept = os.path.join(_FOLDER, _imp.source_hash(0, source).hex())
    try:
        with open(kept, "rb") as file:
            code: CodeType = marshal.load(file)
    except (OSError, EOFError, ValueError, TypeError):
        code = _compile(path, source)
        with contextlib.suppress(OSError):
            os.makedirs(_FOLDER, exist_ok=True)
            with open(f"{kept}.{os.getpid()}", "wb") as file:
                marshal.dump(code, file)
            os.replace(f"{kept}.{os.getpid()}", kept)
    _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
    return code


if "QUICK_FOLDER" in os.environ and _compile:
    _zipimport._compile_source = _compiled
