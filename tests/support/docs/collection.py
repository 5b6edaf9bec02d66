# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection has: modules and roles with their options, playbooks, variables, tags, inventories, make targets."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.places import ROOT, sources
from support.reading import load, parse, syntax

Options = Mapping[str, Mapping[str, Any]]
NAMESPACE = "muster.ml."
VARIABLE = re.compile(r"(?<![\w.'/-])((?:muster|eks|gke|gcp|gcs|acceptance|images|init)_[a-z][a-z0-9_]*)\b(?![.(/])")
VARIABLE_PLACES = (
    "playbooks/*.yml",
    "playbooks/*/*",
    "inventories/*/group_vars/*",
    "roles/*/defaults/*",
    "roles/*/tasks/**/*.yml",
    "tests/acceptance/**/*.yml",
)
TASK_PARTS = ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers")


@dataclass(frozen=True)
class Module:
    name: str
    summary: str
    own: Options  # what the module documents itself
    fragments: tuple[str, ...]  # what it shares with others, by the fragment's name

    @property
    def options(self) -> dict[str, Mapping[str, Any]]:
        shared = {n: o for name in self.fragments for n, o in fragment(name).items()}
        return shared | {name: {**shared.get(name, {}), **option} for name, option in self.own.items()}


@cache
def fragment(name: str) -> dict[str, Mapping[str, Any]]:
    """Options of a documentation fragment: NAMESPACE.COLLECTION.FILE[.PART]."""
    return fragment_part(name, "options")


@cache
def fragment_part(name: str, part_of_it: str) -> dict[str, Mapping[str, Any]]:
    """The options, attributes or notes of a documentation fragment."""
    space, collection, file, *part = name.split(".")
    package = importlib.import_module(f"ansible_collections.{space}.{collection}.plugins.doc_fragments.{file}")
    text = getattr(package.ModuleDocFragment(), part[0].upper() if part else "DOCUMENTATION")
    return (parse(text) or {}).get(part_of_it) or {}


@cache
def documented(path: Path, part: str = "DOCUMENTATION") -> Any:
    """The DOCUMENTATION (or EXAMPLES) of a plugin, read without importing it; an empty mapping where it has none."""
    for node in syntax(path).body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [part]:
            return parse(ast.literal_eval(node.value)) or {}
    return {}


@cache
def modules() -> dict[str, Module]:
    return {path.stem: _module(path) for path in sorted((ROOT / "plugins" / "modules").glob("*.py"))}


def _module(path: Path) -> Module:
    text = documented(path)
    used = text.get("extends_documentation_fragment") or []
    fragments = [used] if isinstance(used, str) else used
    return Module(path.stem, text["short_description"], text.get("options") or {}, tuple(fragments))


@cache
def groups() -> dict[str, list[str]]:
    """The groups of module_defaults, with the modules of each."""
    found = load(ROOT / "meta" / "runtime.yml")["action_groups"]
    return {name: [member for member in members if isinstance(member, str)] for name, members in found.items()}


@cache
def other_plugins() -> dict[str, str]:
    """Callbacks, filters and lookups, with what they are for."""
    kinds = ("callback", "filter", "lookup")
    paths = sorted(path for kind in kinds for path in (ROOT / "plugins" / kind).glob("*.py") if path.stem != "__init__")
    texts = {path.stem: documented(path).get("short_description", "") for path in paths}
    for path in sorted(ROOT.glob("plugins/filter/*.yml")):
        texts[path.stem] = load(path)["DOCUMENTATION"]["short_description"]
    return texts


@dataclass(frozen=True)
class Role:
    name: str
    summary: str
    entries: Mapping[str, str]  # entry points with their short descriptions
    options: Options


@cache
def roles() -> dict[str, Role]:
    return {path.parents[1].name: _role(path) for path in sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))}


def _role(path: Path) -> Role:
    specs = load(path)["argument_specs"]
    options = {n: o for spec in reversed(specs.values()) for n, o in (spec.get("options") or {}).items()}
    entries = {name: spec.get("short_description", "") for name, spec in specs.items()}
    return Role(path.parents[1].name, entries.get("main", ""), entries, options)


