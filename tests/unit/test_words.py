# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of tasks, blocks, handlers and plays: an operator reads them in a log, at night, without what stands around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.reading import load, parse

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("roles", "playbooks", "site.yml", "extensions/molecule", "tests/acceptance", "examples")
# Folders of roles and scenarios whose files are values or texts.
NO_TASKS = {"defaults", "files", "meta", "templates", "vars"}
# What a name may begin with. A new verb is welcome when none of these says the same.
VERBS = {
    "Apply", "Assert", "Build", "Change", "Check", "Configure", "Create", "Delete", "Detect", "Download", "End", "Fail",
    "Fetch", "Find", "Grant", "Include", "Install", "Kill", "List", "Mark", "Measure", "Prepare", "Read", "Record", "Refuse",
    "Reload", "Remove", "Replace", "Report", "Reset", "Restart", "Run", "Scale", "Show", "Start", "Stop", "Take",
    "Tear", "Train", "Upload", "Validate", "Verify", "Wait", "Write",
}  # fmt: skip


def pages() -> list[Path]:
    found = [
        path
        for place in PLACES
        for path in ((ROOT / place).rglob("*.yml") if (ROOT / place).is_dir() else [ROOT / place])
    ]
    paths = [path for path in found if not NO_TASKS & set(path.relative_to(ROOT).parts)]
    return sorted(paths)


def named(items: list[dict[str, Any]]) -> Iterator[str]:
    """The name of each play, task, block and handler, however deep; an empty one where there is none."""
    for item in items:
        yield item.get("name") or ""
        for part in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from named(item.get(part) or [])


def bad_names(content: Any) -> list[str]:
    names = named(content) if isinstance(content, list) else ()
    return [name for name in names if len(name.split()) < 2 or name.split()[0] not in VERBS]


def test_there_is_something_to_read() -> None:
    assert len(pages()) > 100


def test_the_list_of_verbs_is_short() -> None:
    assert len(VERBS) < 60


def test_a_name_is_a_verb_and_an_object() -> None:
    assert [(str(page), name) for page in pages() for name in bad_names(load(page))] == []


@pytest.mark.parametrize("name", ["Namespace", "The namespace is there", "create the namespace", "Delete", ""])
@pytest.mark.parametrize("page", [
    "- name: {name}", "- {{hosts: all, tasks: [{{name: {name}}}]}}", "- {{name: Delete all, block: [], rescue: [{{name: {name}}}]}}",
])  # fmt: skip
def test_what_is_no_sentence_is_refused(page: str, name: str) -> None:
    assert name in bad_names(parse(page.format(name=name)))
