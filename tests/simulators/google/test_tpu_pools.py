# SPDX-License-Identifier: GPL-3.0-or-later
"""Node pools of TPUs: every row of the table, as the simulated Google has it, from its type and topology alone."""

import math
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.filter.gke_tpu_pools import gke_tpu_pools
from ansible_collections.muster.ml.plugins.module_utils._gcp.tpu_slices import GENERATIONS
from simulators.google.catalogue import TPUS, region_of
from simulators.google.client import PROJECT, Simulator
from simulators.google.reader import COMPUTE, GKE, Reader, cluster
from simulators.modules import Run

Body = dict[str, Any]
# Of each generation a zone that has it, in two regions.
ZONES = {"v4": "us-central2-b", "v5e": "us-central1-a", "v5p": "us-central1-a", "v6e": "us-central1-b", "tpu7x": "us-central1-c"}
KINDS = {generation.accelerator: name for name, generation in GENERATIONS.items()}
ROWS = [(KINDS[tpu.accelerator], topology, machine) for machine, tpu in TPUS.items() for topology in (*tpu.one_host, *tpu.hosts)]


@pytest.fixture(scope="module")
def regions(reader: Reader) -> list[str]:
    """A cluster in each of the regions."""
    found = sorted({region_of(zone) for zone in ZONES.values()})
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "tpus", "autoCreateSubnetworks": False})
    for number, region in enumerate(found):
        reader.subnetwork(
            region, region, "tpus", f"10.{number}.0.0/22", pods=f"10.{100 + 4 * number}.0.0/14", services=f"10.{number}.16.0/20"
        )
        zones = sorted({zone for zone in ZONES.values() if region_of(zone) == region})
        pool = {"workloadPool": f"{PROJECT}.svc.id.goog"}
        body = cluster("tpus", "tpus", region, initialNodeCount=1, locations=zones, workloadIdentityConfig=pool)
        reader.write("POST", f"{GKE}/{region}/clusters", body)
    return found


@pytest.fixture(scope="module")
def policies(reader: Reader) -> None:
    """Workload policies, as gcloud makes them, by the names of their topologies."""
    for topology in next(tpu.hosts for tpu in TPUS.values() if tpu.workload_policy):
        policy = {"name": f"of-{topology}", "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": topology}}
        reader.write("POST", f"{COMPUTE}/regions/us-central1/resourcePolicies", policy)


def pool(row: Body) -> Body:
    """What module gke_node_pool is given for a row of the inventory."""
    (made,) = gke_tpu_pools([row], 3)
    return {"cluster_name": "tpus", "location": region_of(row["node_locations"][0]), "owner": "tpus", **made}


def row_of(kind: str, topology: str, **config: Any) -> Body:
    return {"name": "tpu", "tpu": {"type": kind, "topology": topology}, "config": config, "node_locations": [ZONES[kind]]}


def test_the_table_has_all_sorts() -> None:
    assert {kind for kind, _topology, _machine in ROWS} == set(GENERATIONS)
    assert len(ROWS) > 35


