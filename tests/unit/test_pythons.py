# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of pods and examples, on every Python of this machine that is not older than the oldest of the images that they go to.

The oldest is in pyproject.toml, where ruff reads it, too: it sees syntax, but not what a newer standard library has.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.places import ROOT

Version = tuple[int, int]
TARGETS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["per-file-target-version"]
OLDEST: dict[Path, Version] = {
    path: (int(name[2]), int(name[3:])) for pattern, name in TARGETS.items() for path in ROOT.glob(pattern.replace("/**", "/*.py"))
}
# Imports each program; what is not of Python itself is only in its image, and is anything here.
IMPORT = """
import importlib.machinery, importlib.util, json, sys, types
from unittest import mock
class Anything(types.ModuleType):
    __path__ = []
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock()
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return Anything(spec.name)
    def exec_module(self, module):
        pass
own = list(sys.path)
sys.meta_path.append(Finder())
for path in json.loads(sys.argv[1]):
    sys.path[:] = [path.rpartition("/")[0]] + own
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("program", path)
    sys.modules["program"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and sys.modules[name].__file__.startswith(sys.path[0]):
            del sys.modules[name]
    print(path)
"""


def pythons() -> dict[Version, str]:
    """The interpreters of this machine: on the PATH, and those of pyenv. Another build of the same version is left out."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted(root.glob("versions/3.*/bin/python")):
        number = re.match(r"3\.(\d+)", path.parents[1].name)
        assert number
        found.setdefault((3, int(number[1])), str(path))
    for minor in range(7, 16):
        if path_of := shutil.which(f"python3.{minor}"):
            found.setdefault((3, minor), path_of)
    return {version: path for version, path in found.items() if _works(path)}


def _works(path: str) -> bool:
    """A shim of pyenv is a program even where its version is not there."""
    return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


PYTHONS = pythons()


def ids(version: Version) -> str:
    return ".".join(map(str, version))


def run(version: Version, *words: str) -> str:
    """What a command of one interpreter prints."""
    done = subprocess.run([PYTHONS[version], "-W", "error::SyntaxWarning", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_program_has_an_oldest_python() -> None:
    programs = [
        *ROOT.glob("roles/*/files/example/*.py"),
        ROOT / "roles" / "local_images" / "files" / "studioml_runner" / "standin.py",
        *(ROOT / "plugins" / "module_utils" / "_pod_programs").glob("*.py"),
    ]
    assert set(programs) == set(OLDEST)


@pytest.mark.parametrize("version", PYTHONS, ids=ids)
def test_programs_are_imported_by_every_python_of_their_images(version: Version) -> None:
    paths = sorted(str(path) for path, oldest in OLDEST.items() if oldest <= version)
    assert run(version, "-c", IMPORT, json.dumps(paths)).split() == paths


@pytest.mark.parametrize("version", [version for version in PYTHONS if version >= (3, 7)], ids=ids)
def test_the_example_of_studioml_trains(version: Version) -> None:
    """Upstream's image has 3.7.9, 3.8.10 and 3.9.5, and takes the first of them for ``pythonver: "3"``."""
    example, data = (ROOT / "roles" / name for name in ("studioml/files/example/train.py", "elastic/files/example/digits.csv.gz"))
    last = run(version, str(example), "--data", str(data), "--epochs", "1").splitlines()[-1]
    assert json.loads(last)["experiment"]["accuracy"] == pytest.approx(0.908333)
