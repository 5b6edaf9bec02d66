# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a command of the documentation can go on the cluster of the checks: as it is, as a plan, or not further than its tasks' names."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.docs.commands import READERS_INVENTORY, commands, own_path
from support.docs.pages import Page

READS = {"status", "existing"}
LISTED = {
    "doctor": "fails where it finds something, and other checks make faults; the check faults makes its own",
    "init": "writes a folder of the reader; the check inventories runs it",
    "images": "needs a registry of the reader; the check registry runs it",
    "prove": "needs a system that is installed; the acceptance suite and the scenarios run it",
    "stacks": "needs a training that runs; the check faults and make prove make their own",
    "acceptance": "makes a cluster of its own; make prove runs it",
}
LEFT = {
    "scripts/molecule": "is a check of its own",
    "ansible-galaxy": "is run by the check package",
    "ansible-rulebook": "waits for alerts",
    **dict.fromkeys((".", "pip", "pipx", "python3"), "makes or changes the reader's Python"),
    "kubectl": "asks for what a training has left",
    "mc": "asks for what a training has left",
    "jq": "reads the audit log of the reader's cluster",
}
CLUSTERS = "platforms/inventory.md", "needs several clusters; the check inventories runs the shapes of the page"
INSTEAD = {"make": "starts these very checks, or what they do"}
NO_ACCOUNT = "needs an account of a cloud; its simulators run the roles"
NO_FILE = "needs a job file of the reader; scenario persia has one"
PLAN = "would change the cluster that other checks stand on; they run it for real"


@dataclass(frozen=True)
class Attempt:
    """What is run in place of a command. ``how`` is as it is, planned, listed, printed or left."""

    line: str
    how: str
    why: str = ""
    argv: tuple[str, ...] = ()
    inventory: str = ""
    """The folder of the repository that the command's inventory is, or is a copy of."""

    @property
    def does(self) -> tuple[str, ...]:
        """Equal for commands that do the same: names of copied inventories and of kubeconfigs make no difference."""
        words = list(self.argv)
        if self.inventory:
            words[words.index("-i") + 1] = self.inventory
        named = {at for at, word in enumerate(words) if word.startswith("muster_kubeconfig=")}
        return tuple(word for at, word in enumerate(words) if not named & {at, at + 1})


def attempts(page: Page) -> Iterator[Attempt]:
    """The commands of one page in their order; an alias and a copied inventory count from where they are made."""
    page_of_clusters, why = CLUSTERS
    aliases: dict[str, list[str]] = {}
    copies = {READERS_INVENTORY: "inventories/existing"}
    for fence in page.fences():
        for line in commands(fence.text) if fence.language == "console" else ():
            words = [os.path.expandvars(word) for word in shlex.split(line, comments=True)]
            words = [*aliases.get(words[0], words[:1]), *words[1:]]
            if words[0] == "alias":
                aliases |= {name: shlex.split(text) for name, _equals, text in (word.partition("=") for word in words[1:])}
            elif words[0] == "cp":
                copies[words[-1]] = own_path(words[-2])
                yield Attempt(line, "as it is", argv=tuple(words))
            elif page.name.endswith(page_of_clusters):
                yield Attempt(line, "left", why)
            elif words[0] != "export":
                yield _attempt(line, words, copies)


def _attempt(line: str, words: list[str], copies: Mapping[str, str]) -> Attempt:
    program, *rest = words
    if program in LEFT:
        return Attempt(line, "left", LEFT[program])
    if program in INSTEAD:
        return Attempt(line, "printed", INSTEAD[program], (program, "-n", *rest))
    if program != "ansible-playbook":
        raise LookupError(f"{line}: nothing says how {program} is tried")
    (playbook,) = (Path(word.removeprefix("muster.ml.")).stem for word in rest if re.search(r"^[^=@]*\.yml$|^muster\.ml\.", word))
    inventory = rest[rest.index("-i") + 1] if "-i" in rest else ""
    inventory = copies.get(inventory, inventory)
    in_clouds = inventory in ("inventories/eks", "inventories/gke")
    of_the_reader = any(re.match("(persia|elastic)_job_file=", word) for word in rest)
    why = NO_ACCOUNT if in_clouds else NO_FILE if of_the_reader else LISTED.get(playbook, "")
    if why:
        return Attempt(line, "listed", why, (*_without_settings(words), "--list-tasks"), inventory)
    if playbook in READS or "--check" in words:
        return Attempt(line, "as it is", "", tuple(words), inventory)
    return Attempt(line, "planned", PLAN, (*words, "--check", "--diff"), inventory)


def _without_settings(words: list[str]) -> list[str]:
    """Only what decides which tasks are listed; the unit tests read variables and their values."""
    settings = {at for at, word in enumerate(words) if word == "-e" or words[at - 1] == "-e"}
    return [word for at, word in enumerate(words) if at not in settings and word not in ("--check", "--diff")]
