# SPDX-License-Identifier: GPL-3.0-or-later
"""What can happen to a request, and who may be there already, for each kind of resource; test_modules_gke.py has clusters and pools."""

from collections.abc import Iterator
from typing import Any

import pytest

from simulators.google.client import Simulator
from simulators.google.conftest import killed
from simulators.google.reader import REGION, ZONE
from simulators.modules import Run

NETWORK = {"network": "ground"}
RANGES = {"source_ranges": ["203.0.113.0/24"], "allowed": [{"ip_protocol": "tcp", "ports": ["22"]}]}
MACHINE = {
    "zone": ZONE, "machine_type": "e2-small", **NETWORK, "subnetwork": "ground",
    "disk": {"size_gb": 10, "source_image": "projects/debian-cloud/global/images/family/debian-12"},
}  # fmt: skip
# Name: (module, options, method that makes it, method that reads it).
KINDS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "network": ("gcp_network", {"name": "x"}, "compute.networks.insert", "compute.networks.get"),
    "subnetwork": (
        "gcp_subnetwork", {"name": "x", "region": REGION, **NETWORK, "ip_cidr_range": "10.99.0.0/24"},
        "compute.subnetworks.insert", "compute.subnetworks.get",
    ),
    "router": ("gcp_router_nat", {"name": "x", "region": REGION, **NETWORK}, "compute.routers.insert", "compute.routers.get"),
    "firewall": ("gcp_firewall", {"name": "x", **NETWORK, **RANGES}, "compute.firewalls.insert", "compute.firewalls.get"),
    "address": ("gcp_address", {"name": "x", "region": REGION}, "compute.addresses.insert", "compute.addresses.get"),
    "global address": ("gcp_address", {"name": "x"}, "compute.globalAddresses.insert", "compute.globalAddresses.get"),
    "machine": ("gcp_instance", {"name": "x", **MACHINE}, "compute.instances.insert", "compute.instances.get"),
    "account": (
        "gcp_service_account", {"account_id": "faults-of-x"}, "iam.projects.serviceAccounts.create", "iam.projects.serviceAccounts.get",
    ),
    "bucket": ("gcs_bucket", {"name": "faults-of-x", "location": REGION}, "storage.buckets.insert", "storage.buckets.get"),
    "repository": (
        "gcp_artifact_repository", {"name": "x", "location": REGION}, "artifactregistry.projects.locations.repositories.create",
        "artifactregistry.projects.locations.repositories.get",
    ),
}  # fmt: skip
ON_COMPUTE = [name for name, row in KINDS.items() if row[2].startswith("compute.")]
GONE = {"gcp_instance": {"delete_data": True}}


@pytest.fixture
def kind(request: pytest.FixtureRequest, google: Simulator, run: Run, ground: dict[str, str]) -> Iterator[str]:
    """A kind of resource, of which there is none after the test."""
    name: str = request.param
    yield name
    google.clear()
    module, options, _made, _read = KINDS[name]
    gone = run(module, **options, **GONE.get(module, {}), state="absent")
    assert not gone.get("failed"), gone["msg"]


def converges(run: Run, kind: str) -> None:
    module, options, _made, _read = KINDS[kind]
    done = run(module, **options, owner="m")
    assert not done.get("failed"), done["msg"]
    assert run(module, **options, owner="m")["changed"] is False


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_refusal_is_one_clear_error_and_the_rerun_converges(google: Simulator, run: Run, kind: str) -> None:
    module, options, made, _read = KINDS[kind]
    google.fault("refuse", made, status=403, message="Permission denied by a test.")
    failed = run(module, **options, owner="m")
    assert failed["failed"]
    assert failed["msg"].count("Permission denied by a test") == 1
    converges(run, kind)


