# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator's networks, addresses and machines, and the services that have to be enabled first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from googleapiclient.errors import HttpError

from simulators.google import clients
from simulators.google.client import NUMBER, PROJECT, Simulator
from simulators.google.reader import COMPUTE, Reader

SUBNETS = f"{COMPUTE}/regions/us-central1/subnetworks"
MACHINES = f"{COMPUTE}/zones/us-central1-a/instances"
NETWORK = f"projects/{PROJECT}/global/networks/ground"


def machine(name: str, **fields: Any) -> dict[str, Any]:
    image = "projects/debian-cloud/global/images/family/debian-12"
    return {
        "name": name, "machineType": "zones/us-central1-a/machineTypes/e2-small",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}],
        "networkInterfaces": [{"subnetwork": "regions/us-central1/subnetworks/ground"}], **fields,
    }  # fmt: skip


def test_an_api_that_is_not_enabled_says_so_and_so_it_does_just_after(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path)
    try:
        networks = clients.discovered(simulator, "compute").networks()
        with pytest.raises(HttpError) as caught:
            networks.list(project=PROJECT).execute()
        info = caught.value.error_details[0]
        assert (caught.value.status_code, info["reason"], info["domain"]) == (403, "SERVICE_DISABLED", "googleapis.com")
        assert info["metadata"]["service"] == "compute.googleapis.com"
        assert info["metadata"]["consumer"] == f"projects/{NUMBER}"
        services = clients.discovered(simulator, "serviceusage")
        operation = services.services().enable(name=f"projects/{PROJECT}/services/compute.googleapis.com").execute()
        looks = 0
        while not operation.get("done"):
            operation, looks = services.operations().get(name=operation["name"]).execute(), looks + 1
        assert looks == 2
        with pytest.raises(HttpError, match="has not been used in project"):
            networks.list(project=PROJECT).execute()
        assert "items" not in networks.list(project=PROJECT).execute()
        with pytest.raises(HttpError, match="Not found or permission denied for service"):
            services.services().enable(name=f"projects/{PROJECT}/services/nosuch.googleapis.com").execute()
    finally:
        simulator.stop()


def test_an_operation_is_over_when_it_was_looked_at_often_enough(google: Simulator) -> None:
    compute = clients.discovered(google, "compute")
    google.fault("slow", "compute.networks.insert", polls=3)
    operation = compute.networks().insert(project=PROJECT, body={"name": "slow", "autoCreateSubnetworks": False}).execute()
    seen = [operation["status"]]
    while seen[-1] != "DONE":
        seen.append(compute.globalOperations().get(project=PROJECT, operation=operation["name"]).execute()["status"])
    assert seen == ["RUNNING"] * 5 + ["DONE"]


def test_what_is_not_ready_is_refused(reader: Reader) -> None:
    reader.begin("POST", f"{COMPUTE}/global/networks", {"name": "unready", "autoCreateSubnetworks": False})
    body = {"name": "early", "network": f"projects/{PROJECT}/global/networks/unready", "ipCidrRange": "10.0.0.0/24"}
    assert reader.refused("POST", SUBNETS, body)[:2] == (400, "resourceNotReady")


