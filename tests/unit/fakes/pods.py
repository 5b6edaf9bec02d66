# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and workloads as an API server tells of them."""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LABEL_GROUP, LABEL_JOB, LABEL_ROLE

Manifest = dict[str, t.Any]


def pod(name: str, phase: str = "Running", *, namespace: str = "default", **more: t.Any) -> Manifest:
    """A pod of one container. MORE: labels, created, and what its container's status holds."""
    state: Manifest = more.get("state") or ({"running": {"startedAt": "2026-11-21T10:00:05Z"}} if phase == "Running" else {})
    status: Manifest = {
        "phase": phase,
        "startTime": "2026-11-21T10:00:01Z",
        "containerStatuses": [
            {
                "name": "main",
                "ready": phase == "Running",
                "restartCount": more.get("restarts", 0),
                "state": state,
                "lastState": more.get("last_state") or {},
            }
        ],
        "conditions": more.get("conditions") or [],
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": name,
        "labels": more.get("labels") or {},
        "creationTimestamp": more.get("created", "2026-11-21T10:00:00Z"),
    }
    if more.get("deleted"):
        metadata["deletionTimestamp"] = "2026-11-21T10:01:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "node-1", "containers": [{"name": "main"}]},
        "status": status,
    }


def ended(code: int, reason: str = "Error", message: str = "") -> Manifest:
    """The state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": "2026-11-21T10:00:05Z",
            "finishedAt": "2026-11-21T10:05:00Z",
        }
    }


def workload(kind: str, name: str, group: str, role: str, count: int, **status: t.Any) -> Manifest:
    """A StatefulSet or Job of training `adult`."""
    spec = {"completions": count} if kind == "Job" else {"replicas": count}
    labels = {LABEL_JOB: "adult", LABEL_GROUP: group, LABEL_ROLE: role}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
        "status": status,
    }


def labels(group: str, **more: str) -> dict[str, str]:
    """Labels of a pod of training `adult`."""
    return {LABEL_JOB: "adult", LABEL_GROUP: group, **more}
