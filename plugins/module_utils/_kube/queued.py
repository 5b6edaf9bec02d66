# SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons why Kueue holds objects back, and what it would not hold. A Workload is one object of a queue, or a group of pods."""

from __future__ import annotations

from collections.abc import Iterable

from .._core.conditions import condition, is_true, reason_of
from .._core.errors import MusterError
from .._manifests.meta import LABEL_POD_GROUP, LABEL_QUEUE
from .cluster import Cluster
from .objects import POD, Manifest, Ref, group_kind, labels_of, ref_of

API_VERSION = "kueue.x-k8s.io/v1beta2"
_LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"
_PENDING = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/pendingworkloads"
"""Served by Kueue itself (kueue.sigs.k8s.io/docs/tasks/manage/monitor_pending_workloads/pending_workloads_on_demand)."""
_TIMEOUT = 2.0


def why_queued(cluster: Cluster, item: Manifest, *, placed: bool = True) -> str:
    """The reason why Kueue holds an object back, or the pods that it makes; empty if they are admitted or in no queue.

    PLACED: with its place in the queue, as place_of tells it.
    """
    queue, group = _queue_of(item)
    if not queue:
        return ""
    where, suspended = f"waits in queue {queue}", _is_suspended(item)
    try:
        if cluster.resource(API_VERSION, "Workload") is None:
            return f"{where}: this cluster has no Kueue (role muster.ml.kueue)" if suspended else ""
        found = _workload(cluster, item, group)
    except MusterError:
        # A user with permission to run trainings may lack the permission to read Kueue's Workloads.
        return where if suspended else ""
    if not suspended and (found is None or is_true(found, "Admitted")):
        return ""
    said = _said(found) if found else "Kueue has not seen it yet"
    return f"{where}: {'; '.join(filter(None, (said, _place(cluster, item, found, queue) if placed else '')))}".removesuffix(": ")


def place_of(cluster: Cluster, item: Manifest) -> str:
    """The place of an object in its queue; empty if it has none, or if it cannot be read."""
    queue, group = _queue_of(item)
    try:
        return _place(cluster, item, _workload(cluster, item, group), queue) if queue else ""
    except MusterError:
        return ""


def _queue_of(item: Manifest) -> tuple[str | None, str | None]:
    """The queue of an object or of the pods that it makes, and the group in which Kueue admits these."""
    pods = labels_of((item.get("spec") or {}).get("template") or {})
    return labels_of(item).get(LABEL_QUEUE) or pods.get(LABEL_QUEUE), pods.get(LABEL_POD_GROUP)


def not_held(cluster: Cluster, objects: Iterable[Manifest]) -> list[str]:
    """The objects in a queue whose pods would begin at once, as dry runs tell: Kueue's integration for their kind is off."""
    found = []
    for item in objects:
        probe = item if LABEL_QUEUE in labels_of(item) else _pod(item)
        if LABEL_QUEUE not in labels_of(probe) or cluster.resource(API_VERSION, "LocalQueue") is None:
            continue
        try:
            made = cluster.create(probe, dry_run=True)
        except MusterError:
            continue  # it exists, or names what the same run creates
        if not _is_suspended(made) and not made["spec"].get("schedulingGates"):
            found.append(f"{ref_of(item)} (integration {'pod' if probe is not item else 'of kind ' + item['kind']})")
    return found


def _pod(item: Manifest) -> Manifest:
    """A pod of the object's template."""
    template = item["spec"].get("template") or {}
    metadata = {**(template.get("metadata") or {}), "name": "muster-preflight", "namespace": item["metadata"].get("namespace")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _is_suspended(item: Manifest) -> bool:
    spec = item["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))


def _workload(cluster: Cluster, item: Manifest, group: str | None) -> Manifest | None:
    """The Workload of an object or of the GROUP of its pods. Of an elastic Job that grows it is the newest of two."""
    namespace = item["metadata"].get("namespace")
    if group:
        return cluster.get(Ref(API_VERSION, "Workload", group, namespace))
    found = cluster.list(API_VERSION, "Workload", namespace, f"{_LABEL_JOB_UID}={item['metadata'].get('uid')}")
    return max(found, key=lambda one: str(one["metadata"].get("creationTimestamp") or ""), default=None)


def _place(cluster: Cluster, item: Manifest, queued: Manifest | None, queue: str) -> str:
    """The position of a Workload in its LocalQueue and ClusterQueue; empty where Kueue does not serve it, or not to this user.

    Pods that are queued one by one give one reason for all, without a position."""
    if not queued or group_kind(item) == POD or is_true(queued, "QuotaReserved"):
        return ""
    metadata = queued["metadata"]
    try:
        rows = cluster.read(_PENDING.format(metadata["namespace"], queue), timeout=_TIMEOUT).get("items") or []
    except MusterError:
        return ""
    for row in rows:
        if row["metadata"]["name"] == metadata["name"]:
            local, overall = (int(row.get(f"positionIn{kind}Queue") or 0) + 1 for kind in ("Local", "Cluster"))
            return f"number {local} of {len(rows)} in the queue" + (f", {overall} in its ClusterQueue" if overall != local else "")
    return ""


def _said(queued: Manifest) -> str:
    """The message of the first step of admission that is missing, and the reason of an earlier eviction."""
    reserved, evicted = condition(queued, "QuotaReserved"), condition(queued, "Evicted")
    if is_true(queued, "QuotaReserved"):
        missing = "" if is_true(queued, "Admitted") else condition(queued, "Admitted").get("message") or "its checks are not done"
        step = f"has its quota; {missing}" if missing else ""
    else:
        step = str(reserved.get("message") or "")
    stopped = reason_of(evicted) if is_true(queued, "Evicted") else ""
    if stopped and str(evicted.get("message")) == step:
        step = ""
    return "; ".join(filter(None, (step, f"it was stopped: {stopped}" if stopped else "")))
