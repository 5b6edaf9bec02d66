# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables such as ``elastic_options``, whose keys are options of a module, or of lookup ``manifests``, without a variable of the role.

Those such as ``elastic_storage`` have the keys of one option of a module. The description of the variable in the role's argument spec names
the module, the lookup or the option.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import typing as t
from collections.abc import Iterator, Mapping

import yaml

from ansible_collections.muster.ml.plugins.plugin_utils import _specs

_MODULE = re.compile(r"\b(?:[Oo]ther options of M|as O|[Mm]ore options of O)\(muster\.ml\.(\w+)(?:#module:(\w+))?\)")
_MANIFESTS = re.compile(r"\b[Oo]ther options of P\(muster\.ml\.manifests#lookup\)")
_PLUGINS: t.Final = "ansible_collections.muster.ml.plugins"


class Target(t.NamedTuple):
    """The module, its option or the lookup whose options are the keys of one variable."""

    title: str
    options: Mapping[str, Mapping[str, t.Any]]
    """The argument spec of each option that is no secret."""
    taken: Mapping[str, str]
    """Options that the role sets itself, each with the variable that they have in the role, or with nothing."""


@functools.cache
def target(variable: str) -> Target | None:
    """The module, its option or the lookup whose options are the keys of the variable; None for other variables.

    None also if the libraries of the module are missing.
    """
    role = _specs.names().get(variable, "")
    own = _specs.options(role).get(variable, {})
    text = str(own["description"]) if own.get("type") == "dict" else ""
    if _MANIFESTS.search(text):
        found = _of_manifests(role)
        return Target(f"lookup muster.ml.manifests for {role}", found, _with_variables(variable, {"part": ""}, found))
    module = _MODULE.search(text)
    if not module:
        return None
    try:
        spec = importlib.import_module(f"{_PLUGINS}.modules.{module[1]}").ARGUMENT_SPEC
    except ImportError:
        return None
    if module[2]:
        return Target(f"{module[2]} of module muster.ml.{module[1]}", spec[module[2]]["options"], {})
    found = {name: option for name, option in spec.items() if not option.get("no_log")}
    return Target(f"module muster.ml.{module[1]}", found, _with_variables(variable, _set_by_tasks(role, module[1]), found))


def free(variable: str) -> set[str]:
    """The options that the variable may set."""
    found = target(variable)
    return found.options.keys() - found.taken.keys() if found else set()


def variables_of(role: str) -> list[str]:
    """The variables of a role whose keys are options."""
    return [name for name in _specs.options(role) if target(name)]


def _of_manifests(role: str) -> dict[str, dict[str, t.Any]]:
    lookup = importlib.import_module(f"{_PLUGINS}.lookup.manifests")
    spec = yaml.load(lookup.DOCUMENTATION, Loader=_specs.LOADER)["options"]  # noqa: S506  (safe, and quick)
    return {field.name: spec[field.name] for field in dataclasses.fields(lookup.options_of(lookup.find(role)))}


def _with_variables(variable: str, taken: Mapping[str, str], known: Mapping[str, t.Any]) -> dict[str, str]:
    """The options that the role sets, with those that have a variable, or several, with the same beginning as the one for options."""
    own = _specs.options(_specs.names()[variable])
    beginning = variable.removesuffix("options")
    several = {name: f"{beginning}{name}_*" for name in taken if any(v.startswith(f"{beginning}{name}_") for v in own)}
    return {**taken, **several, **{name: f"{beginning}{name}" for name in known if f"{beginning}{name}" in own}}


def _set_by_tasks(role: str, module: str) -> dict[str, str]:
    """The options that tasks of a role give a module, each with the first variable of the role in its value."""
    found: dict[str, str] = {}
    for path in sorted(_specs.COLLECTION.glob(f"roles/{role}/tasks/**/*.yml")):
        for task in _tasks(yaml.load(path.read_text(encoding="utf-8"), Loader=_specs.LOADER)):  # noqa: S506  (safe, and quick)
            for name, value in (task.get(f"muster.ml.{module}") or {}).items():
                words = re.findall(r"\b[a-z]\w+", str(value))
                found[name] = found.get(name) or next((word for word in words if word in _specs.options(role)), "")
    return found


def _tasks(items: list[dict[str, t.Any]] | None) -> Iterator[dict[str, t.Any]]:
    for item in items or []:
        yield item
        for part in ("block", "rescue", "always"):
            yield from _tasks(item.get(part))
