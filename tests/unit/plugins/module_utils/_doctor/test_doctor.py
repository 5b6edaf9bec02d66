# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about states that the cluster of tests/faults/test_doctor.py does not get into, by the fields that Kubernetes documents."""

from __future__ import annotations

import datetime as dt
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._doctor.findings import Finding, folded
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Listing, Manifest, ServedKind
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

OLD = "2026-01-01T00:00:00Z"


def thing(api_version: str, kind: str, name: str, **more: t.Any) -> Manifest:
    metadata: Manifest = {"name": name, "uid": name, "creationTimestamp": OLD, **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}, **more}


def pod(name: str = "p", *, owner: str = "", **status: t.Any) -> Manifest:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}] if owner else []
    metadata = {"namespace": "ml", "ownerReferences": owners}
    return thing("v1", "Pod", name, metadata=metadata, spec={"nodeName": "n"}, status={"phase": "Running", **status})


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": OLD}


def waiting(reason: str, message: str = "") -> Manifest:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]}


NODE = thing("v1", "Node", "n", status={"conditions": [condition("Ready", "True")]})
# The message of containerd 2 for a repository that the registry does not have (recorded on the cluster of check registry).
REFUSED = 'failed to pull and unpack image "r/x:1": failed to resolve image: r/x:1: not found'


@pytest.mark.parametrize(
    ("item", "cause"),
    [
        (pod(**waiting("ImagePullBackOff", REFUSED)), "image is refused by its registry"),
        (pod(phase="Failed", conditions=[condition("DisruptionTarget", "True", "PreemptionByScheduler", "for a higher one")]), "preempted"),
        (pod(phase="Failed", conditions=[condition("DisruptionTarget", "True", "DeletionByPodGC")]), "ended with its node"),
        (pod(phase="Failed", reason="NodeAffinity", message="Pod was rejected"), "refused by its node (NodeAffinity)"),
        (thing("v1", "Node", "m", status={"conditions": [condition("Ready", "True"), condition("DiskPressure", "True", "Full")]}),
         "node has DiskPressure"),
        (thing("v1", "PersistentVolumeClaim", "c", metadata={"namespace": "ml"}, spec={}, status={"phase": "Pending"}),
         "there is no default storage class"),
        (thing("jobset.x-k8s.io/v1alpha2", "JobSet", "j", metadata={"namespace": "ml"},
               status={"conditions": [condition("Failed", "True", "FailedJobs", "jobset failed")]}), "training has failed"),
        (thing("kueue.x-k8s.io/v1beta2", "LocalQueue", "q", metadata={"namespace": "ml"},
               status={"conditions": [condition("Active", "False", "ClusterQueueDoesNotExist")]}), "queue admits nothing"),
        (thing("kueue.x-k8s.io/v1beta2", "Workload", "w", metadata={"namespace": "ml"},
               status={"conditions": [condition("QuotaReserved", "False", "Pending", "insufficient quota")]}), "waits in its queue"),
        (thing("gateway.networking.k8s.io/v1", "Gateway", "g", metadata={"namespace": "ml"},
               status={"conditions": [condition("Accepted", "False", "InvalidParameters")]}), "Gateway is not in effect"),
        (thing("v1", "Namespace", "ml", metadata={"deletionTimestamp": OLD}, status={"phase": "Terminating"}), "stays in deletion"),
    ],
)  # fmt: skip
def test_a_state_is_one_finding(item: Manifest, cause: str, cluster: FakeCluster) -> None:
    cluster.default_class = False
    cluster.kinds_served[item["apiVersion"], item["kind"]] = ServedKind(f"{item['kind'].lower()}s", "namespace" in item["metadata"])
    cluster.add(NODE, item)
    assert [one.cause for one in found(cluster)] == [cause]


def found(cluster: FakeCluster) -> list[Finding]:
    """The findings but those about the DNS of the fake, which has none."""
    return [one for one in diagnose(cluster, "ml", [])[0] if "DNS" not in one.cause]


def test_pods_of_a_job_that_has_succeeded_are_in_order(cluster: FakeCluster) -> None:
    cluster.add(thing("batch/v1", "Job", "j", metadata={"namespace": "ml"}, status={"conditions": [condition("Complete", "True")]}))
    for one in (NODE, pod(owner="j", phase="Failed"), pod("q", phase="Succeeded")):
        cluster.add(one)
    assert found(cluster) == []


def test_equal_findings_of_one_workload_are_one() -> None:
    row = {"severity": "error", "cause": "failed", "evidence": "x", "next": "y", "group": "Job j"}
    assert [one.object for one in folded([Finding(object=f"Pod ml/p-{number}", **row) for number in range(3)])] == ["Pod ml/p-0 and 2 more"]  # type: ignore[arg-type]


def test_what_may_not_be_read_is_named_and_not_judged(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_api_version: str, kind: str, *_more: t.Any) -> Listing:
        if kind in allowed:
            return Listing()
        raise Forbidden(f"The user may not list {kind}.")

    allowed = {"Pod"}
    monkeypatch.setattr(cluster, "list", refuse)
    findings, unread = diagnose(cluster, "ml", [])
    assert findings == []
    assert {"The user may not list Node.", "The user may not list Secret."} <= set(unread)
    allowed.clear()
    with pytest.raises(Forbidden, match="Pod"):
        diagnose(cluster, "ml", [])


def test_clocks_are_compared_with_the_api_server(cluster: FakeCluster) -> None:
    now = dt.datetime.now(dt.UTC)
    stored, renewed = now.isoformat(), (now + dt.timedelta(minutes=7)).isoformat()
    metadata = {"namespace": "kube-node-lease", "managedFields": [{"manager": "kubelet", "time": stored}]}
    cluster.add(thing("coordination.k8s.io/v1", "Lease", "n", metadata=metadata, spec={"renewTime": renewed}))
    cluster.add(NODE)
    assert [(one.object, one.evidence) for one in found(cluster)] == [("Node n", "420 s ahead of the API server")]
