# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a plan: rows that the tasks of a run in check mode note, the plan that is made of them, and the plan that limits a run."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import pathlib
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

import yaml
from ansible import constants as C  # noqa: N812  (as everywhere in Ansible)
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

from ansible_collections.muster.ml.plugins.module_utils._core.errors import NEW_PLAN, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.files import replaced
from ansible_collections.muster.ml.plugins.plugin_utils._planned import ACTIONS, Limit, Row, ordered

FORMAT: t.Final = 1
HOURS: t.Final = 24.0
NOTED: t.Final = pathlib.Path(C.DEFAULT_LOCAL_TMP) / "muster_planned"
"""The temporary file of one run of Ansible, in which its processes note rows; Ansible deletes its folder at the end."""
_ROOT: t.Final = pathlib.Path(__file__).parents[2]
_SECRET: t.Final = re.compile(r"password|secret|token|key|credential", re.IGNORECASE)


def note(file: str, host: str, where: str, rows: Sequence[Row]) -> None:
    """Note what a task would do. Tasks for several hosts run at once, and each appends with one write."""
    line = json.dumps({"file": str(pathlib.Path(file).expanduser().absolute()), "host": host, "where": where, "rows": rows})
    with NOTED.open("ab", buffering=0) as noted:
        noted.write(f"{line}\n".encode())


def version() -> str:
    """The version of the collection, of an artefact or a clone."""
    manifest = _ROOT / "MANIFEST.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml.safe_load((_ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def inputs() -> str:
    """A hash of the inventory's files and of the variables of ``-e``. Of variables with the name of a secret only the name counts."""
    digest = hashlib.sha256()
    for source in context.CLIARGS.get("inventory") or ():
        path = pathlib.Path(source)
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path] if path.is_file() else []
        for file in files:
            digest.update(f"{file.relative_to(path)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
        if not files:
            digest.update(source.encode())
    given = load_extra_vars(DataLoader()) if context.CLIARGS.get("extra_vars") else {}
    rest = {key: "" if _SECRET.search(key) else given[key] for key in given if not key.startswith("muster_plan")}
    digest.update(json.dumps(rest, sort_keys=True, default=str).encode())
    return f"sha256:{digest.hexdigest()}"


# Writing


def write(playbook: str, made: dt.datetime, others: Sequence[Row], unknown: Sequence[str], *, complete: bool) -> list[str]:
    """Write the plans that this run has noted, each with the page for readers beside it; return their paths."""
    noted = [json.loads(line) for line in NOTED.read_text(encoding="utf-8").splitlines()] if NOTED.exists() else []
    files = list(dict.fromkeys(one["file"] for one in noted))
    for file in files:
        mine = [one for one in noted if one["file"] == file]
        rows = ordered(row for one in mine for row in one["rows"])
        hosts: dict[str, set[str]] = {}
        for one in mine:
            hosts.setdefault(one["where"], set()).add(one["host"])
        plan = {
            "format": FORMAT,
            "made": made.isoformat(timespec="seconds"),
            "collection": version(),
            "inputs": inputs(),
            "playbook": playbook,
            "complete": complete,
            "where": {where: sorted(hosts[where]) for where in sorted(hosts)},
            "changes": [row for row in rows if row["action"] != "keep"],
            "kept": [row for row in rows if row["action"] == "keep"],
            "not_limited": list(others),
            "unknown": sorted(set(unknown)),
        }
        path = pathlib.Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        for at, text in ((path, json.dumps(plan, indent=1) + "\n"), (page_of(path), page(plan))):
            with replaced(at) as out:
                out.write(text.encode())
    return files


def page_of(path: pathlib.Path) -> pathlib.Path:
    """The page for readers beside a plan."""
    return path.with_suffix(".md") if path.suffix == ".json" else path.with_name(f"{path.name}.md")


def page(plan: Mapping[str, t.Any]) -> str:
    """The plan for readers, in Markdown."""
    rows: list[Row] = plan["changes"]
    counts = [f"{count} to {action}" for action in ACTIONS if (count := sum(row["action"] == action for row in rows))]
    risky = sum(row["data"] for row in rows)
    lines = [
        f"# Plan of {plan['playbook']}: {', '.join(counts) or 'nothing to change'}",
        "",
        *([f"**Data at risk: {risky} of them, the first below.**", ""] if risky else []),
        *([] if plan["complete"] else ["**The run that made it failed: the plan ends there, and no run takes it.**", ""]),
        f"Made {plan['made']} by muster.ml {plan['collection']}, of inputs {plan['inputs']}.",
        *(f"- {where}: {', '.join(hosts)}" for where, hosts in plan["where"].items()),
    ]
    for row in rows:
        title = f"{row['action']} {_plain(row['what'])}{' (DATA AT RISK)' if row['data'] else ''}"
        lines += ["", f"## {title}", "", f"In {_plain(row['where'])}{': ' + _plain(row['reason']) if row.get('reason') else ''}", ""]
        lines += [f"- `{one['path']}`: {_shown(one, 'before')} → {_shown(one, 'after')}" for one in row["fields"]]
    lines += _section("Stays", (f"{row['what']} ({row['where']}): {row.get('reason', '')}" for row in plan["kept"]))
    others = (f"{row['task']} ({row['module']}, {row['host']})" for row in plan["not_limited"])
    lines += _section("Not in this plan, and not limited by it: tasks of other modules that would change something", others)
    lines += _section("Unknown: what check mode could not look at", plan["unknown"])
    return "\n".join(lines) + "\n"


def _section(title: str, texts: Iterable[str]) -> list[str]:
    found = [f"- {_plain(text)}" for text in texts]
    return ["", f"## {title}", "", *found] if found else []


def _plain(text: str) -> str:
    return " ".join(str(text).split())


def _shown(field: Mapping[str, t.Any], key: str) -> str:
    return f"`{json.dumps(field[key])}`" if key in field else "nothing"


# Reading


def read(file: str, hours: float, now: dt.datetime) -> tuple[Limit, frozenset[str]]:
    """The limit of a run, and the clusters, accounts and hosts that the plan is about. Raises InvalidInput where it must not be used."""
    path = pathlib.Path(file).expanduser()
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        age = (now - dt.datetime.fromisoformat(plan["made"])).total_seconds() / 3600
        rows, where, of = [*plan["changes"], *plan["kept"]], frozenset(plan["where"]), [plan[key] for key in ("collection", "inputs")]
    except OSError as exc:
        raise InvalidInput(f"muster_plan: {path} cannot be read: {exc.strerror}.", hint=f"{NEW_PLAN}.") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise InvalidInput(f"muster_plan: {path} is no plan of this collection: {exc!r}", hint=f"{NEW_PLAN}.") from exc
    for wrong, says in (
        (plan.get("format") != FORMAT, f"has the format {plan.get('format')}, and this version reads {FORMAT}"),
        (of[0] != version(), f"was made by version {of[0]}, and this is {version()}"),
        (not plan.get("complete"), "was made by a run that failed, so it ends there"),
        (not 0 <= age <= hours, f"was made {age:.1f} hours ago, and it holds for {hours:g} (muster_plan_hours)"),
        (of[1] != inputs(), "was made of another inventory, or of other variables of -e"),
    ):
        if wrong:
            raise InvalidInput(f"The plan {path} {says}. Nothing was done by this task.", hint=f"{NEW_PLAN}.")
    return Limit(rows, str(path)), where