def role_of(variable: str) -> str | None:
    """The role that a variable's name begins with; the longest where several would do."""
    fits = [name for name in roles() if variable.startswith(f"{name}_")]
    return max(fits, key=len, default=None)


@cache
def variables() -> dict[str, Mapping[str, Any]]:
    """Every variable that a user can set: those of roles with their specs, and those that playbooks and inventories read."""
    read: dict[str, Mapping[str, Any]] = {}
    for path in sorted(path for place in VARIABLE_PLACES for path in ROOT.glob(place) if path.is_file()):
        read |= {name: {} for name in VARIABLE.findall(path.read_text(encoding="utf-8")) if name not in modules()}
    return read | {name: option for role in roles().values() for name, option in role.options.items()}


@cache
def playbooks() -> dict[str, Path]:
    return {path.stem: path for path in sorted((ROOT / "playbooks").glob("*.yml"))}


@cache
def inventories() -> list[str]:
    return sorted(path.name for path in (ROOT / "inventories").iterdir() if path.is_dir())


def tasks_in(items: Any) -> Iterator[dict[str, Any]]:
    """Plays and tasks of a file, those inside of plays and blocks too."""
    for item in items or []:
        yield item
        for part in TASK_PARTS:
            yield from tasks_in(item.get(part))


@cache
def task_files() -> dict[str, list[Path]]:
    """The files with tasks, by the role or playbook that they belong to."""
    found: dict[str, list[Path]] = {}
    for path in sorted(
        [
            *ROOT.glob("playbooks/*.yml"),
            *ROOT.glob("playbooks/tasks/*.yml"),
            *ROOT.glob("roles/*/tasks/**/*.yml"),
            *ROOT.glob("roles/*/handlers/*.yml"),
        ]
    ):
        parts = path.relative_to(ROOT).parts
        found.setdefault("/".join(parts[:2]), []).append(path)
    return found


@cache
def task_names() -> frozenset[str]:
    items = (item for paths in task_files().values() for path in paths for item in tasks_in(load(path)))
    return frozenset(" ".join(str(item["name"]).split()) for item in items if "name" in item)


@cache
def tags() -> frozenset[str]:
    """Tags that `--tags` can name."""
    found = {"all", "always", *roles()}
    for path in (path for paths in task_files().values() for path in paths):
        for item in tasks_in(load(path)):
            given = item.get("tags") or []
            found |= {given} if isinstance(given, str) else set(given)
    return frozenset(found)


@cache
def make_targets() -> dict[str, str]:
    """The targets of the Makefile, with the line of help of each."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return {m[1]: m[2] for m in re.finditer(r"^([a-z]+):.*## (.*)$", text, re.MULTILINE)}


@cache
def make_variables() -> frozenset[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^(\w+) \?=", text, re.MULTILINE)) | set(re.findall(r"\$\((ONLY|[A-Z]+)\)", text))


@cache
def scenarios() -> list[str]:
    return sorted(path.parent.name for path in ROOT.glob("extensions/molecule/*/molecule.yml"))


@cache
def files() -> frozenset[str]:
    """Every file of the repository, and every folder that has one."""
    names = sources()
    return frozenset(names) | {str(parent) for name in names for parent in Path(name).parents}


@cache
def claims() -> dict[str, list[dict[str, Any]]]:
    """The claims of the acceptance suite, by system."""
    return {path.parent.name: load(path)["claims"] for path in sorted(ROOT.glob("tests/acceptance/*/claims.yml"))}


@cache
def checks() -> frozenset[str]:
    """What `make test ONLY=` knows."""
    from support import cluster, static

    return frozenset(
        check.name for check in [*static.CHECKS, *cluster.machine_checks(), *(check for lane in cluster.checks() for check in lane)]
    )


@cache
def benches() -> frozenset[str]:
    """What `make bench ONLY=` knows."""
    from bench.benches import BENCHES

    return frozenset(BENCHES)
