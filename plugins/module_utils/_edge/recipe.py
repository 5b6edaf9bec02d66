# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipe of an image as options of a module; module ``local_image`` documents them."""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .._core import shapes
from .._core.errors import InvalidInput

TEXT: dict[str, t.Any] = {"type": "str", "default": ""}
NEEDED: dict[str, t.Any] = {"type": "str", "required": True}
FOLDER: dict[str, t.Any] = {"type": "path", "required": True}
WORDS: dict[str, t.Any] = {"type": "list", "elements": "str", "default": []}
MAP: dict[str, t.Any] = {"type": "dict", "default": {}}
OFF: dict[str, t.Any] = {"type": "bool", "default": False}


def rows(**options: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


DEBIAN = {
    "suite": NEEDED,
    "packages": {"type": "list", "elements": "str", "required": True},
    "variant": {"type": "str", "default": "minbase"},
    "mirror": TEXT,
    "security_mirror": TEXT,
}
CONFIG = {
    "entrypoint": {"type": "list", "elements": "str", "required": True},
    "cmd": WORDS,
    "env": MAP,
    "user": {"type": "str", "default": "1000:1000"},
    "working_dir": {"type": "str", "default": "/"},
    "exposed_ports": {"type": "list", "elements": "int", "default": []},
    "labels": MAP,
}
RECIPE = {
    "architectures": WORDS,
    "debian": {"type": "dict", "options": DEBIAN},
    "wheels": rows(requirements=FOLDER, python_version=NEEDED, dest=TEXT, members=MAP),
    "programs": rows(name=NEEDED, module_dir=FOLDER, package=NEEDED, ldflags=TEXT, tags=WORDS, cgo=OFF, dest=NEEDED),
    "files": rows(dest=NEEDED, content=TEXT, mode={"type": "str", "default": "0644"}),
    "links": rows(dest=NEEDED, target=NEEDED),
    "config": {"type": "dict", "required": True, "options": CONFIG},
}


def checked_recipe(name: str, recipe: t.Any) -> dict[str, t.Any]:
    """The recipe of the image ``name`` with its defaults filled in."""
    # Ansible's validation of suboptions fails with an error in Python where they are not mappings.
    parts: dict[str, t.Any] = {part: [{}] if option["type"] == "list" else {} for part, option in RECIPE.items() if "options" in option}
    if misshapen := list(shapes.problems(recipe, parts, name)):
        raise InvalidInput(f"{'; '.join(misshapen)}.")
    found = ArgumentSpecValidator({"recipe": {"type": "dict", "required": True, "options": RECIPE}}).validate({"recipe": recipe})
    if found.error_messages:
        raise InvalidInput(
            f"{name}: {'; '.join(found.error_messages)}.", hint="ansible-doc muster.ml.local_image has all parts of a recipe."
        )
    return dict(found.validated_parameters["recipe"])
