# SPDX-License-Identifier: GPL-3.0-or-later
"""The artefact that galaxy.yml describes, and a home folder in which it is installed, outside of the clone, as README says."""

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from support.places import BIN, ROOT, empty_config, sources

# What roles, playbooks and plugins may read when they run: the inclusion rules of the Ansible package allow no other folder.
RUN_TIME = {"FILES.json", "MANIFEST.json", "meta", "playbooks", "plugins", "roles"}
# Folders of which every source file is in the artefact.
WHOLE = ("LICENSES/", "changelogs/", "docs/", "inventories/", "meta/", "playbooks/", "plugins/", "roles/")
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


class Run(Protocol):
    """Runs a program to its end; a status other than 0 is an error."""

    def __call__(self, *command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> object: ...


def build(run: Run, source: Path, out: Path) -> Path:
    """Build the artefact of the sources in a folder; its file."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run(BIN / "ansible-galaxy", "collection", "build", source, cwd=out, env={"ANSIBLE_CONFIG": str(empty_config())})
    (found,) = out.glob("muster-ml-*.tar.gz")
    return found


def environment(home: Path) -> dict[str, str]:
    """That of a user who has the collection in this home folder, and no configuration. Its dependencies are those of the checks."""
    beside = (path for path in sys.path if path.endswith("site-packages"))
    return {
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join([str(home / ".ansible" / "collections"), *beside]),
        "ANSIBLE_CONFIG": str(empty_config()),
        "HOME": str(home),
        "NO_COLOR": "1",
    }


def install(run: Run, artefact: Path, home: Path, programs: Path = BIN) -> Path:
    """Install it in an empty home folder by the ansible-galaxy of PROGRAMS, and return the folder of the collection.

    Its dependencies are beside ansible-core, not on Galaxy.
    """
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    run(programs / "ansible-galaxy", "collection", "install", artefact, cwd=home, env=environment(home))
    return home / ".ansible" / "collections" / "ansible_collections" / "muster" / "ml"


def keep_what_runs(collection: Path, *besides: str) -> None:
    """Delete what roles, playbooks and plugins must not need, BESIDES left out."""
    for path in collection.iterdir():
        if path.name not in RUN_TIME | {*besides}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def faults(artefact: Path, collection: Path) -> list[str]:
    """What is in the artefact and no source file, what is missing, and the links of its pages that lead to nothing in it.

    The artefact has no symbolic links: the licence that LICENSES links to is its LICENSE.
    """
    with tarfile.open(artefact) as archive:
        packed = {member.name for member in archive if member.isfile()} - {"FILES.json", "MANIFEST.json"}
    known = set(sources())
    missing = {name for name in known if name.startswith(WHOLE) and not (ROOT / name).is_symlink()} - packed
    dead = [
        f"{page.relative_to(collection)}: the link to {link} leads nowhere"
        for page in sorted(collection.rglob("*.md"))
        for link in _LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    return [*(f"{name} is no source file" for name in sorted(packed - known)), *(f"{name} is missing" for name in sorted(missing)), *dead]
