# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A model's folder in a bucket of any store. The SHA-256 of each file is stored as metadata of its object."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable
from pathlib import Path

from ..._kube.report import Report
from .model_config import FILE
from .model_plan import Stored
from .model_source import Source

SUM = "sha256"
"""The metadata key of the SHA-256."""


class Objects(t.Protocol):
    """The objects of a bucket, by whole keys. ``doing`` is the refused action, for the error."""

    def sums(self, prefix: str) -> dict[str, str]:
        """Return key -> SHA-256 with which we uploaded the object; empty for objects of other clients."""

    def text(self, key: str, doing: str) -> str:
        """The content of an object."""

    def upload(self, path: Path, key: str, sha256: str, doing: str) -> None:
        """Write an object with the content of a file."""

    def write(self, key: str, text: str, doing: str) -> None:
        """Write an object."""

    def delete(self, key: str, doing: str) -> None:
        """Delete an object, if it is there."""


class BucketStore:
    """One model in a bucket. PREFIX: the repository's folder, with a slash at its end, or empty."""

    def __init__(self, objects: Objects, prefix: str, model: str) -> None:
        self._objects, self._prefix = objects, f"{prefix}{model}/"

    def read(self) -> Stored:
        """Read the files with the SHA-256 of their upload; it is empty for files that other clients uploaded."""
        found = {
            key.removeprefix(self._prefix): sha256 for key, sha256 in self._objects.sums(self._prefix).items() if not key.endswith("/")
        }
        there = found.pop(FILE, None) is not None
        return Stored(found, self._objects.text(self._prefix + FILE, f"read {FILE}") if there else None)

    def verify(self) -> Stored:
        """Read the same: all state is in the bucket."""
        return self.read()

    def note(self, stored: Stored, *, check: bool) -> Report:
        """Do nothing: all state is in the bucket."""
        del stored, check
        return Report()

    def put(self, source: Source, names: Iterable[str]) -> None:
        """Upload files of SOURCE."""
        for name in names:
            self._objects.upload(source.path(name), self._prefix + name, source.files[name], f"write {name}")

    def put_config(self, text: str) -> None:
        """Replace the configuration."""
        self._objects.write(self._prefix + FILE, text, f"write {FILE}")

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            self._objects.delete(self._prefix + name, f"delete {name}")
