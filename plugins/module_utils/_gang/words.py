# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a gang does not fit, in numbers. No I/O.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.brief import plural
from . import fit
from .amounts import HOST_PORT, PODS, shown
from .groups import Group

_SHOWN = 5
"""Sorts of nodes that a sentence names."""


def message(
    fits: bool | None, reasons: Sequence[str], not_judged: Sequence[str], nearest: Sequence[Mapping[str, t.Any]]
) -> str:
    """The verdict in a few sentences."""
    if fits:
        return "All pods fit at once."
    told = " ".join(f"{reason}." for reason in reasons)
    if fits is None and reasons:
        parts = [f"Not all pods fit at once as the cluster is. {told} This is not judged: {'; '.join(not_judged)}."]
    elif fits is None:
        parts = [f"Whether all pods fit at once is not judged: {'; '.join(not_judged) or 'nothing was read'}."]
    else:
        parts = [f"Not all pods fit at once. {told}"]
    if nearest:
        parts.append(f"This fits: {', or '.join('{name} with {replicas}'.format(**row) for row in nearest)}.")
    return " ".join(parts)


def too_small(group: Group, index: int, problem: fit.Problem, refused: Sequence[str], fitting: int) -> str:
    """Why so few pods of a group fit, sort of node by sort of node."""
    shape = problem.shapes[index]
    sorts: dict[str, int] = {}
    for number, why in enumerate(refused):
        text = why or _room(problem.rooms[number], shape.takes)
        sorts[text] = sorts.get(text, 0) + 1
    ranked = sorted(sorts.items(), key=lambda row: (not row[0].startswith("with room"), -row[1]))
    named = [plural(number, "node") + f" {text}" for text, number in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        named.append(f"{plural(sum(number for _text, number in ranked[_SHOWN:]), 'more node')}")
    noun = "more pod" if group.there else "pod"
    told = f"{fitting} of {plural(group.replicas, noun)} of group {group.name} fit, each with {takes(shape.takes)}"
    told += f": {', '.join(named) or 'there are no nodes'}"
    # Where no node takes a single pod, how they may lie to each other is no reason.
    ties = () if all(refused) else _ties(shape, (index, index) in problem.apart)
    return told + "".join(f"; {text}" for text in ties)


def _ties(shape: fit.Shape, is_apart: bool) -> Iterable[str]:
    if is_apart:
        yield "each must be on a node of its own"
    if shape.together:
        yield "all must be on one node"
    if shape.spread:
        yield f"their numbers in {plural(len(shape.spread.domains), 'domain')} may differ by {shape.spread.skew} at most"


def _room(free: Mapping[str, int], needs: Mapping[str, int]) -> str:
    held = fit.holds(free, needs)
    if held:
        return f"with room for {held}"
    lacking = [name for name, value in needs.items() if free.get(name, 0) < value]
    return "with too little free: " + " and ".join(
        f"{shown(name, max(free.get(name, 0), 0))} {name.removeprefix(HOST_PORT) if name.startswith(HOST_PORT) else name}"
        for name in sorted(lacking)
    )


def takes(needs: Mapping[str, int]) -> str:
    """What a pod takes, devices first."""
    rows = [(name, value) for name, value in needs.items() if name != PODS]
    rows.sort(key=lambda row: ("/" not in row[0], row[0]))
    return (
        ", ".join(name if name.startswith(HOST_PORT) else f"{shown(name, value)} {name}" for name, value in rows)
        or "no requests"
    )


def not_together(groups: Sequence[Group], problem: fit.Problem) -> str:
    """Why groups that fit one by one do not fit together."""
    names = sorted({name for shape in problem.shapes for name in shape.takes} - {PODS})
    short = []
    for name in names:
        need = sum(shape.takes.get(name, 0) * shape.count for shape in problem.shapes)
        rooms = {room for shape in problem.shapes if shape.count and shape.takes.get(name) for room in shape.rooms}
        free = sum(max(problem.rooms[room].get(name, 0), 0) for room in rooms)
        if need > free:
            short.append(f"{shown(name, need)} {name} are needed, and {shown(name, free)} are free")
    each = " and ".join(plural(group.replicas, "pod") + f" of {group.name}" for group in groups if group.replicas)
    return f"{each} fit one by one, and not together: {', '.join(short) or 'no way to place them leaves room for the last'}"


def undecided(groups: Sequence[Group], problem: fit.Problem, *, order: bool) -> str:
    """What to say where there may be room and the scheduler could miss it; ORDER: it could, by the order in which it places pods."""
    names = [group.name for group, shape in zip(groups, problem.shapes, strict=True) if shape.together == "luck"]
    if names:
        return f"nothing makes the scheduler put all pods of {' and '.join(names)} onto one node, as their claim needs"
    if not order:
        return "whether all groups fit together: there are too many ways to place them, or pods that must be together or spread"
    names = [group.name for group in groups if group.replicas]
    return (
        f"there is room for all, but the scheduler places one pod after the other, and could so place some of {' and '.join(names)} that "
        "the last finds none"
    )