# Shows row 003.16.
@pytest.mark.parametrize(("kind", "topology", "machine"), ROWS)
def test_every_row_of_the_table_is_a_pool(
    regions: list[str], policies: None, changes: Run, reader: Reader, kind: str, topology: str, machine: str
) -> None:
    """Made as planned, read back, again no change; with no node at first, and room for all of the slice."""
    several = machine.endswith("8t")  # 2x4 has two sorts of machines; the one that is not said is the other
    hosts = math.prod(int(side) for side in topology.split("x")) // TPUS[machine].chips
    named = {"policyName": f"of-{topology}"} if TPUS[machine].workload_policy else {"type": "COMPACT"}
    policy = {"placement_policy": {"policy_name": named["policyName"]}} if "policyName" in named and hosts > 1 else {}
    made = pool({**row_of(kind, topology, **({"machine_type": machine} if several else {})), **policy})
    changes("gke_node_pool", **made)
    found = reader.get(f"{GKE}/{made['location']}/clusters/tpus/nodePools/tpu")
    assert found["config"]["machineType"] == machine
    assert found.get("placementPolicy") == ({**named, "tpuTopology": topology} if hosts > 1 else None)
    assert found["locations"] == [ZONES[kind]]
    assert (found.get("initialNodeCount", 0), found["autoscaling"]["maxNodeCount"]) == (0, hosts)
    assert {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"} in found["config"]["taints"]
    changes("gke_node_pool", **made, state="absent")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"placement_policy": {"type": "COMPACT", "tpu_topology": "3x3"}}, 'TPU topology "3x3" is invalid'),
        ({"config": {"machine_type": "ct5lp-hightpu-8t"}}, 'TPU topology "4x4" is invalid'),
        ({"autoscaling": {"enabled": True, "min_node_count": 0, "max_node_count": 16}}, "Maximum node count 16 is not a valid size"),
        ({"node_locations": ["us-central1-a", "us-central1-b"]}, "us-central1-b"),
    ],
)  # fmt: skip
def test_the_rows_that_the_filter_refuses_would_be_refused_by_google(
    regions: list[str], run: Run, reader: Reader, more: Body, words: str
) -> None:
    """Without the filter: the arithmetic is Google's, and not ours alone."""
    done = run("gke_node_pool", **{**pool(row_of("v5e", "4x4")), **more})
    assert done["failed"]
    assert words in done["msg"]
    assert reader.get(f"{GKE}/us-central1/clusters/tpus/nodePools/tpu") is None


@pytest.mark.parametrize("policy", [{"type": "COMPACT"}, {"policy_name": "of-2x2x4"}, {"type": "COMPACT", "policy_name": "of-2x2x2"}])
def test_a_slice_of_tpu7x_without_its_workload_policy_ends_in_error(regions: list[str], policies: None, run: Run, policy: Body) -> None:
    """Without the filter, in the words of Compute Engine."""
    made = pool({**row_of("tpu7x", "2x2x2"), "placement_policy": {"policy_name": "of-2x2x2"}})
    done = run("gke_node_pool", **{**made, "placement_policy": {"tpu_topology": "2x2x2", **policy}})
    assert "with placement policy is not supported. Use workload policy instead" in done["msg"]
    assert not run("gke_node_pool", **made, state="absent").get("failed")


def test_a_compact_placement_of_tpu7x_is_refused() -> None:
    """So is none, with the command that makes its policy."""
    with pytest.raises(AnsibleFilterError, match="workload-policy NAME --type=HIGH_THROUGHPUT --accelerator-topology=2x2x2"):
        pool(row_of("tpu7x", "2x2x2"))
    with pytest.raises(AnsibleFilterError, match="placed by a workload policy, and placement_policy has type COMPACT"):
        pool({**row_of("tpu7x", "2x2x2"), "placement_policy": {"type": "COMPACT", "policy_name": "mine"}})


def test_a_pool_may_be_spot_reserved_or_queued(regions: list[str], changes: Run, reader: Reader, google: Simulator) -> None:
    """What the inventory offers besides type and topology; queued provisioning and a reservation exclude each other."""
    reserved = {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name", "values": ["mine"]}
    for config, queued in (
        ({"spot": True}, None),
        ({"reservation_affinity": reserved}, None),
        ({"reservation_affinity": {"consume_reservation_type": "NO_RESERVATION"}}, True),
    ):
        made = pool({**row_of("v5p", "2x2x2", **config), **({"queued_provisioning": queued} if queued else {})})
        changes("gke_node_pool", **made)
        found = reader.get(f"{GKE}/us-central1/clusters/tpus/nodePools/tpu")
        assert found["config"].get("spot", False) is config.get("spot", False)
        affinity = config.get("reservation_affinity", {}).get("consume_reservation_type")
        assert (found["config"].get("reservationAffinity") or {}).get("consumeReservationType") == affinity
        assert (found.get("queuedProvisioning") or {}).get("enabled") == queued
        changes("gke_node_pool", **made, state="absent")
