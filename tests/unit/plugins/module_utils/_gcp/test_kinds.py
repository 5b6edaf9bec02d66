# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulator does not show of the kinds: plans as values, and APIs that were just enabled."""

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.compare import same
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import Refused
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_artifact_repository import GcpArtifactRepository
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_firewall import GcpFirewall
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_instance import GcpInstance
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_network import GcpNetwork
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_router_nat import GcpRouterNat
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_service import GcpServices
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, Google, error

MACHINE = GcpInstance(project=PROJECT, name="vm", zone="r-b", network="n", machine_type="e2-small", disk={"size_gb": 20})
LIVE: dict[str, t.Any] = {
    "name": "vm", "status": "RUNNING", "machineType": f"projects/{PROJECT}/zones/r-b/machineTypes/e2-small",
    "networkInterfaces": [{"network": f"projects/{PROJECT}/global/networks/n"}], "scheduling": {"provisioningModel": "STANDARD"},
    "_disk": {"name": "vm", "sizeGb": "20", "type": "x/pd-balanced"},
}  # fmt: skip
NETWORK = GcpNetwork(project=PROJECT, name="x")


def actions(plan: t.Any) -> list[str]:
    return [str(step) for step in plan.steps]


@pytest.mark.parametrize(("live", "desired"), [("20", 20), (1, 1.0), ("1.0", 1), (0.5, 0.5)])
def test_numbers_are_the_same_however_they_are_written(live: t.Any, desired: t.Any) -> None:
    assert same(live, desired)
    assert not same(live, desired + 1)
    assert not same("x", desired)


def test_a_disk_grows_in_place_and_does_not_shrink() -> None:
    assert actions(MACHINE.plan(LIVE)) == []
    larger = dataclasses.replace(MACHINE, disk={"size_gb": 30})
    assert actions(larger.plan(LIVE)) == ["compute:disks.resize (diskSizeGb)"]
    assert larger.plan(LIVE).steps[0].request == {"sizeGb": "30"}
    with pytest.raises(InvalidInput, match=r"Google cannot make it smaller \(10 GB\)"):
        dataclasses.replace(MACHINE, disk={"size_gb": 10}).plan(LIVE)


@pytest.mark.parametrize(
    ("status", "stable", "usable"),
    [("RUNNING", True, False), ("TERMINATED", True, False), ("SUSPENDED", True, False), ("STOPPING", False, False),
     ("PENDING_STOP", False, False), ("SUSPENDING", False, False), ("PROVISIONING", False, True), ("STAGING", False, True),
     ("REPAIRING", False, True)],
)  # fmt: skip
def test_a_machine_that_stops_is_waited_for_and_started_then(status: str, stable: bool, usable: bool) -> None:
    live = {**LIVE, "status": status}
    state = MACHINE.state(live)
    assert (state.stable, state.usable) == (stable, usable)
    if status == "SUSPENDED":
        with pytest.raises(InvalidInput, match=r"vm is suspended. Run `gcloud compute instances resume vm --zone=r-b`"):
            MACHINE.plan(live)
    else:
        assert actions(MACHINE.plan(live)) == (["compute:instances.start (start)"] if status == "TERMINATED" else [])


def test_disks_that_others_attached_stay_when_a_machine_goes() -> None:
    disks = [
        {"deviceName": "boot", "boot": True, "autoDelete": False, "type": "PERSISTENT"},
        {"deviceName": "theirs", "autoDelete": True, "type": "PERSISTENT"},
        {"deviceName": "scratch", "autoDelete": True, "type": "SCRATCH"},
    ]
    assert actions(MACHINE.plan_absent({**LIVE, "disks": disks})) == [
        "compute:instances.setDiskAutoDelete (keep disk theirs)",
        "compute:instances.delete (delete)",
    ]


def test_a_router_with_peers_is_somebody_elses_too() -> None:
    router = GcpRouterNat(project=PROJECT, name="r", region="r", network="n")
    live = {"nats": [{"name": "r"}], "bgpPeers": [{"name": "p"}]}
    plan = router.plan_absent(live)
    assert actions(plan) == ["compute:routers.patch (delete NAT r)"]
    assert "holds peer p" in plan.kept
    assert router.used_by({"bgpPeers": [{"name": "p"}]}) == "holds peer p, which this module did not make"
    assert router.used_by(live) == ""


def test_apis_are_enabled_in_as_many_requests_as_google_needs() -> None:
    wanted = GcpServices(project=PROJECT, services=[f"a{number:02}" for number in range(45)])
    steps = wanted.plan({"a00": "ENABLED"}).steps
    assert [len(step.request["serviceIds"]) for step in steps] == [20, 20, 4]
    assert not wanted.plan(dict.fromkeys(wanted.services, "ENABLED")).changed


