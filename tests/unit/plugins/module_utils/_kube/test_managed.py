# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ours, in what state, and what lives beside it."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._module.run import Context
from ansible_collections.muster.ml.plugins.modules import managed_info


def thing(kind: str, name: str, owner: str | None = None, api_version: str = "v1", **more: t.Any) -> Manifest:
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.ml/owner": owner} if owner else {}
    metadata = {"name": name, "namespace": "ml", "labels": labels, **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def execute(cluster: t.Any, **params: t.Any) -> dict[str, t.Any]:
    given = {"namespace": None, "others": False, **params}
    return managed_info.execute(Context(params=given, check=False, connect=lambda: cluster))


def test_owners_with_what_is_not_ready(cluster: t.Any) -> None:
    deployment = thing("Deployment", "op", "op", "apps/v1", spec={"replicas": 1}, status={"availableReplicas": 0})
    cluster.add(deployment, thing("ConfigMap", "a", "job.x"), thing("ConfigMap", "b"))
    result = execute(cluster)
    assert result["owners"] == [
        {"owner": "job.x", "objects": 1, "ready": True, "reasons": []},
        {"owner": "op", "objects": 1, "ready": False, "reasons": [result["owners"][1]["reasons"][0]]},
    ]
    assert result["owners"][1]["reasons"][0].startswith("Deployment ml/op: ")
    assert "others" not in result
    assert cluster.writes == []


def test_an_object_that_goes_is_not_ready(cluster: t.Any) -> None:
    cluster.add(thing("ConfigMap", "a", "x", metadata={"deletionTimestamp": "2026-11-21T00:00:00Z"}))
    assert execute(cluster)["owners"][0]["reasons"] == ["ConfigMap ml/a: is being deleted"]


def test_others(cluster: t.Any) -> None:
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "r"}]}
    cluster.add(
        thing("ConfigMap", "ours", "x"),
        thing("ConfigMap", "kube-root-ca.crt"),
        thing("ServiceAccount", "default"),
        thing("Pod", "of-a-controller", metadata=owned),
        thing("Event", "noise"),
        thing("Secret", "theirs"),
        thing("ConfigMap", "elsewhere", metadata={"namespace": "other"}),
    )
    assert execute(cluster, namespace="ml", others=True)["others"] == ["Secret ml/theirs"]


def test_only_a_failed_job_is_not_ready(cluster: t.Any) -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    cluster.add(
        thing("Job", "bad", "x", "batch/v1", spec={}, status=failed),
        thing("Job", "works", "x", "batch/v1", spec={"completions": 2}, status={"succeeded": 1}),
    )
    assert execute(cluster)["owners"][0]["reasons"] == ["Job ml/bad: failed (BackoffLimitExceeded)"]
