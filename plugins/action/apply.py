# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import typing as t

from ansible.errors import AnsibleError

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction


class ActionModule(MusterAction):
    def prepare(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        """A relative ``src`` may be a file or folder of the role or playbook."""
        src = params.get("src")
        if src and not pathlib.Path(src).expanduser().is_absolute() and not pathlib.Path(src).exists():
            try:
                return {**params, "src": self._find_needle("files", src)}
            except AnsibleError:
                return params  # a glob pattern, or a missing file, which the module reports better
        return params
