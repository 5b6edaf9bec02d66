# SPDX-License-Identifier: GPL-3.0-or-later
"""How much there is to hold in the head. Raising a bound takes a line with the reason in docs/architecture.md, section Size."""

import sys
from functools import cache

import pytest
from support.docs import collection, measure
from support.places import ROOT, sources


def tracked_lines() -> int:
    return sum((ROOT / name).read_bytes().count(b"\n") for name in sources() if not (ROOT / name).is_symlink())


@cache
def code() -> dict[str, int]:
    """Lines of code of each Python file below plugins. A link is no file of its own."""
    files = [name for name in sources() if name.startswith("plugins/") and name.endswith(".py") and "/doc_fragments/" not in name]
    return {name: len(measure.code_lines((ROOT / name).read_text(encoding="utf-8"))) for name in files if not (ROOT / name).is_symlink()}


def plugin_code() -> int:
    return sum(code().values())


def code_behind_a_module() -> int:
    return sum(lines for name, lines in code().items() if "/module_utils/" in name) // len(collection.modules())


def role_variables() -> int:
    return sum(len(role.options) for role in collection.roles().values())


@pytest.mark.parametrize(
    ("what", "count", "most"),
    [
        ("tracked lines", tracked_lines, 203_300),
        ("lines of code in plugins", plugin_code, 39_760),
        ("lines of code behind a module", code_behind_a_module, 454),
        ("role variables", role_variables, 480),
    ],
)
def test_it_does_not_grow(what: str, count: object, most: int) -> None:
    assert callable(count)
    found = count()
    sys.stdout.write(f"{found} {what}, {most} at most\n")
    assert found <= most
    assert found > 0.9 * most, f"lower the bound of {what}: there are {found}"
