# SPDX-License-Identifier: GPL-3.0-or-later
"""Features that are not judged: those of pods that decide on their nodes, and those that may free capacity for a gang. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._core.conditions import is_true
from .._kube.objects import Manifest, labels_of
from .affinity import may_repel, pod_terms
from .groups import Group
from .nodes import Node
from .resources import containers_of

_FIELDS = ("resourceClaims", "schedulingGates", "schedulingGroup", "workloadRef")
"""Fields of a pod that decide on its node, or when it is scheduled."""
_LOCAL_VOLUMES = {"configMap", "downwardAPI", "emptyDir", "hostPath", "image", "nfs", "projected", "secret"}
"""Volumes that every node can mount."""
_VIRTUAL = "vcluster.loft.sh/fake-node"
_AUTOSCALERS = ("cluster-autoscaler", "karpenter")
_INSIDE = {"aws", "kind", "k3s"}
"""Providers of machines whose autoscalers run in the cluster. Those of others are not seen from inside."""


def of_group(group: Group, pods: Iterable[Manifest]) -> list[str]:
    """Features of a group that the preflight does not evaluate."""
    spec, found = group.spec, [*group.caveats, *deciders(group)]
    found += [field for field in _FIELDS if spec.get(field)]
    found += [kind for kind in ("podAffinity", "podAntiAffinity") if pod_terms(spec, kind)]
    if any(row.get("whenUnsatisfiable") == "DoNotSchedule" for row in spec.get("topologySpreadConstraints") or ()):
        found.append("topologySpreadConstraints")
    ports = [port for container in containers_of(spec) for port in container.get("ports") or ()]
    if any(port.get("hostPort") or spec.get("hostNetwork") for port in ports):
        found.append("hostPort")
    found += sorted({key for volume in spec.get("volumes") or () for key in volume} - {"name"} - _LOCAL_VOLUMES)
    repelling = (pod["metadata"]["name"] for pod in pods if may_repel(pod, group.namespace, group.labels))
    found += [f"podAntiAffinity of pod {name} to pods" for name in repelling][:1]
    return [f"{what} of group {group.name}" for what in dict.fromkeys(found)]


def deciders(group: Group) -> list[str]:
    """Features that decide on the nodes of a group's pods instead of the default scheduler."""
    spec, found = group.spec, []
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        found.append(f"schedulerName {spec['schedulerName']}")
    if spec.get("nodeName"):
        found.append("nodeName")
    if any(row.get("operator") not in (None, "", "Equal", "Exists") for row in spec.get("tolerations") or ()):
        found.append("an operator of a toleration")
    if group.queue:
        found.append(f"when Kueue's queue {group.queue} admits the pods")
    return found


def rival(nodes: Iterable[Node], pods: Iterable[Manifest]) -> list[str]:
    """A pod of others that waits for the scheduler, too, and could be placed first."""
    for pod in pods:
        if not (pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates")):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            waiting = Group(name=name, replicas=1, namespace=namespace, spec=pod["spec"])
            if any(node.for_sure(waiting) for node in nodes):
                return [f"pod {namespace}/{name} waits for the scheduler, too, and may take the room"]
    return []


def may_go(pod: Manifest, groups: Iterable[Group]) -> bool:
    """Whether the gang may get the room of a pod: it is being deleted or resized, or the scheduler may preempt it."""
    resized = is_true(pod, "PodResizePending") or is_true(pod, "PodResizeInProgress")
    lower = any((pod["spec"].get("priority") or 0) < _priority(group) for group in groups)
    return bool(pod["metadata"].get("deletionTimestamp")) or resized or lower


def _priority(group: Group) -> float:
    """The priority by which pods of a group preempt others; where only its class is known, the highest there is."""
    if group.spec.get("preemptionPolicy") == "Never":
        return float("-inf")
    return float(group.spec.get("priority", "inf" if group.spec.get("priorityClassName") else 0))


def autoscaler(nodes: Sequence[Manifest], pods: Iterable[Manifest] | None) -> str:
    """Signs that nodes may be added: programs in the cluster (PODS; None if not all can be seen), and the providers of its nodes."""
    if any(_VIRTUAL in labels_of(node) for node in nodes) or not nodes:
        return "a virtual cluster shows only some nodes of its host" if nodes else "the cluster has no nodes"
    providers = {(node.get("spec") or {}).get("providerID", "").partition(":")[0] for node in nodes} - {""}
    for name in sorted(providers - _INSIDE):
        return f"nodes are machines of {name}"
    if providers and pods is None:
        return "pods of an autoscaler cannot be seen"
    for pod in pods or ():
        names = [pod["metadata"]["name"], *(one.get("image", "") for one in containers_of(pod["spec"]))]
        if any(program in name for program in _AUTOSCALERS for name in names):
            return "pod {namespace}/{name} runs".format(**pod["metadata"])
    return ""
