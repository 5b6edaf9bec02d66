# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of how Muster connects names tests that exist, in every row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.reading import syntax

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture" / "clients.md"
TESTS = ROOT / "tests" / "unit" / "plugins" / "module_utils" / "_kube"


def rows() -> list[str]:
    """The rows of all tables, without heads and rulers."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [line for line in lines if not line.startswith(("| feature |", "|---"))]


def existing() -> set[str]:
    trees = [syntax(path) for path in TESTS.glob("test_*.py")]
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test_that_exists() -> None:
    assert len(rows()) > 40
    there = existing()
    for row in rows():
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        named = re.findall(r"`(test_\w+)`", cells[-1])
        assert len(cells) == 4, row
        assert named, row
        assert set(named) <= there, row
