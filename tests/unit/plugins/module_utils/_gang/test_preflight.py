# SPDX-License-Identifier: GPL-3.0-or-later
"""Gangs that fit, that do not, and that are not judged, each for one reason of its own, and what is read of the cluster for it."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, InvalidInput, Rejected, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind
from ansible_collections.muster.ml.plugins.modules import gang_preflight
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.gang import GPU, NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()
C = X.container
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": GPU, "operator": "Exists"}
SIDECAR = {**C("side", cpu=2), "restartPolicy": "Always"}


@dataclasses.dataclass
class Case:
    """One question: groups or objects, and what the cluster is like."""

    name: str
    groups: list[Manifest]
    nodes: list[Manifest] = dataclasses.field(default_factory=lambda: X.nodes(2))
    things: list[Manifest] = dataclasses.field(default_factory=list)
    objects: list[Manifest] = dataclasses.field(default_factory=list)
    leaving: str = ""
    says: str = ""
    kinds: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)


@pytest.fixture
def cluster(cluster: FakeCluster) -> FakeCluster:
    """A cluster with the namespace of the gangs."""
    cluster.add(made("v1", "Namespace", {}, NAMESPACE))
    return cluster


def ask(cluster: FakeCluster, **more: t.Any) -> Manifest:
    defaults = {name: option.get("default") for name, option in gang_preflight.ARGUMENT_SPEC.items()}
    params = {**defaults, "namespace": NAMESPACE, **more}
    return gang_preflight.execute(Context(params=params, check=False, connect=lambda: cluster))


def test_objects_may_be_text_and_are_checked(cluster: FakeCluster) -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}"
    assert [one["replicas"] for one in ask(cluster, definition=text)["groups"]] == [1]
    with pytest.raises(InvalidInput, match="object 1: is not a mapping but str"):
        ask(cluster, definition="a pod")


def asked(cluster: FakeCluster, case: Case) -> Manifest:
    for kind, plural in case.kinds.items():
        cluster.kinds_served[kind] = ServedKind(plural, namespaced=False)
    cluster.add(*case.nodes, *case.things)
    return ask(cluster, groups=case.groups, definition=case.objects, leaving=case.leaving)


def made(api_version: str, kind: str, spec: Manifest, name: str = "o", **metadata: t.Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def quota(hard: Manifest, used: Manifest | None = None, **spec: t.Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ResourceQuota", **X.quota(hard, used, **spec)}


def pod_term(kind: str, label: str = "a") -> Manifest:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": label}}}
    return {kind: {REQUIRED: [term]}}


def on_nodes(*rows: Manifest, fields: bool = False) -> Manifest:
    terms = [{"matchFields" if fields else "matchExpressions": [row]} for row in rows]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def row(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def spread(when: str = "DoNotSchedule") -> list[Manifest]:
    selector = {"matchLabels": {"app": "a"}}
    return [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": when, "labelSelector": selector}]


def stateful_set(replicas: int, template: Manifest, **spec: t.Any) -> Manifest:
    return made("apps/v1", "StatefulSet", {"replicas": replicas, "template": template, **spec}, "s")


def job_set(template: Manifest, **metadata: t.Any) -> Manifest:
    job = {"spec": {"parallelism": 2, "completions": 2, "template": template}}
    rows = [{"name": "slice", "replicas": 2, "template": job}]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": rows}, "j", **metadata)


def persia_job(servers: int) -> Manifest:
    section = {"replicas": servers, "image": "a", "resources": {"requests": {"cpu": "4"}}}
    spec = {"embeddingParameterServer": section, "nnWorker": {"replicas": 0}}
    return made("persia.com/v1", "PersiaJob", spec, "p")


def going(pod: Manifest) -> Manifest:
    pod["metadata"]["deletionTimestamp"] = "2026-11-24T00:00:00Z"
    return pod


def resized(pod: Manifest) -> Manifest:
    pod["status"]["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    return pod


def nominated(pod: Manifest) -> Manifest:
    pod["status"] = {"phase": "Pending", "nominatedNodeName": "n0"}
    return pod


def at(provider: str, node: Manifest) -> Manifest:
    node["spec"]["providerID"] = f"{provider}://x"
    return node


def on_n0(*containers: Manifest, **more: t.Any) -> Manifest:
    return X.pod("p", "n0", *containers, **more)


AUTOSCALER = X.pod("x", "n0", {**C(), "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1"}, namespace="kube-system")
STATUS = made("v1", "ConfigMap", {}, "cluster-autoscaler-status", namespace="kube-system")
CLAIM = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]}
ONE_GPU = [X.node("n0", gpu=1)]
DEVICES = ("resource.k8s.io/v1", "DeviceClass")
CLASSES = {DEVICES: "deviceclasses"}
G, N, NS, T = X.group, X.node, X.nodes, X.template
ONE, TWO, FOUR_CPUS = G(1), G(2), G(2, C(cpu=4))
PAIR, GPU_EACH, TWO_GPUS = [G(2, C(gpu=1))], NS(2, gpu=1), [N("n0", gpu=2)]
TAINTED, USED = NS(2, taints=[TAINT]), [on_n0(C(gpu=1))]

FITS = [
    Case("one pod", [G(1, C(cpu=8))]),
    Case("as many as there is room for", [G(4, C(cpu=4))]),
    Case("no pods at all", [G(0, C(cpu=99))]),
    Case("no requests", [G(200)]),
    Case("beside pods that are there", [G(3, C(cpu=4))], things=[on_n0(C(cpu=4))]),
    Case("beside pods that have ended", [G(4, C(cpu=4))], things=[on_n0(C(cpu=8), phase="Succeeded")]),
    Case("a node that is overdrawn in what is not requested", [G(1, C(cpu=1))], NS(1), [on_n0(C(memory="64Gi"))]),
    Case("a device for each", [G(4, C(gpu=1))], NS(4, gpu=1)),
    Case("limits stand for requests", [G(2, C(limits={"cpu": "8"}))]),
    Case("memory in other units", [G(2, C(memory="34359738368"))]),
    Case("thousandths of a CPU", [G(16, C(cpu="500m"))], NS(1)),
    Case("an init container beside nobody", [G(2, C(cpu=2), initContainers=[C("i", cpu=8)])]),
    Case("a sidecar", [G(2, C(cpu=6), initContainers=[SIDECAR])]),
    Case("an init container before the sidecar", [G(2, C(cpu=6), initContainers=[C("i", cpu=8), SIDECAR])]),
    Case("resources of the whole pod", [G(2, C(cpu=20), resources={"requests": {"cpu": "8"}})]),
    Case("a toleration", [G(2, C(gpu=1), tolerations=[TOLERATION])], NS(2, gpu=1, taints=[TAINT])),
    Case("a toleration of everything", [G(2, tolerations=[{"operator": "Exists"}])], TAINTED),
    Case("a toleration by value", [G(2, tolerations=[{"key": GPU, "value": "present"}])], TAINTED),
    Case("a taint that only advises", [G(2, C(cpu=8))], NS(2, taints=[{**TAINT, "effect": "PreferNoSchedule"}])),
    Case("a cordoned node that is not needed", [G(1, C(cpu=8))], [N("n0"), N("n1", cordoned=True)]),
    Case("a node selector", [G(1, nodeSelector={"pool": "b"})], [N("n0"), N("n1", labels={"pool": "b"})]),
    Case("one of two terms", [G(2, affinity=on_nodes(row(HOST, "In", "n0"), row("pool", "Exists")))]),
    Case("affinity: not in", [G(1, C(cpu=8), affinity=on_nodes(row(HOST, "NotIn", "n0")))]),
    Case("affinity: less than", [G(1, affinity=on_nodes(row("gen", "Lt", "5")))], NS(1, labels={"gen": "4"})),
    Case("affinity by the node's name", [G(1, affinity=on_nodes(row("metadata.name", "In", "n1"), fields=True))]),
    Case("spread that is preferred", [G(3, topologySpreadConstraints=spread("ScheduleAnyway"))]),
    Case("a configuration that is mounted", [G(2, volumes=[{"name": "c", "configMap": {"name": "c"}}])]),
    Case("anti-affinity in another namespace", [TWO], things=[on_n0(affinity=pod_term("podAntiAffinity"), namespace="other")]),
    Case("anti-affinity to others", [TWO], things=[on_n0(affinity=pod_term("podAntiAffinity", "b"))]),
    Case("a quota that is just enough", [FOUR_CPUS], things=[quota({"requests.cpu": "10"}, {"requests.cpu": "2"})]),
    Case("a quota of other objects", [TWO], things=[quota({"services": "0", "configmaps": "0"})]),
    Case("a pod of others that cannot be placed", [TWO], things=[X.pod("p", "", C(cpu=99), phase="Pending")]),
    Case("pods that leave before", [G(4, C(cpu=4))], things=[on_n0(C(cpu=8), labels={"job": "old"})], leaving="job=old"),
    Case(
        "quota of pods that leave before",
        [FOUR_CPUS],
        things=[on_n0(C(cpu=8), labels={"job": "old"}), quota({"cpu": "8"}, {"cpu": "8"})],
        leaving="job=old",
    ),
    Case(
        "a Job runs no more at once than it has left",
        [],
        objects=[made("batch/v1", "Job", {"template": T(C(cpu=8)), "parallelism": 9, "completions": 2})],
    ),
    Case("objects without pods", [ONE], objects=[made("v1", "Service", {})]),
    Case(
        "groups that cannot meet",
        [G(2, C(cpu=8), nodeSelector={"p": "b"}), G(2, C(cpu=8), name="other", nodeSelector={"p": "c"})],
        [N(f"n{number}", labels={"p": pool}) for number, pool in enumerate("bbcc")],
    ),
    Case("groups with room for all in any order", [G(4, C(cpu=1)), G(4, C(cpu=1, memory="1Gi"), name="other")]),
]

DOES_NOT = [
    Case("one too many", [G(5, C(cpu=4))], says="4 of 5 pods of group worker fit, each with 4 cpu: 2 nodes with room for 2"),
    Case("too large for any node", [G(1, C(cpu=9))], says="2 nodes with too little free: 8 cpu"),
    Case(
        "no such device",
        [G(1, C(gpu=1))],
        says="0 of 1 pod of group worker fit, each with 1 nvidia.com/gpu: 2 nodes with too little free: 0 nvidia.com/gpu",
    ),
    Case("devices in use", PAIR, GPU_EACH, USED, says="1 node with room for 1, 1 node with too little free: 0 nvidia"),
    Case("devices on two nodes, not on one", [G(1, C(gpu=2))], GPU_EACH, says="2 nodes with too little free: 1 nvidia.com/gpu"),
    Case("a byte of memory", [G(1, C(memory="34359738369"))], NS(1), says="32Gi memory"),
    Case("storage of the node", [G(1, C(ephemeral_storage="200Gi"))], says="100Gi ephemeral-storage"),
    Case("number of pods", [G(7)], NS(2, pods=3), says="each with no requests: 2 nodes with room for 3"),
    Case("containers add up", [G(1, C("a", cpu=4), C("b", cpu=5))], NS(1), says="9 cpu"),
    Case("an init container that is too large", [G(1, C(cpu=1), initContainers=[C("i", cpu=9)])], says="9 cpu"),
    Case("a sidecar adds up", [G(1, C(cpu=7), initContainers=[SIDECAR])], says="9 cpu"),
    Case("an init container beside a sidecar", [G(1, C(cpu=1), initContainers=[SIDECAR, C("i", cpu=7)])], says="9 cpu"),
    Case("overhead", [G(1, C(cpu=8), overhead={"cpu": "1m"})], says="8.001 cpu"),
    Case(
        "a taint",
        [G(1, C(gpu=1))],
        NS(2, gpu=1, taints=[TAINT]),
        says="2 nodes with the taint nvidia.com/gpu=present:NoSchedule, which they do not tolerate",
    ),
    Case("a toleration of another value", [G(1, tolerations=[{"key": GPU, "value": "no"}])], TAINTED, says="taint"),
    Case("a toleration of another effect", [G(1, tolerations=[{**TOLERATION, "effect": "NoExecute"}])], TAINTED, says="taint"),
    Case("cordoned nodes", [ONE], NS(2, cordoned=True), says="2 nodes cordoned"),
    Case("a label that no node has", [G(1, nodeSelector={"a": "b"})], says="2 nodes without the labels that the pods select"),
    Case("affinity: in", [G(1, affinity=on_nodes(row(HOST, "In", "n7")))], says="labels"),
    Case("affinity: greater than", [G(1, affinity=on_nodes(row("gen", "Gt", "4")))], NS(1, labels={"gen": "4"}), says="labels"),
    Case("affinity: greater than a word", [G(1, affinity=on_nodes(row("gen", "Gt", "4")))], NS(1, labels={"gen": "x"}), says="labels"),
    Case("an empty term matches nothing", [G(1, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}})], says="labels"),
    Case(
        "a quota of CPUs",
        [FOUR_CPUS],
        things=[quota({"requests.cpu": "7"})],
        says="ResourceQuota q leaves 7 of 7 requests.cpu, and 8 are needed",
    ),
    Case("a quota of devices", PAIR, GPU_EACH, [quota({f"requests.{GPU}": "1"})], says="leaves 1 of 1 requests.nvidia.com/gpu"),
    Case(
        "a quota of limits",
        [G(2, C(limits={"memory": "1Gi"}))],
        things=[quota({"limits.memory": "1536Mi"})],
        says="leaves 1.5Gi of 1.5Gi limits.memory, and 2Gi are needed",
    ),
    Case(
        "a quota that others use", [TWO], things=[quota({"pods": "2"}, {"pods": "1"}), on_n0()], says="leaves 1 of 2 pods, and 2 are needed"
    ),
    Case(
        "a quota that is overdrawn",
        [ONE],
        things=[quota({"pods": "1"}, {"pods": "2"}), on_n0(), X.pod("q", "n0")],
        says="leaves 0 of 1 pods",
    ),
    Case("a quota where nodes may come", [TWO], [at("gce", N("n0"))], [quota({"pods": "1"})], says="leaves 1 of 1 pods"),
    Case("machines of AWS without an autoscaler", PAIR, [at("aws", N("n0", gpu=1))], says="1 node with room for 1"),
    Case("a pod of the same priority", PAIR, TWO_GPUS, USED, says="1 node with room for 1"),
    Case(
        "a group that does not preempt",
        [G(2, C(gpu=1), priority=9, preemptionPolicy="Never")],
        TWO_GPUS,
        USED,
        says="1 node with room for 1",
    ),
    Case(
        "room of a pod that goes from elsewhere", PAIR, ONE_GPU, [N("n1"), going(X.pod("p", "n1", C(cpu=1)))], says="1 node with room for 1"
    ),
    Case(
        "a taint of a node that is shut down",
        [ONE],
        NS(1, taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]),
        says="out-of-service",
    ),
    Case(
        "a device class of another resource",
        PAIR,
        ONE_GPU,
        [made(*DEVICES, {"extendedResourceName": "a.b/c"})],
        says="room for 1",
        kinds=CLASSES,
    ),
    Case("too few whatever is not judged", [G(3, C(cpu=8), affinity=pod_term("podAffinity"), **CLAIM)], says="2 of 3 pods"),
    Case("a group of several", [ONE, G(1, C(gpu=1), name="other")], says="0 of 1 pod of group other fit"),
    Case(
        "groups that need more than there is",
        [G(3, C(gpu=1)), G(2, C(gpu=1, cpu=1), name="other")],
        NS(4, gpu=1),
        says="3 pods of worker and 2 pods of other fit one by one, and not together: 5 nvidia.com/gpu are needed, and 4 are free",
    ),
    Case(
        "a Deployment", [], objects=[made("apps/v1", "Deployment", {"replicas": 3, "template": T(C(cpu=8))})], says="2 of 3 pods of group o"
    ),
    Case(
        "a LeaderWorkerSet",
        [],
        objects=[
            made(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                {"replicas": 1, "leaderWorkerTemplate": {"size": 3, "leaderTemplate": T(C(cpu=1)), "workerTemplate": T(C(cpu=8))}},
                "l",
            )
        ],
        says="1 pod of l and 2 pods of l-workers fit one by one, and not together",
    ),
    Case("a JobSet", [], objects=[job_set(T(C(cpu=8)))], says="2 of 4 pods of group j-slice fit"),
    Case(
        "a PyTorchJob",
        [],
        objects=[made("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": T(C(cpu=8))}}})],
        says="2 of 3 pods of group o-worker fit",
    ),
    Case("a PersiaJob", [], objects=[persia_job(5)], says="4 of 5 pods of group p-embedding-ps fit"),
    Case(
        "the gateway of a PersiaJob",
        [],
        [N("n0", pods=2)],
        objects=[persia_job(2)],
        says="1 pod of p-metrics-gateway fit one by one, and not together",
    ),
]

NOT_JUDGED = [
    Case("order of two groups", [G(1, C(cpu=8)), G(2, C(cpu=4), name="other")], says="in whatever order the scheduler places them"),
    Case(
        "order of two groups of one name",
        [G(1, C(cpu=5), nodeSelector={HOST: "n0"}), G(2, C(cpu=12))],
        [N("n0", cpu=16), N("n1", cpu=100)],
        says="in whatever order the scheduler places them",
    ),
    Case("another scheduler", [G(9, C(cpu=8), schedulerName="mine")], says="schedulerName mine of group worker"),
    Case("a node by name", [G(9, C(cpu=8), nodeName="n0")], says="nodeName of group worker"),
    Case("an operator", [G(9, C(cpu=8), tolerations=[{"key": "a", "operator": "Gt", "value": "1"}])], says="an operator of a toleration"),
    Case(
        "a queue", [G(9, C(cpu=8), labels={"kueue.x-k8s.io/queue-name": "q"})], says="when Kueue's queue q admits the pods of group worker"
    ),
    Case(
        "a queue of the object",
        [],
        objects=[made("batch/v1", "Job", {"template": T()}, labels={"kueue.x-k8s.io/queue-name": "q"})],
        says="queue q admits the pods of group o",
    ),
    Case("gates", [G(1, schedulingGates=[{"name": "x"}])], says="schedulingGates of group worker"),
    Case("devices by claim", [G(1, resourceClaims=[{"name": "x"}])], says="resourceClaims of group worker"),
    Case("affinity to pods", [G(1, affinity=pod_term("podAffinity"))], says="podAffinity of group worker"),
    Case("anti-affinity to pods", [G(2, affinity=pod_term("podAntiAffinity"))], says="podAntiAffinity of group worker"),
    Case(
        "anti-affinity of pods",
        [TWO],
        things=[on_n0(affinity=pod_term("podAntiAffinity"))],
        says="podAntiAffinity of pod p to pods of group worker",
    ),
    Case("spread", [G(1, topologySpreadConstraints=spread())], says="topologySpreadConstraints of group worker"),
    Case("a claim", [G(1, **CLAIM)], says="persistentVolumeClaim of group worker"),
    Case("a disk", [G(1, volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "d"}}])], says="gcePersistentDisk of group worker"),
    Case(
        "a claim for each",
        [],
        objects=[stateful_set(1, T(), volumeClaimTemplates=[{"metadata": {"name": "data"}}])],
        says="volumeClaimTemplates of group s",
    ),
    Case("a port of the node", [G(1, {**C(), "ports": [{"containerPort": 80, "hostPort": 80}]})], says="hostPort of group worker"),
    Case("the network of the node", [G(1, {**C(), "ports": [{"containerPort": 80}]}, hostNetwork=True)], says="hostPort of group worker"),
    Case(
        "slices of a node pool each",
        [],
        NS(4),
        objects=[job_set(T(), annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "pool"})],
        says="exclusive placement by pool of group j-slice",
    ),
    Case("scopes", [G(3)], things=[quota({"pods": "1"}, scopes=["NotTerminating"])], says="scopes of ResourceQuota q"),
    Case("a quota that has not noticed", [TWO], things=[quota({"pods": "2"}, {"pods": "1"})], says="in whatever order"),
    Case("an unknown kind", [ONE], objects=[made("example.com/v1", "Farm", {}, "p")], says="the pods of Farm p"),
    Case("an unknown kind alone", [], objects=[made("example.com/v1", "Farm", {}, "p")], says="the pods of Farm p"),
    Case("pods that begin later", [ONE], objects=[made("batch/v1", "CronJob", {}, "p")], says="the pods of CronJob p"),
    Case(
        "others that wait",
        [FOUR_CPUS],
        things=[X.pod("p", "", C(cpu=4), phase="Pending")],
        says="pod ml/p waits for the scheduler, too, and may take the room",
    ),
    Case("a pod that goes", PAIR, TWO_GPUS, [going(on_n0(C(gpu=1)))], says="pods that are being deleted"),
    Case("a pod that is resized", [FOUR_CPUS], NS(1), [resized(on_n0(C(cpu=4)))], says="resized"),
    Case("a pod that has no node yet", PAIR, TWO_GPUS, [nominated(X.pod("p", "", C(gpu=1)))], says="in whatever order"),
    Case("a pod of lower priority", PAIR, TWO_GPUS, [on_n0(C(gpu=1), priority=-1)], says="of lower priority"),
    Case("an unknown priority", [G(2, C(gpu=1), priorityClassName="high")], TWO_GPUS, USED, says="of lower priority"),
    Case("a node that is not ready", PAIR, [*ONE_GPU, N("n1", gpu=1, ready=False)], says="nodes that are not ready"),
    Case(
        "a node that is new",
        PAIR,
        [*ONE_GPU, N("n1", gpu=1, taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}])],
        says="not ready",
    ),
    Case("no nodes", [ONE], [], says="whether nodes are added (the cluster has no nodes)"),
    Case("machines of a cloud", PAIR, [at("gce", N("n0", gpu=1))], says="whether nodes are added (nodes are machines of gce)"),
    Case("an autoscaler", PAIR, [at("aws", N("n0", gpu=1))], [AUTOSCALER], says="pod kube-system/x runs"),
    Case("an autoscaler elsewhere", PAIR, [at("aws", N("n0", gpu=1))], [STATUS], says="cluster-autoscaler-status"),
    Case("Karpenter", PAIR, ONE_GPU, kinds={("karpenter.sh/v1", "NodePool"): "nodepools"}, says="node pools of Karpenter"),
    Case("a virtual cluster", PAIR, NS(1, labels={"vcluster.loft.sh/fake-node": "true"}), says="a virtual cluster"),
    Case(
        "a device class",
        PAIR,
        ONE_GPU,
        [made(*DEVICES, {"extendedResourceName": GPU})],
        says="devices of DeviceClass o (dynamic resource allocation)",
        kinds=CLASSES,
    ),
    Case("a device class by name", [G(1, C(**{"deviceclass.resource.kubernetes.io__gpu": 1}))], says="DeviceClass"),
]

by_name: Callable[[Case], str] = lambda case: case.name  # noqa: E731


@pytest.mark.parametrize("case", FITS, ids=by_name)
def test_it_fits(cluster: FakeCluster, case: Case) -> None:
    found = asked(cluster, case)
    assert (found["fits"], found["reasons"], found["not_judged"], found["nearest"]) == (True, [], [], [])
    assert found["message"] == "All pods fit at once."


@pytest.mark.parametrize("case", DOES_NOT, ids=by_name)
def test_it_does_not_fit(cluster: FakeCluster, case: Case) -> None:
    found = asked(cluster, case)
    assert found["fits"] is False
    assert case.says in " ".join(found["reasons"])
    assert found["message"].startswith("Not all pods fit at once. ")
    for size in found["nearest"] if case.groups else ():  # of the size that is named it says yes, and of a larger one no
        for more, fits in ((0, True), (1, False)):
            rows = [{**g, "replicas": size["replicas"] + more} if g["name"] == size["name"] else g for g in case.groups]
            assert (ask(cluster, groups=rows)["fits"] is True) == fits


@pytest.mark.parametrize("case", NOT_JUDGED, ids=by_name)
def test_it_is_not_judged(cluster: FakeCluster, case: Case) -> None:
    found = asked(cluster, case)
    assert (found["fits"], found["reasons"]) == (None, [])
    assert case.says in "; ".join(found["not_judged"])
    assert found["message"].startswith("Whether all pods fit at once is not judged: ")


def test_the_module_answers_and_writes_nothing(cluster: FakeCluster) -> None:
    cluster.add(*X.nodes(2, gpu=1), X.pod("p", "n0", C(gpu=1)))
    reason = (
        "1 of 2 pods of group worker fit, each with 1 nvidia.com/gpu: 1 node with room for 1, 1 node with too little free: 0 nvidia.com/gpu"
    )
    assert ask(cluster, groups=[X.group(2, C(gpu=1))]) == {
        "changed": False,
        "fits": False,
        "message": f"Not all pods fit at once. {reason}. This fits: worker with 1.",
        "reasons": [reason],
        "not_judged": [],
        "groups": [{"name": "worker", "replicas": 2, "fitting": 1}],
        "nearest": [{"name": "worker", "replicas": 1}],
    }
    assert cluster.writes == []


def test_each_kind_is_listed_once_and_only_what_is_needed(cluster: FakeCluster) -> None:
    cluster.add(*X.nodes(2))
    cluster.requests.clear()
    ask(cluster, groups=[X.group(1), X.group(1, name="other")])
    assert [(one.verb, one.ref.kind) for one in cluster.requests] == [
        ("list", "Node"),
        ("list", "Pod"),
        ("list", "ResourceQuota"),
        ("create", "Pod"),
        ("create", "Pod"),
    ]
    assert all(one.dry_run for one in cluster.requests if one.verb == "create")


def test_no_pods_ask_nothing(cluster: FakeCluster) -> None:
    cluster.requests.clear()
    assert ask(cluster)["fits"] is True
    assert cluster.requests == []


def test_quota_alone_shrinks_the_size(cluster: FakeCluster) -> None:
    cluster.add(*X.nodes(2), quota({"requests.cpu": "3"}))
    assert ask(cluster, groups=[X.group(4, C(cpu=1))])["nearest"] == [{"name": "worker", "replicas": 3}]


def test_a_long_list_of_nodes_is_cut(cluster: FakeCluster) -> None:
    cluster.add(*(X.node(f"n{number}", taints=[{"key": f"t{number}", "effect": "NoSchedule"}]) for number in range(8)))
    (reason,) = ask(cluster, groups=[X.group(9, C(cpu=1))])["reasons"]
    assert "1 node with the taint t0:NoSchedule, which they do not tolerate, " in reason
    assert reason.endswith("3 more nodes")


def test_pods_count_as_the_api_server_would_keep_them(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With defaults of a LimitRange, or tolerations of a webhook."""
    cluster.add(X.node("n0", gpu=2, taints=[TAINT]))
    rows = [X.group(2, C(gpu=1), serviceAccountName="made-later")]
    rows[0]["template"]["metadata"]["annotations"] = {"inject": "false"}
    assert ask(cluster, groups=rows)["fits"] is False

    def create(_self: FakeCluster, manifest: Manifest, *, dry_run: bool) -> Manifest:
        assert dry_run
        assert "serviceAccountName" not in manifest["spec"]
        assert manifest["metadata"]["annotations"] == {"inject": "false"}
        return {**manifest, "spec": {**manifest["spec"], "tolerations": [TOLERATION]}}

    monkeypatch.setattr(FakeCluster, "create", create)
    assert ask(cluster, groups=rows)["fits"] is True


