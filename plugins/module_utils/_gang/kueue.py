# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a queue of Kueue can ever admit a gang: the nominal quota of its ClusterQueue. No I/O.

What others use of it does not count, because waiting is what a queue is for. A ClusterQueue in a cohort may borrow, and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._core.brief import plural
from .._kube.objects import Manifest
from .groups import Group
from .resources import amount, shown


def problems(groups: Sequence[Group], local: Iterable[Manifest], cluster: Iterable[Manifest]) -> list[str]:
    """Return why queues never admit the groups. LOCAL: the queues of their namespace, CLUSTER: all ClusterQueues."""
    found: list[str] = []
    targets = {row["metadata"]["name"]: row["spec"]["clusterQueue"] for row in local}
    rows = {row["metadata"]["name"]: row for row in cluster}
    for queue in dict.fromkeys(group.queue for group in groups if group.queue):
        members = [group for group in groups if group.queue == queue]
        target = rows.get(targets.get(queue, ""))
        if queue not in targets:
            others = f"there are {', '.join(sorted(targets))}" if targets else "there is none"
            found.append(f"LocalQueue {members[0].namespace}/{queue} does not exist ({others} in the namespace)")
        elif target and not target["spec"].get("cohortName"):
            found += _too_much(queue, target, members)
    return found


def _too_much(queue: str, cluster_queue: Manifest, groups: Sequence[Group]) -> list[str]:
    """The resources of which the groups need more than the nominal quota. All pods of a group get the same flavor."""
    nominal: dict[str, list[int]] = {}
    for flavor in (flavor for part in cluster_queue["spec"].get("resourceGroups") or () for flavor in part["flavors"]):
        for row in flavor["resources"]:
            nominal.setdefault(row["name"], []).append(amount(row["name"], row["nominalQuota"]))
    found = []
    for name, quotas in nominal.items():
        where, most = "in one flavor " if len(quotas) > 1 else "", max(quotas)
        needs = {group.name: group.takes.get(name, 0) * group.size for group in groups}
        rows = [
            (f"{plural(group.size, 'pod')} of group {group.name} need", needs[group.name], where, most)
            for group in groups
            if needs[group.name] > most
        ]
        if not rows and sum(needs.values()) > sum(quotas):
            rows = [("all groups together need", sum(needs.values()), "", sum(quotas))]
        found += [
            f"queue {queue} never admits it: {who} {shown(name, need)} of {name}, and ClusterQueue "
            f"{cluster_queue['metadata']['name']} has {where}{shown(name, most)} at most"
            for who, need, where, most in rows
        ]
    return found
