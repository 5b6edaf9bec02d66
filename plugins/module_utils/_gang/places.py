# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes with what is free on them, and nodes that an autoscaler would make. No I/O.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.conditions import condition, is_true
from .._core.errors import InvalidInput
from .._kube.objects import Manifest, labels_of
from .amounts import HOST_PORT, PODS, Amounts, added, amounts, taken, taken_by
from .groups import Group
from .matching import HOSTNAME, keeping_out, may_be_on, taint_text

_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_GKE = "cloud.google.com/gke-nodepool"
"""On nodes of GKE, whose API server adds to pods the toleration of each extended resource that they request."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """A node, with what is free on it."""

    name: str
    labels: Mapping[str, str]
    free: Amounts
    taints: Sequence[Mapping[str, t.Any]] = ()
    unready: str = ""
    is_new: bool = False
    """It is not there yet."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    """Nodes that an autoscaler can add."""

    name: str
    count: int
    allocatable: Mapping[str, t.Any]
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: Sequence[Mapping[str, t.Any]] = ()

    @classmethod
    def from_params(cls, row: Mapping[str, t.Any]) -> Template:
        """The template that options describe; a wrong quantity is refused here."""
        amounts(row["allocatable"])
        if row["count"] < 0:
            raise InvalidInput(f"Node template {row['name']} cannot have {row['count']} nodes")
        return cls(**{key: value for key, value in row.items() if value is not None})


def is_running(pod: Manifest) -> bool:
    """Whether a pod takes room on a node: it is on one, or the scheduler has kept room for it there, and it has not ended."""
    return bool(node_of(pod)) and not has_ended(pod)


def has_ended(pod: Manifest) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def node_of(pod: Manifest) -> str:
    """The node of a pod, or the one that the scheduler means to give it."""
    return (pod.get("spec") or {}).get("nodeName") or (pod.get("status") or {}).get("nominatedNodeName") or ""


def live(nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> list[Place]:
    """The nodes that are there."""
    used: dict[str, Amounts] = {}
    for pod in pods:
        if is_running(pod):
            used[node_of(pod)] = added(used.get(node_of(pod), {}), taken_by(pod))
    return [_live(node, used.get(node["metadata"]["name"], {})) for node in nodes]


def _live(node: Manifest, used: Amounts) -> Place:
    spec, ready = node.get("spec") or {}, condition(node, "Ready")
    taints = [*(spec.get("taints") or ())]
    if spec.get("unschedulable") and not any(row["key"] == _CORDONED["key"] for row in taints):
        taints.append(_CORDONED)
    return Place(
        name=node["metadata"]["name"],
        labels=labels_of(node),
        free=added(amounts((node.get("status") or {}).get("allocatable")), used, -1),
        taints=taints,
        unready="" if is_true(node, "Ready") else str(ready.get("reason") or "no report"),
    )


def possible(templates: Iterable[Template], daemon_sets: Sequence[Manifest]) -> list[Place]:
    """The nodes that an autoscaler can add, without what the DaemonSets of the cluster take of each."""
    found = []
    for template in templates:
        free = {PODS: 110, **amounts(template.allocatable)}
        for item in daemon_sets:
            spec = item["spec"]["template"]["spec"]
            tolerated = keeping_out((*(spec.get("tolerations") or ()), *_DAEMON), template.taints) is None
            if tolerated and may_be_on(spec, template.labels, ""):
                free = added(free, taken(spec), -1)
        for number in range(template.count):
            name = f"{template.name}-new-{number}"
            labels = {**template.labels, HOSTNAME: name}
            found.append(Place(name=name, labels=labels, free=free, taints=template.taints, is_new=True))
    return found


_DAEMON = (
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
)
"""Tolerations that pods of DaemonSets get."""


def free_for(place: Place, group: Group) -> Amounts:
    """What is free for the pods of a group; a port that nobody has is free."""
    ports = {name: 1 for name in group.takes if name.startswith(HOST_PORT)}
    return added(ports, place.free)


def refusal(place: Place, group: Group) -> str:
    """Why the pods of a group cannot be on a node whatever is free there; empty if they can."""
    if place.unready:
        return f"not ready ({place.unready})"
    if not may_be_on(group.spec, place.labels, place.name):
        return "without the labels that the pods select"
    taint = keeping_out(tolerations(place, group), place.taints)
    if taint is None:
        return ""
    return (
        "cordoned"
        if taint["key"] == _CORDONED["key"]
        else f"with the taint {taint_text(taint)}, which they do not tolerate"
    )


def tolerations(place: Place, group: Group) -> list[Mapping[str, t.Any]]:
    """What the pods tolerate there."""
    own = list(group.spec.get("tolerations") or ())
    devices = [name for name, value in group.takes.items() if value and "/" in name and not name.startswith(HOST_PORT)]
    return own + [
        {"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in devices if _GKE in place.labels
    ]
