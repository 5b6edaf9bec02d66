# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may give room to a gang for which there is none now: pods that go, nodes that come. No I/O.

What does not fit on the cluster as it is, and does on the cluster as it may be, is not judged.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.brief import plural
from .._core.conditions import is_true
from .._kube.objects import Manifest, labels_of
from .._kube.storage import class_of
from .admission import settled
from .groups import Group, of_pod
from .judge import OPERATORS, Gang, Seen
from .places import has_ended
from .volumes import claim_names

_PASSING = ("node.kubernetes.io/", "/uninitialized", "/agent-not-ready")
"""Of keys of taints that go by themselves: of conditions of the node, and of what is not ready on it yet."""
_STAYING = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/out-of-service")
_FAKE = "vcluster.loft.sh/fake-node"
_OWN_AUTOSCALERS = ("cluster-autoscaler", "karpenter")
_SHOWN = ("aws", "kind", "k3s")
"""Providers of machines whose autoscalers run in the cluster. Those of others are not seen from inside."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class More:
    """What is read of a cluster that has no room."""

    autoscaler: str = ""
    """What is known of one, empty if nothing is."""
    attaching: frozenset[str] = frozenset()
    """Drivers that attach a volume to one node only."""


def autoscaler(nodes: Sequence[Manifest], pods: Sequence[Manifest] | None) -> str:
    """What shows that machines may be added, by what runs in the cluster and whose machines its nodes are."""
    if not nodes:
        return "the cluster has no nodes"
    if any(_FAKE in labels_of(node) for node in nodes):
        return "a virtual cluster shows only some nodes of its host"
    providers = {(node.get("spec") or {}).get("providerID", "").partition(":")[0] for node in nodes} - {""}
    for name in sorted(providers - set(_SHOWN)):
        return f"nodes are machines of {name}"
    if pods is None:
        return "pods of an autoscaler cannot be seen" if providers else ""
    found = next((pod for pod in pods if not has_ended(pod) and _is_autoscaler(pod)), None)
    return "pod {namespace}/{name} runs".format(**found["metadata"]) if found else ""


def _is_autoscaler(pod: Manifest) -> bool:
    said = [pod["metadata"]["name"], *(one.get("image", "") for one in pod["spec"].get("containers") or ())]
    return any(name in text for name in _OWN_AUTOSCALERS for text in said)


def attached_claims(gang: Gang, seen: Seen) -> dict[str, Manifest]:
    """The claims that the pods of the gang share and that are for one node."""
    names = {name for group in gang.groups for name in claim_names(group.spec)}
    there = {**gang.claims, **(seen.claims or {})}
    return {name: there[name] for name in names & there.keys() if _is_for_one_node(there[name])}


def _is_for_one_node(claim: Manifest) -> bool:
    return set(claim["spec"].get("accessModes") or ()) == {"ReadWriteOnce"}


def driver_of(claim: Manifest, seen: Seen) -> str:
    """The driver of a claim's volume, as far as it is known."""
    volume = seen.volumes.get(claim["spec"].get("volumeName") or "")
    if volume:
        return str((volume["spec"].get("csi") or {}).get("driver") or "")
    found = class_of((seen.classes or {}).values(), claim["spec"].get("storageClassName"))
    return str((found or {}).get("provisioner") or "")


def doubts(gang: Gang, seen: Seen, more: More) -> tuple[list[str], Gang, Seen]:
    """What may give room, and the gang and the cluster as if it had."""
    found: list[str] = []
    pods = _with_those_that_stay(gang, seen.pods, found)
    claims = _reachable(gang, seen, more, found)
    hopeful = dataclasses.replace(
        seen,
        nodes=_ready(seen.nodes, found),
        pods=pods,
        quotas=[settled(item, _counted(gang, pods)) for item in seen.quotas or ()] if pods is not None else seen.quotas,
        claims={**seen.claims, **{name: claims[name] for name in claims if name in seen.claims}}
        if seen.claims
        else seen.claims,
    )
    asked = dataclasses.replace(
        gang, claims={**gang.claims, **{name: claims[name] for name in claims if name in gang.claims}}
    )
    others = [text for group in gang.groups for text in _others(group)]
    if more.autoscaler and not gang.templates:
        others.append(f"whether nodes are added ({more.autoscaler})")
    if others:
        hopeful = dataclasses.replace(hopeful, nodes=None)
    if any(group.queue for group in gang.groups):
        hopeful = dataclasses.replace(hopeful, nodes=None, quotas=(), ranges=())
        others.append("what Kueue admits")
    return [*others, *found], asked, hopeful


