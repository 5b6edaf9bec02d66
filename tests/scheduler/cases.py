# SPDX-License-Identifier: GPL-3.0-or-later
"""Random clusters, each with pods that are there and a gang that is asked for. The same seed gives the same ones.

All cases stand on one API server: the nodes of a case have its label, which its pods select, and its pods have a namespace.
"""

import dataclasses
import random
import typing as t

Manifest = dict[str, t.Any]
CASE = "muster.ml/gang-case"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
HIGH, OVERHEAD = "gang-high", "gang-overhead"
LATE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
"""Nodes have this taint where the machine is so busy that their heartbeats come late."""
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    nodes: list[Manifest]
    pods: list[Manifest]
    groups: list[Manifest]
    others: list[Manifest]
    """Quotas, limits, claims and volumes."""


def common() -> list[Manifest]:
    """What all cases share."""
    return [
        {**made("scheduling.k8s.io/v1", "PriorityClass", HIGH), "value": 1000},
        {**made("node.k8s.io/v1", "RuntimeClass", OVERHEAD), "handler": "gang", "overhead": {"podFixed": {"cpu": "500m"}}},
    ]


def made(api_version: str, kind: str, name: str, namespace: str = "", **content: t.Any) -> Manifest:
    metadata = {"name": name, "labels": {CASE: namespace or "all"}, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


class Maker:
    """Makes one case."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.chance = chance
        self.is_plain = self.often(0.5)
        """Whether the case has only what the preflight judges."""

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def at_times(self, share: float) -> bool:
        """As often, of what the preflight does not judge."""
        return self.often(share) and not self.is_plain

    def case(self) -> Case:
        nodes = [self.node(number) for number in range(self.chance.randint(2, 5))]
        names = [node["metadata"]["name"] for node in nodes]
        pods = [self.existing(number, self.chance.choice(names)) for number in range(self.chance.randint(0, 5))]
        groups = [self.group(name) for name in "abc"[: self.chance.choice((1, 1, 1, 1, 2, 2, 3))]]
        others = [*self.quota(), *self.limits(), *self.claim(groups)]
        return Case(name=self.name, nodes=nodes, pods=pods, groups=groups, others=others)

    def node(self, number: int) -> Manifest:
        pick = self.chance.choice
        name = f"{self.name}-{number}"
        labels = {CASE: self.name, "type": "kwok", HOST: name, ZONE: pick("xyz"), "pool": pick(("cpu", "gpu"))}
        taints = []
        if labels["pool"] == "gpu" and self.often(0.3):
            taints.append({"key": GPU, "value": "present", "effect": pick(("NoSchedule", "NoExecute"))})
        if self.often(0.1):
            taints.append({"key": "team", "value": "b", "effect": pick(("NoSchedule", "PreferNoSchedule"))})
        capacity = {
            "cpu": pick(("2", "4", "4", "7500m", "8")),
            "memory": pick(("4Gi", "8Gi", "16Gi")),
            "pods": pick(("3", "110", "110")),
            "ephemeral-storage": "20Gi",
            **({GPU: pick(("1", "2", "4"))} if labels["pool"] == "gpu" else {}),
        }
        ready = not self.often(0.05)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, **({"unschedulable": True} if self.often(0.06) else {})},
            "status": {"capacity": capacity, "allocatable": capacity, "ready": ready},
        }

    def container(self, name: str = "main", **more: t.Any) -> Manifest:
        pick = self.chance.choice
        requests: Manifest = {}
        if self.often(0.8):
            requests["cpu"] = pick(("250m", "500m", "1", "1", "1500m", "2"))
        if self.often(0.4):
            requests["memory"] = pick(("512Mi", "2Gi", "3Gi"))
        if self.often(0.1):
            requests["ephemeral-storage"] = pick(("4Gi", "9Gi"))
        gpus = {GPU: pick(("1", "1", "2"))} if name == "main" and self.often(0.15) else {}
        return {
            "name": name,
            "image": "registry.example.com/x:1",
            "resources": {"requests": {**requests, **gpus}, **({"limits": gpus} if gpus else {})},
            **more,
        }

    def anti(self, key: str = HOST) -> Manifest:
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": self.chance.choice("abc")}}}
        return {"podAntiAffinity": {HARD: [term]}}

    def existing(self, number: int, node: str) -> Manifest:
        """A pod that is there."""
        spec = {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [self.container()],
            **({"affinity": self.anti(self.chance.choice((HOST, ZONE)))} if self.at_times(0.15) else {}),
        }
        pod = made("v1", "Pod", f"there-{number}", self.name, spec=spec)
        pod["metadata"]["labels"]["app"] = self.chance.choice("abcd")
        return pod

    def group(self, name: str) -> Manifest:
        spec: Manifest = {
            "nodeSelector": {CASE: self.name, **({"pool": self.chance.choice(("cpu", "gpu"))} if self.often(0.1) else {})},
            "terminationGracePeriodSeconds": 0,
            "containers": [self.container(), *([self.container("beside")] if self.often(0.15) else [])],
            **self.more(name),
        }
        spec["tolerations"] = [*spec.get("tolerations", ()), LATE]
        template = {"metadata": {"labels": {CASE: self.name, "app": name}}, "spec": spec}
        return {"name": name, "replicas": self.chance.choice((1, 1, 2, 2, 3, 5)), "template": template}

    def more(self, name: str) -> Manifest:
        """What else the pods of a group may ask for."""
        pick, spec = self.chance.choice, t.cast(Manifest, {})
        if self.often(0.4):
            spec["tolerations"] = pick(
                ([{"key": GPU, "operator": "Exists"}], [{"key": "team", "value": "b"}], [{"operator": "Exists", "effect": "NoSchedule"}])
            )
        if self.often(0.15):
            init = self.container("init", **({"restartPolicy": "Always"} if self.often(0.5) else {}))
            spec["initContainers"] = [init]
        if self.at_times(0.1):
            spec["containers"] = [self.container(ports=[{"containerPort": 80, "hostPort": 8080}])]
        if self.often(0.05):
            spec["runtimeClassName"] = OVERHEAD
        if self.often(0.07):
            spec["priorityClassName"] = HIGH
        if self.at_times(0.2):
            spec["topologySpreadConstraints"] = [self.spread(name)]
        if affinity := self.affinity(name):
            spec["affinity"] = affinity
        return spec

    def spread(self, name: str) -> Manifest:
        firm = self.often(0.7)
        return {
            "maxSkew": self.chance.randint(1, 2),
            "topologyKey": self.chance.choice((HOST, ZONE)),
            "whenUnsatisfiable": "DoNotSchedule" if firm else "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": name}},
            **({"nodeTaintsPolicy": "Honor"} if self.often(0.5) else {}),
            **({"minDomains": self.chance.randint(1, 3)} if firm and self.often(0.2) else {}),
        }

    def affinity(self, name: str) -> Manifest:
        found: Manifest = {}
        if self.often(0.15):
            row = {"key": ZONE, "operator": self.chance.choice(("In", "NotIn")), "values": [self.chance.choice("xyz")]}
            found["nodeAffinity"] = {HARD: {"nodeSelectorTerms": [{"matchExpressions": [row]}]}}
        if self.at_times(0.2):
            found |= self.anti()
        elif self.at_times(0.08):
            term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": self.chance.choice((name, "d"))}}}
            found["podAffinity"] = {HARD: [term]}
        return found

    def quota(self) -> list[Manifest]:
        if not self.often(0.15):
            return []
        hard = self.chance.choice(
            ({"pods": "6"}, {"requests.cpu": "6", "requests.memory": "32Gi"}, {f"requests.{GPU}": "2"}, {"limits.memory": "4Gi"})
        )
        return [made("v1", "ResourceQuota", "quota", self.name, spec={"hard": hard})]

    def limits(self) -> list[Manifest]:
        if not self.often(0.15):
            return []
        row = self.chance.choice(
            (
                {"defaultRequest": {"cpu": "1", "memory": "1Gi"}},
                {"default": {"memory": "1Gi"}, "defaultRequest": {"memory": "1Gi"}},
                {"max": {"cpu": "2"}, "default": {"cpu": "2"}},
            )
        )
        return [made("v1", "LimitRange", "limits", self.name, spec={"limits": [{"type": "Container", **row}]})]

    def claim(self, groups: list[Manifest]) -> list[Manifest]:
        """A claim of the first group, whose volume is in one zone."""
        if not self.at_times(0.12):
            return []
        mode = self.chance.choice(("ReadWriteMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"))
        row = {"key": ZONE, "operator": "In", "values": [self.chance.choice("xyz")]}
        size = {"storage": "1Gi"}
        kept = {"accessModes": [mode], "storageClassName": ""}
        groups[0]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        volume = made(
            "v1", "PersistentVolume", f"{self.name}-data",
            spec={
                **kept,
                "capacity": size,
                "csi": {"driver": "gang.example.com", "volumeHandle": self.name},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.name, "name": "data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [row]}]}},
            },
        )  # fmt: skip
        claim = made(
            "v1", "PersistentVolumeClaim", "data", self.name,
            spec={**kept, "volumeName": f"{self.name}-data", "resources": {"requests": size}},
        )  # fmt: skip
        return [volume, claim]


def cases(seed: int, number: int) -> list[Case]:
    draws = (random.Random(f"{seed}/{at}") for at in range(number))  # noqa: S311  # no secret
    return [Maker(f"gang-{at}", draw).case() for at, draw in enumerate(draws)]
