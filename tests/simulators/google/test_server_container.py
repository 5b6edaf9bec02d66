# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator's clusters and node pools, as google-cloud-container sees them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import container_v1
from google.cloud.container_v1 import ClusterManagerClient

from simulators.google import clients
from simulators.google.client import PROJECT, Simulator
from simulators.google.reader import GKE, Reader
from simulators.google.schema import snake

ZONE = f"projects/{PROJECT}/locations/us-central1-a"
URL = f"{GKE}/us-central1-a/clusters"
OLD = "1.33"


def cluster(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name, "network": "ground", "subnetwork": "ground", "initialNodeCount": 1,
        "ipAllocationPolicy": {
            "useIpAliases": True, "clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services",
        },
        **fields,
    }  # fmt: skip


def other(name: str, **fields: Any) -> dict[str, Any]:
    """One that can be beside it: a range for Services belongs to one cluster."""
    made = cluster(name, **fields)
    return {**made, "ipAllocationPolicy": {**made["ipAllocationPolicy"], "servicesSecondaryRangeName": "other-services"}}


@pytest.fixture
def gke(google: Simulator, monkeypatch: pytest.MonkeyPatch) -> ClusterManagerClient:
    return clients.container(google, monkeypatch)


@pytest.fixture(scope="module")
def old(reader: Reader, ground: dict[str, str]) -> str:
    """A cluster of an old version."""
    reader.write("POST", URL, {"cluster": cluster("old", initialClusterVersion=OLD)})
    return f"{ZONE}/clusters/old"


def finished(gke: ClusterManagerClient, operation: Any) -> Any:
    while operation.status != container_v1.Operation.Status.DONE:
        operation = gke.get_operation(name=f"{ZONE}/operations/{operation.name}")
    return operation


def upgrade(gke: ClusterManagerClient, name: str, **fields: Any) -> Any:
    return gke.update_cluster(request={"name": name, "update": fields})


def test_the_library_finds_a_cluster_and_misses_another(gke: ClusterManagerClient, old: str) -> None:
    found = gke.get_cluster(name=old)
    assert (found.name, found.status) == ("old", container_v1.Cluster.Status.RUNNING)
    with pytest.raises(exceptions.NotFound, match="clusters/absent"):
        gke.get_cluster(name=f"{ZONE}/clusters/absent")


def test_the_control_plane_goes_first_and_one_minor_at_a_time(gke: ClusterManagerClient, old: str) -> None:
    with pytest.raises(exceptions.BadRequest, match="must not have a greater minor version than master version"):
        upgrade(gke, old, desired_node_version="1.34", desired_node_pool_id="default-pool")
    with pytest.raises(exceptions.BadRequest, match="more than a minor version at a time"):
        upgrade(gke, old, desired_master_version="1.35")
    with pytest.raises(exceptions.BadRequest, match="minor version downgrades are not supported"):
        upgrade(gke, old, desired_master_version="1.32")
    with pytest.raises(exceptions.BadRequest, match="No valid versions with the prefix"):
        upgrade(gke, old, desired_master_version="1.99")
    finished(gke, upgrade(gke, old, desired_master_version="1.34"))
    assert gke.get_cluster(name=old).current_master_version.startswith("1.34.")
    finished(gke, upgrade(gke, old, desired_node_version="1.34", desired_node_pool_id="default-pool"))
    assert gke.get_node_pool(name=f"{old}/nodePools/default-pool").version.startswith("1.34.")


def test_nodes_stay_near_the_control_plane(gke: ClusterManagerClient, old: str, reader: Reader) -> None:
    """Two minor versions behind, or one where Google upgrades them."""
    by_hand, late = {"auto_repair": True}, f"{old}/nodePools/late"
    pool = {"name": "late", "initial_node_count": 1, "version": "1.32"}
    with pytest.raises(exceptions.BadRequest, match=r"Auto-upgrade is enabled, node version .* within one minor version"):
        gke.create_node_pool(parent=old, node_pool=pool)
    finished(gke, gke.create_node_pool(parent=old, node_pool={**pool, "management": by_hand}))
    with pytest.raises(exceptions.BadRequest, match="Auto-upgrade is enabled"):
        gke.set_node_pool_management(request={"name": late, "management": {"auto_upgrade": True}})
    channel = {"update": {"desiredReleaseChannel": {"channel": "REGULAR"}}}
    assert "Auto-upgrade is enabled" in reader.refused("PUT", f"{URL}/old", channel)[2]
    with pytest.raises(exceptions.BadRequest, match="node pools late would be more than 2 minor versions behind"):
        upgrade(gke, old, desired_master_version="1.35")
    finished(gke, gke.delete_node_pool(name=late))


