# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated project for all tests of a file, and the modules run against it as Ansible would run them."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible.module_utils import _internal
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.muster.ml.plugins.module_utils._gcp import api
from simulators.google.client import ACCESS_TOKEN, PROJECT, Simulator
from simulators.google.reader import COMPUTE, REGION, Reader

Result = dict[str, Any]
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A project with its APIs enabled and nothing in it."""
    simulator = Simulator(tmp_path_factory.mktemp("google"))
    simulator.enable()
    yield simulator
    simulator.stop()


@pytest.fixture(scope="module")
def reader(google: Simulator) -> Reader:
    return Reader(google)


@pytest.fixture(scope="module")
def ground(reader: Reader) -> dict[str, str]:
    """What has to be there before a cluster can be: a network with a subnetwork, and its ranges."""
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "ground", "autoCreateSubnetworks": False})
    subnet = {
        "name": "ground", "network": f"projects/{PROJECT}/global/networks/ground", "ipCidrRange": "10.0.0.0/22",
        "privateIpGoogleAccess": True,
        "secondaryIpRanges": [
            {"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"}, {"rangeName": "services", "ipCidrRange": "10.8.0.0/20"},
            {"rangeName": "other-services", "ipCidrRange": "10.8.16.0/20"},
        ],
    }  # fmt: skip
    reader.write("POST", f"{COMPUTE}/regions/{REGION}/subnetworks", subnet)
    return {
        "network": "ground",
        "subnetwork": "ground",
        "cluster_secondary_range_name": "pods",
        "services_secondary_range_name": "services",
    }


class Hasty:
    """The system's clock, with pauses of a fiftieth."""

    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 50)


@pytest.fixture
def run(google: Simulator, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a module in this process: its own ``main``, with arguments as Ansible hands them over."""
    environment = google.environment()
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # A test that imported a filter made this process a controller, where a module's warnings go to the screen.
    monkeypatch.setattr(_internal, "is_controller", False)
    # The same pauses, but shorter: nothing here takes minutes.
    monkeypatch.setattr(api, "SYSTEM_CLOCK", Hasty())

    def run_module(module_name: str, /, *, check: bool = False, **options: Any) -> Result:
        module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{module_name}")
        capfd.readouterr()
        warnings._global_warnings.clear()  # Ansible keeps them for the process, and each of its processes runs one module
        # Nothing takes longer here: what does is a mistake, and shall be one at once.
        patience = {"wait_timeout": 60} if "wait_timeout" in module.ARGUMENT_SPEC else {}
        arguments = {**patience, **options, "_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        printed = capfd.readouterr().out
        result: Result = json.loads(printed)
        result.pop("invocation", None)
        assert ACCESS_TOKEN not in json.dumps(result)
        return result

    return run_module


@pytest.fixture
def changes(google: Simulator, run: Run) -> Run:
    """Run a module as one always should: planned, run, run again. The server's journal says what was really sent."""

    def run_thrice(module_name: str, /, **options: Any) -> Result:
        google.clear()
        planned = run(module_name, check=True, **options)
        assert not planned.get("failed"), planned["msg"]
        assert google.attempts() == [], "check mode changed something"
        done = run(module_name, **options)
        assert not done.get("failed"), done["msg"]
        assert planned["changed"] is done["changed"] is True
        assert planned["actions"] == done["actions"], "the plan is not what happened"
        assert google.writes() == [action.split(" ")[0] for action in done["actions"]]
        google.clear()
        again = run(module_name, **options)
        assert (again["changed"], again["actions"], google.attempts()) == (False, [], [])
        assert google.strangers() == []
        return done

    return run_thrice


THERE, HERE = "muster--us-central1", "muster--europe-west1"


@pytest.fixture
def left_alone(google: Simulator, run: Run) -> Callable[..., None]:
    """Make what belongs to a cluster. Runs for one of the same name in another region are refused, and are told how to go on, and the
    teardown there keeps it."""

    def run_for_both(module_name: str, /, *, delete_data: bool = False, **options: Any) -> None:
        there, here = ({**options, "owner": owner} for owner in (THERE, HERE))
        done = run(module_name, **there)
        assert not done.get("failed"), done["msg"]
        google.clear()
        for adopt in (False, True):
            told = run(module_name, **here, adopt=adopt)["msg"]
            assert (
                f"muster-owner={HERE}: it has muster-owner={THERE}, and it is left as it is. Choose another name"
                in told
            )
            ways = ("and run with adopt: true", f"give it the label muster-owner={HERE}", f"run with owner: {THERE}")
            assert any(way in told for way in ways)
        gone = {"state": "absent", **({"delete_data": True} if delete_data else {})}
        kept = run(module_name, **here, **gone)
        assert kept["kept"].endswith(f"the mark of this owner (muster-owner={HERE}), but muster-owner={THERE}")
        assert (kept["changed"], google.attempts()) == (False, [])
        assert run(module_name, **there)["changed"] is False
        assert run(module_name, **there, **gone)["changed"] is True

    return run_for_both


def killed(monkeypatch: pytest.MonkeyPatch, at: int, *, answered: bool) -> None:
    """End a run at its so-manieth write: before it is sent, or after it was answered."""
    sent = [0]
    send = api.Api.write

    def write(self: api.Api, label: str, step: Any) -> Any:
        sent[0] += 1
        if sent[0] == at and not answered:
            raise KeyboardInterrupt
        answer = send(self, label, step)
        if sent[0] == at:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(api.Api, "write", write)
