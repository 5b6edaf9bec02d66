# SPDX-License-Identifier: GPL-3.0-or-later

"""Golden files: what a builder makes, as YAML that a person reviews.

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
HEADER = Path(__file__).read_text(encoding="utf-8").partition("\n")[0] + "\n"


class _Dumper(yaml.SafeDumper):
    """No anchors, lists indented, text with several lines as a block, and what fits on a line on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, _data: t.Any) -> bool:
        return True

    def represent_mapping(self, *args: t.Any, **kwargs: t.Any) -> yaml.MappingNode:
        return _in_one_line(super().represent_mapping(*args, **kwargs))

    def represent_sequence(self, *args: t.Any, **kwargs: t.Any) -> yaml.SequenceNode:
        return _in_one_line(super().represent_sequence(*args, **kwargs))


Collection = t.TypeVar("Collection", bound=yaml.CollectionNode)


def _in_one_line(node: Collection) -> Collection:
    node.flow_style = _width(node) <= 100
    return node


def _width(node: yaml.Node) -> float:
    """About the characters of a value in one line; no line is long enough for a text with several."""
    if isinstance(node, yaml.ScalarNode):
        return math.inf if "\n" in node.value else len(node.value)
    parts = sum(node.value, ()) if isinstance(node, yaml.MappingNode) else node.value
    return 2 + sum(_width(part) + 2 for part in parts)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


@pytest.fixture
def golden() -> t.Callable[[str, list[dict[str, t.Any]]], None]:
    """Compare objects with tests/unit/goldens/<name>.yaml."""

    def compare(name: str, objects: list[dict[str, t.Any]]) -> None:
        path = GOLDENS / f"{name}.yaml"
        # One document: the linters of Ansible's own tests read no file with several.
        text = HEADER + "---\n" + yaml.dump(objects, Dumper=_Dumper, sort_keys=False, width=120)
        if os.environ.get("MUSTER_UPDATE_GOLDENS"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