def test_without_the_answer_of_admission_taints_keep_out_no_pod(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=2, taints=[TAINT]))
    cluster.fail("create", "muster-preflight", Rejected("No."), Rejected("No."))
    found = ask(cluster, groups=[X.group(2, C(gpu=1))])
    assert (found["fits"], found["not_judged"]) == (None, ["admission of the pods of group worker (No.)"])
    assert ask(cluster, groups=[X.group(3, C(gpu=1))])["fits"] is False


def refuse(cluster: FakeCluster, *kinds: str) -> None:
    """Answer 403 to who lists these kinds."""
    listed = cluster.list

    def listing(api_version: str, kind: str, *more: t.Any) -> t.Any:
        if kind in kinds:
            raise Forbidden(f"User x may not list {kind}.")
        return listed(api_version, kind, *more)

    cluster.list = listing  # type: ignore[method-assign]


def test_without_a_right_to_nodes_only_quotas_refuse(cluster: FakeCluster) -> None:
    cluster.add(*X.nodes(2))
    refuse(cluster, "Node")
    answer = ask(cluster, groups=[X.group(9, C(gpu=1))])
    assert (answer["fits"], answer["reasons"], answer["nearest"]) == (None, [], [])
    assert answer["groups"] == [{"name": "worker", "replicas": 9, "fitting": None}]
    assert answer["message"] == (
        "Whether all pods fit at once is not judged: no right to list objects of kind Node (User x may not list Node.)."
    )
    cluster.add(quota({"pods": "1"}))
    assert ask(cluster, groups=[X.group(2)])["fits"] is False


