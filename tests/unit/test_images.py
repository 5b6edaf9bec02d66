# SPDX-License-Identifier: GPL-3.0-or-later
"""No image is named by us without saying which: what runs tomorrow must be what was tried today."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.reading import load

from ansible_collections.muster.ml.plugins.module_utils._local import gobuild

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")
PAGES = sorted(
    path for pattern in ("roles/*/defaults/*.yml", "roles/*/vars/*.yml", "roles/*/meta/argument_specs.yml") for path in ROOT.glob(pattern)
) + sorted(path for folder in ("inventories", "playbooks") for path in (ROOT / folder).rglob("*.yml"))
RECIPES = [ROOT / "roles" / "local_images" / "vars" / "main.yml", ROOT / "tests" / "images" / "published.yml"]
SOURCES = [
    path
    for folder in ("roles", "inventories", "playbooks", "plugins")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".yml", ".yaml", ".j2", ".md") and path.is_file()
]


def is_pinned(image: str) -> bool:
    """Says which: a tag that means one image, or a digest. Nothing at all and another variable say nothing yet."""
    text = re.sub(r"{{.*?}}", "V", image).strip()
    if text in ("", "V") or "@sha256:" in text:
        return True
    _name, colon, tag = text.rpartition("/")[2].partition(":")
    return bool(colon) and tag not in ("", "latest")


def images(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every value of a key that names an image of a container, and the default of every such option."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from images(item, key if name == "default" else str(name))
    elif isinstance(value, list):
        for item in value:
            yield from images(item, key)
    elif isinstance(value, str) and re.fullmatch(r"(\w+_)?(?<!source_)image", key):
        yield key, value


def options(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, option in spec.items():
        yield from images(option.get("default"), name)
        yield from options(option.get("options") or {})


def test_what_counts_as_pinned() -> None:
    for good in ("", "{{ other_image }}", "a/b:1", "h:5000/b:1", "q/etcd:v{{ version }}", "a@sha256:12"):
        assert is_pinned(good), good
    for bad in ("a/b", "a/b:latest", "h:5000/b", "{{ registry }}/b:latest", "{{ registry }}/b"):
        assert not is_pinned(bad), bad
    found = {"x_image": "a", "y": [{"image": "b"}], "options": {"z_image": {"description": "c d", "default": "e"}}}
    assert list(images(found)) == [("x_image", "a"), ("image", "b"), ("z_image", "e")]


def test_defaults_and_inventories_say_which_image() -> None:
    assert PAGES
    found = [(str(path), key, image) for path in PAGES for key, image in images(load(path))]
    assert [place for place in found if not is_pinned(place[-1])] == []


@pytest.mark.parametrize("name", MODULES)
def test_defaults_of_modules_say_which_image(name: str) -> None:
    module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{name}")
    assert [(key, image) for key, image in options(module.ARGUMENT_SPEC) if not is_pinned(image)] == []


def test_no_example_teaches_latest() -> None:
    image = re.compile(r"""image["']?(?:: str =|[:=]) *["']?([\w{][^\s"']*)""")
    named = [(str(path), name) for path in SOURCES for name in image.findall(path.read_text(encoding="utf-8"))]
    assert named
    assert [place for place in named if place[1].endswith(":latest")] == []


# The page about published images, beside the defaults that name them and the stand-ins that are built for them.

PUBLISHED = ROOT / "docs" / "platforms" / "images.md"
COLUMNS = ("image", "variable", "entrypoint", "command", "user", "folder", "called", "versions", "stand_in")


def table() -> list[dict[str, str]]:
    """The rows of the page."""
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    return [dict(zip(COLUMNS, (cell.strip("`") for cell in row), strict=True)) for row in cells]


def defaults() -> dict[str, str]:
    """Variable -> image, of every role and inventory that is not for a local cluster; of a key of a variable both by a dot."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.glob("roles/*/vars/main.yml")):
        for name, page in (load(path) or {}).items():
            if name.endswith("_defaults"):
                variable = name.removeprefix("__").removesuffix("_defaults")
                found |= {f"{variable}_options.{key}": image for key, image in images(page) if key.endswith("image")}
    for path in sorted(ROOT.glob("roles/*/defaults/main.yml")) + [
        ROOT / "inventories" / name / "group_vars" / "all.yml" for name in ("existing", "eks", "gke")
    ]:
        page = load(path)
        for key, image in images(page):
            known = re.sub(r"{{ (\w+) }}", lambda word, page=page: str(page[word[1]]), image)
            if known and "{{" not in known:
                found[key] = known
    return found


