# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the names in a text exist: paths, modules, roles, variables, commands; and whether it counts or repeats itself."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from support.docs import collection
from support.docs.collection import NAMESPACE
from support.docs.commands import Commands, extra_variables
from support.docs.pages import Page
from support.places import ROOT
from support.reading import load, syntax

TOP = "docs|roles|playbooks|plugins|scripts|tests|inventories|extensions|changelogs"
# roles/owner and roles/container.admin are roles of Google's.
PATH = re.compile(
    rf"(?<![\w./~<$:@{{-])((?:{TOP})/(?<!roles/(?=[a-z]+\.|(?:owner|editor)\b))[\w./*<>{{}}-]*[\w*>}}]|_[a-z]+(?:_[a-z]+)*/[\w./]+\.py)"
)
PAGE = re.compile(r"(?<![\w./-])docs/[\w./-]+\.(?:md|svg)")
VARIABLE = re.compile(r"(?<![\w./<-])([a-z]\w*_\w*[a-z0-9])(?![\w./*<-])")
COMMANDS = ("make", "ansible-playbook", "ansible-doc", "scripts/molecule")
# Things that a repository has so many of, until somebody adds one.
COUNTED = "methods|modules|roles|playbooks|scenarios|layers|packages|plugins|checks|claims|cases|texts|manifests|systems|platforms"
NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[0-9][0-9,]*"
COUNT = re.compile(rf"\b((?:{NUMBERS}) (?:{COUNTED}))\b", re.IGNORECASE)
LONG_SENTENCE = 12


def wrong_paths(text: str, made: Iterable[str] = ()) -> list[str]:
    """Paths that are not there; what the reader is told to make (``made``) may be named."""
    return sorted({found for found in PATH.findall(text) if not exists(found) and not found.startswith(tuple(made))})


def exists(path: str) -> bool:
    """Whether a file or folder of the repository has this path; a word in capitals or in <> stands for any name."""
    name = re.sub(r"<[^>]*>|\{[^}]*\}|\b[A-Z][A-Z_]+\b(?![.]md)", "*", path).replace("...", "**")
    if name.startswith("_"):
        name = f"plugins/module_utils/{name}"
    if "*" not in name:
        return name in collection.files() or f"{name}.md" in collection.files()
    return any(Path(file).match(name) for file in collection.files()) or any(ROOT.glob(name))


def unknown_names(page: Page) -> Iterator[str]:
    """What stands in backticks and is not there."""
    for line, code in page.code():
        yield from (f"{page.name}:{line}: `{code}`: {told}" for told in _in_code(code))


def _in_code(code: str) -> Iterator[str]:
    if code.startswith(COMMANDS) and " " in code:
        yield from Commands().complaints(re.sub(r"\S*\b[A-Z][A-Z_]+\b\S*(?<!=)", "...", code) if "NAME" in code else code)
    elif code.startswith("-e "):
        yield from extra_variables(code.removeprefix("-e ").strip("'"))
    for name in re.findall(rf"\b{re.escape(NAMESPACE)}([a-z][a-z0-9_]*)", code):
        if name not in names():
            yield f"there is no {NAMESPACE}{name}"
    for name in VARIABLE.findall(code):
        role = collection.role_of(name)
        if (role or name.startswith("muster_")) and name not in names() and name not in collection.variables():
            yield f"nothing reads the variable {name}"


@cache
def names() -> frozenset[str]:
    """Whatever else has a name that looks like a variable's."""
    facts = {key for paths in collection.task_files().values() for path in paths for key in facts_of(load(path))}
    found = {
        *facts,
        *(claim["name"] for claims in collection.claims().values() for claim in claims),
        *collection.modules(),
        *collection.roles(),
        *collection.other_plugins(),
        *collection.playbooks(),
        *collection.tags(),
        *collection.scenarios(),
        *collection.groups(),
        *(Path(file).stem for file in collection.files()),
    }
    return frozenset(found)


def facts_of(items: object) -> Iterator[str]:
    """Names that tasks give to facts, for a user's own tasks."""
    for task in collection.tasks_in(items):
        yield from (str(key) for key in task.get("ansible.builtin.set_fact", ()))


def dead_links(page: Page, pages: Iterable[Page]) -> Iterator[str]:
    anchors = {other.name: other.anchors() for other in pages}
    for line, link in page.links():
        file, _hash, anchor = link.partition("#")
        target = (ROOT / page.name).parent.joinpath(file).resolve() if file else ROOT / page.name
        name = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else file
        if name not in collection.files() or (anchor and anchor not in anchors.get(name, set())):
            yield f"{page.name}:{line}: {link}"


def comments(path: Path) -> str:
    """Comments and docstrings of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return "\n".join(line.split("#", 1)[1] for line in text.splitlines() if re.search(r"(^|\s)#", line))
    found = [t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    nodes = [n for n in ast.walk(syntax(path)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return "\n".join([*found, *(ast.get_docstring(node) or "" for node in nodes)])


def counts(page: Page) -> Iterator[str]:
    for line, text in enumerate(page.prose(), 1):
        yield from (f"{page.name}:{line}: {found}" for found in COUNT.findall(text))


def said_twice(pages: Iterable[Page]) -> list[str]:
    """Long sentences that stand on more than one page; docs/reference is one page."""
    places: dict[str, dict[str, str]] = defaultdict(dict)
    for page in pages:
        for sentence, words in page.sentences():
            if len(words.split()) > LONG_SENTENCE:
                places[words]["docs/reference" if page.generated else page.name] = sentence
    return [f"{' and '.join(sorted(found))}: {next(iter(found.values()))}" for found in places.values() if len(found) > 1]
