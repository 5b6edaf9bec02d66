# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of docs/reference: the names of every module, role, playbook and claim, as the code has them."""

import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from support.docs import collection
from support.places import ROOT

HEAD = """<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Written by scripts/docs; do not edit. -->
"""
MARKUP = re.compile(r"\b(?:[OVCEFIBMP]|RV)\(((?:[^()\\]|\\.|\([^()]*\))*)\)")


def reference() -> dict[str, str]:
    """The text of each page, by its path in the repository."""
    pages = {"README.md": contents(), "playbooks.md": playbooks(), "claims.md": claims()}
    return {f"docs/reference/{name}": f"{HEAD}\n{text.rstrip()}\n" for name, text in pages.items()}


def contents() -> str:
    """Modules and roles by name. Their options stand where ansible-doc reads them, and there is no copy here."""
    modules = [(f"[`{name}`](../../plugins/modules/{name}.py)", module.summary) for name, module in collection.modules().items()]
    roles = [
        (f"[`{name}`](../../roles/{name}/README.md)", role.summary, f"[variables](../../roles/{name}/meta/argument_specs.yml)")
        for name, role in collection.roles().items()
    ]
    return "\n\n".join(
        [
            "# Reference\n\nModules, other plugins and roles by name. `ansible-doc muster.ml.NAME` has the options, examples and\n"
            "results of a module, `ansible-doc -t role muster.ml.NAME` the variables of a role with their defaults.",
            "See also [every playbook, inventory and make target](playbooks.md), and [what the acceptance suite proves](claims.md).",
            "## Modules",
            table(("module", "does"), modules),
            "## Other plugins",
            table(("plugin", "for"), [(f"`{name}`", text) for name, text in collection.other_plugins().items()]),
            "## Roles",
            table(("role", "does", "has"), roles),
        ]
    )


def type_of(option: Any) -> str:
    kind = option.get("type", "str")
    kind = f"{kind} of {option['elements']}" if kind == "list" and "elements" in option else kind
    choices = option.get("choices")
    return f"{kind}: {', '.join(f'`{shown(c)}`' for c in choices)}" if choices else kind


def shown(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...").strip()


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
            "Variables of the playbooks, for an inventory or `-e`. Those of roles are [beside each role](README.md#roles).",
            table(("name", "type", "for"), [(f"`{name}`", type_of(row), row["description"]) for name, row in settings.items()]),
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
        parts += [f"## {system}", table(("claim", "says", "limit of the event", "breaks things", "only on the local cluster"), rows)]
    return "\n\n".join(parts)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(cell(plain(c)) for c in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *lines])


def cell(text: str) -> str:
    return text.replace("|", "\\|").strip()
