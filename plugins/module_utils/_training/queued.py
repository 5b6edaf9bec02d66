# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reason why Kueue has not admitted a training in one of its queues, or has evicted it.

Kueue suspends the job, and reports the reason in the conditions of the Workload that it creates for it.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .._core.conditions import condition, is_true, reason_of
from .._core.errors import MusterError
from .._gang.kueue import API_VERSION
from .._kube.cluster import Cluster
from .._kube.objects import Manifest, labels_of
from .._manifests.meta import LABEL_QUEUE
from .status import GroupStatus

WORKLOAD = "Workload"
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"


def with_queue(cluster: Cluster, workload: Manifest, groups: Sequence[GroupStatus]) -> list[GroupStatus]:
    """Return the groups of a workload. If it waits in a queue, that becomes the reason of groups without pods."""
    waiting = [group.state in ("Pending", "Degraded") for group in groups]
    reason = why_queued(cluster, workload) if any(waiting) else ""
    if not reason:
        return list(groups)
    waits = [dataclasses.replace(group, state="Pending", reason=reason) for group in groups]
    return [later if is_waiting else group for group, later, is_waiting in zip(groups, waits, waiting, strict=True)]


def why_queued(cluster: Cluster, workload: Manifest) -> str:
    """The reason why the job is suspended; empty if it is admitted or in no queue."""
    queue = labels_of(workload).get(LABEL_QUEUE)
    if not queue or not workload["spec"].get("suspend"):
        return ""
    where, uid = f"waits in queue {queue}", workload["metadata"].get("uid")
    namespace = workload["metadata"].get("namespace")
    try:
        if cluster.resource(API_VERSION, WORKLOAD) is None:
            return f"{where}: this cluster has no Kueue (role muster.ml.kueue)"
        found = list(cluster.list(API_VERSION, WORKLOAD, namespace, f"{LABEL_JOB_UID}={uid}"))
    except MusterError:
        # A user with permission to run trainings may lack the permission to read Kueue's Workloads.
        return where
    said = _said(found[-1]) if found else "Kueue has not seen it yet"
    return f"{where}: {said}" if said else where


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
