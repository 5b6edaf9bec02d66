# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the action plugins of modules that talk to Kubernetes."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

from ansible import constants as C  # noqa: N812  (as everywhere in Ansible)
from ansible.errors import AnsibleError
from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._edge import promises
from ansible_collections.muster.ml.plugins.module_utils._edge.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, connector
from ansible_collections.muster.ml.plugins.module_utils._kube.cluster import Cluster
from ansible_collections.muster.ml.plugins.plugin_utils._controller import ControllerAction
from ansible_collections.muster.ml.plugins.plugin_utils._early import KUBERNETES, import_early, save_garbage_collection

import_early(*KUBERNETES)

display = Display()

_PROMISES = pathlib.Path(C.DEFAULT_LOCAL_TMP) / "muster_promised"
"""The temporary folder of one run of Ansible, which its processes share, and which it deletes at its end."""


class MusterAction(ControllerAction):
    """Runs with a connection to the cluster. The task needs no connection to a host."""

    _requires_connection = False

    def _argument_spec(self) -> dict[str, t.Any]:
        return full_spec(self.module.ARGUMENT_SPEC)

    def _found(self, src: str) -> str:
        """The path of an option src: a relative one may be that of a file or folder of the role or playbook."""
        path = pathlib.Path(src).expanduser()
        if not path.is_absolute() and not path.exists():
            with contextlib.suppress(AnsibleError):  # a glob pattern, or a missing file, which the module reports better
                return str(self._find_needle("files", src))
        return src

    def _run_elsewhere(self, task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        known = self._promises()
        if known:
            self._task.environment = [*(self._task.environment or []), {promises.VARIABLE: "\n".join(known)}]
        found = super()._run_elsewhere(task_vars)
        self._promise(found.pop(promises.KEY, []), known)
        return found

    def _promises(self) -> list[str]:
        """Return the lines of what earlier tasks of this run in check mode would have made clusters have."""
        return _PROMISES.read_text(encoding="utf-8").splitlines() if self._task.check_mode and _PROMISES.exists() else []

    def _promise(self, lines: list[str], known: list[str]) -> None:
        """Keep what this task promises for later ones. Tasks for several hosts run at once, and each appends with one write."""
        fresh = [line for line in lines if line not in known]
        if fresh and self._task.check_mode:
            with _PROMISES.open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in fresh))

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        save_garbage_collection()
        if params.get("src"):
            params = {**params, "src": self._found(params["src"])}
        warnings: list[str] = []
        known = self._promises()
        connect = connector(params)
        context = Context(
            params=params,
            check=bool(self._task.check_mode),
            connect=lambda: self._limited(connect()),
            diff=bool(self._task.diff),
            warn=warnings.append,
            progress=_progress(self._named(self._title())),
            promises=promises.read(known),
        )
        try:
            found = self._execute(context)
            if self._rehearses and "cluster" in vars(context) and not found.get("failed"):
                from ansible_collections.muster.ml.plugins.module_utils._kube.limited import place_of

                self._where = place_of(context.cluster)
        finally:
            context.close()
        self._promise(promises.written(context.promises), known)
        return {**found, "warnings": warnings}

    def _limited(self, cluster: Cluster) -> Cluster:
        """The cluster, where a plan limits the task only with what the plan writes."""
        limit, where = self._limit, self._where
        if limit is None:
            return cluster
        from ansible_collections.muster.ml.plugins.module_utils._kube.limited import LimitedCluster

        return t.cast("Cluster", LimitedCluster(cluster, lambda ref, deletes: limit.permit(where, ref, deletes=deletes)))


def _progress(title: str) -> t.Callable[[str], None]:
    started = SYSTEM_CLOCK.monotonic()

    def show(message: str) -> None:
        display.display(f"    {title}: {message} ({SYSTEM_CLOCK.monotonic() - started:.0f} s)")

    return show
