# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what Ansible packs for the modules of other collections: between two runs of playbooks it does not change."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812  # as everywhere in Ansible
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: quick
type: aggregate
short_description: Keep what Ansible packs for modules
description:
  - Ansible searches a module's imports and packs them once for each run. Packs are kept below the folder that E(QUICK_FOLDER) names.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Ansible looks for packs in its temporary folder (``ansible.executor.module_common``), which is new and empty in each run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "quick"

    def __init__(self) -> None:
        super().__init__()
        # Of this Ansible and the collections that are installed with it.
        self._kept = Path(os.environ["QUICK_FOLDER"], *Path(sys.prefix).parts[1:])
        self._packs = Path(C.DEFAULT_LOCAL_TMP, "ansiballz_cache")
        for folder in (self._kept, self._packs):
            folder.mkdir(parents=True, exist_ok=True)
        for pack in self._kept.glob("[!.]*"):
            (self._packs / pack.name).symlink_to(pack)
        # For the processes of the modules: see sitecustomize.py.
        paths = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

    def v2_playbook_on_stats(self, _stats: Any) -> None:
        for pack in self._packs.iterdir():
            # Ours are those of the clone, of an artefact or of a changed copy.
            if not (pack.is_symlink() or ".muster." in pack.name or pack.name.endswith((".lock", "-part"))):
                draft = self._kept / f".{os.getpid()}"
                shutil.copy(pack, draft)
                draft.replace(self._kept / pack.name)
