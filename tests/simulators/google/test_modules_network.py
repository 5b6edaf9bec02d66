# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and what is in them, from nothing to nothing, as the modules make, change and delete them."""

from collections.abc import Callable
from typing import Any

import pytest

from simulators.google.client import PROJECT, Simulator
from simulators.google.conftest import killed
from simulators.google.reader import COMPUTE, REGION, Reader
from simulators.modules import Run

NETWORK = {"name": "n", "owner": "m"}
SUBNET = {
    "name": "s",
    "region": REGION,
    "network": "n",
    "ip_cidr_range": "10.40.0.0/22",
    "secondary_ip_ranges": [
        {"range_name": "pods", "ip_cidr_range": "10.64.0.0/14"},
        {"range_name": "services", "ip_cidr_range": "10.41.0.0/20"},
    ],
    "owner": "m",
}
RULE: dict[str, Any] = {
    "name": "f",
    "network": "n",
    "allowed": [{"ip_protocol": "tcp", "ports": ["5671", "15671"]}, {"ip_protocol": "icmp"}],
    "source_ranges": ["203.0.113.0/24", "198.51.100.7"],
    "target_tags": ["broker"],
    "owner": "m",
}
NAT = {"name": "r", "region": REGION, "network": "n", "owner": "m"}
SUBNET_URL = f"{COMPUTE}/regions/{REGION}/subnetworks/s"
RULE_URL = f"{COMPUTE}/global/firewalls/f"
ROUTER_URL = f"{COMPUTE}/regions/{REGION}/routers/r"


@pytest.fixture
def network(run: Run) -> None:
    """The network, which the tests of a file share."""
    assert not run("gcp_network", **NETWORK).get("failed")


@pytest.fixture
def subnet(run: Run, network: None) -> None:
    assert not run("gcp_subnetwork", **SUBNET).get("failed")


@pytest.fixture
def rule(run: Run, network: None) -> None:
    assert not run("gcp_firewall", **RULE).get("failed")


# Subnetworks


def test_a_subnetwork_is_made_with_its_ranges(run: Run, changes: Run, network: None, reader: Reader) -> None:
    run("gcp_subnetwork", **{**SUBNET, "state": "absent"})
    done = changes("gcp_subnetwork", **SUBNET)
    assert done["actions"] == ["compute:subnetworks.insert (create)"]
    found = reader.get(SUBNET_URL)
    assert found["description"] == "(muster-owner=m)"
    assert found["privateIpGoogleAccess"] is True
    assert {row["rangeName"]: row["ipCidrRange"] for row in found["secondaryIpRanges"]} == {
        "pods": "10.64.0.0/14",
        "services": "10.41.0.0/20",
    }


def test_a_subnetwork_is_changed_in_the_three_ways_that_google_has(run: Run, changes: Run, subnet: None, reader: Reader) -> None:
    """The first moves no fingerprint that another one needs."""
    more = {
        **SUBNET,
        "ip_cidr_range": "10.40.0.0/20",
        "secondary_ip_ranges": [*SUBNET["secondary_ip_ranges"], {"range_name": "more", "ip_cidr_range": "10.80.0.0/20"}],  # type: ignore[misc]
        "private_ip_google_access": False,
    }
    done = changes("gcp_subnetwork", **more)
    assert done["actions"] == [
        "compute:subnetworks.patch (secondaryIpRanges)",
        "compute:subnetworks.expandIpCidrRange (ipCidrRange)",
        "compute:subnetworks.setPrivateIpGoogleAccess (privateIpGoogleAccess)",
    ]
    found = reader.get(SUBNET_URL)
    assert found["ipCidrRange"] == "10.40.0.0/20"
    assert len(found["secondaryIpRanges"]) == 3
    refused = run("gcp_subnetwork", **SUBNET)
    assert "has ipCidrRange 10.40.0.0/20; Google can only widen it" in refused["msg"]
    done = changes("gcp_subnetwork", **{**more, "secondary_ip_ranges": SUBNET["secondary_ip_ranges"]})
    assert [row["rangeName"] for row in reader.get(SUBNET_URL)["secondaryIpRanges"]] == ["pods", "services"]
    run("gcp_subnetwork", **{**SUBNET, "state": "absent"})


