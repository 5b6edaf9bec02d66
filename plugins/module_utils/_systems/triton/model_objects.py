# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's folder in a bucket of any store. The SHA-256 of each file is stored as metadata of its object."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ..._kube.report import Report
from .model_config import FILE
from .model_plan import Stored
from .model_source import Source

if t.TYPE_CHECKING:
    from .model_bucket import S3Objects
    from .model_gcs import GcsObjects

SUM = "sha256"
"""The metadata key of the SHA-256."""


class BucketStore:
    """One model in a bucket. PREFIX: the repository's folder, with a slash at its end, or empty."""

    def __init__(self, objects: S3Objects | GcsObjects, prefix: str, model: str) -> None:
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
