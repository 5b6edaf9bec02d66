# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of ansible-core and Python that the collection supports: each trains a model with the installed artefact, and nothing else.

Each is an environment of its own with pinned packages, and a home folder outside of the clone, as README has it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from support import artefact
from support.lanes import CheckFailed, Shell
from support.places import ROOT, cache_home

# What a user sets for a cluster of their own: its storage, and a copy of PERSIA's image, which is published as `latest` alone.
PERSIA: dict[str, Any] = {
    "muster_systems": ["persia"],
    "persia_storage": {"storage_class_name": "local-path"},
    "persia_image": "registry.example.com/persia-cpu:0.1.dev251",
}
DEPRECATION = "[DEPRECATION WARNING]"
# kubernetes.core 6.2.0 imports from there; the sanity test pylint refuses it in this collection.
OF_OTHERS = "from 'ansible.module_utils._text'"


@dataclass(frozen=True)
class Version:
    """A pair of ansible-core and Python, and the variables of each run."""

    name: str
    core: str
    python: str
    packages: Path = ROOT / "tests" / "requirements-newest.txt"
    runs: tuple[Mapping[str, Any], ...] = ({},)

    @property
    def interpreter(self) -> Path | None:
        """This version of Python on PATH or among pyenv's, if it is installed and starts."""
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        on_path = shutil.which(f"python{self.python}", path=os.pathsep.join(p for p in os.get_exec_path() if "shims" not in p))
        found = [Path(on_path)] if on_path else sorted(pyenv.glob(f"{self.python}.*/bin/python"))
        if f"{sys.version_info.major}.{sys.version_info.minor}" == self.python:
            found.insert(0, Path(sys.executable))
        return found[0] if found else None

    def programs(self, shell: Shell, python: Path) -> Path:
        """Return the folder of the programs of an environment with the pins, which is kept between runs."""
        digest = hashlib.sha256(f"{python} {self.core} {self.packages.read_text(encoding='utf-8')}".encode()).hexdigest()
        home = cache_home() / "ansible-versions" / digest[:16]
        if not (home / "complete").exists():
            shell.run(python, "-m", "venv", "--clear", home)
            shell.run(
                home / "bin" / "pip", "install", "--quiet", "--no-compile", f"ansible-core=={self.core}", "--requirement", self.packages
            )
            (home / "complete").touch()
        shell.run(home / "bin" / "ansible-playbook", "--version")
        return home / "bin"


# The newest ones run where the machine has their Python; the middle one only with FULL=1.
VERSIONS = (
    Version("oldest", "2.19.4", "3.11", ROOT / "tests" / "requirements-oldest.txt", ({}, PERSIA)),
    Version("middle", "2.20.10", "3.12"),
    Version("newest", "2.21.5", "3.13"),
)


def wanted() -> list[Version]:
    return [version for version in VERSIONS if version.name != "middle" or os.environ.get("FULL")]


@dataclass(frozen=True)
class Installed:
    """The artefact in a home folder, with an inventory copied out of it."""

    shell: Shell
    programs: Path
    home: Path

    @classmethod
    def of(cls, shell: Shell, programs: Path, built: Path, home: Path) -> Installed:
        collection = artefact.install(shell.run, built, home, programs)
        shutil.copytree(collection / "inventories" / "existing", home / "my-inventory")
        artefact.keep_what_runs(collection)
        return cls(shell, programs, home)

    def play(self, playbook: str, settings: Mapping[str, Any], env: Mapping[str, str], *options: str) -> None:
        """Run a playbook of the collection. Warnings about what Ansible is going to remove are refused."""
        began = self.shell.log.stat().st_size
        self.shell.run(
            self.programs / "ansible-playbook", "-i", "my-inventory", f"muster.ml.{playbook}", "-e", json.dumps(settings), *options,
            cwd=self.home, env={**env, **artefact.environment(self.home), "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"},
        )  # fmt: skip
        with self.shell.log.open("rb") as log:
            log.seek(began)
            told = [line for line in log.read().decode(errors="replace").splitlines() if DEPRECATION in line and OF_OTHERS not in line]
        if told:
            raise CheckFailed(f"muster.ml.{playbook}: {told[0]}")


def homes(shell: Shell, out: Path, tree: Path) -> list[tuple[Version, Installed]]:
    """Build the artefact and install it with each version. A Python that is not on this machine is named in the log."""
    built = artefact.build(shell.run, tree, out / "artefact")
    found = []
    for version in wanted():
        if python := version.interpreter:
            place = partial(Installed.of, shell, version.programs(shell, python), built)
            found.append((version, place(out / version.name)))
        else:
            shell.say(f"{version.name}: no Python {version.python} on this machine")
    return found