def test_a_range_that_a_cluster_uses_stays_and_the_reason_is_told(google: Simulator, run: Run, subnet: None, reader: Reader) -> None:
    message = "Invalid value for field 'resource.secondaryIpRanges': ''. The secondary range 'pods' is in use by cluster 'c'."
    google.fault("refuse", "compute.subnetworks.patch", status=400, message=message, reason="invalid")
    refused = run("gcp_subnetwork", **{**SUBNET, "secondary_ip_ranges": []})
    assert "'pods' is in use by cluster 'c'. A secondary range goes only when no cluster uses it" in refused["msg"]
    assert len(reader.get(SUBNET_URL)["secondaryIpRanges"]) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"network": "default"}, "has network"),
        ({"ip_cidr_range": "10.99.0.0/22"}, "does not hold all of it"),
        ({"ip_cidr_range": "10.40.0.1/22"}, "10.40.0.1/22 is no address range: 10.40.0.1/22 has host bits set. Write 10.40.0.0/22"),
        ({"description": "x"}, "Google cannot change it"),
    ],
)  # fmt: skip
def test_what_a_subnetwork_cannot_become_is_refused(google: Simulator, run: Run, subnet: None, change: dict[str, Any], told: str) -> None:
    google.clear()
    refused = run("gcp_subnetwork", **{**SUBNET, **change})
    assert told in refused["msg"]
    assert google.attempts() == []


# Firewall rules


def test_a_rule_is_made_and_what_is_the_same_otherwise_spelled_is_no_difference(
    google: Simulator, run: Run, changes: Run, network: None, reader: Reader
) -> None:
    run("gcp_firewall", **{**RULE, "state": "absent"})
    assert changes("gcp_firewall", **RULE)["actions"] == ["compute:firewalls.insert (create)"]
    assert reader.get(RULE_URL)["sourceRanges"] == ["203.0.113.0/24", "198.51.100.7/32"]
    google.clear()
    again = {
        **RULE,
        "allowed": [{"ip_protocol": "1"}, {"ip_protocol": "TCP", "ports": [15671, 5671]}],
        "source_ranges": ["198.51.100.7/32", "203.0.113.0/24"],
        "network": f"projects/{PROJECT}/global/networks/n",
    }
    assert run("gcp_firewall", **again)["changed"] is False
    assert google.attempts() == []


