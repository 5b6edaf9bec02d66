# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers in a cluster: their pods, their claims, and the wait for both."""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.pool import OnProgress
from .._manifests.servers import Server
from . import watching
from .cluster import Cluster
from .deletion import Ownership
from .objects import CLAIM, LABEL_OWNER, Manifest, Ref, is_made_for, labels_of, ref_of, selector_of
from .removal import delete_objects
from .report import Report

T = t.TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Claims:
    """The claims ``data-<name>-<number>`` of a StatefulSet, which outlive it. ``mark``: the label that gets its name.

    Their labels are common to every installation of a program, also that of a Helm chart, and do not show whose data they hold. So they are
    marked as long as the StatefulSet exists.
    """

    stateful_set: Ref
    labels: t.Mapping[str, str]
    mark: str

    def of_pod(self, pod: str) -> Ref:
        """The claim of a pod."""
        return Ref("v1", CLAIM[1], f"data-{pod}", self._namespace)

    @property
    def _namespace(self) -> str | None:
        return self.stateful_set.namespace

    def marked(self, cluster: Cluster, owner: str, *, check: bool) -> list[Ref]:
        """Mark the claims if their StatefulSet is the owner's; else those that an earlier run has marked."""
        live, name = cluster.get(self.stateful_set), self.stateful_set.name
        if live and labels_of(live).get(LABEL_OWNER) == owner and is_made_for(live, owner):
            found = cluster.list("v1", CLAIM[1], self._namespace, selector_of(self.labels))
            refs = [ref_of(claim) for claim in found if claim["metadata"]["name"].startswith(f"data-{name}-")]
            for ref in refs:
                cluster.patch(ref, {"metadata": {"labels": {self.mark: name}}}, dry_run=check)
            return refs
        return [ref_of(claim) for claim in cluster.list("v1", CLAIM[1], self._namespace, selector_of({self.mark: name}))]

    def delete(self, cluster: Cluster, refs: t.Sequence[Ref], owner: str, *, check: bool, delete_data: bool) -> Report:
        """Delete the claims that were marked (in check mode, that would have been), or name them as kept. The owner's pods go, too."""
        ownership = Ownership(self.stateful_set.name, self.mark, applied=False, unowned=check)
        return delete_objects(cluster, refs, ownership, check=check, delete_data=delete_data, ignore_users_of=[owner])


def pods_of(cluster: Cluster, server: Server) -> list[Manifest]:
    """The pods, without those that are being deleted."""
    found = cluster.list("v1", "Pod", server.namespace, selector_of(server.labels))
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def stateful_set_of(server: Server) -> Ref:
    """The StatefulSet of the pods."""
    return Ref("apps/v1", "StatefulSet", server.name, server.namespace)


def claims_of(server: Server) -> Claims:
    """The claims of the pods. Their mark is named after the module: muster.ml/etcd-cluster."""
    return Claims(stateful_set_of(server), server.labels, f"muster.ml/{server.module.replace('_', '-')}")


def watch(
    cluster: Cluster,
    server: Server,
    observe: t.Callable[[Cluster], tuple[T, str | None]],
    *,
    goal: str,
    timeout: float,
    progress: OnProgress,
    hint: str | None = None,
) -> T:
    """Observe whenever a pod changes, until nothing is missing. GOAL completes the sentence that begins with the server."""
    changes = watching.Changes.of_pods(server.namespace, selector_of(server.labels))
    goal = f"{server} {goal}"
    return watching.watch_until(cluster, changes, observe, goal=goal, timeout=timeout, progress=progress, hint=hint)
