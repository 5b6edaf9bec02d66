# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ours, in what state, and what lives beside it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, NotFound
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube import managed
from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import Kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ServedKind
from ansible_collections.muster.ml.plugins.modules import managed_info
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION


def thing(kind: str, name: str, owner: str | None = None, api_version: str = "v1", **more: t.Any) -> Manifest:
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.ml/owner": owner} if owner else {}
    metadata = {"name": name, "namespace": "ml", "labels": labels, **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def execute(cluster: t.Any, **params: t.Any) -> dict[str, t.Any]:
    given = {"namespace": None, "others": False, "on_nodes": None, **params}
    return managed_info.execute(Context(params=given, check=False, connect=lambda: cluster))


def test_owners_with_what_is_not_ready(cluster: t.Any) -> None:
    deployment = thing("Deployment", "op", "op", "apps/v1", spec={"replicas": 1}, status={"availableReplicas": 0})
    cluster.add(deployment, thing("ConfigMap", "a", "job.x"), thing("ConfigMap", "b"))
    result = execute(cluster)
    assert result["owners"] == [
        {"owner": "job.x", "home": "", "objects": 1, "ready": True, "reasons": []},
        {"owner": "op", "home": "", "objects": 1, "ready": False, "reasons": [result["owners"][1]["reasons"][0]]},
    ]
    assert result["owners"][1]["reasons"][0].startswith("Deployment ml/op: ")
    assert "others" not in result
    assert cluster.writes == []


def test_a_group_of_trainers_is_a_training_by_its_owner(cluster: t.Any) -> None:
    """Its objects have a label only that groups of other trainings have, too."""
    group = {"muster.ml/group": "trainer", "app.kubernetes.io/managed-by": "muster"}
    for name, owner in (("trainer", "training_statefulset.ml.trainer"), ("fair-trainer", "persia_job.ml.fair")):
        labels = {**group, "muster.ml/owner": owner, **({"muster.ml/job": "fair"} if "fair" in name else {})}
        cluster.add(thing("Service", name, metadata={"labels": labels}))
        cluster.add(thing("StatefulSet", name, api_version="apps/v1", metadata={"labels": labels}, spec={"replicas": 0}))
    trainings = [
        {"namespace": "ml", "name": "fair", "kind": "persia_job"},
        {"namespace": "ml", "name": "trainer", "kind": "training_statefulset"},
    ]
    assert execute(cluster)["trainings"] == trainings


def test_pods_that_would_lose_their_node(cluster: t.Any) -> None:
    """In any namespace but those of Kubernetes; not those that have ended, and not those that every node has."""
    cluster.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "gpu"}}})
    every = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "1"}]}
    for name, node, more in (
        ("here", "n1", {}),
        ("there", "n2", {}),
        ("waits", None, {}),
        ("ended", "n1", {"status": {"phase": "Succeeded"}}),
        ("logs", "n1", {"metadata": every}),
        ("dns", "n1", {"metadata": {"namespace": "kube-system"}}),
    ):
        cluster.add(thing("Pod", name, spec={"nodeName": node} if node else {}, **more))
    assert execute(cluster, others=True, on_nodes=["pool=cpu", "pool=gpu"])["others"] == ["Pod ml/here"]


def test_an_object_that_goes_is_not_ready(cluster: t.Any) -> None:
    cluster.add(thing("ConfigMap", "a", "x", metadata={"deletionTimestamp": "2026-11-21T00:00:00Z"}))
    assert execute(cluster)["owners"][0]["reasons"] == ["ConfigMap ml/a: is being deleted"]


def test_others(cluster: t.Any) -> None:
    owned = owned_by("apps/v1", "StatefulSet", "s")
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


def test_others_in_all_namespaces_but_those_of_kubernetes(cluster: t.Any) -> None:
    """What leads to the API server is Kubernetes' own, too; another object in its namespace is not. Clouds have namespaces of their own."""
    places = (("kubernetes", "default"), ("theirs", "default"), ("kube-dns", "kube-system"), ("kubernetes", "ml"))
    clouds = ("gke-managed-cim", "gke-gmp-system", "gke-system", "gmp-public", "amazon-cloudwatch", "amazon-guardduty")
    near = ("gke", "gke-team", "my-gke-system", "gmp-systems", "amazon-shop")
    cluster.add(*(thing("Service", name, metadata={"namespace": space}) for name, space in places))
    cluster.add(*(thing("Service", "s", metadata={"namespace": space}) for space in (*clouds, *near)))
    theirs = ["Service ml/kubernetes", "Service default/theirs", *(f"Service {space}/s" for space in near)]
    assert sorted(execute(cluster, others=True)["others"]) == sorted(theirs)


