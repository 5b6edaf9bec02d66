# SPDX-License-Identifier: GPL-3.0-or-later
"""What plugins import is what the requirement files list, and what the documentation of each module says."""

import re
import sys
from functools import cache
from pathlib import Path

import pytest
from support.docs import collection
from support.reading import COLLECTION as OURS
from support.reading import imported, load

from ansible_collections.muster.ml.plugins.module_utils._edge import failure

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "plugins"
MODULES = sorted((PLUGINS / "modules").glob("*.py"))
# What is installed by another name than it is imported by, or comes with something else.
INSTALLED_AS = {"ansible": "ansible-core", "grpc": "grpcio", "jinja2": "ansible-core", "nacl": "PyNaCl", "yaml": "PyYAML"}
# What the collections that we build on need besides.
NEEDED_BY_COLLECTION = {
    "amazon.aws": {"boto3", "botocore"},
    "google.cloud": {"google-auth", "requests"},
    "kubernetes.core": {"kubernetes", "PyYAML"},
}
# What only the modules of one cloud need, by a package that all of those need.
CLOUDS = {"requirements-aws.txt": "boto3", "requirements-gcp.txt": "google-auth"}
# What modules for models need besides those of the clouds. The definition is a file of tritonclient, found and not imported.
DEFINITION = {"protobuf", "tritonclient"}
MODELS, OF_MODELS = "requirements-triton.txt", DEFINITION | {"google-cloud-storage", "grpcio"}
# Every plugin runs within it.
HOST = {"ansible-core"}
# What Galaxy's package has of YAML that runs: roles and playbooks.
TASKS = [path for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.yml"))]


@cache
def needs(path: Path) -> frozenset[str]:
    """What has to be installed for a plugin, with all that it imports of this collection. Programs for pods find theirs in an image."""
    found, seen, todo = set[str](), {path}, [path]
    while todo:
        for name in imported(todo.pop()):
            own = ROOT / f"{name.removeprefix(OURS).replace('.', '/')}.py"
            top = name.partition(".")[0]
            if name.startswith(OURS):
                if own.is_file() and own not in seen and own.parent.name != "_pod_programs":
                    seen.add(own)
                    todo.append(own)
            elif top == "ansible_collections":
                found |= NEEDED_BY_COLLECTION[".".join(name.split(".")[1:3])]
            elif top == "google":
                found |= DEFINITION if name.startswith("google.protobuf") else {"google-cloud-storage"}
            elif top not in sys.stdlib_module_names:
                found.add(INSTALLED_AS.get(top, top))
    return frozenset(found - HOST)


def listed(name: str) -> set[str]:
    """The packages of a requirements file, those of the files that it includes left out."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {re.split(r"[=<>\[ ]", line)[0] for line in lines if line and not line.startswith(("#", "-r"))}


def lower_bounds() -> dict[str, str]:
    """Package -> the oldest version that the requirement files allow."""
    files = ("requirements.txt", MODELS, *CLOUDS)
    lines = [line for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if line[:1].isalnum()]
    return {re.split(r"[>\[]", line)[0]: line.rpartition(">=")[2] for line in lines}


def documented(path: Path) -> set[str]:
    """The requirements, with their lower bounds and those of the fragments."""
    own = collection.documented(path)
    parts = [own.get("requirements", []), *(collection.fragment_part(one, "requirements") for one in own["extends_documentation_fragment"])]
    return {str(line).partition(",")[0].replace(" ", "") for part in parts for line in part}


def collections_in_tasks() -> set[str]:
    texts = "\n".join(path.read_text(encoding="utf-8") for path in TASKS)
    return set(re.findall(r"^\s+(?:- )?(\w+\.\w+)\.\w+:", texts, re.MULTILINE))


def of_a_cloud(path: Path) -> bool:
    return bool(needs(path) & {*CLOUDS.values(), *OF_MODELS})


def plugins() -> list[Path]:
    return [path for path in sorted(PLUGINS.rglob("*.py")) if path.parent.name != "_pod_programs"]


@pytest.mark.parametrize("package", CLOUDS.values())
def test_some_plugins_need_something(package: str) -> None:
    assert any(package in needs(path) for path in MODULES), "no such module found: the checks below would hold for nothing"


def test_requirements_are_what_plugins_import_and_roles_use() -> None:
    used = {package for name in collections_in_tasks() & {"kubernetes.core"} for package in NEEDED_BY_COLLECTION[name]}
    assert listed("requirements.txt") == {n for path in plugins() if not of_a_cloud(path) for n in needs(path)} | used


@pytest.mark.parametrize(("file", "package"), CLOUDS.items())
def test_requirements_of_a_cloud_are_what_its_modules_need_besides(file: str, package: str) -> None:
    own = [path for path in plugins() if package in needs(path) and not OF_MODELS & needs(path)]
    assert listed(file) == {name for path in own for name in needs(path)} - listed("requirements.txt")


def test_requirements_of_models_are_what_their_modules_need_besides() -> None:
    desired = {name for path in plugins() if OF_MODELS & needs(path) for name in needs(path)}
    assert listed(MODELS) == OF_MODELS == desired.difference(*map(listed, ("requirements.txt", *CLOUDS)))


def test_the_check_ansible_versions_runs_with_every_lower_bound() -> None:
    bounds = lower_bounds()
    bounds["ansible-core"] = load(ROOT / "meta" / "runtime.yml")["requires_ansible"].removeprefix(">=")
    pins = (ROOT / "tests" / "requirements-oldest.txt").read_text(encoding="utf-8").splitlines()
    assert {f"{name}=={version}" for name, version in bounds.items()} <= set(pins)


def test_a_clone_runs_with_ansible_and_its_collections() -> None:
    assert listed("requirements-controller.txt") == HOST | {"ansible"}
    depends = load(ROOT / "galaxy.yml")["dependencies"]
    used = {
        ".".join(name.split(".")[1:3])
        for path in plugins()
        for name in imported(path)
        if name.startswith("ansible_collections.") and not name.startswith(OURS)
    }
    assert set(depends) == used | (collections_in_tasks() - {"ansible.builtin", "muster.ml"})


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_documents_what_it_imports(path: Path) -> None:
    bounds = lower_bounds()
    assert {line for line in documented(path) if re.split("[>=]", line)[0] in bounds} == {f"{name}>={bounds[name]}" for name in needs(path)}


def test_an_error_names_what_is_listed() -> None:
    bounds = lower_bounds()
    assert {re.sub(r"\[.*\]", "", line) for line in failure.LIBRARIES.values()} == {
        f"{name}>={bound}" for name, bound in bounds.items() if name != "kubernetes"  # only imported by kubernetes.core
    }  # fmt: skip


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_a_library_that_is_too_old_is_named_with_both_versions(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    bound = lower_bounds()["cryptography"]
    with pytest.raises(error, match="not_valid_after_utc"):
        failure.failure(error("not_valid_after_utc"))
    monkeypatch.setattr("importlib.metadata.version", lambda name: "41.0.7" if name == "cryptography" else "99")
    monkeypatch.setitem(sys.modules, "cryptography", sys.modules[__name__])
    told = failure.failure(error("not_valid_after_utc"))["msg"]
    assert told.startswith("A library is too old: cryptography 41.0.7 of ")
    assert f"where {bound} or newer is needed. ({error.__name__}: not_valid_after_utc)" in told
