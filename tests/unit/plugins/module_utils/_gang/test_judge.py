# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gangs that fit, that do not, and that are not judged, each for one reason of its own."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gang.judge import Seen, Verdict, judge
from ansible_collections.muster.ml.plugins.module_utils._gang.places import Template
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang
from ansible_collections.muster.ml.tests.unit.fakes.gang import GPU, NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()
C = X.container
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": GPU, "operator": "Exists"}
APP = {"matchLabels": {"app": "a"}}
ZONES = [X.node(f"{zone}{at}", labels={ZONE: zone}) for zone in "ab" for at in range(2)]


@dataclasses.dataclass
class Case:
    """One question: groups, and what the cluster is like."""

    name: str
    groups: list[Manifest]
    nodes: list[Manifest] = dataclasses.field(default_factory=lambda: X.nodes(2))
    pods: list[Manifest] = dataclasses.field(default_factory=list)
    more: Manifest = dataclasses.field(default_factory=dict)
    templates: list[Template] = dataclasses.field(default_factory=list)
    objects: list[Manifest] = dataclasses.field(default_factory=list)
    leaving: str = ""
    says: str = ""


def asked(case: Case) -> Verdict:
    seen = Seen(nodes=case.nodes, pods=case.pods, **case.more)
    what = gang(case.objects, NAMESPACE, rows=case.groups, leaving=case.leaving, templates=case.templates)
    return judge(what, seen)


def persia_job(servers: int, **spec: t.Any) -> Manifest:
    section = {"replicas": servers, "image": "a", "resources": {"requests": {"cpu": "4"}}}
    return {
        "apiVersion": "persia.com/v1",
        "kind": "PersiaJob",
        "metadata": {"name": "p"},
        "spec": {"embeddingParameterServer": section, "nnWorker": {"replicas": 0}, **spec},
    }


def anti(key: str = HOST, **labels: str) -> Manifest:
    return required("podAntiAffinity", key, labels or {"app": "a"})


def required(kind: str, key: str, labels: Manifest) -> Manifest:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def on_nodes(*rows: Manifest, fields: bool = False) -> Manifest:
    terms = [{"matchFields" if fields else "matchExpressions": [row]} for row in rows]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def row(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def spread(skew: int, key: str, **more: t.Any) -> Manifest:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP, **more}


def mounts(*claims: str) -> Manifest:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def claims(*items: Manifest, **volumes: Manifest) -> Manifest:
    return {"claims": {item["metadata"]["name"]: item for item in items}, "volumes": volumes, "classes": CLASSES}


def volume(*nodes: str) -> Manifest:
    needed = {"nodeSelectorTerms": [{"matchExpressions": [row(HOST, "In", *nodes)]}]} if nodes else None
    return {"spec": {"nodeAffinity": {"required": needed}} if needed else {}}


