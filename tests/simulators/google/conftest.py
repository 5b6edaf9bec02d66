# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated project for all tests of a file, and the modules run against it as Ansible would run them."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._gcp import api
from simulators.google.client import ACCESS_TOKEN, Simulator
from simulators.google.play import permissions
from simulators.google.reader import COMPUTE, REGION, Reader
from simulators.modules import Result, Run, runner, thrice

# For options of modules that no role has.
MODULES_ONLY = ["compute.networks.switchToCustomMode", "compute.instances.setScheduling", "compute.instances.setServiceAccount"]


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
    ranges = {"pods": "10.4.0.0/14", "services": "10.8.0.0/20", "other_services": "10.8.16.0/20"}
    reader.subnetwork(REGION, "ground", "ground", "10.0.0.0/22", **ranges)
    return {
        "network": "ground",
        "subnetwork": "ground",
        "cluster_secondary_range_name": "pods",
        "services_secondary_range_name": "services",
    }


@pytest.fixture
def run(google: Simulator, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a module with the simulated project, with the permissions that docs/platforms/gke.md publishes, and no others."""
    environment = google.environment()
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with_all = runner(capfd, monkeypatch, HostContext, ACCESS_TOKEN)
    published = [*permissions("upload models"), *MODULES_ONLY]

    def run_module(module_name: str, /, **options: Any) -> Result:
        if google.allowed is not None:
            return with_all(module_name, **options)
        google.permissions(published)
        try:
            return with_all(module_name, **options)
        finally:
            google.permissions(None)

    return run_module


@pytest.fixture
def changes(google: Simulator, run: Run) -> Iterator[Run]:
    """See ``thrice``; nothing but Google is asked."""
    yield thrice(google, run, lambda action: action.split(" ")[0])
    assert google.strangers() == []


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
            assert f"muster-owner={HERE}: it has muster-owner={THERE}, and it is left as it is. Choose another name" in told
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