def recipe_page() -> dict[str, Any]:
    found: dict[str, Any] = load(ROOT / "roles" / "local_images" / "vars" / "main.yml")
    return found


def recipes() -> dict[str, Any]:
    found: dict[str, Any] = load(ROOT / "tests" / "images" / "published.yml")["local_images_recipes"]
    return found


def contents(recipe: dict[str, Any]) -> set[str]:
    """Paths of its programs, files and links. Those of programs that the recipe itself gives win over those of the list that it names."""
    own, links = set(re.findall(r"'dest': '([^']+)'", str(recipe))), named(recipe.get("links"))
    return links | (own or named(recipe.get("programs")))


def named(value: object) -> set[str]:
    """Paths of the role's list that a template begins with."""
    found = re.search(r"{{ (\w+)", str(value))
    return {row["dest"] for row in recipe_page()[found[1]]} if found else set()


def whole_name(image: str) -> str:
    """As containerd knows it."""
    first, slash, _rest = image.partition("/")
    if slash and ("." in first or ":" in first):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def test_the_page_names_every_image_that_is_pulled_by_default() -> None:
    assert {row["variable"]: row["image"] for row in table()} == defaults()


def test_modules_name_no_other_images() -> None:
    modules = [importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{name}") for name in MODULES]
    named = {image for module in modules for _key, image in options(module.ARGUMENT_SPEC) if image}
    assert named
    assert named <= {row["image"] for row in table()}


@pytest.mark.parametrize("row", [row for row in table() if row["stand_in"]], ids=lambda row: row["stand_in"])
def test_a_stand_in_has_the_published_name_and_layout(row: dict[str, str]) -> None:
    stand_in = recipes()[row["stand_in"]]
    config = stand_in["recipe"]["config"]
    assert stand_in["image"] == whole_name(row["image"])
    assert config["entrypoint"] == row["entrypoint"].split()
    assert config.get("cmd", []) == row["command"].split()
    assert config["user"].replace("0:0", "root") == row["user"]
    assert config.get("working_dir", "/") == row["folder"]
    called = row["entrypoint"] if row["called"].startswith("its entrypoint") else row["called"].partition("`")[0]
    assert [path for path in contents(stand_in["recipe"]) if path == called or path.endswith(f"/{called}")]


def test_every_stand_in_is_on_the_page() -> None:
    assert {*recipes()} == {row["stand_in"] for row in table()} - {""} | {"published-persia"}
    assert f"`{recipes()['published-persia']['image']}`" in PUBLISHED.read_text(encoding="utf-8")


def test_the_versions_that_programs_tell_are_the_pinned_ones() -> None:
    told = load(ROOT / "roles" / "local_cluster" / "vars" / "main.yml")
    pinned = {folder.name: gobuild.pins(folder)[0].version for folder in (ROOT / "roles").glob("local_*/files/go/*")}
    pinned["etcd"] = gobuild.pins(ROOT / "roles" / "local_cluster" / "files" / "go" / "etcd")[0].version
    for name in ("kubernetes", "etcd", "coredns", "containerd", "kwok"):
        assert pinned[name].removeprefix("v") == told[f"__local_cluster_{name}_version"].removeprefix("v"), name


def test_security_updates_do_not_stop_a_build() -> None:
    """A mirror drops a revision when a security update replaces it. Bullseye gets no more of them, and python3 only names a Python."""
    text = "".join(path.read_text(encoding="utf-8") for path in RECIPES)
    found = re.findall(r"'suite': '(\w+)'.*?'packages': \[(.*?)\]", text, re.DOTALL)
    packages = [name for suite, names in found if suite != "bullseye" for name in re.findall(r"'([^']+)'", names)]
    assert len(packages) > 10
    assert [name for name in packages if "=" in name and not name.endswith("*") and not name.startswith("python3=")] == []
