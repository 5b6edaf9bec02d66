# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What does not fit now and may by itself is not judged; what does not fit whatever happens is."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Rejected
from ansible_collections.muster.ml.plugins.module_utils._gang.judge import Verdict
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, Resource
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.gang import GPU, NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()
C = X.container
CLAIM = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]}


@dataclasses.dataclass(kw_only=True)
class Case:
    name: str
    says: str
    node: Manifest = dataclasses.field(default_factory=lambda: X.node("n0", gpu=1))
    things: list[Manifest] = dataclasses.field(default_factory=list)
    spec: Manifest = dataclasses.field(default_factory=dict)
    replicas: int = 2
    kinds: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)


def going(pod: Manifest) -> Manifest:
    pod["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z"
    return pod


def at(provider: str, **more: t.Any) -> Manifest:
    node = X.node("n0", gpu=1, **more)
    node["spec"]["providerID"] = f"{provider}://x"
    return node


def stored(api_version: str, kind: str, item: Manifest) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, **item}


def driver(name: str, **spec: t.Any) -> Manifest:
    return stored("storage.k8s.io/v1", "CSIDriver", {"metadata": {"name": name}, "spec": spec})


def on_csi(name: str) -> list[Manifest]:
    volume = {"metadata": {"name": "v"}, "spec": {"csi": {"driver": name}}}
    return [X.claim("c", "ReadWriteOnce", volume="v"), stored("v1", "PersistentVolume", volume), X.node("n1", gpu=1)]


STATUS = stored("v1", "ConfigMap", {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}})
TAKES = X.pod("p", "n0", C(gpu=1))
MORE = X.node("n0", gpu=2)
CSI = [("storage.k8s.io/v1", "CSIDriver", "csidrivers")]

NOT_JUDGED = [
    Case(
        name="a pod that goes",
        says="room of 1 pod that are being deleted",
        node=MORE,
        things=[going(X.pod("p", "n0", C(gpu=1)))],
    ),
    Case(
        name="a pod of lower priority",
        says="room of 1 pod of lower priority",
        node=MORE,
        things=[X.pod("p", "n0", C(gpu=1), priority=-1)],
    ),
    Case(
        name="a class of priority",
        says="of lower priority",
        node=MORE,
        things=[TAKES],
        spec={"priorityClassName": "high"},
    ),
    Case(
        name="a node that is not ready",
        says="1 node that may become ready (n1)",
        things=[X.node("n1", gpu=1, ready=False)],
    ),
    Case(
        name="a node that has just come",
        says="1 node that may become ready (n1)",
        things=[
            X.node(
                "n1", gpu=1, taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]
            )
        ],
    ),
    Case(name="machines of a cloud", says="nodes are machines of gce", node=at("gce")),
    Case(
        name="an autoscaler",
        says="pod kube-system/x runs",
        node=at("aws"),
        things=[
            X.pod(
                "x",
                "n0",
                {**C(), "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1"},
                namespace="kube-system",
            )
        ],
    ),
    Case(name="an autoscaler elsewhere", says="cluster-autoscaler-status", node=at("aws"), things=[STATUS]),
    Case(name="Karpenter", says="node pools of Karpenter", kinds=[("karpenter.sh/v1", "NodePool", "nodepools")]),
    Case(
        name="a virtual cluster",
        says="a virtual cluster",
        node=X.node("n0", gpu=1, labels={"vcluster.loft.sh/fake-node": "true"}),
    ),
    Case(name="another scheduler", says="what scheduler volcano does", spec={"schedulerName": "volcano"}),
    Case(name="a node by name", says="which the pods name", spec={"nodeName": "n0"}),
    Case(
        name="an operator",
        says="an operator of a toleration",
        spec={"tolerations": [{"key": "a", "operator": "Lt", "value": "1"}]},
    ),
    Case(
        name="a quota that has not noticed",
        says="",
        node=MORE,
        things=[stored("v1", "ResourceQuota", X.quota({"pods": "2"}, {"pods": "1"})), going(X.pod("p", "n0"))],
    ),
    Case(
        name="a claim without a driver",
        says="the driver of claim c",
        things=on_csi("files.example.com"),
        spec=CLAIM,
        kinds=CSI,
    ),
    Case(
        name="a claim whose driver does not attach",
        says="the driver of claim c",
        things=[*on_csi("files.example.com"), driver("files.example.com", attachRequired=False)],
        spec=CLAIM,
        kinds=CSI,
    ),
]
DOES_NOT = [
    Case(name="no GPU", says="1 node with room for 1"),
    Case(name="machines of AWS without an autoscaler", says="1 node with room for 1", node=at("aws")),
    Case(name="a cordoned node", says="cordoned", things=[X.node("n1", gpu=1, cordoned=True)]),
    Case(name="a pod of the same priority", says="1 node with room for 1", node=MORE, things=[TAKES]),
    Case(
        name="who may not preempt",
        says="1 node with room for 1",
        node=MORE,
        things=[TAKES],
        spec={"priorityClassName": "high", "preemptionPolicy": "Never"},
    ),
    Case(
        name="a pod that goes from where there is no use",
        says="room for 1",
        things=[X.node("n1"), going(X.pod("p", "n1", C(cpu=1)))],
    ),
    Case(
        name="an autoscaler against a quota",
        says="ResourceQuota q leaves 1 of 1 pods",
        node=at("gce"),
        things=[stored("v1", "ResourceQuota", X.quota({"pods": "1"}))],
    ),
    Case(
        name="more than the limit of the namespace",
        says="requests 2Gi of memory, more than its limit of 1Gi",
        things=[stored("v1", "LimitRange", X.limits(default={"memory": "1Gi"}))],
        spec={"containers": [C(memory="2Gi")]},
    ),
    Case(
        name="a claim whose driver attaches",
        says="all must be on one node",
        things=[*on_csi("disks.example.com"), driver("disks.example.com")],
        spec=CLAIM,
        kinds=CSI,
    ),
]
by_name: Callable[[Case], str] = lambda case: case.name  # noqa: E731


