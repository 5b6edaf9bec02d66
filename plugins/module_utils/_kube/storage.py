# SPDX-License-Identifier: GPL-3.0-or-later
"""Find claims that can never be bound before anything waits for them; and why one is not bound yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .._core.errors import Forbidden, InvalidInput, MusterError
from . import reasons
from .cluster import Cluster
from .objects import Manifest, Ref
from .served import Promised

_DEFAULT = "storageclass.kubernetes.io/is-default-class"
# Disks that only one node can mount at a time: a claim for several nodes stays Pending for ever.
_ONE_NODE = {
    "disk.csi.azure.com": "Azure disk",
    "ebs.csi.aws.com": "EBS",
    "kubernetes.io/aws-ebs": "EBS",
    "kubernetes.io/gce-pd": "Persistent Disk",
    "pd.csi.storage.gke.io": "Persistent Disk",
}
# Those that several nodes can mount at a time: documentation of EFS, Azure Files, Filestore, csi-driver-nfs and CephFS.
_MANY_NODES = {"efs.csi.aws.com", "file.csi.azure.com", "filestore.csi.storage.gke.io", "nfs.csi.k8s.io",
               "openshift-storage.cephfs.csi.ceph.com", "rook-ceph.cephfs.csi.ceph.com"}  # fmt: skip
MANY = {"ReadWriteMany", "ReadOnlyMany"}
"""Access modes of volumes that several nodes mount at a time."""
_ADVICE = "Name a class that can do it (EFS, Filestore, NFS, or local-path on a cluster of role local_cluster)"


def check_claims(cluster: Cluster, claims: Iterable[tuple[Ref, Manifest]], promised: Promised, problems: list[MusterError]) -> list[str]:
    """Add an error to PROBLEMS for each claim, given with its spec, that would be created and stay Pending.

    An existing one is accepted as it is, as is one whose class check mode counts as there. Returns what could not be read.
    """
    try:
        missing = [(ref, spec) for ref, spec in claims if not spec.get("volumeName") and cluster.get(ref) is None]
        classes = cluster.list("storage.k8s.io/v1", "StorageClass") if missing else []
        for ref, spec in missing:
            if ("StorageClass", "", spec.get("storageClassName")) not in promised.objects:
                problems += _of_claim(cluster, ref, spec, classes)
    except Forbidden as error:
        return [error.message]
    return []


def _of_claim(cluster: Cluster, claim: Ref, spec: Manifest, classes: Sequence[Manifest]) -> Iterator[MusterError]:
    name, modes = spec.get("storageClassName"), spec.get("accessModes") or ()
    found = class_of(classes, name)
    there = f"There are: {', '.join(sorted(row['metadata']['name'] for row in classes)) or 'none'}. Nothing was changed."
    if found is None and not _volumes(cluster, name or ""):
        what = f"there is no StorageClass {name}" if name else "the cluster has no default StorageClass"
        yield InvalidInput(f"{claim} would never be bound: {what}.", f"Name one in storage_class_name. {there}", ref=claim)
    kind = _ONE_NODE.get(found["provisioner"]) if found else None
    if found and kind and MANY & set(modes):
        yield InvalidInput(
            f"{claim} would never be bound: StorageClass {found['metadata']['name']} makes volumes of {kind}, "
            f"which do not support {', '.join(modes)}.",
            f"{_ADVICE} in storage_class_name. {there}",
            ref=claim,
        )


def is_shared(provisioner: str) -> bool | None:
    """Whether volumes of this provisioner can be mounted by several nodes at a time (ReadWriteMany); None if that is not known."""
    return {**dict.fromkeys(_ONE_NODE, False), **dict.fromkeys(_MANY_NODES, True)}.get(provisioner)


def class_of(classes: Iterable[Manifest], name: str | None) -> Manifest | None:
    """The StorageClass NAME; for None the default one, and of several defaults the newest."""
    if name is not None:
        return next((row for row in classes if row["metadata"]["name"] == name), None)
    defaults = [row for row in classes if (row["metadata"].get("annotations") or {}).get(_DEFAULT) == "true"]
    return max(defaults, key=lambda row: str(row["metadata"].get("creationTimestamp")), default=None)


def _volumes(cluster: Cluster, name: str) -> bool:
    """Whether there are volumes that wait for a claim of a class, which need not exist as an object."""
    try:
        volumes = cluster.list("v1", "PersistentVolume")
    except Forbidden:
        return True
    free = (row for row in volumes if (row.get("status") or {}).get("phase") == "Available")
    return any((row["spec"].get("storageClassName") or "") == name for row in free)


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
