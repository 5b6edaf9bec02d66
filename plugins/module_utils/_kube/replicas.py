# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of replicas of a Deployment, handed over to a HorizontalPodAutoscaler and taken back, without a pod that starts or ends.

Who stops to apply ``spec.replicas`` as its only owner removes it, and the API server then writes the default, 1. So another field manager
first applies the same number. (https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Transferring ownership".)
"""

from __future__ import annotations

from .._core.errors import Conflict
from .._manifests.autoscaling import AUTOSCALER
from .cluster import Cluster
from .fields import owned_keys
from .objects import LABEL_OWNER, Manifest, Ref, group_kind, labels_of, manager_of

FIELD = "spec.replicas"
BETWEEN = manager_of("replicas")
"""The field manager that has the number between us and the autoscaler."""
_BY_AUTOSCALER = "kube-controller-manager"


def check_only_autoscaler(cluster: Cluster, ref: Ref, owner: str) -> None:
    """Refuse a second autoscaler of REF: both would write their numbers in turn."""
    others = [item["metadata"]["name"] for item in _autoscalers(cluster, ref, owner)]
    if others:
        raise Conflict(
            f"{ref} is scaled by HorizontalPodAutoscaler {', '.join(others)} already, which has another owner.",
            ref=ref,
            hint="Delete that one, or leave out autoscaling.",
        )


def hand_over(cluster: Cluster, ref: Ref, owner: str, bounds: tuple[int, int], *, check: bool) -> int | None:
    """Hand the number over, before OWNER applies REF without one. Returns what it is, or is to be within BOUNDS; None if it is not ours."""
    live = cluster.get(ref)
    if live is None or "replicas" not in owned_keys(live, manager_of(owner), "spec"):
        return None
    number = min(max(int(live["spec"].get("replicas", 1)), bounds[0]), bounds[1])
    if not check:
        metadata = {"name": ref.name, "namespace": ref.namespace, "uid": live["metadata"].get("uid")}
        wanted = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": {"replicas": number}}
        cluster.apply(wanted, dry_run=False, force_conflicts=True, manager=BETWEEN)
    return number


def is_left_over(cluster: Cluster, ref: Ref, owner: str) -> bool:
    """Whether the number of REF is what an autoscaler of OWNER has left, so that it may be overwritten."""
    live = cluster.get(ref)
    if live is None:
        return False
    entries = live["metadata"].get("managedFields") or []
    # The field managers of the number, each with the subresource that it wrote it by.
    others = {
        (str(entry.get("manager")), str(entry.get("subresource") or ""))
        for entry in entries
        if "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    } - {(manager_of(owner), "")}
    left = bool(others) and others <= {(_BY_AUTOSCALER, "scale"), (BETWEEN, "")}
    return left and not _autoscalers(cluster, ref, owner)


def _autoscalers(cluster: Cluster, ref: Ref, owner: str) -> list[Manifest]:
    """The autoscalers of REF that are not of OWNER."""
    found = cluster.list(*AUTOSCALER, ref.namespace)
    targets = ((item, (item.get("spec") or {}).get("scaleTargetRef") or {}) for item in found)
    return [
        item
        for item, target in targets
        if (group_kind(target), target.get("name")) == (ref.group_kind, ref.name) and labels_of(item).get(LABEL_OWNER) != owner
    ]
