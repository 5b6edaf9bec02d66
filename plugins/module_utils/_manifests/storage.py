# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims, and the volume that all pods of a training share."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from .meta import Manifest, compact, quantity


@dataclasses.dataclass(frozen=True, kw_only=True)
class Storage:
    """A volume that all pods of a training mount: data in, checkpoints out. With a size we create the claim, without one it exists."""

    claim_name: str
    mount_path: str = "/workspace/shared"
    size: str | None = None
    storage_class_name: str | None = None
    access_modes: Sequence[str] = ("ReadWriteMany",)

    def __post_init__(self) -> None:
        if self.size is not None:
            quantity(self.size, "storage.size")

    @classmethod
    def from_params(cls, params: Mapping[str, t.Any] | None) -> Storage | None:
        """The storage that the option describes, if it is given."""
        return cls(**{key: value for key, value in params.items() if value is not None}) if params else None


def claim(metadata: Manifest, *, size: str | None, storage_class_name: str | None, access_modes: Sequence[str]) -> Manifest:
    """A PersistentVolumeClaim."""
    spec = compact(
        {"accessModes": list(access_modes), "storageClassName": storage_class_name, "resources": {"requests": {"storage": size}}}
    )
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def storage_claim(storage: Storage | None, namespace: str, labels: Mapping[str, str]) -> list[Manifest]:
    """The claim of the shared storage, if we create it."""
    if storage is None or storage.size is None:
        return []
    metadata = {"name": storage.claim_name, "namespace": namespace, "labels": dict(labels)}
    return [claim(metadata, size=storage.size, storage_class_name=storage.storage_class_name, access_modes=storage.access_modes)]
