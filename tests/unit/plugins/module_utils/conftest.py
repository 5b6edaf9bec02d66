# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden files: what a builder makes, as YAML that a person reviews. What several places have alike is told once, with an anchor.

MUSTER_UPDATE_GOLDENS=1 pytest ... writes them anew; the change is then read in the diff.
"""

from __future__ import annotations

import math
import os
import typing as t
from pathlib import Path

import pytest
import yaml

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
LINE = 100  # characters of a value in one line, about
HEADER = Path(__file__).read_text(encoding="utf-8").partition("\n")[0] + "\n"


class _Dumper(yaml.SafeDumper):
    """Lists indented, text with several lines as a block, and what fits on a line on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: t.Any) -> bool:
        return not data or not isinstance(data, (dict, list))

    def represent_mapping(self, *args: t.Any, **kwargs: t.Any) -> yaml.MappingNode:
        return _in_one_line(super().represent_mapping(*args, **kwargs))

    def represent_sequence(self, *args: t.Any, **kwargs: t.Any) -> yaml.SequenceNode:
        return _in_one_line(super().represent_sequence(*args, **kwargs))


Collection = t.TypeVar("Collection", bound=yaml.CollectionNode)


def _in_one_line(node: Collection) -> Collection:
    node.flow_style = _width(node) <= LINE
    return node


def _shared(value: t.Any, known: dict[str, t.Any]) -> t.Any:
    """A copy in which equal values that do not fit on a line are one object, which the dumper writes once."""
    if not isinstance(value, (dict, list)):
        return value
    if repr(value) in known:
        return known[repr(value)]
    made = {key: _shared(row, known) for key, row in value.items()} if isinstance(value, dict) else [_shared(row, known) for row in value]
    if _width(yaml.representer.SafeRepresenter().represent_data(value)) > LINE:
        known[repr(value)] = made
    return made


def _width(node: yaml.Node) -> float:
    """About the characters of a value in one line; no line is long enough for a text with several."""
    if isinstance(node, yaml.ScalarNode):
        return math.inf if "\n" in node.value else len(node.value)
    parts = sum(node.value, ()) if isinstance(node, yaml.MappingNode) else node.value
    return 2 + sum(_width(part) + 2 for part in parts)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def _by_name(rows: t.Any) -> t.Any:
    """Objects, and rows of a list, by their names, where all have one."""
    named = {}
    for row in rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else ():
        name = row.get("name") or f"{row.get('kind', '')}/{row.get('metadata', {}).get('name', '')}"
        named[name] = row
    return named if named and len(named) == len(rows) and "/" not in named else rows


def differences(old: t.Any, new: t.Any, where: str = "") -> dict[str, t.Any]:
    """Path -> value in NEW, None where it has none, of all that is not as in OLD."""
    before, after = _by_name(old), _by_name(new)
    maps = isinstance(before, dict) and isinstance(after, dict)
    # What both have is in the same order, or the list is another value.
    if maps and [key for key in after if key in before] == [key for key in before if key in after]:
        found = [differences(before.get(key), after.get(key), f"{where}/{key}".lstrip("/")) for key in {**before, **after}]
        return {path: value for one in found for path, value in one.items()}
    return {} if old == new else {where: new}


@pytest.fixture
def golden() -> t.Callable[..., None]:
    """Compare objects with tests/unit/goldens/<name>.yaml, or what is not as in OTHERS with tests/unit/goldens/differences/<name>.yaml."""

    def compare(name: str, objects: list[dict[str, t.Any]], others: list[dict[str, t.Any]] | None = None) -> None:
        path = GOLDENS / f"{name}.yaml" if others is None else GOLDENS / "differences" / f"{name}.yaml"
        shown = objects if others is None else differences(others, objects)
        # One document: the linters of Ansible's own tests read no file with several.
        text = HEADER + "---\n" + yaml.dump(_shared(shown, {}), Dumper=_Dumper, sort_keys=False, width=120)
        if os.environ.get("MUSTER_UPDATE_GOLDENS"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    """The folder of a Go program."""
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "go.mod").write_text("module x\n\ngo 1.24\n")
    (folder / "go.sum").write_text("x v1 h1:a=\n")
    return folder
