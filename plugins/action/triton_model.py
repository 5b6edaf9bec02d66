# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module triton_model on the controller."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleError

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction


class ActionModule(MusterAction):
    """Runs the module's execute in this process."""

    def prepare(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        """A relative ``src`` may be a folder of the role's or playbook's files."""
        src = params.get("src")
        if src and not Path(src).is_absolute() and not Path(src).exists():
            try:
                return {**params, "src": self._find_needle("files", src)}
            except AnsibleError:
                return params  # the module says that it is missing
        return params
