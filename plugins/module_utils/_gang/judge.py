# SPDX-License-Identifier: GPL-3.0-or-later
"""Do all pods of a gang fit at once? By the floor of free by request on each node, from what was read of the cluster. No I/O.

The answer is no only if the scheduler cannot place all pods, whatever ends or starts by itself, and yes only if it places them in any
order. All other cases are not judged.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.brief import plural
from .._kube.nodes import matches
from .._kube.objects import Manifest, labels_of
from . import caveats, kueue
from .groups import Group
from .nodes import Node, has_ended, holds, node_of, nodes
from .resources import PODS, Amounts, Spec, added, amounts, limits_of, requests_of, shown

_WITHOUT_PREFIX = ("cpu", "memory", "ephemeral-storage")
"""Resources that a quota may name without ``requests.``."""
_SHOWN = 5
"""Kinds of nodes that a sentence names."""
_ORDER = (
    "whether they fit in whatever order the scheduler places them, without the room of pods that are being deleted, resized or of lower "
    "priority, and of nodes that are not ready"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gang:
    """Groups of one namespace that must run at once."""

    groups: Sequence[Group]
    unknown: Sequence[str] = ()
    """Objects of kinds whose pods are unknown."""
    leaving: str = ""
    """Selector of the pods in the namespace that will have gone before."""
    staying: str = ""
    """Selector of the pods in the namespace that are of the gang's one group already. Those that have a node keep it."""

    @property
    def namespace(self) -> str:
        """The namespace of all groups."""
        return self.groups[0].namespace

    def selects(self, pod: Manifest, selector: str) -> bool:
        """Whether a pod is one of the namespace that a selector of the gang means."""
        return bool(selector) and pod["metadata"].get("namespace") == self.namespace and matches(labels_of(pod), selector)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """The state that was read of the cluster; None where it is not judged, such as for lack of rights."""

    nodes: Sequence[Manifest] | None = ()
    pods: Sequence[Manifest] = ()
    quotas: Sequence[Manifest] = ()
    local_queues: Sequence[Manifest] | None = None
    cluster_queues: Sequence[Manifest] = ()
    not_judged: Sequence[str] = ()
    """Reasons for doubt: kinds that could not be read, and features that may free capacity."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer. ``fits`` is None where it is not judged."""

    fits: bool | None
    reasons: Sequence[str] = dataclasses.field(default_factory=list)
    not_judged: Sequence[str] = dataclasses.field(default_factory=list)
    groups: Sequence[Mapping[str, t.Any]] = dataclasses.field(default_factory=list)
    nearest: Sequence[Mapping[str, t.Any]] = dataclasses.field(default_factory=list)

    @property
    def message(self) -> str:
        """The answer in a few sentences."""
        if self.fits:
            return "All pods fit at once."
        if self.fits is None:
            return f"Whether all pods fit at once is not judged: {'; '.join(self.not_judged)}."
        told = " ".join(f"{reason}." for reason in self.reasons)
        sizes = ", or ".join("{name} with {replicas}".format(**row) for row in self.nearest)
        return f"Not all pods fit at once. {told}" + (f" This fits: {sizes}." if sizes else "")

    def result(self) -> dict[str, t.Any]:
        """The verdict as modules return it."""
        return {**dataclasses.asdict(self), "message": self.message}


def judge(gang: Gang, seen: Seen) -> Verdict:
    """Whether the gang fits, why not, and the nearest size that does."""
    pods: list[Manifest] = []
    leaving: list[Manifest] = []
    for pod in seen.pods:
        # Pods of the gang without a node are some of those that are asked for.
        again = gang.selects(pod, gang.staying) and not node_of(pod)
        if not has_ended(pod):
            (leaving if again or gang.selects(pod, gang.leaving) else pods).append(pod)
    groups = [_missing(group, gang, seen.pods) for group in gang.groups]
    room = _room(gang, groups, seen, pods, leaving)
    problems = room.problems()
    if seen.local_queues is not None:
        problems += kueue.problems(groups, seen.local_queues, seen.cluster_queues)
    notes = [*seen.not_judged, *gang.unknown, *(text for group in groups for text in caveats.of_group(group, pods))]
    notes += [f"scopes of ResourceQuota {item['metadata']['name']}" for item in seen.quotas if has_scopes(item)]
    nearest = room.nearest() if problems and not notes else []
    if not problems and not notes:
        notes = caveats.rival(room.nodes or (), pods) if room.is_sure() else [_ORDER]
    return Verdict(
        fits=False if problems else None if notes else True,
        reasons=problems,
        not_judged=list(dict.fromkeys(notes)),
        groups=[{"name": one.name, "replicas": one.replicas, "fitting": room.alone(one)} for one in groups],
        nearest=nearest,
    )


