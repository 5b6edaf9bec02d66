# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the action plugins of modules that talk to Kubernetes."""

from __future__ import annotations

import gc
import typing as t

from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import EXPECTED, failure
from ansible_collections.muster.ml.plugins.module_utils._edge.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, connector
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import to_plain_values
from ansible_collections.muster.ml.plugins.plugin_utils._controller import ControllerAction
from ansible_collections.muster.ml.plugins.plugin_utils._early import KUBERNETES, import_early

import_early(KUBERNETES)

display = Display()

_GARBAGE = 100_000
"""New objects between two searches for garbage; Python's default of 700 costs a tenth of an apply of 2,000 manifests."""


class MusterAction(ControllerAction):
    """Runs with a connection to the cluster. The task needs no connection to a host."""

    _requires_connection = False

    def _argument_spec(self) -> dict[str, t.Any]:
        return full_spec(self.module.ARGUMENT_SPEC)

    def prepare(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        """Resolve options that refer to the controller, such as paths of files in a role."""
        return params

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        # This process was forked for one task. Ansible's objects and most of ours live until its end, so collecting garbage is wasted
        # time.
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        params = self.prepare(to_plain_values(params))
        warnings: list[str] = []
        context = Context(
            params=params,
            check=bool(self._task.check_mode),
            connect=connector(params),
            diff=bool(self._task.diff),
            warn=warnings.append,
            progress=_progress(self._named(self._title())),
        )
        try:
            found = self.module.execute(context)
        except EXPECTED as exc:
            found = {"failed": True, "changed": False, **failure(exc)}
        finally:
            context.close()
        return {**found, "warnings": warnings}


def _progress(title: str) -> t.Callable[[str], None]:
    started = SYSTEM_CLOCK.monotonic()

    def show(message: str) -> None:
        display.display(f"    {title}: {message} ({SYSTEM_CLOCK.monotonic() - started:.0f} s)")

    return show
