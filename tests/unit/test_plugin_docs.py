# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of plugins, read as an operator reads it: each line alone, in a list or a table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.docs.collection import fragment, modules
from support.reading import parse, syntax

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("modules", "doc_fragments", "filter", "lookup", "callback")
PAGES = [path for folder in FOLDERS for path in sorted((ROOT / "plugins" / folder).glob("*.py"))]
# What a short description begins with: what the plugin does.
VERBS = {
    "Add", "Apply", "Build", "Create", "Divide", "Download", "Fetch", "Gather", "Import", "Join", "List", "Manage", "Read", "Remove",
    "Report", "Run", "Write",
}  # fmt: skip
# A description that begins so says something about what stands elsewhere, instead of naming what it describes.
POINTS_ELSEWHERE = re.compile(
    r"(After|As|From|How|Its?|Likewise|Only|Something|That|The same|Their|Them|They|Those|What|When|Where|Whether|Which|Who|Why|With|"
    r"Without)\b"
)


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def blocks(path: Path) -> Iterator[dict[str, Any]]:
    """The YAML of each documentation block, that of examples left out."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            content = node.value.value
            name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""
            if name == "RETURN":
                yield {"options": parse(content)}
            elif name == "DOCUMENTATION" or (path.parent.name == "doc_fragments" and name.isupper()):
                yield parse(content)


def described(options: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The first sentence of each option or return value, at any depth."""
    for name, option in options.items():
        text = option.get("description")
        if text:
            yield f"{path}{name}", text if isinstance(text, str) else text[0]
        for deeper in ("suboptions", "contains"):
            yield from described(option.get(deeper) or {}, f"{path}{name}.")


def test_no_part_of_a_fragment_has_the_name_of_another_fragment() -> None:
    """Ansible would take muster.ml.aws.wait for the fragment wait, in the folder of aws, and say nothing."""
    fragments = [path for path in PAGES if path.parent.name == "doc_fragments"]
    parts = {
        name.id
        for path in fragments
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Assign)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    assert {part.lower() for part in parts} & {path.stem for path in fragments} == set()


def test_no_option_is_a_way_to_the_cluster_besides() -> None:
    """An own option C(username) of a module would be the login at the API server, too, and refused there by everything but certificates."""
    ways = fragment("muster.ml.auth").keys()
    ours = {module.name: module.own.keys() & ways for module in modules().values() if "muster.ml.auth" in module.fragments}
    assert ours
    assert {name: options for name, options in ours.items() if options} == {}


def test_short_descriptions_say_what_a_plugin_does() -> None:
    short = {name_of(p): b["short_description"] for p in PAGES for b in blocks(p) if "short_description" in b}
    assert short, "no plugin found: this would hold for nothing"
    assert {name: text for name, text in short.items() if text.split()[0].rstrip(",") not in VERBS or text.endswith(".")} == {}
    assert len(set(short.values())) == len(short)


def test_descriptions_begin_with_what_they_describe() -> None:
    lines = [
        (f"{name_of(path)}: {name}", text)
        for path in PAGES
        for block in blocks(path)
        for name, text in described(block.get("options") or {})
    ]
    assert [f"{place}: {text}" for place, text in lines if POINTS_ELSEWHERE.match(text)] == []