def test_networks_go_last(google: Simulator, reader: Reader, ground: dict[str, str]) -> None:
    """Compute lets one ask, and its operation says that the network is in use; a subnetwork is refused at once."""
    reader.write("POST", MACHINES, machine("in-the-way"))
    done = reader.write("DELETE", f"{COMPUTE}/global/networks/ground")
    assert done["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    assert reader.get(f"{COMPUTE}/global/networks/ground")["name"] == "ground"
    assert reader.refused("DELETE", f"{SUBNETS}/ground")[:2] == (400, "resourceInUseByAnotherResource")
    reader.write("DELETE", f"{MACHINES}/in-the-way")
    assert "instances" not in google.ask("holdings")


def test_a_change_needs_the_fingerprint_that_is_there(reader: Reader, ground: dict[str, str]) -> None:
    subnet = reader.get(f"{SUBNETS}/ground")
    logs = {"logConfig": {"enable": True}}
    assert reader.refused("PATCH", f"{SUBNETS}/ground", logs)[:2] == (412, "conditionNotMet")
    reader.write("PATCH", f"{SUBNETS}/ground", {**logs, "fingerprint": subnet["fingerprint"]})
    stale = {"logConfig": {"enable": False}, "fingerprint": subnet["fingerprint"]}
    assert reader.refused("PATCH", f"{SUBNETS}/ground", stale)[:2] == (412, "conditionNotMet")
    addresses = f"{COMPUTE}/regions/us-central1/addresses"
    reader.write("POST", addresses, {"name": "labelled"})
    mark = reader.get(f"{addresses}/labelled")["labelFingerprint"]
    labels = {"labels": {"a": "1"}, "labelFingerprint": mark}
    reader.write("POST", f"{addresses}/labelled/setLabels", labels)
    assert reader.refused("POST", f"{addresses}/labelled/setLabels", labels)[:2] == (412, "conditionNotMet")


def test_external_addresses_are_of_the_network_that_was_given(tmp_path: Path) -> None:
    simulator = Simulator(tmp_path, "--addresses", "10.213.77.192/30")
    try:
        simulator.enable()
        reader = Reader(simulator)
        url = f"{COMPUTE}/regions/us-central1/addresses"
        for name in ("first", "second", "third"):
            reader.write("POST", url, {"name": name})
            assert reader.get(f"{url}/{name}")["address"] in ("10.213.77.193", "10.213.77.194")
    finally:
        simulator.stop()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"ipCidrRange": "10.0.1.0/24"}, "conflicts with existing subnetwork 'ground' in region 'us-central1'"),
        ({"ipCidrRange": "10.20.0.1/24"}, "the host part is not zero"),
        ({"ipCidrRange": "10.20.0.0/30"}, "The prefix length must be between"),
        ({"ipCidrRange": "10.20.0.0/24", "network": "global/networks/absent"}, "The referenced network resource cannot be found"),
    ],
    ids=["overlap", "host part", "small", "network"],
)  # fmt: skip
def test_ranges_fit(reader: Reader, ground: dict[str, str], body: dict[str, Any], message: str) -> None:
    status, _reason, text = reader.refused("POST", SUBNETS, {"name": "unfit", "network": NETWORK, **body})
    assert (status, message in text) == (400, True), text


def test_a_network_with_subnetworks_of_its_own_takes_others(reader: Reader) -> None:
    network = f"{COMPUTE}/global/networks/auto"
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "auto", "autoCreateSubnetworks": True})
    more = {"name": "more", "network": f"projects/{PROJECT}/global/networks/auto", "ipCidrRange": "10.200.0.0/16"}
    assert "cannot overlap with 10.128.0.0/9" in reader.refused("POST", SUBNETS, more)[2]
    reader.write("POST", SUBNETS, {**more, "ipCidrRange": "10.120.0.0/16"})
    assert "Cannot delete auto subnetwork" in reader.refused("DELETE", f"{SUBNETS}/auto")[2]
    assert reader.write("DELETE", network)["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    reader.write("DELETE", f"{SUBNETS}/more")
    reader.write("DELETE", network)
    assert reader.get(network) is None
    assert reader.get(f"{SUBNETS}/auto") is None


def nat(name: str, option: str = "LIST_OF_SUBNETWORKS", *ranges: str) -> dict[str, Any]:
    row = {"name": f"projects/{PROJECT}/regions/us-central1/subnetworks/ground", "sourceIpRangesToNat": list(ranges)}
    if "LIST_OF_SECONDARY_IP_RANGES" in ranges:
        row["secondaryIpRangeNames"] = ["pods"]
    listed = {"subnetworks": [row]} if ranges else {}
    return {"name": name, "natIpAllocateOption": "AUTO_ONLY", "sourceSubnetworkIpRangesToNat": option, **listed}


EVERY, PRIMARY, LISTED = "ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES", "LIST_OF_SUBNETWORKS"
PODS = nat("a", LISTED, "LIST_OF_SECONDARY_IP_RANGES")


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (PODS, nat("b", EVERY), f"a Nat with option {EVERY} exists"),
        (PODS, nat("b", PRIMARY), ""),
        (PODS, nat("b", LISTED, "PRIMARY_IP_RANGE"), ""),
        (PODS, nat("b", LISTED, "ALL_IP_RANGES"), "already configured for Nat"),
        (nat("a", PRIMARY), nat("b", LISTED, "PRIMARY_IP_RANGE"), "already configured for Nat"),
    ],
    ids=["every", "all primary", "primary", "whole subnetwork", "primary twice"],
)
def test_a_range_belongs_to_one_nat(
    reader: Reader, ground: dict[str, str], one: dict[str, Any], other: dict[str, Any], message: str
) -> None:
    url = f"{COMPUTE}/regions/us-central1/routers"
    router = {"name": "both", "network": NETWORK, "nats": [one, other]}
    if message:
        assert message in reader.refused("POST", url, router)[2]
        return
    reader.write("POST", url, router)
    reader.write("DELETE", f"{url}/both")


