# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges the tags of the command by those of the collection: with one that no task has, a run ends well and has done nothing."""

from __future__ import annotations

import fnmatch
import functools
import pathlib
import re
from collections.abc import Sequence

from ansible import constants as C  # noqa: N812  (as everywhere in Ansible)
from ansible import context
from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.plugin_utils._specs import COLLECTION, nearest, roles
from ansible_collections.muster.ml.plugins.plugin_utils._variables import IGNORED

try:
    from ansible._internal._task import TaskContext
except ImportError:  # an internal class: without it a tag of an import_playbook is judged, too
    TaskContext = None

_LISTS = re.compile(r"^ *tags: (?:&\w+ )?\[(\w[\w, ]*)\]$", re.MULTILINE)


@functools.cache
def tags() -> frozenset[str]:
    """Every tag that a command can name: each role, those of its tasks and of the playbooks, and Ansible's own words."""
    files = [*COLLECTION.glob("playbooks/**/*.yml"), *COLLECTION.glob("roles/*/tasks/*.yml")]
    lists = [found for path in files for found in _LISTS.findall(path.read_text(encoding="utf-8"))]
    return frozenset({"all", "always", "never", "tagged", "untagged", *filter(None, roles()), *", ".join(lists).split(", ")})


def tag_problems(ignored: Sequence[str]) -> list[str]:
    """Problems of the command's tags: a sentence for each that is unknown.

    Where a playbook of another project imports ours, its other plays may have the tag: a warning, if it is nearly a tag of Muster.
    """
    command = context.CLIARGS
    run, skipped = set(command.get("tags") or ()), set(command.get("skip_tags") or ())
    asked = dict.fromkeys(skipped - {"", *C.TAGS_SKIP}, "--skip-tags") | dict.fromkeys(run - {""} or run, "--tags")
    task = TaskContext and TaskContext.current(optional=True)
    found = []
    for tag in sorted(asked.keys() - tags() - set(task.task.tags if task else ())):
        near = nearest(tag, tags())
        advice = f"Did you mean {near}?" if near else "Each role has its name as a tag, and each of its phases ROLE_PHASE."
        sentence = f"{tag or 'Nothing'} ({asked[tag]}) is not a tag of Muster. {advice}"
        if {*map(_is_ours, command.get("args") or ())} == {True}:
            found.append(sentence)
        elif near and not any(fnmatch.fnmatchcase(tag, pattern) for pattern in ignored):
            Display().warning(f"{sentence} If it is yours, name it in {IGNORED}.")
    return found


def _is_ours(playbook: str) -> bool:
    """Whether a playbook of the command, a path or a name such as muster.ml.site, belongs to this collection."""
    path, name = pathlib.Path(playbook), playbook.removeprefix("muster.ml.")
    file = path.resolve() if path.exists() else COLLECTION / "playbooks" / f"{name}.yml"
    return file in (COLLECTION / "site.yml", *COLLECTION.glob("playbooks/*.yml"))
