# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find claims that can never be bound before anything waits for them; and why one is not bound yet.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Sequence

from .._core.errors import Forbidden, InvalidInput, NotFound
from . import reasons
from .objects import Manifest, Ref

if t.TYPE_CHECKING:
    from .cluster import Cluster

_DEFAULT = "storageclass.kubernetes.io/is-default-class"
# Disks that only one node can mount at a time: a claim for several nodes stays Pending for ever.
_ONE_NODE = {
    "disk.csi.azure.com": "Azure disk",
    "ebs.csi.aws.com": "EBS",
    "kubernetes.io/aws-ebs": "EBS",
    "kubernetes.io/gce-pd": "Persistent Disk",
    "pd.csi.storage.gke.io": "Persistent Disk",
}
_MANY = {"ReadWriteMany", "ReadOnlyMany"}
_ADVICE = "Name a class that can do it (EFS, Filestore, NFS, or local-path on a cluster of role local_cluster)"


def check_claim(cluster: Cluster, claim: Ref, *, size: str | None, storage_class: str | None, modes: Sequence[str]) -> None:
    """Raise if the claim does not exist and cannot be created, or would stay Pending. An existing one is accepted as it is."""
    if cluster.get(claim) is not None:
        return
    if size is None:
        raise NotFound(
            f"{claim} does not exist.",
            ref=claim,
            hint="Correct claim_name, or set storage_size to create the claim.",
        )
    try:
        classes = cluster.list("storage.k8s.io/v1", "StorageClass")
    except Forbidden:
        return
    found = class_of(classes, storage_class)
    there = ", ".join(sorted(row["metadata"]["name"] for row in classes)) or "none"
    if found is None and storage_class is not None:
        raise InvalidInput(f"{claim}: there is no StorageClass {storage_class}.", ref=claim, hint=f"There are: {there}.")
    if found is None and not _volumes(cluster):
        raise InvalidInput(
            f"{claim} would never be bound: the cluster has no default StorageClass.",
            ref=claim,
            hint=f"Name one in storage_class_name. There are: {there}.",
        )
    kind = _ONE_NODE.get(found["provisioner"]) if found else None
    if found and kind and _MANY & set(modes):
        raise InvalidInput(
            f"{claim} would never be bound: StorageClass {found['metadata']['name']} makes volumes of {kind}, "
            f"which do not support {', '.join(modes)}.",
            ref=claim,
            hint=f"{_ADVICE} in storage_class_name. There are: {there}.",
        )


def class_of(classes: Iterable[Manifest], name: str | None) -> Manifest | None:
    """The StorageClass of that name; where a claim names none (None) the default one, of several the newest."""
    if name is not None:
        return next((row for row in classes if row["metadata"]["name"] == name), None)
    defaults = [row for row in classes if (row["metadata"].get("annotations") or {}).get(_DEFAULT) == "true"]
    return max(defaults, key=lambda row: str(row["metadata"].get("creationTimestamp")), default=None)


def _volumes(cluster: Cluster) -> bool:
    """Whether there are volumes without a class, for claims without one."""
    try:
        volumes = cluster.list("v1", "PersistentVolume")
    except Forbidden:
        return True
    return any(not row["spec"].get("storageClassName") and (row.get("status") or {}).get("phase") == "Available" for row in volumes)


def why_unbound(cluster: Cluster, claim: Ref) -> str:
    """Return why the claim is not bound, as its provisioner or the scheduler reports; empty if it is bound or may not be read."""
    try:
        found = cluster.get(claim)
    except Forbidden:
        return ""
    if found is not None and (found.get("status") or {}).get("phase") != "Pending":
        return ""
    if found is None:
        return f"{claim} does not exist"
    return f"{claim} is not bound: {reasons.event_of(cluster, found, normal=True) or 'no event says why'}"
