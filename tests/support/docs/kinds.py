# SPDX-License-Identifier: GPL-3.0-or-later
"""Write anew what lists the kinds of trainings (scripts/systems): the folders of _systems that have a training.py with a KIND.

An ordinary module runs on its host from an archive of what its files import by name, so that folders cannot be looked for at run time.
"""

import importlib
import sys
from pathlib import Path

from support.places import ROOT

UTILS = "plugins/module_utils"
INDEX_FILE, FRAGMENT_FILE = f"{UTILS}/_edge/systems.py", "plugins/doc_fragments/training.py"

INDEX = '''\
"""The kinds of trainings, by name. Written by scripts/systems; do not edit."""

from __future__ import annotations

{imports}
from .._training.kind import Kind
from .options import Spec

KINDS: dict[str, Kind] = {{
{kinds}
}}
"""Each by the name of its module."""

WHICH: Spec = {{
    "name": {{"type": "str", "required": True}},
    "namespace": {{"type": "str"}},
    "kind": {{"type": "str", "choices": sorted(KINDS), "default": "persia_job"}},
}}
"""The options that name a training."""
'''

FRAGMENT = '''\
"""The options that name a training; the same as WHICH in module_utils/_edge/systems.py. Written by scripts/systems; do not edit."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the training.
    type: str
    required: true
  namespace:
    description: Namespace of the training. Defaults to the namespace of the kubeconfig's context.
    type: str
  kind:
    description: Module that created the training.
    type: str
    choices: [{names}]
    default: persia_job
"""
'''


def texts(root: Path = ROOT) -> dict[str, str]:
    """What the generated files of a collection have to say, by their paths."""
    systems = sorted(path.parent.name for path in (root / UTILS / "_systems").glob("*/training.py"))
    sys.path.insert(0, str(root / "build/collections"))
    package = f"ansible_collections.muster.ml.{UTILS.replace('/', '.')}._systems"
    names = {system: importlib.import_module(f"{package}.{system}.training").KIND.name for system in systems}
    index = INDEX.format(
        imports="\n".join(f"from .._systems.{system} import training as {system}" for system in systems),
        kinds="\n".join(f'    "{name}": {system}.KIND,' for system, name in names.items()),
    )
    fragment = FRAGMENT.format(names=", ".join(sorted(names.values())))
    return {name: "".join((root / name).read_text(encoding="utf-8").splitlines(keepends=True)[:1]) + text
            for name, text in {INDEX_FILE: index, FRAGMENT_FILE: fragment}.items()}  # fmt: skip


if __name__ == "__main__":
    for name, text in texts().items():
        (ROOT / name).write_text(text, encoding="utf-8")
