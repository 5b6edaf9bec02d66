# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the action plugins of modules that work on the host: run here where the host is the controller, and show progress."""

from __future__ import annotations

import threading
import time
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.module_utils._module.host import EXPECTED, HostContext, failure

display = Display()
HEARTBEAT_SECONDS = 30


class HostAction(ActionBase):
    """Subclasses name their module: ``module = go_binary``."""

    module: t.Any
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        if self._runs_elsewhere():
            return {**result, **self._execute_module(task_vars=task_vars, wrap_async=bool(self._task.async_val))}
        checked = ArgumentSpecValidator(self.module.ARGUMENT_SPEC, **self.module.CONSTRAINTS).validate(self._task.args)
        if checked.error_messages:
            return {**result, "failed": True, "msg": "; ".join(checked.error_messages)}
        found = self._run_here(dict(checked.validated_parameters))
        return {**result, **remove_values(found, checked._no_log_values)}

    def _runs_elsewhere(self) -> bool:
        task = self._task
        elsewhere = task.become or task.async_val or any(task.environment or [])
        return bool(self._connection.transport != "local" or elsewhere)

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        warnings: list[str] = []
        with Progress(str(self._task.name or self._task.action)) as progress:
            context = HostContext(
                params=params, check=bool(self._task.check_mode), warn=warnings.append, progress=progress.show
            )
            try:
                found = self.module.execute(context)
            except EXPECTED as exc:
                found = {"failed": True, "changed": False, **failure(exc)}
        return {**found, "warnings": warnings}


class Progress:
    """Lines on the terminal while a task runs: each message, and the last one again every half minute with the time."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._last = ""
        self._started = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        self._thread.join()

    def show(self, message: str) -> None:
        self._last = message
        display.display(f"    {message}")

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_SECONDS):
            if self._last:
                display.display(f"    {self._last}: {time.monotonic() - self._started:.0f} s so far")
