# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a program of _pod_programs, for a ConfigMap."""

from __future__ import annotations

import types
import typing as t


def program(module: types.ModuleType) -> str:
    """Return the source of MODULE, whether this collection was loaded from a folder or from the zip with a module.

    Ansible puts only imported files into that zip, so callers import the program and pass it here.
    """
    loader: t.Any = module.__spec__.loader if module.__spec__ else None
    source = loader.get_source(module.__name__)
    # Ansible's loader of collections returns bytes, that of Python text.
    return source.decode() if isinstance(source, bytes) else str(source)