def asked(cluster: FakeCluster, case: Case) -> Verdict:
    cluster.add(stored("v1", "Namespace", {"metadata": {"name": NAMESPACE}}), case.node, *case.things)
    for api_version, kind, resource in case.kinds:
        cluster.kinds_served[api_version, kind] = Resource(resource, False)
    group = X.group(case.replicas, C(gpu=1))
    group["template"]["spec"] |= case.spec
    return preflight(cluster, gang([], NAMESPACE, rows=[group]))


@pytest.mark.parametrize("case", NOT_JUDGED, ids=by_name)
def test_it_may_fit_later(cluster: FakeCluster, case: Case) -> None:
    found = asked(cluster, case)
    assert found.fits is None, found.message
    assert found.reasons
    assert case.says in "; ".join(found.not_judged), found.not_judged
    assert found.message.startswith("Not all pods fit at once as the cluster is. ")
    assert cluster.writes == []


@pytest.mark.parametrize("case", DOES_NOT, ids=by_name)
def test_it_does_not_fit(cluster: FakeCluster, case: Case) -> None:
    found = asked(cluster, case)
    assert found.fits is False, found.message
    assert case.says in " ".join(found.reasons), found.reasons


def test_a_cluster_without_nodes_may_get_some(cluster: FakeCluster) -> None:
    found = preflight(cluster, gang([], NAMESPACE, rows=[X.group(1)]))
    assert (found.fits, list(found.not_judged)) == (None, ["whether nodes are added (the cluster has no nodes)"])


def test_nothing_is_said_of_what_kueue_admits(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=1), stored("v1", "ResourceQuota", X.quota({"pods": "1"})))
    group = X.group(2, C(gpu=1), labels={"kueue.x-k8s.io/queue-name": "q"})
    assert preflight(cluster, gang([], NAMESPACE, rows=[group])).fits is None


def test_the_api_server_is_asked_what_it_would_make_of_the_pods(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as tolerations for devices, by an admission plugin or webhook."""
    cluster.add(X.node("n0", gpu=2, taints=[{"key": GPU, "effect": "NoSchedule"}]))
    rows = [X.group(2, C(gpu=1))]
    assert preflight(cluster, gang([], NAMESPACE, rows=rows)).fits is False

    def apply(_self: FakeCluster, manifest: Manifest, *, dry_run: bool) -> Manifest:
        assert dry_run
        return {**manifest, "spec": {**manifest["spec"], "tolerations": [{"key": GPU, "operator": "Exists"}]}}

    monkeypatch.setattr(FakeCluster, "apply", apply)
    assert preflight(cluster, gang([], NAMESPACE, rows=rows)).fits is True


def test_an_api_server_that_refuses_such_a_pod_changes_nothing(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=1))
    cluster.fail("apply", "muster-preflight", Rejected("A quota is used up."))
    assert preflight(cluster, gang([], NAMESPACE, rows=[X.group(2, C(gpu=1))])).fits is False


def test_who_fits_asks_no_more(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=2))
    assert preflight(cluster, gang([], NAMESPACE, rows=[X.group(2, C(gpu=1))])).fits is True
    assert [one.verb for one in cluster.requests] == ["list"] * 4
    assert Ref("v1", "ConfigMap", "cluster-autoscaler-status", "kube-system") not in [
        one.ref for one in cluster.requests
    ]
