# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a cluster: what is free on each, and why the pods of a group cannot be there. No I/O."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.conditions import is_true
from .._kube.objects import Manifest, labels_of
from .affinity import allows_node, tolerates
from .groups import Group
from .resources import Amounts, added, amounts, taken

_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_PASSING = ("node.kubernetes.io/", "/uninitialized", "/agent-not-ready")
"""Parts of the keys of taints that controllers remove: those of node conditions, and those of what is not ready on the node yet."""
_STAYING = (_CORDONED["key"], "node.kubernetes.io/out-of-service")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """A node, with what is free on it now, and what is free at most once all pods have gone that may go."""

    name: str
    labels: Mapping[str, str]
    taints: list[Mapping[str, t.Any]]
    """The taints without those that controllers remove when the node is ready."""
    ready: bool
    free: Amounts
    most: Amounts

    def refusal(self, group: Group) -> str:
        """Return why the pods of a group cannot run on the node whatever is free there; empty if they can."""
        if not allows_node(group.spec, self.name, self.labels):
            return "without the labels that the pods select"
        tolerations = group.spec.get("tolerations") or ()
        for taint in self.taints:
            if taint.get("effect") != "PreferNoSchedule" and not any(tolerates(row, taint) for row in tolerations):
                value = f"={taint['value']}" if taint.get("value") else ""
                text = f"with the taint {taint['key']}{value}:{taint.get('effect')}, which they do not tolerate"
                return "cordoned" if taint["key"] == _CORDONED["key"] else text
        return ""

    def at_most(self, group: Group) -> int:
        """The number of pods of a group that the node can hold, once it is ready and all pods have gone that may go."""
        return 0 if self.refusal(group) else holds(self.most, group.takes)

    def for_sure(self, group: Group, others: Iterable[Group] = ()) -> int:
        """The number of pods of a group that fit on the node now, beside as many pods of other groups as it can hold."""
        free = self.free
        for other in others:
            free = added(free, other.takes, -min(self.at_most(other), other.replicas))
        return holds(free, group.takes) if self.ready and not self.refusal(group) else 0


def holds(free: Mapping[str, int], takes: Mapping[str, int]) -> int:
    """The number of pods that fit: the floor of free by request. A resource that is not requested may be overdrawn."""
    return max(min(free.get(name, 0) // value for name, value in takes.items() if value > 0), 0)


def nodes(items: Iterable[Manifest], staying: Sequence[Manifest], going: Sequence[Manifest]) -> list[Node]:
    """The nodes, without what pods on them request: those that stay, and those that may go or are only nominated for a node."""
    bound = [pod for pod in staying if pod["spec"].get("nodeName")]
    nominated = [pod for pod in staying if not pod["spec"].get("nodeName")]
    needed, more = _requested(bound), _requested([*going, *nominated])
    return [_node(item, needed, more) for item in items]


def _requested(pods: Iterable[Manifest]) -> dict[str, Amounts]:
    """The requests of pods by node."""
    found: dict[str, Amounts] = {}
    for pod in pods:
        found[node_of(pod)] = added(found.get(node_of(pod), {}), taken(pod["spec"]))
    return found


def _node(item: Manifest, needed: Mapping[str, Amounts], more: Mapping[str, Amounts]) -> Node:
    name, spec = item["metadata"]["name"], item.get("spec") or {}
    most = added(amounts((item.get("status") or {}).get("allocatable")), needed.get(name, {}), -1)
    taints = [*(spec.get("taints") or ()), *([_CORDONED] if spec.get("unschedulable") else [])]
    lasting = [row for row in taints if row["key"] in _STAYING or not any(part in row["key"] for part in _PASSING)]
    return Node(
        name=name,
        labels=labels_of(item),
        taints=lasting,
        ready=is_true(item, "Ready") and lasting == taints,
        free=added(most, more.get(name, {}), -1),
        most=most,
    )


def has_ended(pod: Manifest) -> bool:
    """Whether a pod has ended, so that it takes nothing of its node."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def node_of(pod: Manifest) -> str:
    """The node of a pod, or the one that the scheduler has nominated for it."""
    return pod["spec"].get("nodeName") or (pod.get("status") or {}).get("nominatedNodeName") or ""