def test_a_disk_is_large_enough(gke: ClusterManagerClient, old: str, reader: Reader) -> None:
    pool = {"name": "small", "initial_node_count": 0, "config": {"disk_size_gb": 11}}
    with pytest.raises(exceptions.BadRequest, match="at least 12 GB"):
        gke.create_node_pool(parent=old, node_pool=pool)
    with pytest.raises(exceptions.BadRequest, match="at least 12 GB"):
        gke.update_node_pool(request={"name": f"{old}/nodePools/default-pool", "disk_size_gb": 11})
    new = other("new", initialClusterVersion="1.36.3-gke.1480000", nodeConfig={"diskSizeGb": 14})
    assert "at least 15 GB" in reader.refused("POST", URL, {"cluster": new})[2]


def private(**networks: Any) -> dict[str, Any]:
    return {"ipEndpointsConfig": {"enablePublicEndpoint": False, **({"authorizedNetworksConfig": networks} if networks else {})}}


SHUT = {"enabled": True, "gcpPublicCidrsAccessEnabled": False}
PUBLIC = [{"cidrBlock": "8.8.8.0/24"}]


@pytest.mark.parametrize(
    ("networks", "words"),
    [
        ({}, "Master authorized networks must be enabled if private endpoint is enabled"),
        ({"enabled": True, "gcpPublicCidrsAccessEnabled": True}, "cannot be enabled if private endpoint is enabled"),
        ({**SHUT, "cidrBlocks": PUBLIC}, 'CIDR range "8.8.8.0/24" is not a reserved network'),
        ({**SHUT, "cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}]}, "is not a reserved network"),
    ],
)
def test_a_private_endpoint_has_networks_of_its_own(old: str, reader: Reader, networks: dict[str, Any], words: str) -> None:
    """Of a new cluster, and of one that is changed."""
    new = other("new", privateClusterConfig={"enablePrivateNodes": True}, controlPlaneEndpointsConfig=private(**networks))
    assert words in reader.refused("POST", URL, {"cluster": new})[2]
    change = {"update": {"desiredControlPlaneEndpointsConfig": private(**networks)}}
    assert words in reader.refused("PUT", f"{URL}/old", change)[2]
    assert reader.get(f"{URL}/old")["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]["enablePublicEndpoint"]


def test_networks_of_the_internet_wait_until_the_endpoint_is_public(old: str, reader: Reader) -> None:
    blocks = [{"cidrBlock": "10.0.0.0/8"}]
    networks = {**SHUT, "cidrBlocks": blocks}
    reader.write("PUT", f"{URL}/old", {"update": {"desiredControlPlaneEndpointsConfig": private(**networks)}})
    world = {"update": {"desiredMasterAuthorizedNetworksConfig": {"enabled": True, "cidrBlocks": PUBLIC}}}
    assert "is not a reserved network" in reader.refused("PUT", f"{URL}/old", world)[2]
    reader.write("PUT", f"{URL}/old", {"update": {"desiredEnablePrivateEndpoint": False}})
    reader.write("PUT", f"{URL}/old", world)
    found = reader.get(f"{URL}/old")["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]
    assert (found["enablePublicEndpoint"], found["authorizedNetworksConfig"]["cidrBlocks"]) == (True, PUBLIC)


def test_logs_are_told_in_the_older_way_or_the_newer(reader: Reader, old: str) -> None:
    new = other("new", loggingService="none", monitoringConfig={"managedPrometheusConfig": {"enabled": True}})
    assert "Cannot specify logging_config or monitoring_config together" in reader.refused("POST", URL, {"cluster": new})[2]


def test_one_update_at_a_time(gke: ClusterManagerClient, old: str) -> None:
    with pytest.raises(exceptions.BadRequest, match="Exactly one update"):
        upgrade(gke, old, desired_logging_service="none", desired_monitoring_service="none")
    running = upgrade(gke, old, desired_logging_service="none")
    with pytest.raises(exceptions.BadRequest, match=f"incompatible operation {running.name}"):
        upgrade(gke, old, desired_monitoring_service="none")
    finished(gke, running)


def test_etags_and_fingerprints(gke: ClusterManagerClient, old: str) -> None:
    with pytest.raises(exceptions.PreconditionFailed, match="etag"):
        upgrade(gke, old, desired_logging_service="none", etag="stale")
    mark = gke.get_cluster(name=old).label_fingerprint
    labels = {"name": old, "resource_labels": {"a": "1"}, "label_fingerprint": mark}
    finished(gke, gke.set_labels(request=labels))
    with pytest.raises(exceptions.BadRequest, match="fingerprint mismatch") as refused:
        gke.set_labels(request=labels)
    assert refused.value.response.json()["error"]["status"] == "FAILED_PRECONDITION"


def test_a_range_without_room_for_nodes_fails_in_the_operation(gke: ClusterManagerClient, old: str) -> None:
    """Four nodes with 110 pods each."""
    narrow = {**other("narrow")["ipAllocationPolicy"], "clusterIpv4CidrBlock": "/22"}
    del narrow["clusterSecondaryRangeName"]
    policy = {snake(name): value for name, value in narrow.items()}
    body = {"name": "narrow", "network": "ground", "subnetwork": "ground", "ip_allocation_policy": policy}
    name, words = f"{ZONE}/clusters/narrow", "IP space of 'projects/.*-gke-narrow-pods-.*' is exhausted"
    done = finished(gke, gke.create_cluster(parent=ZONE, cluster={**body, "initial_node_count": 5}))
    assert (done.error.code, bool(re.search(words, done.error.message))) == (8, True)
    assert gke.get_cluster(name=name).status == container_v1.Cluster.Status.ERROR
    finished(gke, gke.delete_cluster(name=name))
    finished(gke, gke.create_cluster(parent=ZONE, cluster={**body, "initial_node_count": 3}))
    done = finished(gke, gke.create_node_pool(parent=name, node_pool={"name": "more", "initial_node_count": 2}))
    assert (done.error.code, bool(re.search(words, done.error.message))) == (8, True)
    assert gke.get_node_pool(name=f"{name}/nodePools/more").status == container_v1.NodePool.Status.ERROR
    sized = {"name": f"{name}/nodePools/default-pool", "node_count": 5}
    assert finished(gke, gke.set_node_pool_size(request=sized)).error.code == 8
    assert not finished(gke, gke.set_node_pool_size(request={**sized, "node_count": 4})).error.code
    finished(gke, gke.delete_cluster(name=name))


def test_a_slice_of_several_hosts_is_sized_by_its_zone(gke: ClusterManagerClient, old: str) -> None:
    pool = {
        "name": "tpu", "config": {"machine_type": "ct5lp-hightpu-4t"}, "placement_policy": {"tpu_topology": "4x4"},
    }  # fmt: skip
    words, right = "Maximum node count 0 is not a valid size of TPU pod slice", {"enabled": True, "max_node_count": 4}
    total = {"enabled": True, "total_max_node_count": 4}
    with pytest.raises(exceptions.BadRequest, match=words):
        gke.create_node_pool(parent=old, node_pool={**pool, "autoscaling": total})
    finished(gke, gke.create_node_pool(parent=old, node_pool={**pool, "autoscaling": right}))
    with pytest.raises(exceptions.BadRequest, match=words):
        gke.set_node_pool_autoscaling(request={"name": f"{old}/nodePools/tpu", "autoscaling": total})
    finished(gke, gke.delete_node_pool(name=f"{old}/nodePools/tpu"))


def test_a_cluster_is_named_and_there_once(gke: ClusterManagerClient, old: str, reader: Reader) -> None:
    status, _reason, text = reader.refused("POST", URL, {"cluster": cluster("old")})
    assert (status, "Already exists" in text) == (409, True)
    with pytest.raises(exceptions.BadRequest, match=r"cluster\.name"):
        gke.create_cluster(parent=ZONE, cluster={"name": "Upper", "initial_node_count": 1})


def test_what_it_stands_on_stays_until_it_is_gone(google: Simulator, gke: ClusterManagerClient, old: str, reader: Reader) -> None:
    subnet = f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}/regions/us-central1/subnetworks/ground"
    assert reader.refused("DELETE", subnet)[:2] == (400, "resourceInUseByAnotherResource")
    finished(gke, gke.delete_cluster(name=old))
    assert not {"clusters", "nodePools", "instances", "disks"} & set(google.ask("holdings"))
    reader.write("DELETE", subnet)
