# SPDX-License-Identifier: GPL-3.0-or-later
"""The claims, scenarios and tests by which a table of the documentation shows that a row is true."""

from __future__ import annotations

import ast
from functools import cache

from support.places import ROOT
from support.reading import load, syntax


def exists(kind: str, name: str, system: str = "") -> bool:
    """KIND is claim, scenario or test. A claim is written SYSTEM/NAME, or NAME alone where the page is that of SYSTEM."""
    if kind == "claim":
        return (name if "/" in name else f"{system}/{name}") in _claims()
    return name in (_scenarios() if kind == "scenario" else _tests())


@cache
def _tests() -> set[str]:
    paths = [path for path in (ROOT / "tests").rglob("test_*.py") if "differential" not in path.parts]
    nodes = [node for path in paths for node in ast.walk(syntax(path))]
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@cache
def _claims() -> set[str]:
    pages = (ROOT / "tests" / "acceptance").glob("*/claims.yml")
    return {f"{page.parent.name}/{claim['name']}" for page in pages for claim in load(page)["claims"]}


@cache
def _scenarios() -> set[str]:
    return {path.parent.name for path in (ROOT / "extensions" / "molecule").glob("*/molecule.yml")}
