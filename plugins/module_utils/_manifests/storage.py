# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims of storage, and the volume that all pods of a training share."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Sequence

from .meta import Manifest, compact


@dataclasses.dataclass(frozen=True, kw_only=True)
class Storage:
    """A volume that all pods of a training mount: data in, checkpoints out. With a size the claim is ours, without it exists."""

    claim_name: str
    mount_path: str = "/workspace/shared"
    size: str | None = None
    storage_class_name: str | None = None
    access_modes: Sequence[str] = ("ReadWriteMany",)


def claim(
    metadata: Manifest, *, size: str | None, storage_class_name: str | None, access_modes: Sequence[str]
) -> Manifest:
    """A PersistentVolumeClaim."""
    spec = compact(
        {
            "accessModes": list(access_modes),
            "storageClassName": storage_class_name,
            "resources": {"requests": {"storage": size}},
        }
    )
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


class Training(t.Protocol):
    """What a training says about its shared storage."""

    @property
    def namespace(self) -> str: ...

    @property
    def labels(self) -> dict[str, str]: ...

    @property
    def storage(self) -> Storage | None: ...


def storage_claim(job: Training) -> list[Manifest]:
    """The claim of the shared storage, when it is ours to make."""
    if job.storage is None or job.storage.size is None:
        return []
    metadata = {"name": job.storage.claim_name, "namespace": job.namespace, "labels": job.labels}
    return [
        claim(
            metadata,
            size=job.storage.size,
            storage_class_name=job.storage.storage_class_name,
            access_modes=job.storage.access_modes,
        )
    ]