@pytest.mark.parametrize(
    ("change", "field", "after"),
    [
        ({"allowed": [{"ip_protocol": "tcp", "ports": ["5671"]}]}, "allowed", [{"IPProtocol": "tcp", "ports": ["5671"]}]),
        ({"allowed": [{"ip_protocol": "tcp"}]}, "allowed", [{"IPProtocol": "tcp"}]),
        ({"source_ranges": ["203.0.113.0/24"]}, "sourceRanges", ["203.0.113.0/24"]),
        ({"target_tags": []}, "targetTags", None),
        ({"target_tags": ["a", "broker"]}, "targetTags", ["a", "broker"]),
        ({"priority": 0}, "priority", 0),
        ({"disabled": True}, "disabled", True),
        ({"description": "new"}, "description", "new (muster-owner=m)"),
    ],
)  # fmt: skip
def test_a_rule_becomes_what_is_asked_for_also_when_that_is_less(
    changes: Run, rule: None, reader: Reader, change: dict[str, Any], field: str, after: Any
) -> None:
    assert changes("gcp_firewall", **{**RULE, **change})["actions"] == [f"compute:firewalls.patch ({field})"]
    assert reader.get(RULE_URL).get(field) == after


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"source_ranges": None}, "has no source_ranges, which for Google means every address"),
        ({"source_ranges": []}, "0.0.0.0/0 admits every address"),
        ({"allowed": []}, "needs allowed, with at least one protocol"),
        ({"source_ranges": ["everybody"]}, "is no address range"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_or_that_admits_everybody_by_itself_is_refused(
    google: Simulator, run: Run, rule: None, change: dict[str, Any], told: str
) -> None:
    google.clear()
    assert told in run("gcp_firewall", **{**RULE, **change})["msg"]
    assert google.attempts() == []


def test_a_rule_of_somebody_else_is_left_alone_and_taken_over_when_asked_for(
    google: Simulator, run: Run, changes: Run, rule: None, reader: Reader
) -> None:
    run("gcp_firewall", **{**RULE, "state": "absent"})
    run("gcp_firewall", **{**RULE, "owner": None})
    google.clear()
    assert "does not carry the mark muster-owner=m" in run("gcp_firewall", **RULE)["msg"]
    assert "does not have the mark" in run("gcp_firewall", **{**RULE, "state": "absent"})["kept"]
    assert google.attempts() == []
    changes("gcp_firewall", **RULE, adopt=True)
    assert reader.get(RULE_URL)["description"] == "(muster-owner=m)"


def test_what_a_cluster_of_another_region_has_for_the_whole_project_is_left_alone(left_alone: Callable[..., None], network: None) -> None:
    """Its name is the same, and so are those of what it has."""
    left_alone("gcp_network", name="shared")
    left_alone("gcp_firewall", **{**RULE, "name": "shared"})
    left_alone("gcp_address", name="shared")


# Routers with NAT


def test_a_router_has_a_nat_for_everything(changes: Run, network: None, reader: Reader) -> None:
    assert changes("gcp_router_nat", **NAT)["actions"] == ["compute:routers.insert (create)"]
    nat = reader.get(ROUTER_URL)["nats"][0]
    assert (nat["name"], nat["natIpAllocateOption"]) == ("r", "AUTO_ONLY")
    assert nat["sourceSubnetworkIpRangesToNat"] == "ALL_SUBNETWORKS_ALL_IP_RANGES"


def test_a_router_whose_nat_is_of_another_client_stays(google: Simulator, run: Run, subnet: None, reader: Reader) -> None:
    run("gcp_router_nat", **NAT)
    theirs = {
        "name": "theirs",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
        "subnetworks": [{"name": f"projects/{PROJECT}/regions/{REGION}/subnetworks/s", "sourceIpRangesToNat": ["PRIMARY_IP_RANGE"]}],
    }
    reader.write("PATCH", ROUTER_URL, {"nats": [theirs]})
    google.clear()
    again = run("gcp_router_nat", **NAT, state="absent")
    assert (again["changed"], google.attempts()) == (False, [])
    assert "holds NAT theirs" in again["kept"]
    reader.write("DELETE", ROUTER_URL)


# Addresses and machines

ADDRESS = {"name": "a", "region": REGION, "owner": "m"}
ADDRESS_URL = f"{COMPUTE}/regions/{REGION}/addresses/a"
ZONE = f"{REGION}-b"
MACHINE: dict[str, Any] = {
    "name": "vm",
    "zone": ZONE,
    "machine_type": "e2-standard-2",
    "disk": {"size_gb": 20, "type": "pd-balanced", "source_image": "projects/debian-cloud/global/images/family/debian-12"},
    "network": "n",
    "subnetwork": "s",
    "address": "a",
    "tags": ["broker"],
    "metadata": {"enable-oslogin": "FALSE"},
    "owner": "m",
}
VM_URL = f"{COMPUTE}/zones/{ZONE}/instances/vm"
DISK_URL = f"{COMPUTE}/zones/{ZONE}/disks/vm"


@pytest.fixture
def machine(run: Run, subnet: None) -> None:
    run("gcp_address", **ADDRESS)
    done = run("gcp_instance", **MACHINE)
    assert not done.get("failed"), done["msg"]


def end_of_operations(reader: Reader) -> None:
    """The simulator's go on only while somebody looks at them; Google's do anyway."""
    for row in reader.get(f"{COMPUTE}/regions/{REGION}/operations").get("items", []):
        while reader.get(row["selfLink"])["status"] != "DONE":
            pass


def test_an_address_gets_its_labels_by_a_second_request(run: Run, changes: Run, reader: Reader) -> None:
    run("gcp_address", **ADDRESS, state="absent")
    done = changes("gcp_address", **ADDRESS, labels={"team": "ml"})
    assert done["actions"] == ["compute:addresses.insert (create)", "compute:addresses.setLabels (labels)"]
    assert reader.get(ADDRESS_URL)["labels"] == {"team": "ml", "muster-owner": "m"}
    assert done["address"]["address"]
    assert "has addressType 'EXTERNAL'; Google" in run("gcp_address", **ADDRESS, address_type="INTERNAL")["msg"]
    changes("gcp_address", **ADDRESS, labels={})


def test_an_address_without_a_region_is_global(run: Run, changes: Run, reader: Reader) -> None:
    """A global load balancer takes no other one, and another region's of the same name is another address."""
    wide = {"name": "a", "owner": "m"}
    done = changes("gcp_address", **wide, labels={"team": "ml"})
    assert done["actions"] == ["compute:globalAddresses.insert (create)", "compute:globalAddresses.setLabels (labels)"]
    found = reader.get(f"{COMPUTE}/global/addresses/a")
    assert (found["labels"], found["addressType"]) == ({"team": "ml", "muster-owner": "m"}, "EXTERNAL")
    for wrong in ({"address_type": "INTERNAL"}, {"network_tier": "STANDARD"}, {"subnetwork": "s"}):
        assert "is global, so it is external and of the tier PREMIUM. Set region" in run("gcp_address", **wide, **wrong)["msg"]
    assert "does not have the mark" in run("gcp_address", name="a", owner="x", state="absent")["kept"]
    assert changes("gcp_address", **wide, state="absent")["actions"] == ["compute:globalAddresses.delete (delete)"]


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("at", [1, 2])
def test_a_run_killed_between_the_two_requests_is_taken_up(
    run: Run, reader: Reader, monkeypatch: pytest.MonkeyPatch, at: int, answered: bool
) -> None:
    run("gcp_address", **ADDRESS, state="absent")
    with monkeypatch.context() as patched:
        killed(patched, at, answered=answered)
        with pytest.raises(KeyboardInterrupt):
            run("gcp_address", **ADDRESS)
    end_of_operations(reader)
    assert not run("gcp_address", **ADDRESS).get("failed")
    assert reader.get(ADDRESS_URL)["labels"] == {"muster-owner": "m"}
    assert run("gcp_address", **ADDRESS)["changed"] is False


def test_a_machine_is_made_with_its_disk_and_address(run: Run, changes: Run, subnet: None, reader: Reader) -> None:
    run("gcp_address", **ADDRESS)
    done = changes("gcp_instance", **MACHINE, labels={"team": "ml"})
    assert done["actions"] == ["compute:instances.insert (create)"]
    found = reader.get(VM_URL)
    address = reader.get(ADDRESS_URL)["address"]
    assert found["networkInterfaces"][0]["accessConfigs"][0]["natIP"] == address
    assert found["disks"][0]["autoDelete"] is False
    assert reader.get(DISK_URL)["labels"] == {"team": "ml", "muster-owner": "m"}


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({"labels": {"team": "x"}}, "setLabels (labels)"),
        ({"metadata": {"a": "1"}}, "setMetadata (metadata)"),
        ({"metadata": {}}, "setMetadata (metadata)"),
        ({"tags": ["broker", "more"]}, "setTags (tags)"),
        ({"tags": []}, "setTags (tags)"),
    ],
)  # fmt: skip
def test_a_running_machine_is_changed(changes: Run, machine: None, change: dict[str, Any], action: str) -> None:
    assert changes("gcp_instance", **{**MACHINE, **change})["actions"] == [f"compute:instances.{action}"]