@pytest.mark.parametrize(
    "rule",
    [
        {}, {"allowed": [{"IPProtocol": "tcp"}], "denied": [{"IPProtocol": "all"}]}, {"allowed": [{"IPProtocol": "icmp", "ports": ["1"]}]},
        {"allowed": [{"IPProtocol": "tcp", "ports": ["9-1"]}]}, {"allowed": [{"IPProtocol": "tcp"}], "sourceRanges": ["10.0.0.1/8"]},
    ],
    ids=["nothing", "both", "ports of icmp", "ports reversed", "host part"],
)  # fmt: skip
def test_firewall_rules_make_sense(reader: Reader, ground: dict[str, str], rule: dict[str, Any]) -> None:
    body = {"name": "odd", "network": NETWORK, **rule}
    assert reader.refused("POST", f"{COMPUTE}/global/firewalls", body)[:2] == (400, "invalid")


def test_ranges_narrow_both_ends_and_tags_only_what_comes_in(reader: Reader, ground: dict[str, str]) -> None:
    url, allowed = f"{COMPUTE}/global/firewalls", [{"IPProtocol": "tcp"}]
    both = {"network": NETWORK, "allowed": allowed, "sourceRanges": ["10.0.0.0/8"], "destinationRanges": ["10.1.0.0/16"]}
    for direction in ("INGRESS", "EGRESS"):
        reader.write("POST", url, {"name": direction.lower(), "direction": direction, **both})
        found = reader.get(f"{url}/{direction.lower()}")
        assert (found["sourceRanges"], found["destinationRanges"]) == (["10.0.0.0/8"], ["10.1.0.0/16"])
        reader.write("DELETE", f"{url}/{direction.lower()}")
    tagged = {"name": "tagged", "network": NETWORK, "allowed": allowed, "direction": "EGRESS", "sourceTags": ["a"]}
    assert "Should not specify source tag" in reader.refused("POST", url, tagged)[2]


def test_a_machine_is_protected_and_changes_only_when_stopped(reader: Reader, ground: dict[str, str]) -> None:
    reader.write("POST", MACHINES, machine("guarded", deletionProtection=True))
    assert reader.refused("DELETE", f"{MACHINES}/guarded")[:2] == (400, "invalidResourceUsage")
    bigger = {"machineType": "zones/us-central1-a/machineTypes/e2-medium"}
    assert reader.refused("POST", f"{MACHINES}/guarded/setMachineType", bigger)[0] == 400
    reader.write("POST", f"{MACHINES}/guarded/stop")
    reader.write("POST", f"{MACHINES}/guarded/setMachineType", bigger)
    reader.write("POST", f"{MACHINES}/guarded/setDeletionProtection?deletionProtection=false")
    reader.write("DELETE", f"{MACHINES}/guarded")


def test_a_dropped_answer_is_a_network_that_is_there(google: Simulator, reader: Reader) -> None:
    google.clear()
    google.fault("drop", "compute.networks.insert")
    clients.dropped(google, "POST", f"{COMPUTE}/global/networks", {"name": "dropped", "autoCreateSubnetworks": False})
    assert google.writes() == ["compute:networks.insert"]
    assert reader.get(f"{COMPUTE}/global/networks/dropped")["name"] == "dropped"