def test_without_a_right_to_pods_only_empty_nodes_refuse(cluster: FakeCluster) -> None:
    cluster.add(*X.nodes(2, gpu=1), X.pod("p", "n0", C(gpu=1)))
    refuse(cluster, "Pod")
    assert ask(cluster, groups=[X.group(2, C(gpu=1))])["fits"] is None
    assert ask(cluster, groups=[X.group(3, C(gpu=1))])["fits"] is False


def test_without_a_right_to_pods_an_autoscaler_cannot_be_seen(cluster: FakeCluster) -> None:
    cluster.add(at("aws", X.node("n0", gpu=1)))
    refuse(cluster, "Pod")
    answer = ask(cluster, groups=[X.group(3, C(gpu=1))])
    assert answer["fits"] is None
    assert "whether nodes are added (pods of an autoscaler cannot be seen)" in answer["not_judged"]


def test_without_a_right_to_device_classes_devices_are_not_judged(cluster: FakeCluster) -> None:
    cluster.kinds_served[DEVICES] = ServedKind("deviceclasses", namespaced=False)
    cluster.add(*ONE_GPU)
    refuse(cluster, "DeviceClass")
    assert ask(cluster, groups=[X.group(2, C(gpu=1))])["fits"] is None
    assert ask(cluster, groups=[X.group(2, C(cpu=8))])["fits"] is False


