# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviewed plans: the name of a cluster in them, and a cluster on which only their objects are written.

Each request that writes is asked about before it is sent.
"""

from __future__ import annotations

import typing as t

from .._core.errors import Forbidden
from .cluster import Cluster
from .objects import CONFIG_MAP, HISTORY, POD, PRUNE_RECORD, Manifest, Ref, ref_of

Permit = t.Callable[[Ref, bool], None]
"""Raises unless the object may be written; True: or deleted."""

_REVIEWS = {("authorization.k8s.io", "SelfSubjectAccessReview"), ("authentication.k8s.io", "SelfSubjectReview")}
_FREE = frozenset({("coordination.k8s.io", "Lease"), POD, *_REVIEWS})
"""Kinds that no plan names: Leases of a run, questions, and pods that a training or a server has made by then."""


def place_of(cluster: Cluster) -> str:
    """The cluster as a plan names it: by the uid of namespace kube-system, or by its address for who may not read that."""
    try:
        found = cluster.get(Ref("v1", "Namespace", "kube-system"))
    except Forbidden:
        found = None
    uid = (found or {}).get("metadata", {}).get("uid")
    return f"cluster {uid}" if uid else f"cluster at {cluster.server}"


class LimitedCluster:
    """The cluster. Reads and dry runs are its own."""

    def __init__(self, cluster: Cluster, permit: Permit) -> None:
        self._cluster = cluster
        self._permit = permit

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._cluster, name)

    def _asked(self, ref: Ref, *, dry_run: bool, deletes: bool = False) -> None:
        if not (dry_run or ref.group_kind in _FREE or (ref.group_kind == CONFIG_MAP and ref.name.startswith((PRUNE_RECORD, HISTORY)))):
            self._permit(ref, deletes)

    def apply(self, manifest: Manifest, *, dry_run: bool, **more: t.Any) -> Manifest:
        self._asked(ref_of(manifest), dry_run=dry_run)
        return self._cluster.apply(manifest, dry_run=dry_run, **more)

    def create(self, manifest: Manifest, *, dry_run: bool, **more: t.Any) -> Manifest:
        # A review has no name.
        self._asked(ref_of({**manifest, "metadata": {"name": "", **manifest["metadata"]}}), dry_run=dry_run)
        return self._cluster.create(manifest, dry_run=dry_run, **more)

    def patch(self, ref: Ref, patch: Manifest, *, dry_run: bool, **more: t.Any) -> Manifest:
        self._asked(ref, dry_run=dry_run)
        return self._cluster.patch(ref, patch, dry_run=dry_run, **more)

    def delete(self, ref: Ref, *, dry_run: bool, **more: t.Any) -> bool:
        self._asked(ref, dry_run=dry_run, deletes=True)
        return self._cluster.delete(ref, dry_run=dry_run, **more)

    def guarded(self, check: t.Callable[[], None]) -> Cluster:
        return t.cast("Cluster", LimitedCluster(self._cluster.guarded(check), self._permit))

    def within(self, seconds: float) -> Cluster:
        return t.cast("Cluster", LimitedCluster(self._cluster.within(seconds), self._permit))
