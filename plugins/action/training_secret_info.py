# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module training_secret_info on the controller."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction


class ActionModule(MusterAction):
    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        # What it reads is for other tasks, and never for the screen.
        return {**super()._run_here(params), "_ansible_no_log": True}
