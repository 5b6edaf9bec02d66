# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the actions that modules report, one a line, to the file in MUSTER_ACTIONS: what a plan announces, or a run has done."""

import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: actions
type: notification
short_description: Write the actions that modules report
description:
  - Writes them to the file that E(MUSTER_ACTIONS) names. Tasks that only look, in check mode of their own, report no change.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "actions"

    def v2_runner_on_ok(self, result: Any) -> None:
        self._note(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._note(result)

    def _note(self, result: Any) -> None:
        found = result._result
        rows = [row for row in found.get("results") or [found] if isinstance(row, dict) and row.get("changed")]
        lines = [action for row in rows for action in row.get("actions") or ()]
        if lines:
            with Path(os.environ["MUSTER_ACTIONS"]).open("a", encoding="utf-8") as out:
                out.write("".join(f"{line}\n" for line in lines))
