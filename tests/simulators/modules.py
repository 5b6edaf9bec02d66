# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules run in the process of a test as Ansible would run them: their own ``main``, with arguments as it hands them over."""

import importlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils import _internal
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.muster.ml.plugins.module_utils._core.clock import Clock
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext

Result = dict[str, Any]
Run = Callable[..., Result]


class Hasty:
    """The system's clock, with pauses of a fiftieth: nothing here takes minutes."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 50)


class Leaping(Hasty):
    """Its pauses count in full: who waits for what never comes asks as seldom as a user's module would, and is done at once."""

    def __init__(self) -> None:
        self._slept = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._slept += seconds


def on_clock(monkeypatch: pytest.MonkeyPatch, context: type[HostContext], clock: Clock) -> None:
    """Modules whose ``execute`` gets such a context go by this clock from now on."""
    monkeypatch.setitem(vars(context)["__init__"].__kwdefaults__, "clock", clock)


def runner(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, context: type[HostContext], secret: str, **connection: str
) -> Run:
    """``context`` is that of the modules. No result may show the secret."""
    # A test that imported a filter would make this process a controller, where a module's warnings go to the screen.
    monkeypatch.setattr(_internal, "is_controller", False)
    on_clock(monkeypatch, context, Leaping())

    def run_module(module_name: str, /, *, check: bool = False, **options: Any) -> Result:
        module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{module_name}")
        capfd.readouterr()
        warnings._global_warnings.clear()  # Ansible keeps them for the process, and each of its processes runs one module
        # Nothing takes longer here, on a busy machine either: what does is a mistake, and shall be one at once.
        patience = {"wait_timeout": 600} if "wait_timeout" in module.ARGUMENT_SPEC else {}
        arguments = {**connection, **patience, **options, "_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        result: Result = json.loads(capfd.readouterr().out)
        result.pop("invocation", None)
        assert secret not in json.dumps(result)
        return result

    return run_module


def thrice(simulator: Any, run: Run, request: Callable[[str], str]) -> Run:
    """Run a module as one always should: planned, run, run again. The server's journal says what was really sent.

    ``request`` makes an action of the module, and a write of the journal, comparable."""

    def run_thrice(module_name: str, /, **options: Any) -> Result:
        simulator.clear()
        planned = run(module_name, check=True, **options)
        assert not planned.get("failed"), planned["msg"]
        assert simulator.attempts() == [], "check mode changed something"
        done = run(module_name, **options)
        assert not done.get("failed"), done["msg"]
        assert planned["changed"] is done["changed"] is True
        assert planned["actions"] == done["actions"], "the plan is not what happened"
        assert [request(one) for one in simulator.writes()] == [request(one) for one in done["actions"]]
        simulator.clear()
        again = run(module_name, **options)
        assert (again["changed"], again["actions"], simulator.attempts()) == (False, [], [])
        return done

    return run_thrice
