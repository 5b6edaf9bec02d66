# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of docs/reference: every module, role, playbook and claim, as the code has them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from support.docs import collection
from support.docs.collection import NAMESPACE, Module, Options, Role
from support.places import ROOT

HEAD = """<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by scripts/docs; do not edit. -->
"""
MARKUP = re.compile(r"\b(?:[OVCEFIBMP]|RV)\(((?:[^()\\]|\\.|\([^()]*\))*)\)")
LONG = 60


def reference() -> dict[str, str]:
    """The text of each page, by its path in the repository."""
    pages = {
        "README.md": contents(),
        "modules.md": modules(),
        "roles.md": roles(),
        "playbooks.md": playbooks(),
        "claims.md": claims(),
    }
    return {f"docs/reference/{name}": f"{HEAD}\n{text.rstrip()}\n" for name, text in pages.items()}


def contents() -> str:
    rows = [
        ("[modules.md](modules.md)", f"{len(collection.modules())} modules, with every option; and the other plugins"),
        ("[roles.md](roles.md)", f"{len(collection.roles())} roles, with every variable and its default"),
        ("[playbooks.md](playbooks.md)", "every playbook, inventory and make target"),
        ("[claims.md](claims.md)", "what the acceptance suite proves on a running cluster"),
    ]
    return "# Reference\n\nThe reference by name. Written from the code by `scripts/docs`.\n\n" + table(("page", "has"), rows)


def modules() -> str:
    found = collection.modules()
    shared = sorted({name for module in found.values() for name in module.fragments if collection.fragment(name)})
    own = [name for name in shared if name.startswith(NAMESPACE)]
    parts = [
        "# Modules and plugins\n\nThe modules and their options. `ansible-doc muster.ml.NAME` has examples and results, too.",
        table(("module", "does"), [(link(name), module.summary) for name, module in found.items()]),
        table(("other plugin", "for"), [(f"`{name}`", text) for name, text in collection.other_plugins().items()]),
        *(module_part(module) for module in found.values()),
        "## Options that several modules share",
        *(f"### {name}\n\n{options_table(collection.fragment(name))}" for name in own),
    ]
    return "\n\n".join(parts)


def module_part(module: Module) -> str:
    used = [name for name in module.fragments if collection.fragment(name)]
    shared = ", ".join(link(name) if name.startswith(NAMESPACE) else f"`{name}`" for name in used)
    parts = [f"## {module.name}\n\n{plain(module.summary)}."]
    parts += [options_table(module.own)] if module.own else []
    parts += [f"Shared options: {shared}."] if shared else []
    return "\n\n".join(parts)


def roles() -> str:
    found = collection.roles()
    return "\n\n".join(
        [
            "# Roles\n\nThe roles and their variables. `ansible-doc -t role muster.ml.NAME` says the same in a terminal.",
            table(("role", "does"), [(link(name), role.summary) for name, role in found.items()]),
            *(role_part(role) for role in found.values()),
        ]
    )


def role_part(role: Role) -> str:
    others = [(f"`{name}`", text) for name, text in role.entries.items() if name != "main"]
    parts = [f"## {role.name}\n\n{plain(role.summary)}. [More](../../roles/{role.name}/README.md)."]
    parts += [table(("`tasks_from`", "does"), others)] if others else []
    return "\n\n".join([*parts, options_table(role.options, whole=True)])


def options_table(options: Options, *, whole: bool = False) -> str:
    """``whole`` shows all of each description; roles have no other place for it."""
    rows = [(f"`{name}`", type_of(option), default_of(option), described(option, whole=whole)) for name, option in options.items()]
    return table(("name", "type", "default", "for"), rows)


def type_of(option: Any) -> str:
    kind = option.get("type", "str")
    kind = f"{kind} of {option['elements']}" if kind == "list" and "elements" in option else kind
    choices = option.get("choices")
    return f"{kind}: {', '.join(f'`{shown(c)}`' for c in choices)}" if choices else kind


def default_of(option: Any) -> str:
    if option.get("required"):
        return "required"
    value = option.get("default")
    if value is None:
        return ""
    text = shown(value)
    return f"`{text}`" if text and len(text) <= LONG else "empty" if not text else "long"


def shown(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...").strip()


def described(option: Any, *, whole: bool) -> str:
    text = option.get("description", "")
    paragraphs = [text] if isinstance(text, str) else text
    return plain(" ".join(paragraphs) if whole else re.split(r"(?<=[.])\s+(?=[A-Z])", paragraphs[0])[0])


def plain(text: str) -> str:
    """Ansible's marks as Markdown: O(name) as `name`."""
    text = MARKUP.sub(lambda m: f"`{m[1].removeprefix('ignore:')}`", " ".join(text.split()))
    return re.sub(r"[LU]\(([^,()]+)(?:,\s*([^()]+))?\)", lambda m: f"[{m[1]}]({m[2] or m[1]})", text)


def playbooks() -> str:
    rows = [(f"`{name}`", comment_of(path)) for name, path in collection.playbooks().items()]
    inventories = [(f"`inventories/{name}`", comment_of(ROOT / "inventories" / name / "hosts.yml")) for name in collection.inventories()]
    targets = [(f"`make {name}`", text) for name, text in collection.make_targets().items()]
    settings = importlib.import_module("ansible_collections.muster.ml.plugins.plugin_utils._specs").options("")
    return "\n\n".join(
        [
            "# Playbooks, inventories, commands\n\nThe playbooks and the inventories that they take.",
            "From a clone: `ansible-playbook -i inventories/NAME playbooks/PLAYBOOK.yml`. From the installed collection:\n"
            "`ansible-playbook -i INVENTORY muster.ml.PLAYBOOK`.",
            table(("playbook", "does"), rows),
            table(("inventory", "for"), inventories),
            "Variables of the playbooks, for an inventory or `-e`. Those of roles are in [roles.md](roles.md).",
            table(
                ("name", "type", "for"),
                [(f"`{name}`", type_of(row), row["description"]) for name, row in settings.items()],
            ),
            table(("command in a clone", "does"), targets),
        ]
    )


def comment_of(path: Path) -> str:
    """The first paragraph of the comment at the beginning of the document, without what only leads to the command below it."""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").partition("\n---\n")[2].splitlines():
        text = line.lstrip("# ").strip() if line.startswith("#") else ""
        if lines and not text:
            break
        lines += [text] if text else []
    return re.sub(r"(?<=\.) [^.]*:$", "", " ".join(lines)).removesuffix(":")


def claims() -> str:
    parts = ["# Claims\n\nThe claims that `make prove SYSTEMS=...` proves, system by system, in this order."]
    for system, found in collection.claims().items():
        rows = [
            (
                f"`{c['name']}`",
                c["claim"],
                f"{c['limit']} s" if "limit" in c else "",
                *("yes" if c.get(key) else "" for key in ("fault", "local")),
            )
            for c in found
        ]
        parts += [
            f"## {system}",
            table(("claim", "says", "limit of the event", "breaks things", "only on the local cluster"), rows),
        ]
    return "\n\n".join(parts)


def link(name: str) -> str:
    return f"[`{name.removeprefix(NAMESPACE)}`](#{name.lower().replace('.', '')})"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(cell(plain(c)) for c in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines])


def cell(text: str) -> str:
    return text.replace("|", "\\|").strip()