def test_the_host_keys_of_a_machine_are_those_that_it_published(google: Simulator, run: Run, machine: None) -> None:
    """What is no key of SSH would end up in a command line; none at all is told, not taken for a machine without keys."""
    asked = {"name": "vm", "zone": ZONE, "wait_timeout": 1}
    none = run("gcp_host_keys_info", **asked)["msg"]
    assert "Google machine vm has not published its host keys after 1 s. Last seen: there are none." in none
    assert "enable-guest-attributes=TRUE" in none
    run("gcp_instance", **{**MACHINE, "metadata": {"enable-guest-attributes": "TRUE"}})
    first = run("gcp_host_keys_info", **asked)["host_keys"]
    assert [key.split()[0] for key in first] == ["ssh-ed25519"]
    keys = {"ssh-rsa": "AAAAB3NzaC1yc2E=", "ssh-dss": "A' -o ProxyCommand=id", "a b": "AAAA"}
    google.ask("guest", {"vm": {f"hostkeys/{kind}": key for kind, key in keys.items()}})
    assert run("gcp_host_keys_info", **asked)["host_keys"] == ["ssh-rsa AAAAB3NzaC1yc2E="]


def test_a_machine_moves_to_another_address(run: Run, changes: Run, machine: None, reader: Reader) -> None:
    run("gcp_address", **{**ADDRESS, "name": "other"})
    done = changes("gcp_instance", **{**MACHINE, "address": "other"})
    assert done["actions"] == [
        "compute:instances.deleteAccessConfig (take the address away)",
        "compute:instances.addAccessConfig (give the address)",
    ]
    changes("gcp_instance", **MACHINE)
    assert reader.get(f"{COMPUTE}/regions/{REGION}/addresses/other")["status"] == "RESERVED"
    run("gcp_address", **{**ADDRESS, "name": "other"}, state="absent")


