# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a system that its README shows: those that must be set, and those that most inventories set."""

from collections.abc import Iterator
from pathlib import Path

from support.docs import awx, collection
from support.docs.reference import shown, table, type_of
from support.places import ROOT
from support.reading import load

NAME = "variables"
# Of a default that is worth a cell of the table.
LONGEST = 60


def readmes() -> dict[Path, str]:
    """The table of each system, by the page that has it."""
    known = load(ROOT / "playbooks" / "vars" / "systems.yml")["__systems_known"]
    head = ("variable", "set", "type", "default", "for")
    return {ROOT / "roles" / system["name"] / "README.md": table(head, _rows(system)) for system in known}


def _rows(system: dict[str, list[str]]) -> Iterator[tuple[str, ...]]:
    options = collection.roles()[str(system["name"])].options
    for need, group in (("must be", "must"), ("usually", "usual")):
        for name in system[group]:
            option = options[name]
            default = shown(option.get("default") or "")
            short = f"`{default}`" if 0 < len(default) < LONGEST and "{{" not in default else ""
            yield f"`{name}`", need, type_of(option), short, awx.first_sentence(option)
