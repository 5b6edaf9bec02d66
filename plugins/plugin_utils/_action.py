# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of Muster's action plugins: the module's own ``execute``, run on the controller.

A module costs a fork, a zip of its code and a new Python; on the controller it costs a function call, and progress can be shown while
it waits. Where the task runs elsewhere (another connection, become, async, an environment of its own) the ordinary module does it.
"""

from __future__ import annotations

import time
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.module_utils._kube.objects import plain
from ansible_collections.muster.ml.plugins.module_utils._module.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._module.run import (
    EXPECTED,
    Context,
    connector,
    failure,
)

display = Display()


class MusterAction(ActionBase):
    """Subclasses name their module: ``module = apply``."""

    module: t.Any
    _supports_check_mode = True
    _supports_diff = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        if self._runs_elsewhere():
            return {**result, **self._execute_module(task_vars=task_vars, wrap_async=bool(self._task.async_val))}
        validation = ArgumentSpecValidator(full_spec(self.module.ARGUMENT_SPEC), **self.module.CONSTRAINTS).validate(
            self._task.args
        )
        if validation.error_messages:
            return {**result, "failed": True, "msg": "; ".join(validation.error_messages)}
        found = self._run_here(self.prepare(plain(validation.validated_parameters)))
        return {**result, **remove_values(found, validation._no_log_values)}

    def prepare(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        """Hook for options that mean something else on the controller, such as files of a role."""
        return params

    def _runs_elsewhere(self) -> bool:
        task = self._task
        return bool(
            self._connection.transport != "local" or task.become or task.async_val or any(task.environment or [])
        )

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        warnings: list[str] = []
        context = Context(
            params=params,
            check=bool(self._task.check_mode),
            connect=connector(params),
            diff=bool(self._task.diff),
            warn=warnings.append,
            progress=_progress(str(self._task.name or self._task.action)),
        )
        try:
            found = self.module.execute(context)
        except EXPECTED as exc:
            found = {"failed": True, "changed": False, **failure(exc)}
        finally:
            context.close()
        return {**found, "warnings": warnings}


def _progress(title: str) -> t.Callable[[str], None]:
    started = time.monotonic()

    def show(message: str) -> None:
        display.display(f"    {title}: {message} ({time.monotonic() - started:.0f} s)")

    return show
