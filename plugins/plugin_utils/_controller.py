# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of all action plugins: validate the options, and run the module's ``execute`` on the controller.

A module costs a fork, a zip of its code and a new Python; on the controller it costs a function call, and progress can be shown while
it waits. Where the task runs elsewhere (another connection, become, async, a different environment) the ordinary module does it.
"""

from __future__ import annotations

import abc
import importlib
import os
import typing as t

from ansible import context as command
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.muster.ml.plugins.module_utils._core.clock import system_utc
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import EXPECTED, failure
from ansible_collections.muster.ml.plugins.module_utils._edge.values import checked
from ansible_collections.muster.ml.plugins.module_utils._kube.redact import may_tell
from ansible_collections.muster.ml.plugins.plugin_utils._early import import_for

if t.TYPE_CHECKING:
    from ansible_collections.muster.ml.plugins.plugin_utils._planned import Limit

_UNKNOWN: t.Final = "Unsupported parameters: "
PLUGINS: t.Final = "ansible_collections.muster.ml.plugins"


def _shown(name: str, value: t.Any, spec: t.Mapping[str, t.Any]) -> t.Any:
    """The value of an option, without what is secret in it."""
    told = may_tell(str(value)) if name == "definition" else name == "kubeconfig" and isinstance(value, dict)
    parts = spec.get("options")
    if parts and isinstance(value, list):
        return [_shown(name, one, spec) for one in value]
    if told or spec.get("no_log") or (parts and not isinstance(value, dict)):
        return "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    return {key: _shown(key, one, parts.get(key, {})) for key, one in value.items()} if parts else value


class ControllerAction(ActionBase, abc.ABC):
    """A plugin is a subclass ``ActionModule`` in a file of the module's name."""

    module: t.Any
    _args: dict[str, t.Any] | None = None
    _supports_check_mode = True
    _supports_diff = True
    _supports_async = True
    _cluster = ""
    """The host, if it is one of several that stand for clusters."""
    _variables: t.Mapping[str, t.Any] = {}
    _rehearses = False
    """Whether this is the run in check mode by which a plan is made or compared."""
    _where = ""
    """The cluster or account of a rehearsal, where the task runs on the controller."""
    _limit: Limit | None = None
    _requests: frozenset[str] | None = None
    """The requests to a cloud that the rehearsal had; None: any."""

    def __init_subclass__(cls) -> None:
        """Import the module, with what it imports, in the process from which Ansible forks one for each task."""
        if cls.__name__ == "ActionModule":
            name = cls.__module__.rpartition(".")[2]
            cls.module = importlib.import_module(f"{PLUGINS}.modules.{name}")
            import_for(name)

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the task, and hide what is secret of its arguments, which callbacks may show (``display_args_to_stdout``)."""
        given = self._task.args = self._args or self._task.args  # a task with until runs again
        try:
            return self._run(tmp, task_vars)
        finally:
            self._args, self._task.args = given, _shown("", given, {"options": self._argument_spec()})

    def _run(self, tmp: str | None, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        self._variables = variables = task_vars or {}
        if variables.get("inventory_hostname") in variables.get("groups", {}).get("muster_clusters", ()):
            self._cluster = variables["inventory_hostname"]
        if self._runs_elsewhere():
            return {**result, **self._reviewed(lambda: self._run_elsewhere(task_vars))}
        spec, constraints = self._argument_spec(), getattr(self.module, "CONSTRAINTS", {})
        validated = ArgumentSpecValidator(spec, **constraints).validate(self._task.args)
        if validated.error_messages:
            told = [f"{_UNKNOWN if isinstance(one, UnsupportedError) else ''}{one.msg}" for one in validated.errors]
            return {**result, "failed": True, "msg": "; ".join(told)}

        def run() -> dict[str, t.Any]:
            found = self._reported(lambda: self._run_here(checked(spec, validated.validated_parameters, constraints)))
            return t.cast("dict[str, t.Any]", remove_values(found, validated._no_log_values))

        return {**result, **self._reviewed(run)}

    # Plans that people review

    def _reviewed(self, run: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
        """Run the task: into the plan of ``muster_plan_file`` in check mode, and within that of ``muster_plan``.

        What it would do is its own result in check mode, so both are one text, and a refusal comes before the first write.
        """
        checks = bool(command.CLIARGS.get("check"))
        file = self._given("muster_plan_file") if checks else ""
        plan = self._given("muster_plan") if checks or not self._task.check_mode else ""
        return self._reported(lambda: self._within(run, file, plan)) if file or plan else run()

    def _given(self, name: str) -> str:
        value = self._variables.get(name)
        return str(self._templar.template(value)) if value else ""

    def _within(self, run: t.Callable[[], dict[str, t.Any]], file: str, plan: str) -> dict[str, t.Any]:
        from ansible_collections.muster.ml.plugins.plugin_utils import _review as review
        from ansible_collections.muster.ml.plugins.plugin_utils._planned import rows_of, with_generated

        if file and "MUSTER_RUN" not in os.environ:
            hint = "Set callbacks_enabled = muster.ml.summary in ansible.cfg, or ANSIBLE_CALLBACKS_ENABLED=muster.ml.summary."
            raise InvalidInput("muster_plan_file: the callback plugin muster.ml.summary, which writes the plan, is not enabled.", hint=hint)
        hours = float(self._given("muster_plan_hours") or review.HOURS)
        limit, places = review.read(plan, hours, system_utc()) if plan else (None, frozenset())
        found = self._rehearsed(run)
        if found.get("failed"):
            return found
        host, task = str(self._variables.get("inventory_hostname", "localhost")), self._task
        where, name = self._where or f"host {host}", task.args.get("name")
        title = f"{self._title()} ({name})" if isinstance(name, str) else self._title()
        deletes = boolean(task.args.get("delete_data") or False, strict=False)
        told = {"where": where, "task": title, "data": deletes, "hidden": bool(getattr(task, "no_log", False))}
        rows = rows_of(found, **told)
        if limit and where not in places and any(row["action"] != "keep" for row in rows):
            raise limit.error(f"it works in {where}, and the plan is about {', '.join(sorted(places)) or 'nothing'}")
        if limit:
            limit.refuse(rows)
        if file:
            again = rows_of(self._rehearsed(run), **told) if any(row["fields"] for row in rows) else rows
            review.note(file, host, where, with_generated(rows, again))
        if task.check_mode:
            return {key: value for key, value in found.items() if key != "diff" or task.diff}
        self._limit, self._where, self._requests = limit, where, frozenset(found.get("actions") or ())
        return run()

    def _rehearsed(self, run: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
        task = self._task
        given = task.check_mode, task.diff, task.async_val
        task.check_mode, task.diff, task.async_val, self._rehearses = True, True, 0, True
        try:
            return run()
        finally:
            (task.check_mode, task.diff, task.async_val), self._rehearses = given, False

    def _run_elsewhere(self, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        """Run the ordinary module where the task runs. It needs the identifier of the run for its requests to the API server."""
        if run := os.environ.get("MUSTER_RUN"):
            self._task.environment = [*(self._task.environment or []), {"MUSTER_RUN": run}]
        return t.cast("dict[str, t.Any]", self._execute_module(task_vars=task_vars, wrap_async=bool(self._task.async_val)))

    def _argument_spec(self) -> dict[str, t.Any]:
        """Return the options of the module for validation."""
        return dict(self.module.ARGUMENT_SPEC)

    @abc.abstractmethod
    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        """Execute the module with its options. Expected errors become a failed result."""

    def _execute(self, context: t.Any) -> dict[str, t.Any]:
        return self._reported(lambda: dict(self.module.execute(context)))

    @staticmethod
    def _reported(run: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
        """Return the result of RUN, or the failed result of an expected error."""
        try:
            return run()
        except EXPECTED as exc:
            return {"failed": True, "changed": False, **failure(exc)}

    def _runs_elsewhere(self) -> bool:
        task = self._task
        elsewhere = task.become or task.async_val or any(task.environment or [])
        return bool(self._connection.transport != "local" or elsewhere)

    def _named(self, message: str) -> str:
        """Return a message with the name of the cluster where there are several, whose output is mixed."""
        return f"{self._cluster}: {message}" if self._cluster else message

    def _title(self) -> str:
        """Return the name of the task for progress output."""
        return str(self._task.name or self._task.action)
