# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and what is in them, from nothing to nothing, as the modules make, change and delete them."""

from __future__ import annotations

from typing import Any

import pytest

from simulators.google.client import PROJECT, Simulator
from simulators.google.conftest import COMPUTE, REGION, Reader, Run

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
QUIET = {"enable": True, "metadata": "EXCLUDE_ALL_METADATA"}
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


def test_a_subnetwork_is_changed_in_the_three_ways_that_google_has(
    run: Run, changes: Run, subnet: None, reader: Reader
) -> None:
    """The first moves no fingerprint that another one needs."""
    more = {
        **SUBNET,
        "ip_cidr_range": "10.40.0.0/20",
        "secondary_ip_ranges": [
            *SUBNET["secondary_ip_ranges"],
            {"range_name": "more", "ip_cidr_range": "10.80.0.0/20"},
        ],  # type: ignore[misc]
        "private_ip_google_access": False,
        "log_config": {"enable": True, "flow_sampling": 1},
    }
    done = changes("gcp_subnetwork", **more)
    assert done["actions"] == [
        "compute:subnetworks.patch (logConfig, secondaryIpRanges)",
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


def test_a_range_that_a_cluster_uses_stays_and_the_reason_is_told(
    google: Simulator, run: Run, subnet: None, reader: Reader
) -> None:
    message = (
        "Invalid value for field 'resource.secondaryIpRanges': ''. The secondary range 'pods' is in use by cluster 'c'."
    )
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
def test_what_a_subnetwork_cannot_become_is_refused(
    google: Simulator, run: Run, subnet: None, change: dict[str, Any], told: str
) -> None:
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
        ({"log_config": QUIET}, "logConfig", QUIET),
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
        ({"source_ranges": None}, "has neither source_ranges nor source_tags, which for Google means everybody"),
        ({"source_ranges": []}, "0.0.0.0/0 admits everybody"),
        ({"allowed": None, "denied": [{"ip_protocol": "tcp"}]}, "Google cannot change what a rule does to traffic"),
        ({"direction": "EGRESS", "source_ranges": None}, "has direction 'INGRESS'; Google cannot change it to 'EGRESS'"),
        ({"target_service_accounts": ["a@b"]}, "does not take tags and target_service_accounts"),
        ({"allowed": []}, "needs either allowed or denied"),
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


# Routers with NAT


def test_a_router_has_a_nat_for_everything(changes: Run, network: None, reader: Reader) -> None:
    assert changes("gcp_router_nat", **NAT)["actions"] == ["compute:routers.insert (create)"]
    nat = reader.get(ROUTER_URL)["nats"][0]
    assert (nat["name"], nat["natIpAllocateOption"]) == ("r", "AUTO_ONLY")
    assert nat["sourceSubnetworkIpRangesToNat"] == "ALL_SUBNETWORKS_ALL_IP_RANGES"


def test_a_nat_gets_addresses_of_its_own_and_loses_them_again(
    run: Run, changes: Run, network: None, reader: Reader
) -> None:
    run("gcp_router_nat", **NAT)
    reader.write("POST", f"{COMPUTE}/regions/{REGION}/addresses", {"name": "out"})
    manual = {"nat_ip_allocate_option": "MANUAL_ONLY", "nat_ips": ["out"], "min_ports_per_vm": 128}
    assert changes("gcp_router_nat", **NAT, nat=manual)["actions"] == ["compute:routers.patch (nat)"]
    nat = reader.get(ROUTER_URL)["nats"][0]
    assert nat["natIps"][0].endswith("/addresses/out")
    changes("gcp_router_nat", **NAT, nat={"log_config": {"enable": True, "filter": "ERRORS_ONLY"}})
    nat = reader.get(ROUTER_URL)["nats"][0]
    assert ("natIps" not in nat, nat["minPortsPerVm"], nat["logConfig"]["filter"]) == (True, 128, "ERRORS_ONLY")
    reader.write("DELETE", f"{COMPUTE}/regions/{REGION}/addresses/out")


def test_other_nats_of_the_router_stay_and_keep_it(
    google: Simulator, run: Run, changes: Run, subnet: None, reader: Reader
) -> None:
    run("gcp_router_nat", **NAT, state="absent")
    rows = [{"name": "s", "source_ip_ranges_to_nat": ["PRIMARY_IP_RANGE"]}]
    listed = {"source_subnetwork_ip_ranges_to_nat": "LIST_OF_SUBNETWORKS", "subnetworks": rows}
    run("gcp_router_nat", **NAT, nat=listed)
    ours = reader.get(ROUTER_URL)["nats"][0]
    theirs = {
        "name": "theirs",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
        "subnetworks": [
            {
                "name": f"projects/{PROJECT}/regions/{REGION}/subnetworks/s",
                "sourceIpRangesToNat": ["LIST_OF_SECONDARY_IP_RANGES"],
                "secondaryIpRangeNames": ["pods"],
            }
        ],
    }
    reader.write("PATCH", ROUTER_URL, {"nats": [theirs, ours]})
    before = reader.get(ROUTER_URL)["nats"][0]
    changes("gcp_router_nat", **NAT, nat={**listed, "min_ports_per_vm": 256})
    assert reader.get(ROUTER_URL)["nats"][0] == before
    google.clear()
    gone = run("gcp_router_nat", **NAT, state="absent")
    assert gone["actions"] == ["compute:routers.patch (delete NAT r)"]
    assert "router r was kept: it holds NAT theirs, which this module did not make" in gone["kept"]
    assert [nat["name"] for nat in reader.get(ROUTER_URL)["nats"]] == ["theirs"]
    google.clear()
    again = run("gcp_router_nat", **NAT, state="absent")
    assert (again["changed"], google.attempts()) == (False, [])
    assert "holds NAT theirs" in again["kept"]
    reader.write("DELETE", ROUTER_URL)


# Everything


def test_what_is_in_a_network_keeps_it_and_all_of_it_goes_in_order(
    run: Run, changes: Run, subnet: None, rule: None
) -> None:
    run("gcp_router_nat", **NAT)
    failed = run("gcp_network", **NETWORK, state="absent")
    assert "Remove what is in the network first" in failed["msg"]
    for module, options in (
        ("gcp_firewall", RULE),
        ("gcp_router_nat", NAT),
        ("gcp_subnetwork", SUBNET),
        ("gcp_network", NETWORK),
    ):
        assert changes(module, **{**options, "state": "absent"})["actions"][0].endswith("(delete)")


def test_a_plan_of_everything_needs_nothing_to_be_there(google: Simulator, run: Run) -> None:
    """Also when not even the API is enabled: the task that enables it would have run before."""
    google.reset()
    for module, options in (
        ("gcp_network", NETWORK),
        ("gcp_subnetwork", SUBNET),
        ("gcp_firewall", RULE),
        ("gcp_router_nat", NAT),
    ):
        assert len(run(module, **options, check=True)["actions"]) == 1
        assert run(module, **{**options, "state": "absent"})["changed"] is False
    assert "Enable compute.googleapis.com, which role gcp_project does" in run("gcp_network", **NETWORK)["msg"]
    google.enable()
