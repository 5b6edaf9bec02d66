# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every program that runs in a pod, and how its text gets into a ConfigMap."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
import types
import typing as t
import zipfile
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.programs import program
from ansible_collections.muster.ml.plugins.module_utils._pod_programs import elastic_launch

ROOT = Path(__file__).resolve().parents[5]
FOLDER = "plugins/module_utils/_pod_programs"
PROGRAMS = sorted((ROOT / FOLDER).glob("*.py"))
PACKAGE = "ansible_collections.muster.ml.plugins.module_utils"
# Of the image, and imported only where they are needed.
OF_THE_IMAGE = {"boto3", "botocore", "cryptography", "google", "nacl", "pika", "torch"}


def stem(path: Path) -> str:
    return path.stem


def oldest_python(path: Path) -> tuple[int, int]:
    """The version that pyproject.toml has ruff check this program for."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = settings["tool"]["ruff"]["per-file-target-version"]
    name = targets[f"{FOLDER}/{path.name}"]
    return int(name[2]), int(name[3:])


def test_there_are_programs() -> None:
    assert PROGRAMS, "no program found: the checks below would hold for nothing"


@pytest.mark.parametrize("path", PROGRAMS, ids=stem)
def test_the_oldest_python_understands_it(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=oldest_python(path))


@pytest.mark.parametrize("path", PROGRAMS, ids=stem)
def test_it_imports_only_what_is_in_the_pod(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import: there is no package in the pod"
            names.add((node.module or "").partition(".")[0])
    assert names - sys.stdlib_module_names <= OF_THE_IMAGE


@pytest.mark.parametrize("path", PROGRAMS, ids=stem)
def test_its_text_is_the_file(path: Path) -> None:
    module = importlib.import_module(f"{PACKAGE}._pod_programs.{path.stem}")
    assert program(module) == path.read_text(encoding="utf-8")


def test_the_loader_of_collections_gives_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """str() of them would be a program of one string, which runs, does nothing, and ends well."""
    loader = t.cast("t.Any", types.SimpleNamespace(get_source=lambda _name: b"pass\n"))
    monkeypatch.setattr(elastic_launch.__spec__, "loader", loader)
    assert program(elastic_launch) == "pass\n"


def test_a_module_finds_it_in_the_zip_that_it_travels_in(tmp_path: Path) -> None:
    files = [*PROGRAMS, ROOT / "plugins/module_utils/_manifests/programs.py"]
    with zipfile.ZipFile(tmp_path / "module.zip", "w") as packed:
        for path in files:
            packed.write(path, f"ansible_collections/muster/ml/{path.relative_to(ROOT)}")
        # Ansible adds what makes a folder of a zip a package.
        for folder in {parent for name in packed.namelist() for parent in Path(name).parents} - {Path()}:
            packed.writestr(f"{folder}/__init__.py", "")
    ask = f"import sys\nsys.path[:0] = {[str(tmp_path / 'module.zip')]!r}\nfrom {PACKAGE}._manifests.programs import program\n" + "".join(
        f"from {PACKAGE}._pod_programs import {p.stem}\nprint(program({p.stem}), end='')\n" for p in PROGRAMS
    )
    # -I: this very collection is not to be found elsewhere.
    done = subprocess.run([sys.executable, "-I", "-c", ask], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "".join(path.read_text(encoding="utf-8") for path in PROGRAMS)