def test_what_changes_at_rest_is_refused_while_it_runs_and_then_done(
    google: Simulator, run: Run, changes: Run, machine: None, reader: Reader
) -> None:
    wanted = {**MACHINE, "machine_type": "e2-standard-4", "spot": True}
    google.clear()
    refused = run("gcp_instance", **wanted)
    assert "runs, and Google changes machineType of a stopped machine only. Stop it (gcloud compute" in refused["msg"]
    assert google.attempts() == []
    reader.write("POST", f"{VM_URL}/stop")
    assert changes("gcp_instance", **wanted)["actions"] == [
        "compute:instances.setMachineType (machineType)",
        "compute:instances.setScheduling (scheduling)",
        "compute:instances.start (start)",
    ]
    assert reader.get(VM_URL)["status"] == "RUNNING"
    reader.write("POST", f"{VM_URL}/stop")
    changes("gcp_instance", **MACHINE)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"disk": {"size_gb": 10}}, "has a disk of 20 GB; Google cannot make it smaller (10 GB)"),
        ({"disk": {"type": "pd-ssd"}}, "has diskType 'pd-balanced'; Google cannot change it to 'pd-ssd'"),
        ({"network": "other", "subnetwork": None}, "has network"),
        ({"address": "nothing"}, "does not exist in us-central1. Create it first, by gcp_address"),
    ],
)
def test_what_a_machine_cannot_become_is_refused(google: Simulator, run: Run, machine: None, change: dict[str, Any], told: str) -> None:
    google.clear()
    assert told in run("gcp_instance", **{**MACHINE, **change})["msg"]
    assert google.attempts() == []


