# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the repository, parsed once for all checks that look at them. What is returned is shared: nobody may change it."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from support.places import ROOT

COLLECTION = "ansible_collections.muster.ml."


class Loader(yaml.CSafeLoader):
    """Reads what Ansible adds to YAML, such as !vault and !unsafe, as the plain value. Refuses keys that are there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := {key for key in keys if keys.count(key) > 1} - {"<<"}:
            raise yaml.constructor.ConstructorError(None, None, f"{', '.join(sorted(twice))} twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _plain(loader: yaml.CSafeLoader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    return loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else None


Loader.add_multi_constructor("!", _plain)


@cache
def parse(text: str) -> Any:
    """The value of a text of YAML."""
    return yaml.load(text, Loader)  # noqa: S506  # a SafeLoader


@cache
def load(path: Path) -> Any:
    """The value of a file of YAML."""
    return parse(path.read_text(encoding="utf-8"))


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a file of Python."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> frozenset[str]:
    """The dotted names that a file imports, at the top or in a function, in full; those for the type checker left out."""
    found: set[str] = set()
    todo: list[ast.AST] = [syntax(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            base = [f"{COLLECTION}{'.'.join(above)}"] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
        todo += ast.iter_child_nodes(node)
    return frozenset(found)
