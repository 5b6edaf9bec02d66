# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the layers: who imports whom in plugins/, drawn from the imports, with the lines of code of each."""

import re
from collections.abc import Mapping
from pathlib import Path

from support.docs.measure import code_lines
from support.places import ROOT
from support.reading import COLLECTION, imported

PLUGINS = ROOT / "plugins"
PREFIX = f"{COLLECTION}plugins."
NAME = "scripts/docs"
# Documentation only, or nothing that others import.
LEFT_OUT = {"doc_fragments"}
# How far a figure on the page may be from the code before it counts as wrong: the picture is about sizes, not about each line.
TOLERANCE = 0.15


def layer(dotted: str) -> str:
    """The layer of a module below plugins/: `modules`, `action` or, of module_utils, the package."""
    first, *rest = dotted.split(".")
    return rest[0] if first == "module_utils" and rest else first


def files() -> dict[Path, str]:
    found = {path: layer(".".join(path.relative_to(PLUGINS).with_suffix("").parts)) for path in sorted(PLUGINS.rglob("*.py"))}
    return {path: name for path, name in found.items() if name not in LEFT_OUT}


def arrows() -> set[tuple[str, str]]:
    found = {
        (name, layer(target.removeprefix(PREFIX)))
        for path, name in files().items()
        for target in imported(path)
        if target.startswith(PREFIX)
    }
    return {(here, there) for here, there in found if here != there}


def drawn(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows without those that others imply: where a leads to b and b to c, a to c says nothing new."""

    def reaches(start: str, goal: str, without: tuple[str, str]) -> bool:
        seen, todo = {start}, [start]
        while todo:
            here = todo.pop()
            for a, b in edges:
                if a == here and (a, b) != without and b not in seen:
                    seen.add(b)
                    todo.append(b)
        return goal in seen

    return {edge for edge in edges if not reaches(*edge, edge)}


def lines() -> dict[str, int]:
    counted: dict[str, int] = {}
    for path, name in files().items():
        counted[name] = counted.get(name, 0) + len(code_lines(path.read_text(encoding="utf-8")))
    return {name: count for name, count in sorted(counted.items()) if count}


def picture(sizes: Mapping[str, int]) -> str:
    nodes = [f'    {name}["{name}<br/>{size} lines"]' for name, size in sizes.items()]
    edges = [f"    {here} --> {there}" for here, there in sorted(drawn(arrows())) if here in sizes and there in sizes]
    return "\n".join(["```mermaid", "flowchart TD", *nodes, *edges, "```"])


def sizes_in(text: str) -> dict[str, int]:
    """The lines of each layer as a picture tells them."""
    return {m[1]: int(m[2]) for m in re.finditer(r'^ +(\w+)\["\w+<br/>(\d+) lines"\]$', text, re.MULTILINE)}