@pytest.mark.parametrize("kind", ON_COMPUTE, indirect=True)
def test_an_operation_that_fails_is_one_clear_error_and_the_rerun_converges(google: Simulator, run: Run, kind: str) -> None:
    module, options, made, _read = KINDS[kind]
    google.fault("operation_error", made, code="QUOTA_EXCEEDED", message="Quota 'THINGS' exceeded. Limit: 15.0 globally.")
    failed = run(module, **options, owner="m")
    assert failed["failed"]
    assert failed["msg"].count("Quota 'THINGS' exceeded") == 1
    converges(run, kind)


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_what_passes_by_itself_is_ridden_out(google: Simulator, run: Run, kind: str) -> None:
    """No answer to the request that makes it, though that was done; too many requests; and an old answer after it was made."""
    module, options, made, read = KINDS[kind]
    google.fault("throttle", made)
    google.fault("throttle", read)
    google.fault("drop", made)
    google.fault("slow", made)
    google.fault("stale", read, after=made)
    done = run(module, **options, owner="m")
    assert not done.get("failed"), done["msg"]
    assert done["changed"] is True
    assert [fault for fault in google.ask("faults") if fault["kind"] != "slow"] == []
    google.clear()
    assert run(module, **options, owner="m")["changed"] is False


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_every_request_may_be_refused_for_a_while(google: Simulator, run: Run, kind: str) -> None:
    """As in a busy project: every operation is throttled at first, listings and those of the deletion included."""
    module, options, _made, _read = KINDS[kind]
    google.fault("throttle", "each", times=2)
    converges(run, kind)
    gone = run(module, **options, **GONE.get(module, {}), owner="m", state="absent")
    assert not gone.get("failed"), gone["msg"]


@pytest.mark.parametrize("kind", KINDS, indirect=True)
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_a_run_that_was_killed_is_taken_up(run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, answered: bool) -> None:
    module, options, _made, _read = KINDS[kind]
    with monkeypatch.context() as patched:
        killed(patched, 1, answered=answered)
        with pytest.raises(KeyboardInterrupt):
            run(module, **options, owner="m")
    converges(run, kind)


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_what_somebody_else_has_is_refused_and_stays(google: Simulator, run: Run, kind: str) -> None:
    module, options, _made, _read = KINDS[kind]
    assert not run(module, **options).get("failed")
    google.clear()
    refused = run(module, **options, owner="m")
    assert "another owner created it" in refused.get("msg", "")
    assert "does not have the mark" in run(module, **options, owner="m", state="absent")["kept"]
    assert google.attempts() == []


def test_apis_that_may_not_be_enabled_are_one_clear_error_and_the_rerun_converges(google: Simulator, run: Run) -> None:
    google.fault("refuse", "serviceusage.services.batchEnable", status=403, message="Permission denied by a test.")
    wanted = {"services": ["file.googleapis.com"]}
    failed = run("gcp_service", **wanted)
    assert failed["msg"].count("Permission denied by a test") == 1
    assert run("gcp_service", **wanted)["changed"] is True
    assert run("gcp_service", **wanted)["changed"] is False


def test_a_limit_is_told_at_once_and_a_rate_is_waited_for(google: Simulator, run: Run) -> None:
    """Google says when to come again: a limit of the project is not to be asked for 90 seconds (kubeflow/testing#250)."""
    again = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "86401s"}
    limit = {"status": 429, "message": "Maximum number of service accounts on project reached.", "code": "RESOURCE_EXHAUSTED"}
    google.fault("refuse", "iam.projects.serviceAccounts.create", times=2, **limit, details=[again])
    assert "QUOTA_EXCEEDED: Maximum number of service accounts" in run("gcp_service_account", account_id="one-too-many")["msg"]
    assert [fault["times"] for fault in google.ask("faults")] == [1]
    google.clear()
    google.fault("operation_error", "compute.networks.insert", code="RESOURCE_OPERATION_RATE_EXCEEDED", message="Too frequent operations.")
    assert run("gcp_network", name="rate")["changed"] is True
    assert run("gcp_network", name="rate", state="absent")["changed"] is True
