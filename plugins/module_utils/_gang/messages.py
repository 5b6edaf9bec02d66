# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons why a gang does not fit, in numbers, and the verdict in a few sentences. No I/O.

Private to the collection.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from .._core.brief import plural
from .groups import Group
from .nodes import Node, holds
from .resources import PODS, shown

_SHOWN = 5
"""Kinds of nodes that a sentence names."""


def message(fits: bool | None, reasons: Sequence[str], not_judged: Sequence[str], nearest: Sequence[Mapping[str, object]]) -> str:
    """The verdict in a few sentences."""
    if fits:
        return "All pods fit at once."
    if fits is None:
        return f"Whether all pods fit at once is not judged: {'; '.join(not_judged)}."
    told = " ".join(f"{reason}." for reason in reasons)
    sizes = ", or ".join("{name} with {replicas}".format(**row) for row in nearest)
    return f"Not all pods fit at once. {told}" + (f" This fits: {sizes}." if sizes else "")


def too_few(group: Group, nodes: Sequence[Node], fitting: int) -> str:
    """Say why so few pods of a group fit, by kinds of nodes: those with free capacity first, then the most frequent."""
    kinds = collections.Counter(_room(node, group) for node in nodes)
    ranked = sorted(kinds.items(), key=lambda row: (not row[0].startswith("with room"), -row[1]))
    named = [f"{plural(number, 'node')} {text}" for text, number in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        named.append(plural(sum(number for _text, number in ranked[_SHOWN:]), "more node"))
    pods = plural(group.replicas, "more pod" if group.there else "pod")
    where = ", ".join(named) or "there are no nodes"
    return f"{fitting} of {pods} of group {group.name} fit, each with {_requests(group)}: {where}"


def _room(node: Node, group: Group) -> str:
    """Say how many pods of a group a node can take, or why it takes none."""
    refusal, held = node.refusal(group), holds(node.most, group.takes)
    if refusal or held:
        return refusal or f"with room for {held}"
    lacking = [name for name, value in sorted(group.takes.items()) if node.most.get(name, 0) < value]
    return "with too little free: " + " and ".join(f"{shown(name, max(node.most.get(name, 0), 0))} {name}" for name in lacking)


def _requests(group: Group) -> str:
    """The requests of a pod, devices first."""
    names = sorted(name for name, value in group.takes.items() if value and name != PODS)
    names.sort(key=lambda name: "/" not in name)
    return ", ".join(f"{shown(name, group.takes[name])} {name}" for name in names) or "no requests"


def not_together(groups: Sequence[Group], nodes: Sequence[Node]) -> list[str]:
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
