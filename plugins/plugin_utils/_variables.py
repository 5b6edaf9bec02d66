# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges variables of an inventory or of ``-e`` by the argument specs of the roles: names that no role has, and values that none takes.

Private to the collection.
"""

from __future__ import annotations

import fnmatch
import functools
import pathlib
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.plugin_utils._settings import SETTINGS
from ansible_collections.muster.ml.plugins.plugin_utils._values import refused

COLLECTION: t.Final = pathlib.Path(__file__).resolve().parents[2]
IGNORED: t.Final = "muster_ignored_variables"

_SHARED = ("dataset", "etcd", "jobset", "kueue", "namespace", "object_store", "prometheus", "rabbitmq", "traefik")
"""Roles with the name of a program that inventories of other projects configure, too (kubespray has 60 variables etcd_*)."""

_CHECKED: t.Final = ("type", "elements", "choices", "no_log")
_OPTION = re.compile(r"^ {6}([a-z]\w*):", re.MULTILINE)
_SECRET = re.compile(r"password|secret|token|key|credential", re.IGNORECASE)


class Given(t.NamedTuple):
    """A variable, its value, and where it was set (``file:line`` or ``-e``)."""

    name: str
    value: object
    place: str
    constant: bool = True
    """False: the value is a template or encrypted, and is not judged."""


def problems(given: Iterable[Given], ignored: Sequence[str] = ()) -> list[str]:
    """One sentence for each variable that is unknown or has a value that its role refuses, in the order of their names."""
    rows = sorted(row for row in given if not any(fnmatch.fnmatchcase(row.name, pattern) for pattern in ignored))
    found = [_unknown(row) or _wrong(row) for row in rows]
    return [sentence for sentence in found if sentence]


def _unknown(given: Given) -> str:
    known = names()
    if given.name in known:
        return ""
    near = nearest(given.name, known)
    own = given.name.startswith("muster_") or next((role for role in _roles() if given.name.startswith(f"{role}_")), "")
    if not near and (not own or own in _SHARED):
        return ""
    advice = f"Did you mean {near}?" if near else "docs/reference has those that exist."
    return f"{given.name} ({given.place}) is not a variable of Muster. {advice} If it is yours, name it in {IGNORED}."


def _wrong(given: Given) -> str:
    if given.name not in names() or not given.constant or given.value is None:
        return ""
    spec = _spec(given.name)
    if wrong := refused(given.name, given.value, spec):
        return f"{given.name} ({given.place}) {wrong}"
    if not ArgumentSpecValidator({given.name: spec}).validate({given.name: given.value}).error_messages:
        return ""
    shown = "" if spec.get("no_log") or _SECRET.search(given.name) else f", not {given.value}"
    choices = [str(choice) for choice in spec.get("choices") or ()]
    if not choices:
        elements = f" of {spec['elements']}" if "elements" in spec else ""
        return f"{given.name} ({given.place}) must be of type {spec.get('type', 'str')}{elements}{shown}."
    several = isinstance(given.value, list)
    near = [nearest(str(value), choices) for value in t.cast("list[t.Any]", given.value if several else [given.value])]
    meant = f" Did you mean {', '.join(filter(None, near))}?" if any(near) else ""
    return f"{given.name} ({given.place}) must be {'of' if several else 'one of'} {', '.join(choices)}{shown}.{meant}"


@functools.cache
def _roles() -> dict[str, str]:
    """The argument specs of each role as text. Longer names come first: studioml_runner before studioml."""
    paths = COLLECTION.glob("roles/*/meta/argument_specs.yml")
    texts = {path.parts[-3]: path.read_text(encoding="utf-8") for path in paths}
    return dict(sorted(texts.items(), key=lambda row: -len(row[0])))


@functools.cache
def names() -> dict[str, str]:
    """Every variable, with its role or with nothing for those of the playbooks."""
    found = dict.fromkeys(SETTINGS, "")
    return found | {name: role for role, text in _roles().items() for name in _OPTION.findall(text)}


def _spec(name: str) -> dict[str, t.Any]:
    """The spec of one variable without its default, which may be a template."""
    role = names()[name]
    return {key: value for key, value in (_options(role)[name] if role else SETTINGS[name]).items() if key in _CHECKED}


@functools.cache
def _options(role: str) -> dict[str, dict[str, t.Any]]:
    page = yaml.load(_roles()[role], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  (safe, and quick)
    entries: Mapping[str, t.Any] = page["argument_specs"]
    return {name: option for entry in entries.values() for name, option in (entry.get("options") or {}).items()}


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name within two edits, and within one for each four letters after the first word; else nothing."""
    rows = [
        (distance, other)
        for other in known
        if _alike(name, other) and (distance := _edits(name, other)) <= _allowed(other)
    ]
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