def _missing(group: Group, gang: Gang, pods: Sequence[Manifest]) -> Group:
    """The group with only as many pods as are missing."""
    there = sum(
        gang.selects(pod, gang.staying)
        and bool(node_of(pod))
        and not pod["metadata"].get("deletionTimestamp")
        and (pod.get("status") or {}).get("phase") != "Failed"
        for pod in pods
    )
    there = min(there, group.replicas)
    return dataclasses.replace(group, replicas=group.replicas - there, there=there)


def _room(gang: Gang, groups: Sequence[Group], seen: Seen, pods: Sequence[Manifest], leaving: Sequence[Manifest]) -> _Room:
    """Capacity for the groups; without nodes if another scheduler places them."""
    decided = any(caveats.deciders(group) for group in groups)
    staying: list[Manifest] = []
    going: list[Manifest] = []
    for pod in pods:
        (going if caveats.may_go(pod, groups) else staying).append(pod)
    there = None if seen.nodes is None or decided else nodes(seen.nodes, staying, going)
    own = [pod for pod in staying if pod["metadata"].get("namespace") == gang.namespace]
    counted = [] if any(group.queue for group in groups) else quotas(seen.quotas, leaving, own)
    return _Room(groups=groups, nodes=there, quotas=counted)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Room:
    """The groups, and the nodes and quotas that they need."""

    groups: Sequence[Group]
    nodes: Sequence[Node] | None
    """None where they are not judged."""
    quotas: Sequence[Quota]

    def problems(self) -> list[str]:
        """Return why the groups never fit at once."""
        found = [text for quota in self.quotas for text in quota.lacking(self.groups, quota.most)]
        if self.nodes is None:
            return found
        fitting = [(group, self.alone(group) or 0) for group in self.groups]
        short = [_too_few(group, self.nodes, number) for group, number in fitting if number < group.replicas]
        return [*found, *(short or _not_together(self.groups, self.nodes))]

    def alone(self, group: Group) -> int | None:
        """Return how many pods of a group fit at most, without the others and without quotas."""
        if self.nodes is None:
            return None
        return min(sum(node.at_most(group) for node in self.nodes), group.replicas)

    def is_sure(self) -> bool:
        """Whether all pods fit now, in whatever order and onto whichever nodes the scheduler places them."""
        if any(quota.lacking(self.groups, quota.left) for quota in self.quotas):
            return False
        for group in self.groups:
            others = [one for one in self.groups if one is not group]
            if sum(node.for_sure(group, others) for node in self.nodes or ()) < group.replicas:
                return False
        return True

    def nearest(self) -> list[dict[str, t.Any]]:
        """Return for each group the largest number of pods that fits while the other groups stay as they are, if there is one."""
        found = []
        for group in self.groups:
            # What is smaller than a size that fits does, too.
            low, high = 0, group.replicas if self._sized(group, 0).is_sure() else 0
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if self._sized(group, middle).is_sure() else (low, middle - 1)
            if low + group.there > 0 and low < group.replicas:
                found.append({"name": group.name, "replicas": low + group.there})
        return found

    def _sized(self, group: Group, replicas: int) -> _Room:
        groups = [dataclasses.replace(one, replicas=replicas) if one is group else one for one in self.groups]
        return dataclasses.replace(self, groups=groups)


