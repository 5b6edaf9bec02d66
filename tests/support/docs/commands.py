# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the commands on a page would work: programs, playbooks, inventories, targets, variables, tags."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from support.docs import collection
from support.docs.collection import NAMESPACE
from support.docs.fences import in_variables
from support.docs.pages import Page
from support.places import ROOT
from support.reading import load

# What is not ours to check.
OUTSIDE = {".", "ansible-rulebook", "pipx", "python3", "kubectl", "export", "git", "jq", "mc", "nsenter", "aws"}
WITH_VALUE = {"-i", "-e", "--limit", "--tags", "--skip-tags", "-t"}
FLAGS = {"--check", "--diff", "--ask-become-pass", "-v", "-vvv"}
PLACEHOLDER = re.compile(r"^(\.\.\.|(muster\.ml\.)?[A-Z][A-Z_]+)$")
# The reader's own, in texts about using the installed collection.
READERS_INVENTORY = "my-inventory"
CLONE = "/home/me/ml"


class Commands:
    """The commands of one page, in their order: a copy or an alias of an earlier one counts."""

    def __init__(self) -> None:
        self._made = {READERS_INVENTORY}
        self._aliases: dict[str, list[str]] = {}

    def of_page(self, page: Page) -> Iterator[str]:
        for fence in page.fences():
            if fence.language == "console":
                for line in commands(fence.text):
                    yield from (f"{fence}: {line}: {told}" for told in self.complaints(line))

    def complaints(self, line: str) -> Iterator[str]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            yield str(error)
            return
        for part in pipeline(words):
            while part and re.match(r"^[A-Z_]+=", part[0]):  # VAR=value before a command
                part.pop(0)
            yield from self._command(*self._aliases.get(part[0], part[:1]), *part[1:]) if part else ()

    def _command(self, program: str, *words: str) -> Iterator[str]:
        ours = {
            "make": self._make,
            "ansible-playbook": self._playbook,
            "ansible-doc": self._doc,
            "alias": self._alias,
            "cp": self._copy,
            "pip": self._pip,
            "python": self._files,
            "ansible-galaxy": self._galaxy,
            "tee": self._nothing,
        }
        if program in ours:
            yield from ours[program](*words)
        elif program.startswith("scripts/"):
            yield from self._script(program, *words)
        elif program not in OUTSIDE:
            yield f"{program} is no program that these pages use"

    def _nothing(self, *_words: str) -> Iterator[str]:
        return iter(())

    def _make(self, *words: str) -> Iterator[str]:
        for word in words:
            name, given, value = word.partition("=")
            if given and name not in collection.make_variables():
                yield f"the Makefile reads no variable {name}"
            elif not given and name not in collection.make_targets():
                yield f"there is no target {name}"
            if name == "SYSTEMS":
                yield from (f"there is no system {s}" for s in value.split(",") if s not in collection.claims())
            elif name == "ONLY":
                what, known = ("benchmark", collection.benches()) if "bench" in words else ("check", collection.checks())
                yield from (f"there is no {what} {c}" for c in value.split() if c not in known)

    def _playbook(self, *words: str) -> Iterator[str]:
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word in WITH_VALUE:
                yield from self._option(word, rest.pop(0) if rest else "")
            elif word.startswith("-"):
                if word not in FLAGS:
                    yield f"{word} is no option that these pages use"
            elif not PLACEHOLDER.match(word) and not playbook_exists(word) and word not in self._made:
                yield f"there is no playbook {word}"

    def _option(self, option: str, value: str) -> Iterator[str]:
        if option == "-e":
            yield from extra_variables(value)
        elif option == "-i":
            folder = value.removesuffix("/")
            if folder not in collection.files() and folder not in self._made and not PLACEHOLDER.match(value):
                yield f"there is no inventory {value}"
        elif option in ("--tags", "--skip-tags"):
            yield from (f"nothing has the tag {tag}" for tag in value.split(",") if tag not in collection.tags())

    def _doc(self, *words: str) -> Iterator[str]:
        known = {*collection.modules(), *collection.roles(), *collection.other_plugins()}
        named = [word.removeprefix(NAMESPACE) for word in words if word.startswith(NAMESPACE)]
        yield from (f"there is no {NAMESPACE}{name}" for name in named if name not in known and not PLACEHOLDER.match(name))

    def _alias(self, *words: str) -> Iterator[str]:
        for word in words:
            name, _equals, command = word.partition("=")
            self._aliases[name] = shlex.split(command)
            yield from self.complaints(command)

    def _copy(self, *words: str) -> Iterator[str]:
        *sources, target = [word for word in words if not word.startswith("-")]
        self._made.add(target)
        yield from self._files(*map(own_path, sources))

    def _pip(self, *words: str) -> Iterator[str]:
        desired = [b for a, b in pairwise(words) if a in ("-r", "--requirement")]
        yield from self._files(*map(own_path, desired))

    def _files(self, *words: str) -> Iterator[str]:
        paths = [word for word in words if "/" in word or word.endswith((".txt", ".yml", ".py"))]
        yield from (f"there is no {path}" for path in paths if path not in collection.files() and path[0] not in "/~")

    def _galaxy(self, *words: str) -> Iterator[str]:
        artefact = f"muster-ml-{load(ROOT / 'galaxy.yml')['version']}.tar.gz"
        if words[:2] not in {("collection", "build"), ("collection", "install")} or words[2:] not in {
            (CLONE,),
            (f"git+file://{CLONE}",),
            (artefact,),
        }:
            yield f"ansible-galaxy builds and installs {CLONE} and {artefact} here, nothing else"

    def _script(self, program: str, *words: str) -> Iterator[str]:
        yield from self._files(program)
        if program == "scripts/molecule" and words[0] not in collection.scenarios():
            yield f"there is no scenario {words[0]}"


def own_path(word: str) -> str:
    """The path in the collection, of one in the folder where ansible-galaxy installs it."""
    return re.sub(r"^~?/.*/muster/ml/", "", word)


def made_by(page: Page) -> tuple[str, ...]:
    """What the reader of a page has made by its commands: the targets of `cp`."""
    lines = [shlex.split(line, comments=True) for f in page.fences() if f.language == "console" for line in commands(f.text)]
    return tuple(words[-1] for words in lines if words[:1] == ["cp"])


def commands(text: str) -> Iterator[str]:
    """The lines that begin with a prompt, each with those that it is continued on."""
    for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE):
        yield re.sub(r"\\\n\s*", "", found[1])


def pipeline(words: list[str]) -> Iterator[list[str]]:
    """The commands of a line, without where their output goes."""
    part: list[str] = []
    for word in words:
        if word in ("|", "&&", ";"):
            yield part
            part = []
        elif not re.match(r"^\d*>", word):
            part.append(word.removesuffix(";"))
    yield part


def playbook_exists(word: str) -> bool:
    if word.startswith(NAMESPACE):
        return word.removeprefix(NAMESPACE) in collection.playbooks()
    return word in collection.files()


def extra_variables(value: str) -> Iterator[str]:
    """What `-e` gives: name=value, several of them, YAML in braces, or a file of the reader's own."""
    given: dict[str, Any] = {}
    if value.startswith("@"):
        return
    if value.startswith("{"):
        given = yaml.safe_load(value)
    else:
        for word in shlex.split(value):
            name, _equals, text = word.partition("=")
            # As Ansible does: always text, which must make sense as the variable's type.
            given[name] = text if "$" not in text else None
    unknown = given.keys() - collection.variables().keys()
    yield from (f"nothing reads the variable {name}" for name in sorted(unknown))
    yield from in_variables({n: v for n, v in given.items() if n not in unknown})
