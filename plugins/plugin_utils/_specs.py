# SPDX-License-Identifier: GPL-3.0-or-later
"""The argument specs of the roles and of the playbooks, and names that are nearly those of something."""

from __future__ import annotations

import functools
import pathlib
import re
import typing as t
from collections.abc import Iterable, Mapping

import yaml

COLLECTION: t.Final = pathlib.Path(__file__).resolve().parents[2]
LOADER: t.Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_OPTION = re.compile(r"^ {6}([a-z]\w*):", re.MULTILINE)


@functools.cache
def roles() -> dict[str, str]:
    """The argument specs of each role as text, and with no name those of the playbooks, whose variables belong to no role.

    Longer names come first: studioml_runner before studioml.
    """
    paths = {path.parts[-3]: path for path in COLLECTION.glob("roles/*/meta/argument_specs.yml")}
    paths[""] = COLLECTION / "playbooks" / "vars" / "argument_specs.yml"
    return {role: paths[role].read_text(encoding="utf-8") for role in sorted(paths, key=len, reverse=True)}


@functools.cache
def names() -> dict[str, str]:
    """Every variable with its role."""
    return {name: role for role, text in roles().items() for name in _OPTION.findall(text)}


@functools.cache
def options(role: str) -> dict[str, dict[str, t.Any]]:
    """The spec of each variable of a role, or of those of the playbooks."""
    entries: Mapping[str, t.Any] = yaml.load(roles()[role], Loader=LOADER)["argument_specs"]  # noqa: S506  (safe, and quick)
    return {name: option for entry in entries.values() for name, option in (entry.get("options") or {}).items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name within two edits, and within one for each four letters after the first word; else nothing. Case does not matter."""
    given, pairs = name.lower(), ((other.lower(), other) for other in known)
    rows = [(count, other) for lower, other in pairs if _alike(given, lower) and (count := _edits(given, lower)) <= _allowed(lower)]
    return min(rows)[1] if rows else ""


def _allowed(name: str) -> int:
    rest = name.partition("_")[2] or name
    return min(2, max(1, len(rest) // 4))


def _alike(first: str, second: str) -> bool:
    """Whether two edits may be enough: of a name that is cut in three, one part is whole after most of them."""
    return abs(len(first) - len(second)) <= 2 and any(part in first for part in _parts(second))


@functools.cache
def _parts(name: str) -> tuple[str, str, str]:
    third = len(name) // 3
    return name[:third], name[third : 2 * third], name[2 * third :]


def _edits(first: str, second: str) -> int:
    """The distance of optimal string alignment: letters added, left out, replaced, or swapped with the next one."""
    above: list[int] = []
    row = list(range(len(second) + 1))
    for at, letter in enumerate(first, 1):
        before, above, row = above, row, [at]
        for index, other in enumerate(second, 1):
            cost = min(above[index] + 1, row[-1] + 1, above[index - 1] + (letter != other))
            swapped = at > 1 and index > 1 and letter == second[index - 2] and other == first[at - 2]
            row.append(min(cost, before[index - 2] + 1) if swapped else cost)
    return row[-1]