def _others(group: Group) -> list[str]:
    """Who else may decide where the pods of a group go."""
    spec, found = group.spec, []
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        found.append(f"what scheduler {spec['schedulerName']} does")
    if spec.get("nodeName"):
        found.append(f"node {spec['nodeName']}, which the pods name")
    if any(row.get("operator") not in OPERATORS for row in spec.get("tolerations") or ()):
        found.append("an operator of a toleration")
    return found


def _with_those_that_stay(gang: Gang, pods: Sequence[Manifest] | None, found: list[str]) -> list[Manifest] | None:
    """The pods without those that are being deleted and those that the scheduler may remove for the gang."""
    if pods is None:
        return None
    first = max((_priority(group.spec) for group in gang.groups), default=0)
    staying, going, lower = [], 0, 0
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            going += 1
        elif not has_ended(pod) and (pod["spec"].get("priority") or 0) < first:
            lower += 1
        else:
            staying.append(pod)
    if going:
        found.append(f"room of {plural(going, 'pod')} that are being deleted")
    if lower:
        found.append(f"room of {plural(lower, 'pod')} of lower priority, which the scheduler may remove")
    return staying


def _priority(spec: Mapping[str, t.Any]) -> float:
    """The priority of the pods; where only its class is known, any."""
    if spec.get("preemptionPolicy") == "Never":
        return float("-inf")
    return float(spec.get("priority", "inf" if spec.get("priorityClassName") else 0))


def _ready(nodes: Sequence[Manifest] | None, found: list[str]) -> list[Manifest] | None:
    """The nodes as if all of them were ready."""
    if nodes is None:
        return None
    waiting = [node for node in nodes if _may_become_ready(node)]
    if waiting:
        names = ", ".join(node["metadata"]["name"] for node in waiting[:3])
        found.append(
            f"{plural(len(waiting), 'node')} that may become ready ({names}{', ...' if len(waiting) > 3 else ''})"
        )
    return [_as_ready(node) if _may_become_ready(node) else node for node in nodes]


def _may_become_ready(node: Manifest) -> bool:
    return not is_true(node, "Ready") or bool(_passing(node))


def _passing(node: Manifest) -> list[Mapping[str, t.Any]]:
    rows = (node.get("spec") or {}).get("taints") or ()
    return [row for row in rows if any(part in row["key"] for part in _PASSING) and row["key"] not in _STAYING]


def _as_ready(node: Manifest) -> Manifest:
    spec, status, gone = node.get("spec") or {}, node.get("status") or {}, _passing(node)
    taints = [row for row in spec.get("taints") or () if row not in gone]
    conditions = [{"type": "Ready", "status": "True"}]
    return {**node, "spec": {**spec, "taints": taints}, "status": {**status, "conditions": conditions}}


def _counted(gang: Gang, pods: Iterable[Manifest] | None) -> list[Group]:
    """The pods that quotas count, each as a group; those that will have gone are counted by who subtracts them."""
    return [
        of_pod(pod)
        for pod in pods or ()
        if pod["metadata"].get("namespace") in {group.namespace for group in gang.groups} and not has_ended(pod)
    ]


def _reachable(gang: Gang, seen: Seen, more: More, found: list[str]) -> dict[str, Manifest]:
    """Claims for one node whose driver is not known to hold them to one, as if they were for many."""
    loose = {
        name: {**claim, "spec": {**claim["spec"], "accessModes": ["ReadWriteMany"]}}
        for name, claim in attached_claims(gang, seen).items()
        if driver_of(claim, seen) not in more.attaching
    }
    if loose:
        found.append(f"whether the driver of claim {', '.join(sorted(loose))} (ReadWriteOnce) keeps it to one node")
    return loose