# Quotas


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quota:
    """A ResourceQuota, with what is left of it by its own status, and what is left at most once that counts only what is there."""

    name: str
    hard: Amounts
    left: Amounts
    most: Amounts

    def lacking(self, groups: Iterable[Group], left: Amounts) -> list[str]:
        """The resources of which the groups need more than is left."""
        need: Amounts = {}
        for group in groups:
            need = added(need, used_by(group.spec), group.replicas)
        return [
            f"ResourceQuota {self.name} leaves {shown(name, max(left[name], 0))} of {shown(name, hard)} {name}, and "
            f"{shown(name, need[name])} are needed"
            for name, hard in self.hard.items()
            if need.get(name, 0) > max(left[name], 0)
        ]


def quotas(items: Iterable[Manifest], leaving: Sequence[Manifest], staying: Sequence[Manifest]) -> list[Quota]:
    """The quotas without scopes. LEAVING: pods that will have gone; STAYING: those that the quotas count for long."""
    found = []
    for item in items:
        status = item.get("status") or {}
        hard = amounts(status.get("hard") or (item.get("spec") or {}).get("hard"))
        left, most = added(hard, amounts(status.get("used")), -1), hard
        for pod in leaving:
            left = added(left, used_by(pod["spec"]))
        for pod in staying:
            most = added(most, used_by(pod["spec"]), -1)
        if not has_scopes(item):
            found.append(Quota(name=item["metadata"]["name"], hard=hard, left=left, most=most))
    return found


def has_scopes(item: Manifest) -> bool:
    """Whether a ResourceQuota counts only some of the pods."""
    spec = item.get("spec") or {}
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def used_by(spec: Spec) -> Amounts:
    """The amounts that one pod uses of a quota, under every name that a quota may have for them."""
    requests = requests_of(spec)
    named = {f"requests.{name}": value for name, value in requests.items()}
    named |= {f"limits.{name}": value for name, value in limits_of(spec).items()}
    named |= {name: requests[name] for name in requests if name in _WITHOUT_PREFIX or name.startswith("hugepages-")}
    return {"pods": 1, "count/pods": 1, **named}


# Messages


def _too_few(group: Group, nodes: Sequence[Node], fitting: int) -> str:
    """Say why so few pods of a group fit, by kinds of nodes: those with free capacity first, then the most frequent."""
    kinds = collections.Counter(_free_on(node, group) for node in nodes)
    ranked = sorted(kinds.items(), key=lambda row: (not row[0].startswith("with room"), -row[1]))
    named = [f"{plural(number, 'node')} {text}" for text, number in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        named.append(plural(sum(number for _text, number in ranked[_SHOWN:]), "more node"))
    pods = plural(group.replicas, "more pod" if group.there else "pod")
    where = ", ".join(named) or "there are no nodes"
    asked = sorted((name for name, value in group.takes.items() if value and name != PODS), key=lambda name: ("/" not in name, name))
    requests = ", ".join(f"{shown(name, group.takes[name])} {name}" for name in asked) or "no requests"
    return f"{fitting} of {pods} of group {group.name} fit, each with {requests}: {where}"


def _free_on(node: Node, group: Group) -> str:
    """Say how many pods of a group a node can take, or why it takes none."""
    refusal, held = node.refusal(group), holds(node.most, group.takes)
    if refusal or held:
        return refusal or f"with room for {held}"
    lacking = [name for name, value in sorted(group.takes.items()) if node.most.get(name, 0) < value]
    return "with too little free: " + " and ".join(f"{shown(name, max(node.most.get(name, 0), 0))} {name}" for name in lacking)


def _not_together(groups: Sequence[Group], nodes: Sequence[Node]) -> list[str]:
    """The resources of which all groups together need more than is free on the nodes where any of them may be."""
    found = []
    for name in sorted({name for group in groups for name in group.takes}):
        asking = [group for group in groups if group.replicas and group.takes.get(name)]
        need = sum(group.replicas * group.takes[name] for group in asking)
        free = sum(max(node.most.get(name, 0), 0) for node in nodes if not all(map(node.refusal, asking)))
        if need > free:
            each = " and ".join(f"{plural(group.replicas, 'pod')} of {group.name}" for group in asking)
            amounts = f"{shown(name, need)} {name} are needed, and {shown(name, free)} are free"
            found.append(f"{each} fit one by one, and not together: {amounts}")
    return found
