# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pods of a training share: configuration, the user's files, and storage, as objects, volumes and mounts."""

from __future__ import annotations

from collections.abc import Mapping

from .meta import Manifest
from .storage import Storage


def config_map(metadata: Manifest, data: Mapping[str, str]) -> Manifest:
    """A ConfigMap with these files."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def mounted(
    prefix: str, config_maps: Mapping[str, tuple[str, str]], storage: Storage | None
) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts of CONFIG_MAPS (word -> name and path) and of the storage. Their names begin with PREFIX."""
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    for word, (name, path) in config_maps.items():
        volumes.append({"name": f"{prefix}-{word}", "configMap": {"name": name}})
        mounts.append({"name": f"{prefix}-{word}", "mountPath": path, "readOnly": True})
    if storage:
        volumes.append({"name": f"{prefix}-storage", "persistentVolumeClaim": {"claimName": storage.claim_name}})
        mounts.append({"name": f"{prefix}-storage", "mountPath": storage.mount_path})
    return volumes, mounts
