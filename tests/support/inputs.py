# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check reads, and a record of what was green: a check whose inputs have not changed since it passed is not run again.

A fresh clone has no record, and FULL=1 does not read it.
"""

import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Iterable
from fnmatch import translate
from functools import cache
from pathlib import Path

from support.places import BUILD, ROOT, sources

# What every check depends on: the tools, their configuration, and how checks are run.
ALWAYS = (
    "Makefile", "*requirements*.txt", "constraints.txt", "pyproject.toml", "scripts/setup", "ansible.cfg", "tests/conftest.py",
    "tests/run.py", "tests/support/*.py",
)  # fmt: skip
_FQCN = re.compile(r"\bmuster\.ml\.([a-z][a-z0-9_]*)")
_IMPORTED = re.compile(r"import_playbook: +(?:muster\.ml\.)?([a-z_]+)")
# By its name, or from within another role.
_ROLE = re.compile(r"(?:\broles/|\brole_path[ ~}']*/\.\./)(\w[\w./-]*)")


@cache
def contents() -> dict[str, str]:
    """The digest of every source file, by its name."""
    return {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in sources()}


def forget() -> None:
    """Read the files again."""
    contents.cache_clear()
    _named.cache_clear()


def matching(patterns: Iterable[str]) -> set[str]:
    """Source files that a pattern matches; ``*`` matches slashes, too."""
    wanted = "|".join(map(translate, sorted({*patterns})))
    found = re.compile(wanted) if wanted else None
    return {name for name in contents() if found and found.match(name)}


def reached(start: Iterable[str]) -> set[str]:
    """Source files that match START, and the roles and playbooks that they name, and so on."""
    found: set[str] = set()
    new = matching(start)
    while new:
        found |= new
        patterns: set[str] = set()
        for name in new:
            patterns |= _named(name)
        new = matching(patterns) - found
    return found


@cache
def _named(file: str) -> frozenset[str]:
    """Patterns of what a source file names."""
    # The examples of plugins name what these do not read.
    if file.startswith("plugins/") or not file.endswith((".yml", ".yaml", ".j2", ".py")):
        return frozenset()
    text = (ROOT / file).read_text(encoding="utf-8", errors="replace")
    names = {f"roles/{role}/*" for role in _FQCN.findall(text)}
    names |= {f"playbooks/{name}.yml" for name in (*_FQCN.findall(text), *_IMPORTED.findall(text))}
    return frozenset(names | {f"roles/{path.rstrip('/.')}*" for path in _ROLE.findall(text)})


def key(names: Iterable[str]) -> str:
    """The digest of these files and of what every check depends on."""
    known, digest = contents(), hashlib.sha256(platform.python_version().encode())
    for name in sorted({*names, *matching(ALWAYS)}):
        digest.update(f"{name} {known[name]}\n".encode())
    return digest.hexdigest()[:24]


class Green:
    """The inputs with which each check passed last, in a file of this clone."""

    def __init__(self, path: Path = BUILD / "green.json") -> None:
        self._path = path
        self._known: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def since(self, check: str, digest: str) -> str:
        """The commit at which the check passed with these inputs, or nothing."""
        row = self._known.get(check, {})
        return row["commit"] if row.get("key") == digest else ""

    def note(self, check: str, digest: str, *, passed: bool) -> None:
        if passed:
            self._known[check] = {"key": digest, "commit": commit()}
        else:
            self._known.pop(check, None)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(self._known, indent=1, sort_keys=True), encoding="utf-8")
        draft.replace(self._path)


@cache
def commit() -> str:
    """The commit of the clone, with a mark where it has changes."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
