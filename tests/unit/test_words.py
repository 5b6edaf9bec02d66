# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of tasks, blocks, handlers and plays: an operator reads them in a log, at night, without their context.

Also the one line with which roles, modules and other plugins describe themselves, the tasks of their examples, the first words of
docstrings, and phrases that comments, docstrings and messages once had too often.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.docs import collection
from support.places import ROOT
from support.reading import load, parse

PLACES = ("roles", "playbooks", "site.yml", "extensions/molecule", "tests/acceptance")
# Folders of roles and scenarios whose files are values or texts.
NO_TASKS = {"defaults", "files", "meta", "templates", "vars"}
# What a name may begin with. A new verb is welcome when none of these says the same.
VERBS = {
    "Add", "Apply", "Assert", "Build", "Change", "Check", "Configure", "Create", "Delete", "Detect", "Download", "Enable", "End", "Evict",
    "Fail", "Fetch", "Find", "Grant", "Import", "Include", "Install", "Kill", "List", "Mark", "Measure", "Prepare", "Read", "Record",
    "Refuse", "Reload", "Remove", "Replace", "Report", "Reset", "Restart", "Resume", "Run", "Scale", "Score", "Show", "Start", "Stop",
    "Suspend", "Take", "Tear", "Train", "Upgrade", "Upload", "Validate", "Verify", "Wait", "Write",
}  # fmt: skip
# What only a plugin's or a role's one line may begin with: modules of clouds "manage" as those of amazon.aws do.
MANAGES = {"Divide", "Join", "Manage"}

# Stilted phrases, and what says the same in plain words.
PLAIN = {
    r"as wanted|(is|are|was|were) wanted|(no|not any) longer wanted": "desired, needed, up to date",
    r"anew": "again, recreated",
    r"(is|are|was|were|be) told": "reported, shown; or say who reports it",
    r"look(s|ed|ing)? after": "manages, reconciles",
    r"ought to": "must",
    r"asks? nobody who (he|it) is": "does not authenticate",
    r"lets? in only|let only": "admits only",
    r"twin of": "the same as",
    r"carry it, too|carries it, too": "contains it, is named after it",
    r"thrown away|taken away": "deleted, discarded",
    r"put aside": "rotated",
    r"of one's own|one's own": "your own",
    r"two looks|one look at": "reads, checks, lists",
    r"the thing|a thing": "name it: the object, the resource, the file",
}  # fmt: skip
# A docstring begins with a verb, or with an article and a noun, never with a clause or a preposition.
NO_SUBJECT = re.compile(
    r"(What|Whose|Whom?|How|Why|Where|When|Which|As|Of|For|To|In|From|With|By|That|Those|These|Also|Nothing|Everything|Found|Its|Without)\b"
)
PERSONS = re.compile(r"(?i)\b(?:(?:some|no|any|every)body|(?:some|any|every)one)\b(?! of)|\bwhoever\b")
NOT_YET = ("_pod_programs",)
"""Shipped in the pods of running trainings, whose digests a changed word would change."""
COMMENTED = ("roles", "playbooks", "inventories", "plugins", "site.yml")


def pages() -> list[Path]:
    found = [path for place in PLACES for path in ((ROOT / place).rglob("*.yml") if (ROOT / place).is_dir() else [ROOT / place])]
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


def summaries() -> list[tuple[str, str]]:
    """What each role's entry points (in a line, and in the first sentence) and each plugin say of themselves."""
    found = []
    for path in sorted(ROOT.glob("roles/*/meta/argument_specs.yml")):
        for entry, spec in load(path)["argument_specs"].items():
            first, *_more = [spec["description"]] if isinstance(spec["description"], str) else spec["description"]
            found += [(f"role {path.parents[1].name}, {entry}", text) for text in (spec["short_description"], first)]
    plugins = {name: module.summary for name, module in collection.modules().items()} | collection.other_plugins()
    return found + [(f"plugin {name}", text) for name, text in plugins.items()]


