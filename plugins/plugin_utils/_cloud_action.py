# SPDX-License-Identifier: GPL-3.0-or-later
"""Bases of the action plugins of modules that talk to AWS or Google Cloud."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sys
import typing as t
from pathlib import Path

from ansible import constants as C  # noqa: N812  (as everywhere in Ansible)

from ansible_collections.muster.ml.plugins.plugin_utils._controller import PLUGINS, ControllerAction
from ansible_collections.muster.ml.plugins.plugin_utils._early import save_garbage_collection


class CloudAction(ControllerAction):
    """Runs where Ansible's own Python has the libraries of the cloud and is the one that the host names; else the ordinary module runs."""

    module: t.Any = None
    cloud = ""
    """The file of the edge, which needs the collection whose login it uses, and so is imported with the module."""

    def __init_subclass__(cls) -> None:
        with contextlib.suppress(ImportError):
            super().__init_subclass__()

    @property
    def _edge(self) -> t.Any:
        return importlib.import_module(f"{PLUGINS}.module_utils._edge.{self.cloud}")

    def _runs_elsewhere(self) -> bool:
        # Task.become does not include the ansible_become of the inventory.
        elsewhere = super()._runs_elsewhere() or self._connection.become is not None or self.module is None
        return elsewhere or not self._edge.HAS_LIBRARIES or self._has_another_python()

    def _has_another_python(self) -> bool:
        """Whether the host names an interpreter, and it is not the one that this process runs. Discovery may find any."""
        delegated = self._variables.get("ansible_delegated_vars", {}).get(self._task.delegate_to)
        named = C.config.get_config_value("INTERPRETER_PYTHON", variables=delegated or self._variables)
        python = str(self._templar.template(named) or "auto")
        return not python.startswith("auto") and _place(python) != _place(sys.executable)

    def _argument_spec(self) -> dict[str, t.Any]:
        return dict(self._edge.full_spec(super()._argument_spec()))

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        save_garbage_collection()
        warnings: list[str] = []
        context = self._edge.on_controller(
            params=params, check=bool(self._task.check_mode), diff=bool(self._task.diff), warn=warnings.append, requests=self._requests
        )
        found = self._execute(context)
        if self._rehearses and not found.get("failed"):
            self._where = self._edge.place_of(context)
        return {**found, "warnings": warnings}


def _place(python: str) -> tuple[Path, Path]:
    """The path and the identity of an interpreter: those of two virtual environments are links to one."""
    found = Path(shutil.which(python) or python)
    return found.parent.resolve(), found.resolve()


class AwsAction(CloudAction):
    """Runs with the login of amazon.aws."""

    cloud = "aws"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.module:
            aws = importlib.import_module(f"{PLUGINS}.module_utils._edge.aws")
            with contextlib.suppress(ImportError):
                aws.read_early()

    def _runs_elsewhere(self) -> bool:
        """Only amazon.aws's module class reports the requests of botocore's log."""
        logs = "debug_botocore_endpoint_logs" in self._task.args or "ANSIBLE_DEBUG_BOTOCORE_LOGS" in os.environ
        return logs or super()._runs_elsewhere()


class GcpAction(CloudAction):
    """Runs with the login of google.cloud."""

    cloud = "gcp"