@pytest.mark.parametrize("kind", ["Pod", "ResourceQuota"])
def test_each_missing_right_is_named_and_no_error(cluster: FakeCluster, kind: str) -> None:
    cluster.add(*X.nodes(2))
    refuse(cluster, kind)
    answer = ask(cluster, groups=[X.group(1)])
    assert answer["fits"] is None
    assert any(kind in text for text in answer["not_judged"])


def test_a_server_that_does_not_answer_is_an_error(cluster: FakeCluster) -> None:
    cluster.fail("list", "", Unreachable("It does not answer."))
    with pytest.raises(Unreachable):
        ask(cluster, groups=[X.group(1)])


@pytest.mark.parametrize(
    ("groups", "objects", "words"),
    [
        ([{"name": "g", "replicas": 1, "template": {"spec": {}}}], [], "Group g has no containers. Its template needs spec.containers."),
        ([X.group(-1)], [], "Group worker cannot have -1 pods"),
        ([X.group(1, C(cpu="many"))], [], "cpu: 'many' is not a quantity"),
        ([], [X.pod("p", namespace="a"), X.pod("p", namespace="b")], "The groups of a gang are in one namespace"),
    ],
)
def test_what_is_no_gang_is_refused(cluster: FakeCluster, groups: list[Manifest], objects: list[Manifest], words: str) -> None:
    cluster.add(*X.nodes(2))
    with pytest.raises(InvalidInput) as caught:
        ask(cluster, groups=groups, definition=objects)
    assert words in str(caught.value)