CLASSES = {
    "late": {"metadata": {"name": "late"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"},
    "early": {"metadata": {"name": "early"}, "provisioner": "x", "volumeBindingMode": "Immediate"},
    "manual": {"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner"},
    "zonal": {"metadata": {"name": "zonal"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [{}]},
    "usual": {
        "metadata": {"name": "usual", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "x",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
}  # fmt: skip


def stateful_set(replicas: int, template: Manifest, **spec: t.Any) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {"replicas": replicas, "template": template, **spec},
    }


def job(template: Manifest, **spec: t.Any) -> Manifest:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def wants(name: str, modes: str = "ReadWriteOnce", **spec: t.Any) -> Manifest:
    size = {"resources": {"requests": {"storage": "10Gi"}}}
    return {"metadata": {"name": name}, "spec": {"accessModes": [modes], **size, **spec}}


SIDECAR = {**C("side", cpu=2), "restartPolicy": "Always"}
TPU = Template(
    name="tpu", count=2, allocatable={"cpu": 8, "memory": "32Gi", "google.com/tpu": 4}, labels={"pool": "tpu"}
)
DAEMON = {"metadata": {"name": "d"}, "spec": {"template": X.template(C(cpu=1))}}

FITS = [
    Case("one pod", [X.group(1, C(cpu=8))]),
    Case("as many as there is room for", [X.group(4, C(cpu=4))]),
    Case("no pods at all", [X.group(0, C(cpu=99))]),
    Case("no requests", [X.group(200)]),
    Case("beside pods that are there", [X.group(3, C(cpu=4))], pods=[X.pod("p", "n0", C(cpu=4))]),
    Case(
        "pods that have ended take nothing",
        [X.group(4, C(cpu=4))],
        pods=[X.pod("p", "n0", C(cpu=8), phase="Succeeded")],
    ),
    Case(
        "a node that is overdrawn in what is not asked for",
        [X.group(1, C(cpu=1))],
        X.nodes(1),
        [X.pod("p", "n0", C(memory="64Gi"))],
    ),
    Case("a device for each", [X.group(4, C(gpu=1))], X.nodes(4, gpu=1)),
    Case("limits stand for requests", [X.group(2, C(limits={"cpu": "8"}))]),
    Case("memory in other units", [X.group(2, C(memory="34359738368"))]),
    Case("thousandths of a CPU", [X.group(16, C(cpu="500m"))], X.nodes(1)),
    Case("an init container beside nobody", [X.group(2, C(cpu=2), initContainers=[C("i", cpu=8)])]),
    Case("a sidecar and what runs beside it", [X.group(2, C(cpu=6), initContainers=[SIDECAR])]),
    Case("an init container before the sidecar", [X.group(2, C(cpu=6), initContainers=[C("i", cpu=8), SIDECAR])]),
    Case("resources of the whole pod", [X.group(2, C(cpu=20), resources={"requests": {"cpu": "8"}})]),
    Case(
        "a toleration of the taint", [X.group(2, C(gpu=1), tolerations=[TOLERATION])], X.nodes(2, gpu=1, taints=[TAINT])
    ),
    Case(
        "a toleration of everything",
        [X.group(2, C(cpu=8), tolerations=[{"operator": "Exists"}])],
        X.nodes(2, taints=[TAINT]),
    ),
    Case(
        "a toleration by value",
        [X.group(2, C(cpu=8), tolerations=[{"key": GPU, "value": "present"}])],
        X.nodes(2, taints=[TAINT]),
    ),
    Case(
        "GKE tolerates for whom asks for the device",
        [X.group(2, C(gpu=1))],
        X.nodes(2, gpu=1, taints=[TAINT], labels={"cloud.google.com/gke-nodepool": "gpu"}),
    ),
    Case(
        "a taint that only advises",
        [X.group(2, C(cpu=8))],
        X.nodes(2, taints=[{**TAINT, "effect": "PreferNoSchedule"}]),
    ),
    Case("a cordoned node that is not needed", [X.group(1, C(cpu=8))], [X.node("n0"), X.node("n1", cordoned=True)]),
    Case(
        "a node selector",
        [X.group(1, C(cpu=8), nodeSelector={"pool": "b"})],
        [X.node("n0"), X.node("n1", labels={"pool": "b"})],
    ),
    Case("one of two terms", [X.group(2, affinity=on_nodes(row(HOST, "In", "n0"), row("pool", "Exists")))]),
    Case("affinity: not in", [X.group(1, C(cpu=8), affinity=on_nodes(row(HOST, "NotIn", "n0")))]),
    Case(
        "affinity: less than", [X.group(1, affinity=on_nodes(row("gen", "Lt", "5")))], X.nodes(1, labels={"gen": "4"})
    ),
    Case("affinity by the node's name", [X.group(1, affinity=on_nodes(row("metadata.name", "In", "n1"), fields=True))]),
    Case("one on each node", [X.group(2, affinity=anti())]),
    Case(
        "anti-affinity to others elsewhere",
        [X.group(2, C(cpu=4), affinity=anti(app="b"))],
        pods=[X.pod("p", "n0", labels={"app": "b"})],
    ),
    Case(
        "anti-affinity in another namespace",
        [X.group(2, C(cpu=8), affinity=anti())],
        pods=[X.pod("p", "n0", labels={"app": "a"}, namespace="other")],
    ),
    Case(
        "two groups that keep apart",
        [X.group(1, affinity=anti(app="b")), X.group(1, name="other", labels={"app": "b"})],
    ),
    Case("all on one node", [X.group(4, C(cpu=2), affinity=required("podAffinity", HOST, {"app": "a"}))]),
    Case(
        "beside a pod that is there",
        [X.group(2, C(cpu=4), affinity=required("podAffinity", HOST, {"app": "b"}))],
        pods=[X.pod("p", "n1", labels={"app": "b"})],
    ),
    Case(
        "in the zone of a pod that is there",
        [X.group(4, C(cpu=4), affinity=required("podAffinity", ZONE, {"app": "b"}))],
        ZONES,
        [X.pod("p", "b0", labels={"app": "b"})],
    ),
    Case("spread over nodes", [X.group(4, C(cpu=4), topologySpreadConstraints=[spread(1, HOST)])]),
    Case("spread over zones", [X.group(8, C(cpu=4), topologySpreadConstraints=[spread(1, ZONE)])], ZONES),
    Case(
        "spread that only advises",
        [X.group(3, C(cpu=4), topologySpreadConstraints=[{**spread(1, HOST), "whenUnsatisfiable": "ScheduleAnyway"}])],
        [X.node("n0"), X.node("n1", cpu=4)],
    ),
    Case(
        "spread with a wide skew",
        [X.group(3, C(cpu=4), topologySpreadConstraints=[spread(2, HOST)])],
        [X.node("n0"), X.node("n1", cpu=4)],
    ),
    Case(
        "spread among nodes that the pods select",
        [X.group(2, C(cpu=4), nodeSelector={"p": "x"}, topologySpreadConstraints=[spread(1, HOST)])],
        [X.node("n0", labels={"p": "x"}), X.node("n1", cpu=0)],
    ),
    Case(
        "a quota that is just enough",
        [X.group(2, C(cpu=4))],
        more={"quotas": [X.quota({"requests.cpu": "10"}, {"requests.cpu": "2"})]},
    ),
    Case(
        "a quota of other pods", [X.group(2, C(cpu=4))], more={"quotas": [X.quota({"cpu": "1"}, scopes=["BestEffort"])]}
    ),
    Case(
        "a quota of another priority",
        [X.group(2, C(cpu=4), priorityClassName="low")],
        more={
            "quotas": [
                X.quota(
                    {"cpu": "1"},
                    scopeSelector={
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                    },
                )
            ]
        },
    ),
    Case(
        "a quota of what ends",
        [X.group(2, C(cpu=4))],
        more={"quotas": [X.quota({"pods": "1"}, scopes=["Terminating"])]},
    ),
    Case("a quota of other things", [X.group(2)], more={"quotas": [X.quota({"services": "0", "configmaps": "0"})]}),
    Case(
        "a quota that defaults satisfy",
        [X.group(2)],
        more={
            "ranges": [X.limits(default={"cpu": "1"})],
            "quotas": [X.quota({"limits.cpu": "2", "requests.cpu": "2"})],
        },
    ),
    Case(
        "a default smaller than what there is", [X.group(8)], more={"ranges": [X.limits(defaultRequest={"cpu": "2"})]}
    ),
    Case("a maximum that is kept", [X.group(2, C(limits={"cpu": "8"}))], more={"ranges": [X.limits(max={"cpu": "8"})]}),
    Case(
        "pods that leave before",
        [X.group(4, C(cpu=4))],
        pods=[X.pod("p", "n0", C(cpu=8), labels={"job": "old"})],
        leaving="job=old",
    ),
    Case(
        "quota of pods that leave",
        [X.group(2, C(cpu=4))],
        pods=[X.pod("p", "n0", C(cpu=8), labels={"job": "old"})],
        leaving="job=old",
        more={"quotas": [X.quota({"cpu": "8"}, {"cpu": "8"})]},
    ),
    Case(
        "nodes that an autoscaler adds",
        [X.group(2, C(google_com="0", **{"google.com__tpu": 4}), nodeSelector={"pool": "tpu"})],
        [],
        templates=[TPU],
    ),
    Case(
        "room beside DaemonSets on new nodes",
        [X.group(2, C(cpu=7))],
        [],
        templates=[TPU],
        more={"daemon_sets": [DAEMON]},
    ),
    Case(
        "a claim that many may write",
        [X.group(4, C(cpu=4), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", volume="v"), v=volume()),
    ),
    Case(
        "a claim of one pod",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOncePod", volume="v"), v=volume()),
    ),
    Case(
        "a claim of one node, of one pod",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
    ),
    Case(
        "a claim whose volume is on the node that is needed",
        [X.group(2, C(cpu=4), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume("n1")),
    ),
    Case(
        "a claim that the run makes",
        [X.group(2, **mounts("new"))],
        objects=[X.claim("new", "ReadWriteMany", storageClassName="late")],
        more=claims(),
    ),
    Case(
        "a claim each",
        [],
        objects=[stateful_set(2, X.template(C(cpu=8)), volumeClaimTemplates=[wants("data")])],
        more=claims(),
    ),
    Case(
        "a quota of claims",
        [],
        objects=[stateful_set(2, X.template(), volumeClaimTemplates=[wants("data")])],
        more={**claims(), "quotas": [X.quota({"persistentvolumeclaims": "2", "requests.storage": "20Gi"})]},
    ),
    Case(
        "a Job runs no more at once than it has left",
        [],
        objects=[job(X.template(C(cpu=8)), parallelism=9, completions=2)],
    ),
    Case(
        "a runtime class with its overhead",
        [X.group(2, C(cpu=7), runtimeClassName="k")],
        more={"runtimes": {"k": {"overhead": {"podFixed": {"cpu": "1"}}}}},
    ),
    Case("ports of the node, one on each", [X.group(2, {**C(), "ports": [{"containerPort": 80, "hostPort": 80}]})]),
    Case(
        "groups that cannot meet",
        [
            X.group(2, C(cpu=8), nodeSelector={"pool": "b"}),
            X.group(2, C(cpu=8), name="other", nodeSelector={"pool": "c"}),
        ],
        [X.node(f"n{at}", labels={"pool": pool}) for at, pool in enumerate("bbcc")],
    ),
    Case(
        "groups with room for all in any order",
        [X.group(4, C(cpu=1)), X.group(4, C(cpu=1, memory="1Gi"), name="other")],
    ),
]

DOES_NOT = [
    Case(
        "no nodes", [X.group(1)], [], says="0 of 1 pod of group worker fit, each with no requests: there are no nodes"
    ),
    Case(
        "one too many",
        [X.group(5, C(cpu=4))],
        says="4 of 5 pods of group worker fit, each with 4 cpu: 2 nodes with room for 2",
    ),
    Case("too large for any node", [X.group(1, C(cpu=9))], says="2 nodes with too little free: 8 cpu"),
    Case(
        "no such device",
        [X.group(1, C(gpu=1))],
        says="0 of 1 pod of group worker fit, each with 1 nvidia.com/gpu: 2 nodes with too little free: 0 nvidia.com/gpu",
    ),
    Case(
        "devices in use",
        [X.group(2, C(gpu=1))],
        X.nodes(2, gpu=1),
        [X.pod("p", "n0", C(gpu=1))],
        says="1 node with room for 1, 1 node with too little free: 0 nvidia",
    ),
    Case(
        "devices on two nodes, not on one",
        [X.group(1, C(gpu=2))],
        X.nodes(2, gpu=1),
        says="2 nodes with too little free: 1 nvidia.com/gpu",
    ),
    Case("memory", [X.group(1, C(memory="33Gi"))], says="32Gi memory"),
    Case("a byte of memory", [X.group(1, C(memory="34359738369"))], X.nodes(1)),
    Case("ephemeral storage", [X.group(1, C(ephemeral_storage="200Gi"))], says="100Gi ephemeral-storage"),
    Case("number of pods", [X.group(7)], X.nodes(2, pods=3), says="2 nodes with room for 3"),
    Case(
        "pods that are ending take room until they have gone",
        [X.group(1, C(cpu=8))],
        X.nodes(1),
        [{**X.pod("p", "n0", C(cpu=1)), "metadata": {"name": "p", "namespace": NAMESPACE, "deletionTimestamp": "now"}}],
    ),
    Case(
        "a place that is kept for a pod",
        [X.group(1, C(cpu=8))],
        X.nodes(1),
        [{**X.pod("p", "", C(cpu=1)), "status": {"phase": "Pending", "nominatedNodeName": "n0"}}],
    ),
    Case(
        "a pod that shrinks and still has more",
        [X.group(1, C(cpu=7))],
        X.nodes(1),
        [
            {
                **X.pod("p", "n0", C(cpu=1)),
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}],
                },
            }
        ],
    ),
    Case("containers add up", [X.group(1, C("a", cpu=4), C("b", cpu=5))], X.nodes(1)),
    Case("an init container that is too large", [X.group(1, C(cpu=1), initContainers=[C("i", cpu=9)])]),
    Case("a sidecar adds up", [X.group(1, C(cpu=7), initContainers=[SIDECAR])]),
    Case("an init container beside a sidecar", [X.group(1, C(cpu=1), initContainers=[SIDECAR, C("i", cpu=7)])]),
    Case("overhead", [X.group(1, C(cpu=8), overhead={"cpu": "1m"})]),
    Case(
        "overhead of a runtime class",
        [X.group(1, C(cpu=8), runtimeClassName="k")],
        more={"runtimes": {"k": {"overhead": {"podFixed": {"cpu": "1m"}}}}},
    ),
    Case(
        "nodes of a runtime class",
        [X.group(1, runtimeClassName="k")],
        more={"runtimes": {"k": {"scheduling": {"nodeSelector": {"vm": "yes"}}}}},
    ),
    Case(
        "a taint",
        [X.group(1, C(gpu=1))],
        X.nodes(2, gpu=1, taints=[TAINT]),
        says="2 nodes with the taint nvidia.com/gpu=present:NoSchedule, which they do not tolerate",
    ),
    Case(
        "a toleration of another value",
        [X.group(1, tolerations=[{"key": GPU, "value": "no"}])],
        X.nodes(2, taints=[TAINT]),
    ),
    Case(
        "a toleration of another effect",
        [X.group(1, tolerations=[{**TOLERATION, "effect": "NoExecute"}])],
        X.nodes(2, taints=[TAINT]),
    ),
    Case("cordoned nodes", [X.group(1)], X.nodes(2, cordoned=True), says="2 nodes cordoned"),
    Case("nodes that are not ready", [X.group(1)], X.nodes(2, ready=False), says="2 nodes not ready (KubeletNotReady)"),
    Case(
        "a label that no node has",
        [X.group(1, nodeSelector={"a": "b"})],
        says="2 nodes without the labels that the pods select",
    ),
    Case("affinity: in", [X.group(1, affinity=on_nodes(row(HOST, "In", "n7")))]),
    Case(
        "affinity: greater than",
        [X.group(1, affinity=on_nodes(row("gen", "Gt", "4")))],
        X.nodes(1, labels={"gen": "4"}),
    ),
    Case(
        "affinity: greater than a word",
        [X.group(1, affinity=on_nodes(row("gen", "Gt", "4")))],
        X.nodes(1, labels={"gen": "five"}),
    ),
    Case(
        "an empty term matches nothing",
        [
            X.group(
                1,
                affinity={
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
                },
            )
        ],
    ),
    Case(
        "one node each, and too few",
        [X.group(3, affinity=anti())],
        says="2 of 3 pods of group worker fit, each with no requests: 2 nodes with room for 110; "
        "each must be on a node of its own",
    ),
    Case(
        "anti-affinity to pods that are there",
        [X.group(2, C(cpu=8), affinity=anti(app="b"))],
        pods=[X.pod("p", "n0", labels={"app": "b"})],
        says="1 node where a pod is that they do not want beside them",
    ),
    Case(
        "anti-affinity to a whole zone",
        [X.group(3, C(cpu=8), affinity=anti(ZONE, app="b"))],
        ZONES,
        [X.pod("p", "a0", labels={"app": "b"})],
        says="2 nodes where a pod is that they do not want beside them",
    ),
    Case(
        "anti-affinity of pods that are there",
        [X.group(2, C(cpu=8))],
        pods=[X.pod("p", "n0", affinity=anti())],
        says="1 node where pod p wants no such pod beside it",
    ),
    Case(
        "two groups on one node that keep apart",
        [X.group(1, affinity=anti(app="b")), X.group(1, name="other", labels={"app": "b"})],
        X.nodes(1),
        says="1 pod of worker and 1 pod of other fit one by one, and not together: no way to place them leaves room for the last",
    ),
    Case(
        "all on one node, which is too small",
        [X.group(5, C(cpu=2), affinity=required("podAffinity", HOST, {"app": "a"}))],
        says="all must be on one node",
    ),
    Case(
        "beside a pod that nobody has",
        [X.group(1, affinity=required("podAffinity", HOST, {"app": "b"}))],
        says="without a pod that they must be beside",
    ),
    Case(
        "spread with a node that is full",
        [X.group(3, C(cpu=4), topologySpreadConstraints=[spread(1, HOST)])],
        [X.node("n0"), X.node("n1", cpu=0)],
        says="their numbers in 2 domains may differ by 1 at most",
    ),
    Case(
        "spread with a node that is cordoned",
        [X.group(2, C(cpu=4), topologySpreadConstraints=[spread(1, HOST)])],
        [X.node("n0"), X.node("n1", cordoned=True)],
    ),
    Case(
        "spread with pods that are there",
        [X.group(2, C(cpu=4), topologySpreadConstraints=[spread(1, HOST)])],
        [X.node("n0"), X.node("n1", cpu=0)],
        [X.pod("p", "n0", labels={"app": "a"})],
    ),
    Case(
        "spread over more zones than there are",
        [X.group(3, topologySpreadConstraints=[spread(1, ZONE, minDomains=3)])],
        ZONES,
    ),
    Case(
        "spread over nodes without the label",
        [X.group(1, topologySpreadConstraints=[spread(1, ZONE)])],
        says="2 nodes without the label topology",
    ),
    Case(
        "a quota of CPUs",
        [X.group(2, C(cpu=4))],
        more={"quotas": [X.quota({"requests.cpu": "10"}, {"requests.cpu": "3"})]},
        says="ResourceQuota q leaves 7 of 10 requests.cpu, and 8 are needed",
    ),
    Case(
        "a quota of devices",
        [X.group(2, C(gpu=1))],
        X.nodes(2, gpu=1),
        more={"quotas": [X.quota({f"requests.{GPU}": "1"})]},
    ),
    Case(
        "a quota of memory limits",
        [X.group(2, C(limits={"memory": "1Gi"}))],
        more={"quotas": [X.quota({"limits.memory": "1536Mi"})]},
        says="leaves 1.5Gi of 1.5Gi limits.memory, and 2Gi are needed",
    ),
    Case("a quota of pods", [X.group(3)], more={"quotas": [X.quota({"pods": "2"})]}),
    Case(
        "a quota that is overdrawn",
        [X.group(1)],
        more={"quotas": [X.quota({"pods": "2"}, {"pods": "3"})]},
        says="leaves 0 of 2 pods",
    ),
    Case(
        "a quota of which containers must speak",
        [X.group(1)],
        more={"quotas": [X.quota({"limits.cpu": "9"})]},
        says="ResourceQuota q: every container must say limits.cpu, and group worker does not",
    ),
    Case(
        "a quota of pods that end",
        [X.group(2, activeDeadlineSeconds=9)],
        more={"quotas": [X.quota({"pods": "1"}, scopes=["Terminating"])]},
    ),
    Case("a quota of best effort", [X.group(2)], more={"quotas": [X.quota({"pods": "1"}, scopes=["BestEffort"])]}),
    Case(
        "a quota of this priority",
        [X.group(2, priorityClassName="high")],
        more={
            "quotas": [
                X.quota(
                    {"pods": "1"},
                    scopeSelector={
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                    },
                )
            ]
        },
    ),
    Case(
        "a quota of claims",
        [],
        objects=[stateful_set(2, X.template(), volumeClaimTemplates=[wants("data")])],
        more={**claims(), "quotas": [X.quota({"requests.storage": "19Gi"})]},
        says="leaves 19Gi of 19Gi requests.storage, and 20Gi are needed",
    ),
    Case(
        "defaults that are too large",
        [X.group(3)],
        X.nodes(1),
        more={"ranges": [X.limits(default={"cpu": "3"})]},
        says="2 of 3 pods",
    ),
    Case(
        "a maximum",
        [X.group(1, C(limits={"memory": "20Gi"}))],
        more={"ranges": [X.limits(max={"memory": "16Gi"})]},
        says="LimitRange l: container main of group worker wants 20Gi of memory, 16Gi is the most",
    ),
    Case(
        "a maximum of the pod",
        [X.group(1, C("a", limits={"cpu": "2"}), C("b", limits={"cpu": "2"}))],
        more={"ranges": [X.limits(type="Pod", max={"cpu": "3"})]},
        says="a pod of group worker wants 4 of cpu, 3 is the most",
    ),
    Case(
        "a maximum without a limit",
        [X.group(1)],
        more={"ranges": [X.limits(type="Pod", max={"cpu": "3"})]},
        says="has no limit of cpu",
    ),
    Case(
        "a minimum",
        [X.group(1, C(cpu="1m"))],
        more={"ranges": [X.limits(min={"cpu": "100m"})]},
        says="requests 0.001 of cpu, at least 0.1 is demanded",
    ),
    Case(
        "a ratio of limit and request",
        [X.group(1, C(limits={"cpu": "4"}, cpu=1))],
        more={"ranges": [X.limits(maxLimitRequestRatio={"cpu": "2"})]},
        says="has a limit of cpu of more than 2 times its request",
    ),
    Case(
        "more than an autoscaler adds",
        [X.group(3, C(**{"google.com__tpu": 4}))],
        [],
        templates=[TPU],
        says="2 of 3 pods",
    ),
    Case("DaemonSets on new nodes", [X.group(2, C(cpu=8))], [], templates=[TPU], more={"daemon_sets": [DAEMON]}),
    Case(
        "a claim that is not there",
        [X.group(1, **mounts("c"))],
        more=claims(),
        says="2 nodes whatever they are: claim c does not exist",
    ),
    Case(
        "a claim of one pod, of two",
        [X.group(2, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOncePod", volume="v"), v=volume()),
        says="claim c is for one pod (ReadWriteOncePod)",
    ),
    Case(
        "a claim of one pod that has one",
        [X.group(1, **mounts("c"))],
        pods=[X.pod("p", "n0", **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOncePod", volume="v"), v=volume()),
    ),
    Case(
        "a claim of one node, and more pods than it holds",
        [X.group(3, C(cpu=4), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
        says="all must be on one node",
    ),
    Case(
        "a claim that is attached to a node that is full",
        [X.group(1, C(cpu=4), **mounts("c"))],
        pods=[X.pod("p", "n0", C(cpu=8), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
        says="1 node while claim c (ReadWriteOnce) is attached elsewhere",
    ),
    Case(
        "a volume on another node",
        [X.group(3, C(cpu=4), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", volume="v"), v=volume("n1")),
        says="1 node from where the volume of claim c cannot be reached",
    ),
    Case(
        "ports of the node",
        [X.group(3, {**C(), "ports": [{"containerPort": 80, "hostPort": 80}]})],
        says="each with host port 80/TCP",
    ),
    Case("the network of the node", [X.group(3, {**C(), "ports": [{"containerPort": 8471}]}, hostNetwork=True)]),
    Case(
        "a port that is taken",
        [X.group(2, {**C(), "ports": [{"hostPort": 80}]})],
        pods=[X.pod("p", "n0", {**C(), "ports": [{"hostPort": 80}]})],
        says="1 node with too little free: 0 80/TCP",
    ),
    Case(
        "groups that need more than there is",
        [X.group(3, C(gpu=1)), X.group(2, C(gpu=1, cpu=1), name="other")],
        X.nodes(4, gpu=1),
        says="3 pods of worker and 2 pods of other fit one by one, and not together: 5 nvidia.com/gpu are needed, and 4 are free",
    ),
    Case(
        "groups that need the same node",
        [X.group(1, C(cpu=6)), X.group(1, C(cpu=5), name="other"), X.group(1, C(cpu=4), name="third")],
        says="no way to place them leaves room for the last",
    ),
    Case("a group of several", [X.group(1), X.group(1, C(gpu=1), name="other")], says="0 of 1 pod of group other fit"),
    Case(
        "a JobSet",
        [],
        objects=[
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "j"},
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "slice",
                            "replicas": 2,
                            "template": {
                                "spec": {"parallelism": 2, "completions": 2, "template": X.template(C(cpu=8))}
                            },
                        }
                    ]
                },
            }
        ],
        says="2 of 4 pods of group j-slice fit",
    ),
    Case(
        "a PyTorchJob",
        [],
        objects=[
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": {"name": "p"},
                "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": X.template(C(cpu=8))}}},
            }
        ],
        says="2 of 3 pods of group p-worker fit",
    ),
    Case(
        "a PersiaJob",
        [],
        objects=[persia_job(5)],
        says="4 of 5 pods of group p-embedding-ps fit",
    ),
    Case(
        "the gateway of a PersiaJob",
        [],
        [X.node("n0", pods=2)],
        objects=[persia_job(2)],
        says="fit one by one, and not together",
    ),
    Case(
        "what is certain counts before what is not judged",
        [X.group(3, C(cpu=8), schedulerName="mine")],
        says="2 of 3 pods",
    ),
]

NOT_JUDGED = [
    Case(
        "order of two groups",
        [X.group(1, C(cpu=8)), X.group(2, C(cpu=4), name="other")],
        says="there is room for all, but the scheduler places one pod after the",
    ),
    Case("another scheduler", [X.group(1, schedulerName="mine")], says="scheduler mine of group worker"),
    Case(
        "a queue of Kueue",
        [X.group(1, labels={"kueue.x-k8s.io/queue-name": "q"})],
        says="when Kueue's queue q admits the pods of group worker",
    ),
    Case(
        "a queue of Kueue on the object",
        [],
        objects=[{**job(X.template()), "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}],
        says="when Kueue's queue q admits the pods of group j",
    ),
    Case("gates", [X.group(1, schedulingGates=[{"name": "x"}])], says="scheduling gates"),
    Case("a node by name", [X.group(1, nodeName="n0")], says="nodeName"),
    Case("devices by claim", [X.group(1, resourceClaims=[{"name": "x"}])], says="resource claims"),
    Case(
        "an unknown operator",
        [X.group(1, tolerations=[{"key": "a", "operator": "Gt", "value": "1"}])],
        says="an operator of a toleration",
    ),
    Case("an unknown runtime class", [X.group(1, runtimeClassName="k")], says="RuntimeClass k, which was not found"),
    Case(
        "affinity to another group",
        [
            X.group(1, affinity=required("podAffinity", HOST, {"app": "b"})),
            X.group(1, name="other", labels={"app": "b"}),
        ],
        says="affinity of group worker to another group",
    ),
    Case(
        "together in a zone",
        [X.group(1, affinity=required("podAffinity", ZONE, {"app": "a"}))],
        ZONES,
        says="affinity of group worker by topology",
    ),
    Case(
        "apart by zone",
        [X.group(2, affinity=anti(ZONE))],
        ZONES,
        says="anti-affinity of group worker by topology.kubernetes.io/zone",
    ),
    Case(
        "namespaces by label",
        [
            X.group(
                1,
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": HOST,
                                "labelSelector": APP,
                                "namespaceSelector": {"matchLabels": {"a": "b"}},
                            }
                        ]
                    }
                },
            )
        ],
        says="a selector of namespaces",
    ),
    Case(
        "two spreads",
        [X.group(1, topologySpreadConstraints=[spread(1, HOST), spread(1, ZONE)])],
        ZONES,
        says="topology spread of group worker: several",
    ),
    Case(
        "a spread that counts another group",
        [X.group(1, topologySpreadConstraints=[spread(1, HOST)]), X.group(1, name="other")],
        says="topology spread",
    ),
    Case(
        "a spread by another label",
        [X.group(1, topologySpreadConstraints=[spread(1, "rack")])],
        X.nodes(2, labels={"rack": "a"}),
        says="topology spread",
    ),
    Case(
        "a spread with nodes to come",
        [X.group(1, topologySpreadConstraints=[spread(1, HOST)])],
        templates=[TPU],
        says="nodes that do not exist yet",
    ),
    Case(
        "one node of several, by luck",
        [X.group(2, C(cpu=4), **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
        says="nothing makes the scheduler put all pods of worker onto one node, as their claim needs",
    ),
    Case(
        "a claim of two groups",
        [X.group(1, **mounts("c")), X.group(1, name="other", **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
        says="claim c is for one node (ReadWriteOnce), and groups worker and other use it",
    ),
    Case(
        "a claim that is attached",
        [X.group(1, **mounts("c"))],
        pods=[X.pod("p", "n0", **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume()),
        says="claim c (ReadWriteOnce) is attached to n0, which the scheduler does not know",
    ),
    Case(
        "a volume that cannot be read",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", volume="v")),
        says="volume of claim c of group worker cannot be read",
    ),
    Case(
        "volumes by hand",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", storageClassName="manual")),
        says="StorageClass manual makes none",
    ),
    Case(
        "no class",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", storageClassName="none")),
        says="there is no StorageClass that makes one",
    ),
    Case(
        "an empty class",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", storageClassName="")),
        says="there is no StorageClass",
    ),
    Case(
        "a zone that the class chooses",
        [X.group(1, **mounts("c"))],
        ZONES,
        more=claims(X.claim("c", "ReadWriteMany", storageClassName="early")),
        says="chooses a zone before the scheduler",
    ),
    Case(
        "a class of some zones",
        [X.group(1, **mounts("c"))],
        more=claims(X.claim("c", "ReadWriteMany", storageClassName="zonal")),
        says="has allowedTopologies",
    ),
    Case(
        "claims of an earlier run",
        [],
        objects=[stateful_set(1, X.template(), volumeClaimTemplates=[wants("data")])],
        more=claims(X.claim("data-s-0", "ReadWriteOnce", volume="v"), v=volume("n0")),
        says="claims data of group s are there",
    ),
    Case(
        "a quota of some claims",
        [],
        objects=[stateful_set(2, X.template(), volumeClaimTemplates=[wants("data")])],
        more={
            **claims(X.claim("data-s-0", "ReadWriteOnce", volume="v"), v=volume()),
            "quotas": [X.quota({"persistentvolumeclaims": "1"})],
        },
        says="persistentvolumeclaims of ResourceQuota q for the claims of group s",
    ),
    Case(
        "a quota of an unknown scope",
        [X.group(3)],
        more={"quotas": [X.quota({"pods": "1"}, scopes=["New"])]},
        says="scope New of ResourceQuota q",
    ),
    Case(
        "a disk without a claim",
        [X.group(1, volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "d"}}])],
        says="volume d of group worker: gcePersistentDisk",
    ),
    Case(
        "an ephemeral claim",
        [
            X.group(
                1, volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": wants("d", storageClassName="manual")}}]
            )
        ],
        more=claims(),
        says="makes none",
    ),
    Case(
        "an unknown kind",
        [X.group(1)],
        objects=[{"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "p"}}],
        says="the pods of Farm p",
    ),
    Case(
        "others that wait",
        [X.group(2, C(cpu=4))],
        pods=[X.pod("p", "", C(cpu=4), phase="Pending")],
        says="pod ml/p waits for the scheduler, too, and may take the room",
    ),
    Case(
        "no right to nodes",
        [X.group(1)],
        [],
        more={"unread": ["no right to list objects of kind Node (forbidden)"]},
        says="no right to list objects of kind Node",
    ),
    Case(
        "nodes that share a name",
        [X.group(2, affinity=anti())],
        X.nodes(3, labels={HOST: "same"}),
        says="nodes share the label kubernetes.io/hostname",
    ),
]

by_name: Callable[[Case], str] = lambda case: case.name  # noqa: E731


def test_there_are_enough_of_both() -> None:
    for cases in (FITS, DOES_NOT, NOT_JUDGED):
        assert len({case.name for case in cases}) == len(cases)
    assert min(len(FITS), len(DOES_NOT)) >= 40


@pytest.mark.parametrize("case", FITS, ids=by_name)
def test_it_fits(case: Case) -> None:
    found = asked(case)
    assert (found.fits, list(found.reasons), list(found.not_judged)) == (True, [], [])
    assert found.nearest == []
    assert found.message == "All pods fit at once."


@pytest.mark.parametrize("case", DOES_NOT, ids=by_name)
def test_it_does_not_fit(case: Case) -> None:
    found = asked(case)
    assert found.fits is False
    assert case.says in " ".join(found.reasons), found.reasons
    assert found.message.startswith("Not all pods fit at once. ")
    for row in found.nearest:
        groups = [
            {**group, "replicas": row["replicas"]} if group["name"] == row["name"] else group for group in case.groups
        ]
        if case.groups:  # it is true of the size that is named, and of no larger one
            assert asked(dataclasses.replace(case, groups=groups)).fits is not False
            more = [
                {**group, "replicas": row["replicas"] + 1} if group["name"] == row["name"] else group
                for group in case.groups
            ]
            assert asked(dataclasses.replace(case, groups=more)).fits is not True


@pytest.mark.parametrize("case", NOT_JUDGED, ids=by_name)
def test_it_is_not_judged(case: Case) -> None:
    if "unread" in case.more:
        case = dataclasses.replace(case, nodes=t.cast(t.Any, None))
    found = asked(case)
    assert (found.fits, list(found.reasons)) == (None, [])
    assert case.says in " | ".join(found.not_judged), found.not_judged
    assert found.message.startswith("Whether all pods fit at once is not judged: ")


def test_the_nearest_sizes_are_named() -> None:
    found = asked(Case("", [X.group(8, C(gpu=1)), X.group(2, C(cpu=1), name="server")], X.nodes(3, gpu=1)))
    assert found.nearest == [{"name": "worker", "replicas": 3}]
    assert found.groups == [
        {"name": "worker", "replicas": 8, "fitting": 3},
        {"name": "server", "replicas": 2, "fitting": 2},
    ]
    assert found.message == (
        "Not all pods fit at once. 3 of 8 pods of group worker fit, each with 1 nvidia.com/gpu: 3 nodes with room for 1. "
        "This fits: worker with 3."
    )


def test_what_needs_luck_has_a_nearest_size_that_does_not() -> None:
    """Two of the small ones on the node with 8 CPUs, one on each, would leave no room for the large one."""
    found = asked(
        Case("", [X.group(1, C(cpu=8)), X.group(2, C(cpu=3), name="small")], [*X.nodes(2), X.node("n2", cpu=3)])
    )
    assert found.fits is None
    assert {"name": "small", "replicas": 1} in found.nearest


def test_a_claim_of_many_groups_is_told_once() -> None:
    groups = [X.group(1, name=name, **mounts("c")) for name in ("server", "loader", "trainer")]
    found = asked(Case("", groups, more=claims(X.claim("c", "ReadWriteOnce", volume="v"), v=volume())))
    assert found.not_judged == ["claim c is for one node (ReadWriteOnce), and groups server, loader and trainer use it"]


def test_quota_alone_shrinks_the_size() -> None:
    case = Case("", [X.group(4, C(cpu=1))], more={"quotas": [X.quota({"requests.cpu": "3"})]})
    assert asked(case).nearest == [{"name": "worker", "replicas": 3}]


def test_spread_is_no_reason_where_no_node_is_left_to_spread_over() -> None:
    found = asked(Case("", [X.group(1, topologySpreadConstraints=[spread(1, HOST)])], X.nodes(2, cordoned=True)))
    assert "2 nodes cordoned" in found.message
    assert "may differ" not in found.message


def test_a_long_list_of_nodes_is_cut() -> None:
    found = asked(
        Case(
            "",
            [X.group(9, C(cpu=1))],
            [X.node(f"n{at}", taints=[{"key": f"t{at}", "effect": "NoSchedule"}]) for at in range(8)],
        )
    )
    assert "1 node with the taint t0:NoSchedule, which they do not tolerate, " in found.reasons[0]
    assert found.reasons[0].endswith("3 more nodes")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"name": "g", "replicas": 1, "template": {"spec": {}}}], "Group g has no containers. Its template needs spec.containers."),
        ([X.group(-1)], "Group worker cannot have -1 pods"),
        ([X.group(1, C(cpu="many"))], "cpu: 'many' is not a quantity"),
    ],
)  # fmt: skip
def test_what_is_no_group_is_refused(groups: list[Manifest], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked(Case("", groups))
    assert words in str(caught.value)


def test_a_gang_is_in_one_namespace() -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": name},
            "spec": {"containers": [C()]},
        }
        for name in "ab"
    ]
    with pytest.raises(InvalidInput, match="in one namespace"):
        judge(gang(pods, NAMESPACE), Seen())


def test_a_node_template_has_a_number_and_quantities() -> None:
    with pytest.raises(InvalidInput, match="cannot have -1 nodes"):
        Template.from_params({"name": "t", "count": -1, "allocatable": {}, "labels": {}, "taints": []})
    with pytest.raises(InvalidInput, match="is not a quantity"):
        Template.from_params({"name": "t", "count": 1, "allocatable": {"cpu": "x"}, "labels": {}, "taints": []})