def test_an_api_without_its_server_says_nothing_of_the_whole_cluster(cluster: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a cluster whose nodes are gone. Its server is in a namespace, which is looked at; a namespace alone cannot tell."""
    kinds = cluster.kinds()
    kinds.unknown.append("visibility.example/v1")
    monkeypatch.setattr(cluster, "kinds", lambda: kinds)
    monkeypatch.setattr(managed, "_SERVED_WITHIN", 0)
    assert managed.unmanaged_objects(cluster, None) == []
    assert managed.unmanaged_objects(cluster, "ml") == ["objects of visibility.example/v1: the server behind that API does not answer"]


def served(cluster: t.Any, **kinds: tuple[str, str, bool]) -> None:
    for kind, (api_version, plural, namespaced) in kinds.items():
        cluster.kinds_served[api_version, kind] = ServedKind(plural, namespaced)


def owned_by(api_version: str, kind: str, name: str) -> Manifest:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name}]}


def test_a_bare_replicaset_with_its_pods_is_somebodys(cluster: t.Any) -> None:
    served(cluster, ReplicaSet=("apps/v1", "replicasets", True), Lease=("coordination.k8s.io/v1", "leases", True))
    cluster.add(
        thing("ReplicaSet", "theirs", api_version="apps/v1"),
        thing("Pod", "p", metadata=owned_by("apps/v1", "ReplicaSet", "theirs")),
        thing("Deployment", "ours", "x", "apps/v1"),
        thing("ReplicaSet", "ours-1", api_version="apps/v1", metadata=owned_by("apps/v1", "Deployment", "ours")),
        thing("Pod", "ours-1-a", metadata=owned_by("apps/v1", "ReplicaSet", "ours-1")),
        thing("Lease", "of-an-operator", api_version="coordination.k8s.io/v1"),
    )
    assert execute(cluster, namespace="ml", others=True)["others"] == ["ReplicaSet ml/theirs", "Lease ml/of-an-operator"]


OF_A_CONTROLLER = {"labels": {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}}
OF_THE_OLD_ONE = {"labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}
# Read from nats-operator 0.8.3 in namespace existing, 2026-11-26.
NOTE = '{"holderIdentity":"nats-operator-545cbcdbc9-42qfx","leaseDurationSeconds":15,"acquireTime":"2026-11-26T14:26:54Z"}'
LEADER = {"annotations": {"control-plane.alpha.kubernetes.io/leader": NOTE}}
OF_STAFF = {"labels": {"endpointslice.kubernetes.io/managed-by": "staff"}}


@pytest.mark.parametrize(
    ("api_version", "kind", "metadata", "counts"),
    [
        ("v1", "Event", {}, False),
        ("events.k8s.io/v1", "Event", {}, False),
        ("calendar.example.com/v1", "Event", {}, True),
        ("calendar.example.com/v1", "Endpoints", OF_THE_OLD_ONE, True),
        ("metrics.k8s.io/v1beta1", "PodMetrics", {}, False),
        ("metrics.example.com/v1", "PodMetrics", {}, True),
        ("discovery.k8s.io/v1", "EndpointSlice", {}, True),
        ("discovery.k8s.io/v1", "EndpointSlice", OF_STAFF, True),
        ("discovery.k8s.io/v1", "EndpointSlice", OF_A_CONTROLLER, False),
        ("discovery.k8s.io/v1beta1", "EndpointSlice", OF_A_CONTROLLER, False),
        ("v1", "Endpoints", {}, True),
        ("v1", "Endpoints", OF_THE_OLD_ONE, False),
        ("v1", "Endpoints", LEADER, False),
        ("v1", "ConfigMap", LEADER, True),
        ("v1", "ConfigMap", {"name": "kube-root-ca.crt"}, False),
        ("x.io/v1", "ConfigMap", {"name": "kube-root-ca.crt"}, True),
        ("x.io/v1", "ServiceAccount", {"name": "default"}, True),
    ],
)
def test_only_what_kubernetes_makes_of_other_objects_counts_for_nothing(
    cluster: t.Any, api_version: str, kind: str, metadata: Manifest, counts: bool
) -> None:
    """A definition may bring another Event. Endpoints may be made by hand: they lead a Service to a database outside of the cluster."""
    served(cluster, **{kind: (api_version, f"{kind.lower()}s", True)})
    cluster.add(thing(kind, metadata.get("name", "it"), api_version=api_version, metadata=metadata))
    name = f"{kind} ml/{metadata.get('name', 'it')}"
    assert execute(cluster, namespace="ml", others=True)["others"] == ([name] if counts else [])


def test_the_slices_of_a_service_go_with_it(cluster: t.Any) -> None:
    served(cluster, EndpointSlice=("discovery.k8s.io/v1", "endpointslices", True))
    cluster.add(
        thing("Service", "ours", "x"),
        thing("EndpointSlice", "ours-1", api_version="discovery.k8s.io/v1", metadata=owned_by("v1", "Service", "ours")),
    )
    assert execute(cluster, namespace="ml", others=True)["others"] == []


@pytest.mark.parametrize("api_version", ["calendar.example.com/v1", "batch.volcano.sh/v1alpha1"])
def test_what_only_has_the_name_of_a_kind_of_kubernetes_is_listed_and_judged_as_its_own(cluster: t.Any, api_version: str) -> None:
    served(cluster, Event=(api_version, "events", True), Job=(api_version, "jobs", True))
    cluster.add(thing("Event", "e", "x", api_version), thing("Job", "j", "x", api_version, spec={}))
    assert execute(cluster)["owners"] == [{"owner": "x", "home": "", "objects": 2, "ready": True, "reasons": []}]


@pytest.mark.parametrize(
    ("api_version", "kind", "counts"),
    [
        ("v1", "Node", True),
        ("theirs.example/v1", "Unknown", True),
        ("apps.theirs.example/v1", "Deployment", True),
        ("apps/v1beta1", "Deployment", False),
    ],
)
def test_what_is_owned_by_what_is_not_in_the_namespace_is_somebodys(cluster: t.Any, api_version: str, kind: str, counts: bool) -> None:
    """One of a kind that was looked at, and is gone, takes the object along."""
    cluster.add(thing("Pod", "p", metadata=owned_by(api_version, kind, "any")))
    assert execute(cluster, namespace="ml", others=True)["others"] == (["Pod ml/p"] if counts else [])


def test_an_object_with_half_of_our_labels_is_not_passed_over(cluster: t.Any) -> None:
    cluster.add(thing("Secret", "theirs", metadata={"labels": {"app.kubernetes.io/managed-by": "muster"}}))
    assert execute(cluster, namespace="ml", others=True)["others"] == ["Secret ml/theirs"]


def test_what_cannot_be_seen_counts_as_something(cluster: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.unknown = ["metrics.example/v1"]
    cluster.refuse("list", Forbidden("secrets is forbidden."), "Secret")
    monkeypatch.setattr(managed, "_SERVED_WITHIN", 0)
    assert managed.unmanaged_objects(cluster, "ml") == [
        "objects of kind Secret: secrets is forbidden",
        "objects of metrics.example/v1: the server behind that API does not answer",
    ]


def test_a_definition_that_somebody_makes_at_this_moment_is_waited_for(cluster: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery follows a definition a moment later. A namespace was kept for that, once in fifty removals beside an installation."""
    cluster.add(DEFINITION)
    known, behind = cluster.kinds, iter([True, True])

    def late() -> Kinds:
        found = known()
        return Kinds(kind for kind in found if kind[1] != "Foo") if next(behind, False) else found

    monkeypatch.setattr(cluster, "kinds", late)
    assert managed.namespace_contents(cluster, "ml") == ([], [])


def test_a_kind_that_goes_while_it_is_listed_is_looked_at_again(cluster: t.Any) -> None:
    cluster.add(DEFINITION)

    def going(_ref: Ref) -> None:
        raise NotFound("404 page not found")

    cluster.before("list", going, "Foo")
    assert managed.namespace_contents(cluster, "ml") == ([], [])


def test_only_a_failed_job_is_not_ready(cluster: t.Any) -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    cluster.add(
        thing("Job", "bad", "x", "batch/v1", spec={}, status=failed),
        thing("Job", "works", "x", "batch/v1", spec={"completions": 2}, status={"succeeded": 1}),
    )
    assert execute(cluster)["owners"][0]["reasons"] == ["Job ml/bad: failed (BackoffLimitExceeded)"]