def test_a_repository_that_holds_packages_is_data() -> None:
    repository = GcpArtifactRepository(project=PROJECT, name="x", location="l")
    api = Api(Google(), FakeClock())
    assert repository.data_at_risk(api, {"sizeBytes": "7"}) == "holds packages (7 bytes)"
    assert repository.data_at_risk(api, {}) == ""


@pytest.mark.parametrize(
    ("rows", "changed"),
    [
        ([("tcp", ["22"]), ("tcp", ["443"])], False),
        ([("6", ["443", "22"]), ("TCP", ["22"])], False),
        ([("tcp", ["22"]), ("tcp", ["443"]), ("tcp", ["80"])], True),
        ([("tcp", ["22", "443"]), ("udp", ["22"])], True),
        ([("tcp", ["22", "443"]), ("tcp", [])], True),
    ],
)
def test_several_rows_of_a_protocol_are_one_rule(rows: list[tuple[str, list[str]]], changed: bool) -> None:
    """As others may have written the rule that is adopted; and as an inventory may write it."""
    rule = GcpFirewall(
        project=PROJECT,
        name="f",
        network="n",
        allowed=[{"ip_protocol": "tcp", "ports": [22, 443]}],
        source_ranges=["10.0.0.0/8", "10.0.0.0/8"],
    )
    live = {**rule.body(), "allowed": [{"IPProtocol": protocol, "ports": ports} for protocol, ports in rows]}
    assert rule.plan(live).changed is changed
    spelled = [{"ip_protocol": protocol, "ports": ports} for protocol, ports in rows]
    again = dataclasses.replace(rule, allowed=spelled, source_ranges=["10.0.0.0/8"])
    assert again.plan(rule.body()).changed is changed


def test_all_ports_instead_of_some_are_a_change() -> None:
    rule = GcpFirewall(project=PROJECT, name="f", network="n", allowed=[{"ip_protocol": "tcp"}], source_ranges=["10.0.0.0/8"])
    live = {**rule.body(), "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}]}
    assert rule.plan(live).after == {"allowed": [{"IPProtocol": "tcp", "ports": []}]}
    assert not rule.plan({**live, "allowed": [{"IPProtocol": "tcp"}]}).changed


class Enabling(Google):
    """Service Usage knows that an API is enabled, and the API itself refuses for a while."""

    def __init__(self, state: str, refusals: int) -> None:
        super().__init__()
        self.state = state
        details = [{"reason": "SERVICE_DISABLED", "metadata": {"service": "compute.googleapis.com"}}]
        self.refusals = [("/networks", error(403, "accessNotConfigured", details=details))] * refusals

    def _get(self, path: str, _params: dict[str, t.Any]) -> tuple[int, t.Any]:
        return (200, {"state": self.state}) if "/services/" in path else super()._get(path, _params)


def go(google: Google, *, lenient: bool = False, **options: t.Any) -> t.Any:
    choices = ConvergeOptions(**{"absent": False, "check": False, **options})
    api = Api(google, FakeClock(), project=PROJECT, lenient=lenient)
    return converge(NETWORK, api, choices, WaitOptions(wait=True, seconds=600))


def test_an_api_that_was_just_enabled_is_waited_for_and_one_that_is_not_is_named_at_once() -> None:
    assert go(Enabling("ENABLED", 9)).plan.changed
    google = Enabling("DISABLED", 9)
    with pytest.raises(Refused, match=r"Enable compute\.googleapis\.com"):
        go(google)
    assert len(google.asked) == 2


def test_the_api_that_a_refusal_names_is_looked_at_and_told() -> None:
    """Another one than that of the request may be missing; and no kind has a better hint than to enable it."""
    google = Enabling("DISABLED", 0)
    said = "Cloud KMS API has not been used in project 1: https://console.developers.google.com/apis/api/cloudkms.googleapis.com/overview"
    google.refusals = [("/repositories", error(403, "forbidden", said, status="PERMISSION_DENIED"))]
    repository = GcpArtifactRepository(project=PROJECT, name="r", location="us")
    with pytest.raises(Refused) as caught:
        Api(google, FakeClock(), project=PROJECT).write("r", repository.creation())
    assert google.asked[-1] == f"GET projects/{PROJECT}/services/cloudkms.googleapis.com"
    assert str(repository.explain(caught.value)).count("Enable cloudkms.googleapis.com") == 1


def test_what_is_in_an_api_that_is_not_enabled_is_not_there() -> None:
    assert go(Enabling("DISABLED", 9), lenient=True, check=True).plan.changed
    assert not go(Enabling("DISABLED", 9), lenient=True, absent=True).plan.changed
