# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses what is to be deleted: what others use is kept and named, whoever made them and however they name it."""

from __future__ import annotations

import copy
import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, Manifest, Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._kube.servers import Claims
from ansible_collections.muster.ml.plugins.module_utils._kube.uses import Name, named_by
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import ANNOTATION_SERVES, ANNOTATION_USES
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import manifests as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.training import desired
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster, only_in_namespaces
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA

NATS, LIVE = "nats_cluster.default.persia-nats-service", "persia_job.default.live"
URL = "nats://persia-nats-service:4222"
TRAINERS = "trainer"
SERVED: dict[tuple[str, str], ServedKind] = {
    ("nats.io/v1alpha2", "NatsCluster"): ServedKind("natsclusters", True),
    ("persia.com/v1", "PersiaJob"): ServedKind("persiajobs", True),
    ("kubeflow.org/v1", "PyTorchJob"): ServedKind("pytorchjobs", True),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): ServedKind("jobsets", True),
    ("kueue.x-k8s.io/v1beta2", "LocalQueue"): ServedKind("localqueues", True),
    ("kueue.x-k8s.io/v1beta2", "ClusterQueue"): ServedKind("clusterqueues", False),
    ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"): ServedKind("resourceflavors", False),
    ("kueue.x-k8s.io/v1beta2", "Workload"): ServedKind("workloads", True),
    ("gateway.networking.k8s.io/v1", "Gateway"): ServedKind("gateways", True),
    ("gateway.networking.k8s.io/v1", "GatewayClass"): ServedKind("gatewayclasses", False),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): ServedKind("httproutes", True),
    ("batch/v1", "CronJob"): ServedKind("cronjobs", True),
    ("networking.k8s.io/v1", "Ingress"): ServedKind("ingresses", True),
    ("storage.k8s.io/v1", "CSIDriver"): ServedKind("csidrivers", False),
}


@pytest.fixture
def shared(cluster: FakeCluster) -> FakeCluster:
    """A cluster with the kinds of other projects and the NATS servers of role persia."""
    cluster.kinds_served.update(SERVED)
    cluster.add(space("other"))
    servers = nats.NatsCluster(name="persia-nats-service", namespace="default", pod=PodSettings(image="nats:2.14.2"))
    apply(cluster, NATS, *nats.manifests(servers))
    return cluster


