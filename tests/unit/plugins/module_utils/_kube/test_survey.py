# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster offers, and what the user may do there."""

from __future__ import annotations

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.survey import survey
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

TPU = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "2x4"}
RULES = [
    {"api_groups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]},
    {"api_groups": [""], "resources": ["nodes", "pods/log"], "verbs": ["get"], "cluster_wide": True},
]


def node(name: str, labels: dict[str, str] | None = None, **allocatable: str) -> Manifest:
    resources = {key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}
    status = {"allocatable": {"cpu": "4", **resources}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": status}


def storage_class(name: str, provisioner: str) -> Manifest:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}


def test_what_is_there(cluster: FakeCluster) -> None:
    cluster.add(
        node("a", nvidia_com__gpu="8"), node("b", nvidia_com__gpu="8"), node("c", TPU, google_com__tpu="4"), node("d", nvidia_com__gpu="0")
    )
    cluster.add(storage_class("gp3", "ebs.csi.aws.com"), storage_class("efs", "efs.csi.aws.com"), storage_class("own", "x.io"))
    quota = {"hard": {"pods": "9"}, "used": {"pods": "1"}}
    cluster.add({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}, "status": quota})
    cluster.kinds_served["jobset.x-k8s.io/v1alpha2", "JobSet"] = ServedKind("jobsets", True)
    found = survey(cluster, "default", [])
    assert found["nodes"] == {"ready": 4, "total": 4}
    assert found["namespace"] == {"name": "default", "exists": True}
    assert found["devices"] == [{"name": "google.com/tpu", "nodes": 1, "amount": 4}, {"name": "nvidia.com/gpu", "nodes": 2, "amount": 16}]
    assert found["tpus"] == [{"type": "tpu-v5-lite-podslice", "topology": "2x4", "nodes": 1}]
    assert [(row["name"], row["shared"], row["default"]) for row in found["storage_classes"]] == [
        ("gp3", False, False), ("efs", True, False), ("own", None, False),
    ]  # fmt: skip
    assert found["operators"] == ["jobset"]
    assert found["quotas"] == [{"name": "q", **quota}]
    assert not cluster.writes


def test_each_right_is_asked_for_by_itself(cluster: FakeCluster) -> None:
    asked = []

    def allows(attributes: Manifest) -> bool:
        asked.append(attributes)
        return attributes["verb"] != "create" and attributes["subresource"] == ""

    cluster.allows = allows
    assert survey(cluster, "ml", RULES)["lacking_rights"] == ["create jobs.batch", "get pods/log"]
    assert {row["resource"]: row.get("namespace") for row in asked} == {"jobs": "ml", "nodes": None, "pods": None}


def test_what_may_not_be_read_is_named(cluster: FakeCluster) -> None:
    cluster.fail("list", "", Forbidden("User dev may not list nodes."))
    found = survey(cluster, "ml", [])
    assert found["nodes"] == {"ready": 0, "total": 0}
    assert found["unread"] == ["User dev may not list nodes."]
    assert found["namespace"]["exists"] is False