def test_a_disk_outlives_its_machine_and_is_used_again(google: Simulator, run: Run, changes: Run, machine: None, reader: Reader) -> None:
    disk = reader.get(DISK_URL)["id"]
    done = changes("gcp_instance", **MACHINE, state="absent")
    assert done["actions"] == ["compute:instances.delete (delete)"]
    assert "disk vm was kept: it holds the data of the machine (20 GB)" in done["kept"]
    assert "delete_data: true deletes it" in done["kept"]
    changes("gcp_instance", **MACHINE)
    assert (reader.get(DISK_URL)["id"], reader.get(VM_URL)["disks"][0]["source"][-9:]) == (disk, "/disks/vm")
    reader.write("POST", f"{VM_URL}/setDiskAutoDelete?autoDelete=true&deviceName=persistent-disk-0")
    done = changes("gcp_instance", **MACHINE, state="absent", delete_data=True)
    assert done["actions"] == [
        "compute:instances.setDiskAutoDelete (keep disk persistent-disk-0)",
        "compute:instances.delete (delete)",
        "compute:disks.delete (delete)",
    ]
    assert reader.get(DISK_URL) is None


def test_a_zone_without_machines_is_told(google: Simulator, run: Run, subnet: None, reader: Reader) -> None:
    run("gcp_address", **ADDRESS)
    google.fault("stock_out", "compute.instances.insert")
    failed = run("gcp_instance", **MACHINE)
    assert "does not have enough resources available" in failed["msg"]
    assert "try another zone" in failed["msg"]
    assert not run("gcp_instance", **MACHINE).get("failed")


def test_a_machine_and_a_disk_of_somebody_else_are_left_alone(google: Simulator, run: Run, machine: None, reader: Reader) -> None:
    google.clear()
    other = {**MACHINE, "owner": "other"}
    assert "does not have the mark" in run("gcp_instance", **other, state="absent", delete_data=True)["kept"]
    assert google.attempts() == []
    run("gcp_instance", **MACHINE, state="absent")
    assert "there is one that does not carry the label muster-owner=other" in run("gcp_instance", **other)["msg"]
    assert "disk vm was kept" in run("gcp_instance", **other, state="absent", delete_data=True)["kept"]
    run("gcp_instance", **MACHINE, state="absent", delete_data=True)
    run("gcp_address", **ADDRESS, state="absent")


# Everything


def test_what_is_in_a_network_keeps_it_and_all_of_it_goes_in_order(run: Run, changes: Run, subnet: None, rule: None) -> None:
    run("gcp_router_nat", **NAT)
    failed = run("gcp_network", **NETWORK, state="absent", wait_timeout=60)
    assert "is busy or still in use after 60 s" in failed["msg"]
    for module, options in (("gcp_firewall", RULE), ("gcp_router_nat", NAT), ("gcp_subnetwork", SUBNET), ("gcp_network", NETWORK)):
        assert changes(module, **{**options, "state": "absent"})["actions"][0].endswith("(delete)")


def test_the_rules_of_a_network_and_an_owner_are_listed_as_patiently_as_anything_is_read(google: Simulator, run: Run, rule: None) -> None:
    run("gcp_firewall", **{**RULE, "name": "theirs", "owner": "other"})
    google.fault("throttle", "compute.firewalls.list", times=5)
    google.fault("throttle", "compute.firewalls.list", times=5, status=503)
    found = run("gcp_firewall_info", network="n", owner="m")
    assert ([one["name"] for one in found["firewalls"]], found["changed"]) == (["f"], False)
    assert sorted(one["name"] for one in run("gcp_firewall_info", network="n")["firewalls"]) == ["f", "theirs"]
    assert run("gcp_firewall_info", network="none")["firewalls"] == []
    run("gcp_firewall", **{**RULE, "name": "theirs", "owner": "other", "state": "absent"})


def test_a_plan_of_everything_needs_nothing_to_be_there(google: Simulator, run: Run) -> None:
    """Also when not even the API is enabled: the task that enables it would have run before."""
    google.reset()
    for module, options in (("gcp_network", NETWORK), ("gcp_subnetwork", SUBNET), ("gcp_firewall", RULE), ("gcp_router_nat", NAT)):
        assert len(run(module, **options, check=True)["actions"]) == 1
        assert run(module, **{**options, "state": "absent"})["changed"] is False
    assert "Enable compute.googleapis.com, which role gcp_project does" in run("gcp_network", **NETWORK)["msg"]
    google.enable()