def space(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def apply(cluster: FakeCluster, owner: str, *objects: Manifest) -> None:
    apply_objects(cluster, copy.deepcopy(objects), owner=owner, check=False, parallel=1)


def remove(cluster: FakeCluster, owner: str, *, check: bool = False, **more: t.Any) -> Report:
    return delete_objects(cluster, None, owner, check=check, parallel=1, **more)


def removed(cluster: FakeCluster, owner: str = NATS) -> set[str]:
    """What becomes of the objects of an owner when it is removed."""
    return {change.action for change in remove(cluster, owner).changes}


def thing(api_version: str, kind: str, name: str, namespace: str | None = "default", **more: t.Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def pods(*, env: t.Any = (), **spec: t.Any) -> Manifest:
    return {"spec": {"containers": [{"name": "main", "image": "nats:2", "env": list(env)}], **spec}}


def deployed(namespace: str = "default", **more: t.Any) -> Manifest:
    return thing("apps/v1", "Deployment", "d", namespace, spec={"replicas": 0, "template": pods(**more)})


def says(value: str, name: str = "PERSIA_NATS_URL") -> list[Manifest]:
    return [{"name": name, "value": value}]


def persia(name: str, backend: str = "native") -> list[Manifest]:
    params = {**PERSIA, "name": name, "backend": backend, "nats_url": URL, "metrics": {"enabled": False}}
    return list(desired(params).objects)


def finish(cluster: FakeCluster, name: str, condition: str) -> None:
    ref = Ref("batch/v1", "Job", f"{name}-{TRAINERS}", "default")
    cluster.set_status(ref, {"conditions": [{"type": condition, "status": "True"}]})


def bare(name: str, role: str, phase: str, job: str = "live") -> Manifest:
    made = thing("v1", "Pod", f"{name}-{role}-0", metadata={"labels": {"persia_job": job}}, **pods(env=says(URL)))
    return {**made, "status": {"phase": phase}}


USERS: dict[str, Manifest] = {
    "a pod": {**thing("v1", "Pod", "p", **pods(env=says(URL))), "status": {"phase": "Running"}},
    "a pending pod": {**thing("v1", "Pod", "p", **pods(env=says(URL))), "status": {"phase": "Pending"}},
    "a Deployment without pods": deployed(env=says(URL)),
    "a suspended Job": thing("batch/v1", "Job", "j", spec={"suspend": True, "template": pods(env=says(URL))}),
    "a CronJob": thing("batch/v1", "CronJob", "c", spec={"jobTemplate": {"spec": {"template": pods(env=says(URL))}}}),
    "a PersiaJob written by hand": thing("persia.com/v1", "PersiaJob", "h", spec={"env": says(URL), "nnWorker": {"replicas": 1}}),
    "a PyTorchJob": thing("kubeflow.org/v1", "PyTorchJob", "t", spec={"replicaSpecs": {"Worker": {"template": pods(env=says(URL))}}}),
    "a training_statefulset": thing("apps/v1", "StatefulSet", "t", spec={"template": pods(env=says(URL))}),
    "an init container": thing("v1", "Pod", "p", **pods(initContainers=[{"name": "wait", "args": ["--nats", "persia-nats-service:4222"]}])),
    "a Deployment elsewhere": deployed("other", env=says("nats://persia-nats-service.default:4222")),
    "the whole name": deployed("other", env=says("persia-nats-service.default.svc.cluster.local", "X")),
    "one of its pods": deployed("other", env=says("nats://persia-nats-service-0.persia-nats-service-mgmt.default.svc:4222")),
    "several servers": deployed(env=says("nats://a:4222,nats://persia-nats-service:4222")),
    "a host alone": deployed(env=says("persia-nats-service", "NATS_HOST")),
    "a login": deployed(env=says("nats://me:secret@persia-nats-service:4222")),
    "an address in a Secret": {
        **deployed(),
        "metadata": {"name": "d", "namespace": "default", "annotations": {ANNOTATION_USES: "persia-nats-service"}},
    },
    "an Ingress": thing("networking.k8s.io/v1", "Ingress", "i", spec={"defaultBackend": {"service": {"name": "persia-nats-service"}}}),
    "a route": thing(
        "gateway.networking.k8s.io/v1", "HTTPRoute", "r", spec={"rules": [{"backendRefs": [{"name": "persia-nats-service"}]}]}
    ),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("who", USERS)
def test_what_another_one_uses_is_kept_as_a_whole_and_named(shared: FakeCluster, who: str, check: bool) -> None:
    user = USERS[who]
    shared.add(user)
    before = copy.deepcopy(shared.objects)
    report = remove(shared, NATS, check=check, delete_data=True)
    assert {change.action for change in report.changes} == {"kept"}
    assert not report.changed
    assert shared.objects == before
    (warning,) = report.warnings
    where = f"{user['metadata'].get('namespace')}/{user['metadata']['name']}"
    assert f"used by {user['kind']} {where}" in warning
    assert "then remove this again" in warning
    assert "secret" not in warning
    # Nobody uses it any more.
    shared.remove(Ref(user["apiVersion"], user["kind"], user["metadata"]["name"], user["metadata"].get("namespace")))
    assert removed(shared) == {"deleted"}


NO_USERS: dict[str, Manifest] = {
    "an ended pod": {**thing("v1", "Pod", "p", **pods(env=says(URL))), "status": {"phase": "Succeeded"}},
    **{
        f"a Job that is {end}": {
            **thing("batch/v1", "Job", "j", spec={"template": pods(env=says(URL))}),
            "status": {"conditions": [{"type": end, "status": "True"}]},
        }
        for end in ("Complete", "Failed")
    },
    "what is being deleted": thing(
        "apps/v1", "Deployment", "d", metadata={"deletionTimestamp": "now"}, spec={"template": pods(env=says(URL))}
    ),
    "other servers": thing("v1", "Pod", "p", **pods(env=says("nats://persia-nats-service-2:4222"))),
    "servers of that name elsewhere": thing("v1", "Pod", "p", "other", **pods(env=says(URL))),
    "a word": thing("v1", "Pod", "p", **pods(env=says("persia-nats-service", "TITLE"))),
    "an image": thing("v1", "Pod", "p", spec={"containers": [{"name": "c", "image": "persia-nats-service:4222"}]}),
    "an annotation that names a Service elsewhere": thing(
        "apps/v1", "Deployment", "d", "other", metadata={"annotations": {ANNOTATION_USES: "Service:persia-nats-service"}}
    ),
}


@pytest.mark.parametrize("who", NO_USERS)
def test_what_has_ended_or_means_something_else_is_no_user(shared: FakeCluster, who: str) -> None:
    shared.add(NO_USERS[who])
    assert removed(shared) == {"deleted"}


def test_the_servers_of_an_operator_are_used_by_the_name_of_their_resource(shared: FakeCluster) -> None:
    remove(shared, NATS)
    servers = nats.NatsCluster(name="persia-nats-service", namespace="default", pod=PodSettings(image="nats:2.14.2"), backend="operator")
    apply(shared, NATS, *nats.manifests(servers))
    apply(shared, LIVE, *persia("live"))
    assert removed(shared) == {"kept"}


@pytest.mark.parametrize("backend", ["native", "operator"])
def test_of_two_trainings_at_one_nats_the_last_one_takes_it_along(shared: FakeCluster, backend: str) -> None:
    apply(shared, LIVE, *persia("live", backend))
    apply(shared, "persia_job.default.fair", *persia("fair", backend))
    remove(shared, "persia_job.default.fair")
    report = remove(shared, NATS)
    assert {change.action for change in report.changes} == {"kept"}
    assert LIVE in report.warnings[0]
    remove(shared, LIVE)
    assert removed(shared) == {"deleted"}


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_servers_of_a_training_that_has_ended_are_no_users(shared: FakeCluster, end: str) -> None:
    apply(shared, LIVE, *persia("live"))
    finish(shared, "live", end)  # its embedding servers still run
    assert removed(shared) == {"deleted"}


def test_pods_of_a_persia_job_count_until_its_trainers_have_ended(shared: FakeCluster) -> None:
    apply(shared, LIVE, *persia("live", "operator"))
    shared.add(bare("live", "nn-worker", "Running"), bare("live", "embedding-ps", "Running"))
    assert removed(shared) == {"kept"}
    shared.set_status(Ref("v1", "Pod", "live-nn-worker-0", "default"), {"phase": "Succeeded"})
    assert removed(shared) == {"deleted"}


def test_pods_of_a_persia_job_that_is_gone_count_by_themselves(shared: FakeCluster) -> None:
    shared.add(bare("live", "embedding-ps", "Running"))
    assert removed(shared) == {"kept"}


def test_in_check_mode_what_goes_in_the_same_play_is_no_user(shared: FakeCluster) -> None:
    apply(shared, LIVE, *persia("live"))
    report = remove(shared, NATS, check=True, ignore_users_of=[LIVE])
    assert {change.action for change in report.changes} == {"deleted"}


@pytest.mark.parametrize("kind", ["Pod", "StatefulSet", "Job", "PersiaJob"])
@pytest.mark.parametrize("error", [Forbidden, Unreachable])
def test_what_cannot_be_judged_is_kept(shared: FakeCluster, kind: str, error: type[Forbidden | Unreachable]) -> None:
    refs = [Ref("v1", "Service", "persia-nats-service", "default")]
    shared.refuse("list", error(f"may not list {kind}"), kind)
    report = delete_objects(shared, refs, NATS, check=False, parallel=1)
    assert {change.action for change in report.changes} == {"kept"}
    assert f"cannot be judged: whether it is used, because objects of kind {kind} cannot be listed" in report.warnings[0]


def test_who_may_not_look_everywhere_looks_in_the_namespace_and_says_so(shared: FakeCluster) -> None:
    shared.before("list", only_in_namespaces, once=False)
    refs = [Ref("v1", "Service", "persia-nats-service", "default")]
    report = delete_objects(shared, refs, NATS, check=True, parallel=1)
    assert {change.action for change in report.changes} == {"deleted"}
    (warning,) = report.warnings
    assert warning.startswith("Users were searched in namespace default only: the user may not list CronJob, ")
    shared.add(USERS["a pod"])
    report = delete_objects(shared, refs, NATS, check=True, parallel=1)
    assert {change.action for change in report.changes} == {"kept"}


def volume_user(claim: str) -> Manifest:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return {**thing("v1", "Pod", "reader", **pods(volumes=volumes)), "status": {"phase": "Running"}}


CLAIM = thing("v1", "PersistentVolumeClaim", "data", spec={"storageClassName": "nfs"})
QUEUE = "kueue.x-k8s.io/v1beta2"
QUEUED = {"kueue.x-k8s.io/queue-name": "lq"}

PARTS: dict[str, tuple[list[Manifest], Manifest, set[str]]] = {
    # what is removed, who uses it, and the kinds that stay
    "a claim, without what was made beside it": (
        [CLAIM, thing("v1", "ConfigMap", "fetch"), thing("batch/v1", "Job", "fetch")],
        volume_user("data"),
        {"PersistentVolumeClaim"},
    ),
    "a storage class": (
        [thing("storage.k8s.io/v1", "StorageClass", "nfs", None)],
        thing("v1", "PersistentVolumeClaim", "theirs", spec={"storageClassName": "nfs"}),
        {"StorageClass"},
    ),
    "the login of a store, with the store": (
        [thing("v1", "Secret", "login"), thing("v1", "Service", "store"), thing("apps/v1", "StatefulSet", "store")],
        thing("v1", "Pod", "p", spec={"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "login"}}]}]}),
        {"Secret", "Service", "StatefulSet"},
    ),
    "a login whose values another object has": (
        [thing("v1", "Secret", "login")],
        thing("apps/v1", "Deployment", "d", metadata={"annotations": {ANNOTATION_USES: "broker Secret:login"}}, spec={}),
        {"Secret"},
    ),
    "an account of pods": (
        [thing("v1", "ServiceAccount", "reader")],
        thing("apps/v1", "Deployment", "d", spec={"template": pods(serviceAccountName="reader")}),
        {"ServiceAccount"},
    ),
    "a queue in which a Job waits": (
        [thing(QUEUE, "LocalQueue", "lq", spec={"clusterQueue": "cq"})],
        thing("batch/v1", "Job", "j", metadata={"labels": QUEUED}, spec={"suspend": True}),
        {"LocalQueue"},
    ),
    "queues at which another one stands": (
        [
            thing(QUEUE, "ClusterQueue", "cq", None, spec={"resourceGroups": [{"flavors": [{"name": "gpu"}]}]}),
            thing(QUEUE, "ResourceFlavor", "gpu", None),
        ],
        thing(QUEUE, "LocalQueue", "theirs", "other", spec={"clusterQueue": "cq"}),
        {"ClusterQueue", "ResourceFlavor"},
    ),
    "a flavor": (
        [thing(QUEUE, "ResourceFlavor", "gpu", None)],
        thing(QUEUE, "ClusterQueue", "cq", None, spec={"resourceGroups": [{"flavors": [{"name": "gpu"}]}]}),
        {"ResourceFlavor"},
    ),
    "a Gateway": (
        [thing("gateway.networking.k8s.io/v1", "Gateway", "gw", spec={"gatewayClassName": "traefik"})],
        thing("gateway.networking.k8s.io/v1", "HTTPRoute", "r", spec={"parentRefs": [{"name": "gw"}]}),
        {"Gateway"},
    ),
    "the controller of a class": (
        [
            thing("gateway.networking.k8s.io/v1", "GatewayClass", "traefik", None),
            thing("apps/v1", "Deployment", "traefik"),
        ],
        thing("gateway.networking.k8s.io/v1", "Gateway", "gw", "other", spec={"gatewayClassName": "traefik"}),
        {"GatewayClass", "Deployment"},
    ),
    "an operator": (
        [
            thing("v1", "ServiceAccount", "op"),
            thing("apps/v1", "Deployment", "op", metadata={"annotations": {ANNOTATION_SERVES: "instances:persiajobs.persia.com"}}),
        ],
        thing("persia.com/v1", "PersiaJob", "p", "other", status={}),
        {"ServiceAccount", "Deployment"},
    ),
    "a device plugin": (
        [thing("apps/v1", "DaemonSet", "plugin", metadata={"annotations": {ANNOTATION_SERVES: "resource:nvidia.com/gpu"}})],
        thing("v1", "Pod", "p", spec={"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}),
        {"DaemonSet"},
    ),
    "metrics for an autoscaler": (
        [thing("apps/v1", "Deployment", "adapter", metadata={"annotations": {ANNOTATION_SERVES: "metrics:Pods"}})],
        thing("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"metrics": [{"type": "Pods", "pods": {}}]}),
        {"Deployment"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PARTS)
def test_each_kind_of_shared_part_stays_for_its_users(shared: FakeCluster, what: str) -> None:
    objects, user, stays = PARTS[what]
    shared.kinds_served[QUEUE, "LocalQueue"] = ServedKind("localqueues", True)
    apply(shared, "o.ours", *objects)
    shared.add(user)
    report = remove(shared, "o.ours", delete_data=True)
    assert {change.ref.kind for change in report.kept} == stays
    assert f"used by {user['kind']} " in report.warnings[-1]
    assert user["metadata"]["name"] in report.warnings[-1]
    shared.remove(Ref(user["apiVersion"], user["kind"], user["metadata"]["name"], user["metadata"].get("namespace")))
    remove(shared, "o.ours", delete_data=True)
    assert not [item for item in shared.objects.values() if (item["metadata"].get("labels") or {}).get(LABEL_OWNER) == "o.ours"]


GATEWAY_API, ISTIO = "gateway.networking.k8s.io", "networking.istio.io"
REFERENCES: dict[str, tuple[dict[str, t.Any], set[str]]] = {
    # a reference, and the groups of the kind that it may mean
    "group of the Gateway API": ({"group": GATEWAY_API, "kind": "Gateway"}, {GATEWAY_API}),
    "another group": ({"group": ISTIO, "kind": "Gateway"}, {ISTIO}),
    "apiGroup": ({"apiGroup": GATEWAY_API, "kind": "Gateway"}, {GATEWAY_API}),
    "apiVersion": ({"apiVersion": f"{ISTIO}/v1", "kind": "Gateway"}, {ISTIO}),
    "the group of Kubernetes' own kinds": ({"group": "", "kind": "Gateway"}, set()),
    "no group": ({"kind": "Gateway"}, {GATEWAY_API, ISTIO}),
    "no kind and no group": ({}, {GATEWAY_API, ISTIO}),
    "null": ({"apiGroup": None, "kind": "Gateway"}, {GATEWAY_API, ISTIO}),
    "a group of people": ({"group": "research", "kind": "Gateway"}, {GATEWAY_API, ISTIO}),
}


@pytest.mark.parametrize("what", REFERENCES)
def test_a_reference_with_a_group_means_no_kind_of_another_one(shared: FakeCluster, what: str) -> None:
    shared.kinds_served[f"{ISTIO}/v1", "Gateway"] = ServedKind("gateways", True)
    reference, meant = REFERENCES[what]
    for group in (GATEWAY_API, ISTIO):
        apply(shared, f"o.{group}", thing(f"{group}/v1", "Gateway", "gw", spec={}))
    shared.add(thing(f"{GATEWAY_API}/v1", "HTTPRoute", "r", spec={"parentRefs": [{**reference, "name": "gw"}]}))
    kept = {group for group in (GATEWAY_API, ISTIO) if remove(shared, f"o.{group}").kept}
    assert kept == meant


@pytest.mark.parametrize(
    ("spec", "name", "group"),
    [
        ({"scaleTargetRef": {"apiVersion": "x.io/v1", "kind": "Service", "name": "n"}}, "Service", "x.io"),
        ({"scaleTargetRef": {"apiVersion": "v1", "kind": "Service", "name": "n"}}, "Service", ""),
        ({"dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "n"}}, "VolumeSnapshot",
         "snapshot.storage.k8s.io"),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "n"}}, "PersistentVolumeClaim", None),
        ({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "n"}}, "ClusterRole",
         "rbac.authorization.k8s.io"),
        ({"subjects": [{"kind": "ServiceAccount", "name": "n"}]}, "ServiceAccount", None),
        ({"issuerRef": {"group": "cert-manager.io", "kind": "Issuer", "name": "n"}}, "Issuer", "cert-manager.io"),
        ({"volume": {"configMap": {"name": "n"}}}, "ConfigMap", None),
    ],
)  # fmt: skip
def test_references_are_read_with_their_groups(spec: dict[str, t.Any], name: str, group: str | None) -> None:
    assert list(named_by(thing("x.io/v1", "Foo", "f", spec=spec))) == [Name(name, "default", "n", group)]


def test_a_kind_of_another_group_with_the_name_of_a_cluster_wide_one_has_a_namespace() -> None:
    reference = {"kind": "StorageClass", "name": "n"}
    named = [
        one
        for more in ({}, {"apiGroup": "storage.k8s.io"}, {"apiGroup": "x.io"})
        for one in named_by(thing("x.io/v1", "Foo", "f", spec={"classRef": {**reference, **more}}))
    ]
    assert [(one.namespace, one.group) for one in named] == [("", None), ("", "storage.k8s.io"), ("default", "x.io")]


def test_the_driver_of_volumes_stays_while_pods_mount_them(shared: FakeCluster) -> None:
    apply(shared, "o.ours", thing("storage.k8s.io/v1", "CSIDriver", "efs.csi.aws.com", None), thing("apps/v1", "DaemonSet", "efs"))
    claim = {"namespace": "default", "name": "data"}
    shared.add(thing("v1", "PersistentVolume", "pv", None, spec={"csi": {"driver": "efs.csi.aws.com"}, "claimRef": claim}))
    shared.add(volume_user("data"))
    assert removed(shared, "o.ours") == {"kept"}
    shared.remove(Ref("v1", "Pod", "reader", "default"))
    assert removed(shared, "o.ours") == {"deleted"}


def test_pods_are_named_by_what_made_them_and_count_as_it_does(shared: FakeCluster) -> None:
    apply(shared, LIVE, *persia("live"))
    job = shared.stored("Job", f"live-{TRAINERS}", "default") or {}
    owner = {"kind": "Job", "name": f"live-{TRAINERS}", "uid": job["metadata"]["uid"], "controller": True}
    shared.add(thing("v1", "Pod", "x", metadata={"ownerReferences": [owner]}, **pods(env=says(URL)), status={"phase": "Running"}))
    (warning,) = remove(shared, NATS).warnings
    assert "Pod " not in warning
    assert f"(owner {LIVE}; variable PERSIA_NATS_URL)" in warning
    finish(shared, "live", "Complete")
    assert removed(shared) == {"deleted"}


def test_the_workload_of_a_group_of_pods_counts_as_long_as_one_of_them_does(shared: FakeCluster) -> None:
    """Kueue 0.19 makes all pods of a group owners of its Workload, none of them the controller."""
    apply(shared, LIVE, *persia("live"))
    owners = []
    for role in (TRAINERS, "data-compose"):
        job = shared.stored("Job", f"live-{role}", "default") or {}
        made = {"kind": "Job", "name": f"live-{role}", "uid": job["metadata"]["uid"], "controller": True}
        shared.add(thing("v1", "Pod", f"live-{role}-0", metadata={"ownerReferences": [made]}, **pods(), status={"phase": "Running"}))
        pod = shared.stored("Pod", f"live-{role}-0", "default") or {}
        owners.append({"apiVersion": "v1", "kind": "Pod", "name": f"live-{role}-0", "uid": pod["metadata"]["uid"]})
    template = pods(volumes=[{"name": "files", "configMap": {"name": "live-files"}}], env=says("live-trainer", "MUSTER_PEERS"))
    sets = [{"name": "main", "template": template}]
    shared.add(thing("kueue.x-k8s.io/v1beta2", "Workload", "live", metadata={"ownerReferences": owners}, spec={"podSets": sets}))
    other = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "not-there"}
    assert removed(shared, LIVE) == {"deleted"}
    apply(shared, LIVE, *persia("live"))
    shared.add(thing("kueue.x-k8s.io/v1beta2", "Workload", "mixed", metadata={"ownerReferences": [*owners, other]}, spec={"podSets": sets}))
    assert removed(shared, LIVE) == {"kept"}


def test_nothing_is_read_where_nothing_deleted_has_a_name_for_others(shared: FakeCluster) -> None:
    shared.requests.clear()
    delete_objects(shared, [Ref("policy/v1", "PodDisruptionBudget", "persia-nats-service", "default")], NATS,
                   check=False, parallel=1)  # fmt: skip
    assert [request.verb for request in shared.requests] == ["get", "delete"]


def test_text_of_any_kind_is_read_without_an_error() -> None:
    odd = ["", ":", "::1", "...", "a..b:1", "//", "@", "http://[::1]:80/x", "\u00e4:1", "x" * 10_000, ".svc", "a.b.svc", "a.svc:1"]
    named_by(thing("v1", "Pod", "p", **pods(env=says(" ".join(odd)), args=odd, more=[None, 1, True, {"name": 3}])))


@pytest.fixture
def serving(cluster: FakeCluster) -> FakeCluster:
    """A cluster that serves the kind of a definition at once."""
    cluster.add(space("other"))
    cluster.controllers[DEFINITION["kind"]] = lambda _item: {"conditions": [{"type": "Established", "status": "True"}]}
    return cluster


OPERATOR = thing("apps/v1", "Deployment", "op", metadata={"annotations": {ANNOTATION_SERVES: "instances:foos.x.io"}})
FOO = thing("x.io/v1", "Foo", "f", "other")


def test_the_kinds_of_an_operator_stay_as_long_as_it_does(serving: FakeCluster) -> None:
    apply(serving, "op", OPERATOR)
    apply(serving, "op.crds", DEFINITION)
    kept = remove(serving, "op.crds")
    assert [change.action for change in kept.changes] == ["kept"]
    assert "used by Deployment default/op (owner op; annotation muster.ml/serves)" in kept.warnings[0]
    in_check = remove(serving, "op.crds", check=True, ignore_users_of=["op"])
    assert [change.action for change in in_check.changes] == ["deleted"]
    remove(serving, "op")
    assert [change.action for change in remove(serving, "op.crds").changes] == ["deleted"]


def test_an_operator_of_one_namespace_is_not_needed_in_another(serving: FakeCluster) -> None:
    note = {"annotations": {ANNOTATION_SERVES: "instances:default/foos.x.io"}}
    apply(serving, "op", thing("apps/v1", "Deployment", "op", metadata=note))
    apply(serving, "op.crds", DEFINITION)
    serving.add(FOO)
    assert [change.action for change in remove(serving, "op").changes] == ["deleted"]


def test_objects_that_go_as_well_keep_neither_operator_nor_kind_in_check_mode(serving: FakeCluster) -> None:
    apply(serving, "op", OPERATOR)
    apply(serving, "op.crds", DEFINITION)
    apply(serving, "mine", FOO)
    for owner, ignored in (("op", ["mine"]), ("op.crds", ["mine", "op"])):
        assert [change.action for change in remove(serving, owner, check=True).changes] == ["kept"]
        report = remove(serving, owner, check=True, ignore_users_of=ignored)
        assert [change.action for change in report.changes] == ["deleted"]


def test_servers_that_are_kept_keep_their_claims(shared: FakeCluster) -> None:
    """Also with delete_data: their pods go on."""
    owner = "etcd_cluster.default.bus"
    apply(shared, owner, thing("apps/v1", "StatefulSet", "bus"), thing("v1", "Service", "bus"))
    shared.add(thing("v1", "PersistentVolumeClaim", "data-bus-0", metadata={"labels": {"app": "bus"}}))
    shared.add({**thing("v1", "Pod", "p", **pods(env=says("bus:2379"))), "status": {"phase": "Running"}})
    claims = Claims(Ref("apps/v1", "StatefulSet", "bus", "default"), {"app": "bus"}, "muster.ml/claim-of")
    params = {"delete_data": True, "wait": False, "wait_timeout": 5, "ignore_users_of": []}
    ctx = t.cast(Context, types.SimpleNamespace(cluster=shared, check=False, params=params, progress=lambda _text: None))
    report = groups.delete_servers(ctx, claims, owner)
    assert {change.action for change in report.changes} == {"kept"}
    assert shared.stored("PersistentVolumeClaim", "data-bus-0", "default")
    shared.remove(Ref("v1", "Pod", "p", "default"))
    report = groups.delete_servers(ctx, claims, owner)
    assert {change.action for change in report.changes} == {"deleted"}
    assert not shared.stored("PersistentVolumeClaim", "data-bus-0", "default")
