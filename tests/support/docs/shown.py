# SPDX-License-Identifier: GPL-3.0-or-later
"""The claims, scenarios and tests by which a table of the documentation shows that a row is true."""

import ast
import re
from functools import cache

from support.places import ROOT
from support.reading import load, syntax

# Above a test, in a file of a scenario, or in a claim: the rows of tables that it is about.
ROWS = re.compile(r"# Shows rows? ([0-9]{3}[0-9., and]*)\.$", re.MULTILINE)


def exists(kind: str, name: str, system: str = "") -> bool:
    """KIND is claim, scenario or test. A claim is written SYSTEM/NAME, or NAME alone where the page is that of SYSTEM."""
    return _key(kind, name, system) in _known(kind)


def is_about(row: str, kind: str, name: str, system: str = "") -> bool:
    """Whether a claim, scenario or test carries the number of a row."""
    return row in _known(kind).get(_key(kind, name, system), set())


def _key(kind: str, name: str, system: str) -> str:
    return f"{system}/{name}" if kind == "claim" and "/" not in name else name


def _known(kind: str) -> dict[str, set[str]]:
    return {"claim": _claims, "scenario": _scenarios, "test": _tests}[kind]()


def _rows(text: str) -> set[str]:
    return {row for found in ROWS.findall(text) for row in re.findall(r"[0-9]{3}\.[0-9]+", found)}


@cache
def _tests() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(syntax(path)) if "differential" not in path.parts else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found.setdefault(node.name, set()).update(_rows(lines[first - 2] if first > 1 else ""))
    return found


@cache
def _claims() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for page in (ROOT / "tests" / "acceptance").glob("*/claims.yml"):
        parts = {part.split("\n")[0]: part for part in page.read_text(encoding="utf-8").split("\n  - name: ")[1:]}
        found |= {f"{page.parent.name}/{claim['name']}": _rows(parts.get(claim["name"], "")) for claim in load(page)["claims"]}
    return found


@cache
def _scenarios() -> dict[str, set[str]]:
    places = [path.parent for path in (ROOT / "extensions" / "molecule").glob("*/molecule.yml")]
    return {place.name: _rows("\n".join(path.read_text(encoding="utf-8") for path in place.glob("*.yml"))) for place in places}
