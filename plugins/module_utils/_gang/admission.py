# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a namespace allows of pods: LimitRange and ResourceQuota, by the rules of the API server. No I/O.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._kube.objects import Manifest
from .amounts import (
    CPU,
    Amounts,
    Spec,
    added,
    amount,
    amounts,
    containers_of,
    limits_of,
    pod_limits,
    pod_requests,
    requests_of,
    shown,
)
from .groups import Group
from .matching import fits

_MUST_SAY = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""Resources of a quota that every container must then say something of."""
_WHOLE = ("cpu", "memory", "ephemeral-storage")
"""Resources that a quota may name without ``requests.``."""
_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass")


def with_defaults(spec: Spec, ranges: Iterable[Manifest]) -> Spec:
    """A pod as the API server keeps it: what its containers do not say comes from the LimitRanges."""
    rows = [_defaults(row) for row in _items(ranges, "Container")]
    if not rows:
        return spec
    made = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [_filled(container, rows) for container in spec[key]]
    return made


def _items(ranges: Iterable[Manifest], kind: str) -> Iterator[Manifest]:
    for item in ranges:
        yield from (row for row in (item.get("spec") or {}).get("limits") or () if row.get("type") == kind)


def _defaults(row: Manifest) -> tuple[Manifest, Manifest]:
    """Default limits and requests; what is missing follows from the others, as where the LimitRange was stored."""
    limits = {**(row.get("max") or {}), **(row.get("default") or {})}
    return limits, {**(row.get("min") or {}), **limits, **(row.get("defaultRequest") or {})}


def _filled(container: Spec, rows: Sequence[tuple[Manifest, Manifest]]) -> Spec:
    resources = container.get("resources") or {}
    limits = dict(resources.get("limits") or {})
    requests = {**limits, **(resources.get("requests") or {})}
    for default_limits, default_requests in rows:
        limits = {**default_limits, **limits}
        requests = {**default_requests, **requests}
    return {**container, "resources": {**resources, "limits": limits, "requests": requests}}


def refusals(group: Group, ranges: Iterable[Manifest]) -> Iterator[str]:
    """Why the API server refuses the pods of a group: their own limits, with the defaults of the namespace, and each LimitRange."""
    for container in containers_of(group.spec):
        limits = limits_of(container)
        for resource, asked in requests_of(container).items():
            if asked > limits.get(resource, asked):
                yield (
                    f"container {container['name']} of group {group.name} requests {shown(resource, asked)} of {resource}, more than its "
                    f"limit of {shown(resource, limits[resource])}"
                )
    for item in ranges:
        name = f"LimitRange {item['metadata']['name']}"
        for row in _items([item], "Container"):
            for container in containers_of(group.spec):
                who = f"container {container['name']} of group {group.name}"
                yield from _outside(name, who, row, requests_of(container), limits_of(container))
        for row in _items([item], "Pod"):
            who = f"a pod of group {group.name}"
            yield from _outside(name, who, row, pod_requests(group.spec), pod_limits(group.spec))


def _outside(name: str, who: str, row: Manifest, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for resource, least in amounts(row.get("min")).items():
        if requests.get(resource, -1) < least:
            said = shown(resource, requests[resource]) if resource in requests else "nothing"
            yield f"{name}: {who} requests {said} of {resource}, at least {shown(resource, least)} is demanded"
    for resource, most in amounts(row.get("max")).items():
        if resource not in limits:
            yield f"{name}: {who} has no limit of {resource}, {shown(resource, most)} is the most"
        elif (asked := max(limits[resource], requests.get(resource, 0))) > most:
            yield f"{name}: {who} wants {shown(resource, asked)} of {resource}, {shown(resource, most)} is the most"
    for resource, ratio in (row.get("maxLimitRequestRatio") or {}).items():
        request = requests.get(resource, 0)
        if not request or limits.get(resource, 0) * 1000 > request * amount("cpu", ratio):
            yield f"{name}: {who} has a limit of {resource} of more than {ratio} times its request"


@dataclasses.dataclass(frozen=True)
class Quota:
    """A ResourceQuota, with what is left of it."""

    name: str
    left: Amounts
    hard: Amounts
    scopes: Sequence[Mapping[str, t.Any]]

    @property
    def unknown(self) -> list[str]:
        """Scopes that are not judged."""
        return sorted({row["scopeName"] for row in self.scopes if row["scopeName"] not in _SCOPES})

    def covers(self, group: Group) -> bool:
        """Whether it counts the pods of a group."""
        return not self.unknown and all(_in_scope(row, group.spec) for row in self.scopes)

    def problems(self, groups: Sequence[Group], counts: Sequence[int]) -> Iterator[str]:
        """What is left too little for so many pods of each group, or what their containers must say."""
        covered = [(group, count) for group, count in zip(groups, counts, strict=True) if self.covers(group)]
        need: Amounts = {}
        for group, count in covered:
            if count and (unsaid := self.unsaid(group)):
                yield f"ResourceQuota {self.name}: every container must say {', '.join(unsaid)}, and group {group.name} does not"
            need = added(need, used_by(group), count)
        for resource, left in self.left.items():
            if need.get(resource, 0) > max(left, 0):
                yield (
                    f"ResourceQuota {self.name} leaves {shown(resource, max(left, 0))} of "
                    f"{shown(resource, self.hard[resource])} {resource}, and {shown(resource, need[resource])} are needed"
                )

    def unsaid(self, group: Group) -> list[str]:
        """Resources that some container must request or limit and does not."""
        if (group.spec.get("resources") or {}).keys() & {"limits", "requests"}:
            return []
        missing = set()
        for container in containers_of(group.spec):
            said = _named(requests_of(container), limits_of(container))
            missing |= {name for name in _MUST_SAY if name in self.hard and name not in said}
        return sorted(missing)


def quotas(items: Iterable[Manifest], leaving: Sequence[Group] = ()) -> list[Quota]:
    """The quotas of a namespace, as if the pods LEAVING had gone."""
    found = []
    for item in items:
        spec, status = item.get("spec") or {}, item.get("status") or {}
        hard = amounts(status.get("hard") or spec.get("hard"))
        rows = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
        rows += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
        left = added(hard, amounts(status.get("used")), -1)
        quota = Quota(item["metadata"]["name"], {key: left[key] for key in hard}, hard, rows)
        freed: Amounts = {}
        for group in leaving:
            if quota.covers(group):
                freed = added(freed, used_by(group), group.replicas)
        left = {key: value + freed.get(key, 0) for key, value in quota.left.items()}
        found.append(dataclasses.replace(quota, left=left))
    return found


def settled(item: Manifest, pods: Sequence[Group]) -> Manifest:
    """A ResourceQuota as it will be when it has noticed which pods are there: what it says is used may be more for a while."""
    (quota,) = quotas([item])
    counted: Amounts = {}
    for pod in pods:
        if quota.covers(pod):
            counted = added(counted, used_by(pod))
    status = item.get("status") or {}
    used = dict(status.get("used") or {})
    for name in used:
        of_pods = name == "pods" or name in _WHOLE or name.startswith(("requests.", "limits.", "hugepages-"))
        if of_pods and name != "requests.storage" and counted.get(name, 0) < amount(name, used[name]):
            used[name] = f"{counted.get(name, 0)}m" if name in CPU else str(counted.get(name, 0))
    return {**item, "status": {**status, "used": used}}


def used_by(group: Group) -> Amounts:
    """What one pod uses of a quota, under every name that a quota may have for it."""
    used = {"pods": 1, "count/pods": 1, **_named(pod_requests(group.spec), pod_limits(group.spec))}
    if group.claims:
        sizes = (((one.get("spec") or {}).get("resources") or {}).get("requests") or {} for one in group.claims)
        used["requests.storage"] = sum(amount("storage", size.get("storage", 0)) for size in sizes)
        used["persistentvolumeclaims"] = used["count/persistentvolumeclaims"] = len(group.claims)
    return used


def _named(requests: Amounts, limits: Amounts) -> Amounts:
    named = {f"requests.{name}": value for name, value in requests.items()}
    named |= {f"limits.{name}": value for name, value in limits.items()}
    return named | {name: value for name, value in requests.items() if name in _WHOLE or name.startswith("hugepages-")}


def _in_scope(row: Mapping[str, t.Any], spec: Spec) -> bool:
    name = row["scopeName"]
    if name == "PriorityClass":
        return fits(
            {**row, "key": "class"}, {"class": spec["priorityClassName"]} if spec.get("priorityClassName") else {}
        )
    if name in ("Terminating", "NotTerminating"):
        return bool((spec.get("activeDeadlineSeconds") is not None) == (name == "Terminating"))
    if name in ("BestEffort", "NotBestEffort"):
        holders = (spec, *containers_of(spec))
        asked = {key for one in holders for key, value in {**requests_of(one), **limits_of(one)}.items() if value}
        return bool(bool(asked & {"cpu", "memory"}) == (name == "NotBestEffort"))
    return True