def examples() -> dict[str, Any]:
    paths = [path for kind in ("modules", "lookup", "filter") for path in sorted((ROOT / "plugins" / kind).glob("*.py"))]
    return {path.stem: found for path in paths if (found := collection.documented(path, "EXAMPLES"))}


def bad_summary(text: str) -> bool:
    return len(text.split()) < 2 or text.split()[0].rstrip(",") not in VERBS | MANAGES


def test_there_is_something_to_read() -> None:
    assert len(pages()) > 100
    assert len(summaries()) > 100
    assert len(examples()) > 30


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


def test_a_role_or_plugin_says_what_it_does() -> None:
    assert [(where, text) for where, text in summaries() if bad_summary(text)] == []


def test_a_role_says_the_same_to_galaxy_and_to_ansible_doc() -> None:
    galaxy = {name: load(ROOT / "roles" / name / "meta" / "main.yml")["galaxy_info"] for name in collection.roles()}
    assert {name: info["description"] for name, info in galaxy.items()} == {name: role.summary for name, role in collection.roles().items()}


@pytest.mark.parametrize(("name", "tasks"), examples().items(), ids=examples())
def test_a_task_of_an_example_is_a_verb_and_an_object(name: str, tasks: Any) -> None:
    assert bad_names(tasks) == [], name


@pytest.mark.parametrize("text", ["A real Kubernetes cluster on one machine", "Makes a cluster", "Install", "create it at once", ""])
def test_what_does_not_begin_with_a_verb_is_refused(text: str) -> None:
    assert bad_summary(text)


def stilted(text: str) -> list[str]:
    return [f"{found[0]}: better {plain}" for bad, plain in PLAIN.items() for found in re.finditer(rf"(?i)\b({bad})\b", text)]


def commented() -> list[Path]:
    found = [path for place in COMMENTED for path in ((ROOT / place).rglob("*") if (ROOT / place).is_dir() else [ROOT / place])]
    # Programs of pods are also in golden files, and in the pods of running trainings.
    return sorted(p for p in found if p.suffix in (".py", ".yml", ".j2", ".md") and "_pod_programs" not in p.parts)


def test_comments_and_messages_are_in_plain_words() -> None:
    paths = commented()
    assert len(paths) > 300
    assert {str(path.relative_to(ROOT)): bad for path in paths if (bad := stilted(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize("text", ["# It is not as wanted.", "The Pods are made anew", "torch asks nobody who he is", "Let only"])
def test_a_stilted_phrase_is_found(text: str) -> None:
    assert stilted(text)


def docstrings(text: str) -> list[str]:
    """The docstrings of a module, its classes, functions and attributes."""
    bodies = [node.body for node in ast.walk(ast.parse(text)) if isinstance(getattr(node, "body", None), list)]  # type: ignore[attr-defined]
    values = [statement.value for body in bodies for statement in body if isinstance(statement, ast.Expr)]
    return [value.value.strip() for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def without_subject(text: str) -> list[str]:
    return [said for said in docstrings(text) if NO_SUBJECT.match(said) or PERSONS.search(said)]


def test_pages_name_clients_users_and_controllers() -> None:
    """The texts that programs print, and names of tests, are in backticks or in a table of their own."""
    pages = [p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference" and p.name not in ("faults.md", "images.md")]
    said = {str(p.relative_to(ROOT)): PERSONS.findall(re.sub(r"`[^`]*`", "", p.read_text("utf-8"))) for p in pages}
    assert {page: found for page, found in said.items() if found} == {}


def test_docstrings_name_their_subject() -> None:
    paths = [path for path in sorted((ROOT / "plugins").rglob("*.py")) if not set(NOT_YET) & set(path.parts)]
    assert len(paths) > 100
    assert {str(path.relative_to(ROOT)): bad for path in paths if (bad := without_subject(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    "said", ["What a pod requests.", "As wait_for.", "Of the Gateway API.", "A client that nobody stops.", "The owner, whoever it is."]
)
def test_a_docstring_without_a_subject_is_found(said: str) -> None:
    assert without_subject(f'X = 1\n"""{said}"""\n')
