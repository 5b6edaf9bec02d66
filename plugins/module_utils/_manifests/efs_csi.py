# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of role efs_csi: a claim on EFS with its class or volume, and the two Jobs that verify it."""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.errors import InvalidInput
from .meta import Manifest, metadata, quantity
from .pods import RESTRICTED_CONTAINER
from .storage import claim

DRIVER = "efs.csi.aws.com"
LABEL_VERIFIES = "muster.ml/verifies"
SHARED = ["ReadWriteMany"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EfsCsi:
    """The claim, and where its volume comes from. Without a file system the class exists already."""

    namespace: str
    claim_name: str
    claim_size: str = "5Gi"
    file_system_id: str = ""
    provisioning: t.Literal["dynamic", "static"] = "dynamic"
    storage_class_name: str = "efs-sc"
    directory_perms: str = "700"
    base_path: str = ""
    path: str = ""
    access_point_id: str = ""
    iam: bool = False
    verify: bool = False
    verify_image: str = ""
    verify_user: int = 1000
    wait_timeout: int = 600

    @property
    def static(self) -> bool:
        """Whether one volume is created, instead of an access point for each claim."""
        return self.provisioning == "static"

    @property
    def volume_name(self) -> str:
        """The name of the volume. It contains the namespace, because volumes belong to none."""
        return f"{self.namespace}-{self.claim_name}"


def manifests(efs: EfsCsi) -> list[Manifest]:
    """The objects of the storage or, with ``verify``, the Jobs that verify it."""
    quantity(efs.claim_size, "claim_size")
    if efs.verify:
        return [_job(efs, role, script) for role, script in _scripts(efs).items()]
    if efs.static:
        return [_volume(efs), _claim(efs)]
    return [*([_class(efs)] if efs.file_system_id else []), _claim(efs)]


def _class(efs: EfsCsi) -> Manifest:
    parameters = {"provisioningMode": "efs-ap", "fileSystemId": efs.file_system_id, "directoryPerms": efs.directory_perms}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata(efs.storage_class_name),
        "provisioner": DRIVER,
        "parameters": {**parameters, **({"basePath": efs.base_path} if efs.base_path else {})},
    }


def _handle(efs: EfsCsi) -> str:
    """fs-id[:path][:access-point]; an access point without a path leaves the middle empty."""
    parts = [efs.file_system_id, efs.path, efs.access_point_id]
    while not parts[-1]:
        parts.pop()
    return ":".join(parts)


def _volume(efs: EfsCsi) -> Manifest:
    if not efs.file_system_id:
        raise InvalidInput("file_system_id is missing.", "A static volume is one of a file system; name it.")
    spec = {
        "capacity": {"storage": efs.claim_size},
        "volumeMode": "Filesystem",
        "accessModes": SHARED,
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        # tls is the driver's default, and iam needs it.
        "mountOptions": ["tls", "iam"] if efs.iam else ["tls"],
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": efs.namespace, "name": efs.claim_name},
        "csi": {"driver": DRIVER, "volumeHandle": _handle(efs)},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata(efs.volume_name), "spec": spec}


def _claim(efs: EfsCsi) -> Manifest:
    made = claim(
        metadata(efs.claim_name, efs.namespace),
        size=efs.claim_size,
        storage_class_name="" if efs.static else efs.storage_class_name,
        access_modes=SHARED,
    )
    if efs.static:
        made["spec"]["volumeName"] = efs.volume_name
    return made


def _scripts(efs: EfsCsi) -> dict[str, str]:
    """The scripts of the two Jobs: one writes a file, the other one waits for it, on another node if there is one."""
    mark = f"/shared/.muster-verify-{efs.claim_name}"
    return {
        "writer": f"echo written by another pod > {mark}.new && mv {mark}.new {mark} && sync",
        "reader": f"until grep -q 'written by another pod' {mark}; do sleep 1; done; echo read it",
    }


def _job(efs: EfsCsi, role: str, script: str) -> Manifest:
    labels = {LABEL_VERIFIES: efs.claim_name}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    container = {
        "name": role,
        "image": efs.verify_image,
        "command": ["sh", "-c", script],
        "securityContext": RESTRICTED_CONTAINER,
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": efs.verify_user, "seccompProfile": {"type": "RuntimeDefault"}},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]}},
        "containers": [container],
        "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": efs.claim_name}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(f"{efs.claim_name}-{role}", efs.namespace),
        "spec": {"backoffLimit": 3, "activeDeadlineSeconds": efs.wait_timeout, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
