# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the action plugins of modules that work on the host: run here where the host is the controller, and show progress."""

from __future__ import annotations

import threading
import typing as t

from ansible.utils.display import Display

from ansible_collections.muster.ml.plugins.module_utils._core.brief import in_brief
from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.plugin_utils._controller import ControllerAction

display = Display()
HEARTBEAT_SECONDS = 30


class HostAction(ControllerAction):
    """Runs on this host with progress output, which continues during long steps."""

    def _runs_elsewhere(self) -> bool:
        # Tasks do not know of the ansible_become of an inventory.
        return super()._runs_elsewhere() or self._connection.become is not None

    def _run_here(self, params: dict[str, t.Any]) -> dict[str, t.Any]:
        warnings: list[str] = []
        with Heartbeat(self._title()) as progress:
            context = HostContext(
                params=params,
                check=bool(self._task.check_mode),
                diff=bool(self._task.diff),
                warn=warnings.append,
                progress=lambda message: progress.show(self._named(message)),
            )
            found = self._execute(context)
        return {**found, "warnings": warnings}


class Heartbeat:
    """Lines on the terminal while a task runs: each message, and the last one again every half minute with the time."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._last = ""
        self._started = SYSTEM_CLOCK.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        self._thread.join()

    def show(self, message: str) -> None:
        self._last = in_brief(message)
        display.display(f"    {self._last}")

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_SECONDS):
            if self._last:
                display.display(f"    {self._last}: {SYSTEM_CLOCK.monotonic() - self._started:.0f} s so far")
