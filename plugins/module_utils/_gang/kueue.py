# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a queue of Kueue can admit at most, when nothing else is in it. No I/O.

Waiting is what a queue is for, so that what others use of it does not count. Kueue gives all pods of a group the same flavor, and borrows
from queues of the same cohort as far as borrowingLimit and their lendingLimits let it (its docs, "Cluster Queue", "Cohort").

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .._core.brief import plural
from .._kube.objects import Manifest
from .amounts import PODS, Amounts, added, amount, pod_requests, shown
from .groups import Group

API_VERSION = "kueue.x-k8s.io/v1beta2"

Flavors: t.TypeAlias = "Mapping[str, Mapping[str, int | None]]"
"""The most of each resource by flavor; None where it is not known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Queues:
    """What was read of Kueue; None where there was no right to it."""

    local: Sequence[Manifest] | None = None
    cluster: Sequence[Manifest] | None = None
    cohorts: Sequence[Manifest] | None = None


@dataclasses.dataclass(frozen=True)
class QueueQuota:
    """A queue that trainings name, with the most that its ClusterQueue admits; RESOURCE_GROUPS is None where that is not known."""

    name: str
    namespace: str
    cluster_queue: str = ""
    resource_groups: Sequence[Flavors] | None = None
    others: Sequence[str] | None = None
    """The queues of the namespace, if it is none of them."""

    def problems(self, groups: Sequence[Group], counts: Sequence[int]) -> Iterator[str]:
        """Why it never admits so many pods of each group."""
        rows = [
            (group, count + group.there)
            for group, count in zip(groups, counts, strict=True)
            if (group.queue, group.namespace) == (self.name, self.namespace) and count
        ]
        if self.others is not None and rows:
            there = f"there are {', '.join(self.others)}" if self.others else "there is none"
            yield f"LocalQueue {self.namespace}/{self.name} does not exist ({there} in the namespace)"
        for flavors in self.resource_groups or ():
            too_large = [text for group, count in rows if (text := self._too_large(group, count, flavors))]
            yield from too_large or self._together(rows, flavors)

    def _too_large(self, group: Group, count: int, flavors: Flavors) -> str:
        """Why no flavor holds all pods of the group."""
        wanted = _requests(group, count)
        lacks = [
            (resource, wanted[resource], most)
            for limits in flavors.values()
            for resource, most in limits.items()
            if most is not None and wanted.get(resource, 0) > most
        ]
        held = any(
            all(most is None or wanted.get(resource, 0) <= most for resource, most in limits.items())
            for limits in flavors.values()
        )
        if held or not lacks:
            return ""
        resource, need, _most = lacks[0]
        most = max(most for name, _need, most in lacks if name == resource)
        where = "in one flavor " if len(flavors) > 1 else ""
        return self._never(f"{plural(count, 'pod')} of group {group.name} need", resource, need, most, where)

    def _together(self, rows: Sequence[tuple[Group, int]], flavors: Flavors) -> Iterator[str]:
        """Which resource all flavors together have too little of for all groups."""
        wanted: Amounts = {}
        for group, count in rows:
            wanted = added(wanted, _requests(group, count))
        for resource in sorted({name for limits in flavors.values() for name in limits}):
            parts = [limits.get(resource, 0) for limits in flavors.values()]
            most = sum(part or 0 for part in parts)
            if None not in parts and wanted.get(resource, 0) > most:
                yield self._never("all groups together need", resource, wanted[resource], most, "")

    def _never(self, who: str, resource: str, need: int, most: int, where: str) -> str:
        return (
            f"queue {self.name} never admits it: {who} {shown(resource, need)} of {resource}, and ClusterQueue {self.cluster_queue} has "
            f"{where}{shown(resource, most)} at most, with what it may borrow"
        )


def queue_quotas(groups: Sequence[Group], queues: Queues) -> list[QueueQuota]:
    """The queues that the groups name, as far as they could be read."""
    names = dict.fromkeys((group.queue, group.namespace) for group in groups if group.queue)
    return [quota for queue, namespace in names if (quota := _quota(queue, namespace, queues))]


def _quota(queue: str, namespace: str, queues: Queues) -> QueueQuota | None:
    if queues.local is None:
        return None
    found = {row["metadata"]["name"]: row for row in queues.local if row["metadata"].get("namespace") == namespace}
    if queue not in found:
        return QueueQuota(queue, namespace, others=sorted(found))
    name = found[queue]["spec"]["clusterQueue"]
    rows = {row["metadata"]["name"]: row for row in queues.cluster or ()}
    if name not in rows:
        return None
    return QueueQuota(
        queue,
        namespace,
        name,
        [_flavors(rows[name], part, queues) for part in rows[name]["spec"].get("resourceGroups") or ()],
    )


def _flavors(queue: Manifest, part: Mapping[str, t.Any], queues: Queues) -> Flavors:
    return {
        flavor["name"]: {row["name"]: _most(queue, flavor["name"], row, queues) for row in flavor["resources"]}
        for flavor in part["flavors"]
    }


def _most(queue: Manifest, flavor: str, row: Mapping[str, t.Any], queues: Queues) -> int | None:
    """What a queue has of a resource when nobody else uses it."""
    resource = row["name"]
    own = amount(resource, row["nominalQuota"])
    cohort = queue["spec"].get("cohortName")
    if not cohort:
        return own
    limit = None if row.get("borrowingLimit") is None else own + amount(resource, row["borrowingLimit"])
    # A cohort may have quotas and parents of its own; who cannot see whether it has does not know.
    if queues.cohorts is None or any(one["metadata"]["name"] == cohort for one in queues.cohorts):
        return limit
    others = [
        one
        for one in queues.cluster or ()
        if one["spec"].get("cohortName") == cohort and one["metadata"]["name"] != queue["metadata"]["name"]
    ]
    lent = own + sum(_lends(one, flavor, resource) for one in others)
    return lent if limit is None else min(limit, lent)


def _lends(queue: Manifest, flavor: str, resource: str) -> int:
    rows = [
        row
        for part in queue["spec"].get("resourceGroups") or ()
        for one in part["flavors"]
        if one["name"] == flavor
        for row in one["resources"]
        if row["name"] == resource
    ]
    return sum(
        amount(resource, row["nominalQuota"] if row.get("lendingLimit") is None else row["lendingLimit"])
        for row in rows
    )


def _requests(group: Group, count: int) -> Amounts:
    return {name: value * count for name, value in {**pod_requests(group.spec), PODS: 1}.items()}
