# SPDX-License-Identifier: GPL-3.0-or-later
"""Record in the cluster that an owner has no objects but these, so that prune need not search all kinds again.

A ConfigMap holds the digest of the set. If it is missing, prune searches everywhere. It must never claim too much, so it is deleted
before the owner gets an object that is not in the set, and written only after prune has searched everywhere and left nothing over. A
run that only adds objects holds no Lease (lease.py), so it deletes the record once more at its end: a prune may have searched meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from .._core.errors import Forbidden, LeaseLost, MusterError
from .cluster import Cluster
from .lease import name_of
from .objects import (
    FIELD_MANAGER,
    LABEL_MANAGED_BY,
    PRUNE_RECORD,
    Manifest,
    Ref,
    former_owner,
    is_made_for,
    manager_of,
    owner_labels,
    owner_on,
    owner_selector,
    owner_text,
    ref_of,
)
from .prepare import with_apply_record

LABEL_PRUNE_RECORD = "muster.ml/settled"
_VERSION = 2
"""Version of the record: a later Muster that searches more kinds ignores records of this version."""


def record_ref(owner: str, refs: t.Iterable[Ref], namespace: str) -> Ref:
    """The ConfigMap that holds the record: beside the owner's objects, or in NAMESPACE if none of them has one."""
    home = min((ref.namespace for ref in refs if ref.namespace), default=namespace)
    return Ref("v1", "ConfigMap", name_of(PRUNE_RECORD, owner), home)


def has_prune_record(cluster: Cluster, owner: str, desired: t.Collection[Ref], namespace: str) -> bool:
    """Whether it is recorded that the owner has these objects and no others. False if the record may not be read."""
    try:
        found = cluster.get(record_ref(owner, desired, namespace))
    except Forbidden:
        return False
    return found is not None and (found.get("data") or {}).get("objects") == _digest(desired)


def delete_prune_record(cluster: Cluster, owner: str, refs: t.Iterable[Ref], namespace: str) -> None:
    """Delete the record, before the owner gets other objects or loses all. An earlier run may have written it in another namespace."""
    selector = f"{owner_selector(owner)},{LABEL_PRUNE_RECORD}=true"
    for where in (None, record_ref(owner, refs, namespace).namespace):
        try:
            found = cluster.list_metadata("v1", "ConfigMap", where, selector)
        except Forbidden:
            continue
        for item in found:
            # Labels can be on any ConfigMap; only a record has the digest of its owner and its own place.
            if owner_on(item) in (owner, former_owner(owner)) and is_made_for(item, owner_on(item)):
                cluster.delete(ref_of(item), dry_run=False)
        return


def write_prune_record(cluster: Cluster, owner: str, desired: t.Collection[Ref], namespace: str) -> None:
    """Record that the owner has these objects and no others: prune has searched all kinds. Without it the next run searches again."""
    try:
        delete_prune_record(cluster, owner, desired, namespace)
        manifest = _manifest(owner, desired, namespace)
        cluster.apply(manifest, dry_run=False, force_conflicts=True, manager=manager_of(owner))
    except LeaseLost:
        raise
    except MusterError:  # no right, a quota, a policy, no such namespace: no reason to fail once all is done
        return


def _manifest(owner: str, desired: t.Collection[Ref], namespace: str) -> Manifest:
    ref = record_ref(owner, desired, namespace)
    labels = {LABEL_MANAGED_BY: FIELD_MANAGER, **owner_labels(owner), LABEL_PRUNE_RECORD: "true"}
    why = f"Nothing of {owner_text(owner)} is left over: it has no objects but those of its last run. May be deleted at any time."
    return with_apply_record({
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": labels},
        "data": {"about": why, "objects": _digest(desired)},
    })  # fmt: skip


def _digest(desired: t.Iterable[Ref]) -> str:
    text = json.dumps([_VERSION, *sorted(ref.identity for ref in desired)])
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
