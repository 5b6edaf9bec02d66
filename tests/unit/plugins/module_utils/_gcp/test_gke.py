# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters and node pools: which requests lead from a live one to the desired one, and what is refused before any."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._cloud.plan import Plan
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke import reached, version_key
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_cluster import FIRST_POOL, GkeCluster
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_info import read_cluster
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_node_config import node_config
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_node_pool import GkeNodePool
from ansible_collections.muster.ml.plugins.module_utils._gcp.plan import Step
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, Google

Body = dict[str, t.Any]
CLUSTER = GkeCluster(project=PROJECT, owner="m", name="x", location="us-central1", network="n", subnetwork="s")
OURS = {"muster-owner": "m"}
LIVE: Body = {
    "name": "x",
    "status": "RUNNING",
    "network": "n",
    "subnetwork": "s",
    "networkConfig": {
        "network": f"projects/{PROJECT}/global/networks/n",
        "subnetwork": f"projects/{PROJECT}/regions/us-central1/subnetworks/s",
        "defaultEnablePrivateNodes": True,
    },
    "ipAllocationPolicy": {"useIpAliases": True, "clusterSecondaryRangeName": "pods", "stackType": "IPV4"},
    "workloadIdentityConfig": {"workloadPool": f"{PROJECT}.svc.id.goog"},
    "currentMasterVersion": "1.34.6-gke.1154000",
    "resourceLabels": OURS,
    "labelFingerprint": "l1",
    "locations": ["us-central1-a", "us-central1-b"],
    "addonsConfig": {"gcsFuseCsiDriverConfig": {}, "httpLoadBalancing": {}, "networkPolicyConfig": {"disabled": True}},
    "monitoringConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]}, "managedPrometheusConfig": {"enabled": True}},
    "maintenancePolicy": {"resourceVersion": "r1", "window": {"maintenanceExclusions": {"holidays": {"startTime": "a"}}}},
    "controlPlaneEndpointsConfig": {
        "ipEndpointsConfig": {
            "enablePublicEndpoint": True,
            "authorizedNetworksConfig": {
                "enabled": True,
                "gcpPublicCidrsAccessEnabled": True,
                "cidrBlocks": [{"cidrBlock": "203.0.113.0/24", "displayName": "office"}],
            },
        }
    },
    "nodePools": [],
}


def steps(plan: Plan) -> list[tuple[str, Body]]:
    sent = [t.cast(Step, step) for step in plan.steps]
    return [(f"{step.verb} {step.operation.removeprefix('projects.locations.clusters.')}", step.request) for step in sent]


def changed(**change: t.Any) -> list[tuple[str, Body]]:
    return steps(dataclasses.replace(CLUSTER, **change).plan(LIVE))


def update(**field: t.Any) -> tuple[str, Body]:
    return "PUT update", {"update": field}


def labels(**asked: str) -> tuple[str, Body]:
    return "POST setResourceLabels", {"resourceLabels": {**asked, **OURS}, "labelFingerprint": "l1"}


def test_the_nodes_that_gke_wants_for_a_new_cluster_are_ours() -> None:
    made = dataclasses.replace(CLUSTER, service_account="a@b", deletion_protection=True).plan(None).steps[0].request["cluster"]
    (pool,) = made["nodePools"]
    assert (pool["name"], pool["initialNodeCount"]) == (FIRST_POOL, 1)
    assert (pool["config"]["serviceAccount"], pool["config"]["resourceLabels"]) == ("a@b", OURS)
    assert made["resourceLabels"] == {"muster-protected": "true", **OURS}


def test_a_cluster_without_network_is_not_made() -> None:
    with pytest.raises(InvalidInput, match=r"GKE cluster x does not exist. To create it, network and subnetwork are needed"):
        dataclasses.replace(CLUSTER, network=None).plan(None)


def test_the_first_nodes_of_an_interrupted_run_go() -> None:
    live = {**LIVE, "nodePools": [{"name": FIRST_POOL, "config": {"resourceLabels": OURS}}]}
    ((sent, _body),) = steps(CLUSTER.plan(live))
    assert sent == "DELETE nodePools.delete"
    assert CLUSTER.state(live).stable
    going = {**LIVE, "nodePools": [{"name": FIRST_POOL, "status": "STOPPING"}]}
    assert not CLUSTER.state(going).stable, "the next run waits instead of deleting once more"
    assert CLUSTER.plan({**LIVE, "nodePools": [{"name": "default-pool", "config": {}}]}).steps == ()


@pytest.mark.parametrize(
    "alike",
    [
        {},
        {"network": f"projects/{PROJECT}/global/networks/n"},
        {"cluster_secondary_range_name": "pods"},
        {"private_nodes": True, "private_endpoint": False},
        {"node_locations": ["us-central1-b", "us-central1-a", "us-central1-b"]},
        {"addons": {"gcs_fuse_csi_driver": False, "http_load_balancing": True, "network_policy": False}},
        {"gateway_api": False},
        {"managed_prometheus": True, "monitoring_components": ["SYSTEM_COMPONENTS"]},
        {"master_authorized_networks": [{"cidr_block": "203.0.113.7/24"}]},
        {"version": "1.34"},
        {"version": "1.34.6-gke.1154000"},
        {"version": "1.33"},
        {"labels": {}},
        {"logging_components": []},
        {"deletion_protection": False},
    ],
    ids=lambda change: next(iter(change), "nothing"),
)
def test_what_google_adds_or_writes_otherwise_is_no_difference(alike: Body) -> None:
    assert changed(**alike) == []


def test_every_day_has_two_spellings() -> None:
    times = {"startTime": "2026-01-02T23:00:00Z", "endTime": "2026-01-03T05:00:00Z"}
    week = {"recurringWindow": {"window": times, "recurrence": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU"}}
    asked = {"start_time": times["startTime"], "end_time": times["endTime"], "recurrence": "FREQ=DAILY"}
    live = {**LIVE, "maintenancePolicy": {"window": week}}
    assert steps(dataclasses.replace(CLUSTER, maintenance_window=asked).plan(live)) == []
    weekly = {**asked, "recurrence": "FREQ=WEEKLY;BYDAY=SA"}
    assert len(steps(dataclasses.replace(CLUSTER, maintenance_window=weekly).plan(live))) == 1


@pytest.mark.parametrize(
    ("window", "hint"),
    [
        ({"daily_start_time": "780"}, 'as "03:00", in quotes'),  # what YAML makes of 13:00
        ({"daily_start_time": "25:00"}, 'as "03:00", in quotes'),
        ({"start_time": "2026-01-03", "end_time": "2026-01-04", "recurrence": "FREQ=DAILY"}, "as 2026-01-03T01:00:00Z"),
        ({"start_time": "at one", "end_time": "at nine", "recurrence": "FREQ=DAILY"}, "as 2026-01-03T01:00:00Z"),
    ],
)
def test_a_time_that_is_none_is_refused_in_the_plan(window: Body, hint: str) -> None:
    with pytest.raises(InvalidInput, match="maintenance_window: ") as told:
        changed(maintenance_window=window)
    assert hint in str(told.value)


def test_what_is_replaced_whole_keeps_what_nobody_spoke_of() -> None:
    ((_sent, monitoring),) = changed(managed_prometheus=False)
    assert monitoring["update"]["desiredMonitoringConfig"] == {
        "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
        "managedPrometheusConfig": {"enabled": False},
    }
    ((_sent, access),) = changed(master_authorized_networks=[])
    asked = access["update"]["desiredControlPlaneEndpointsConfig"]["ipEndpointsConfig"]
    assert asked == {"authorizedNetworksConfig": {"enabled": True, "cidrBlocks": [], "gcpPublicCidrsAccessEnabled": True}}
    ((sent, window),) = changed(maintenance_window={"daily_start_time": "03:00"})
    assert sent == "POST setMaintenancePolicy"
    assert window["maintenancePolicy"] == {
        "resourceVersion": "r1",
        "window": {"dailyMaintenanceWindow": {"startTime": "03:00"}, "maintenanceExclusions": {"holidays": {"startTime": "a"}}},
    }


def test_several_changes_go_one_after_another_the_mark_first_and_the_version_last() -> None:
    live = {**LIVE, "resourceLabels": {}}
    desired = dataclasses.replace(CLUSTER, version="1.35", release_channel="STABLE", private_endpoint=True, addons={"dns_cache": True})
    says = [step.says for step in desired.plan(live).steps]
    assert says == ["labels", "release channel", "access to the control plane", "addons", "version 1.34.6-gke.1154000 to 1.35"]
    assert all(step.wait == "stable" for step in desired.plan(live).steps)


def test_a_private_control_plane_says_all_that_google_wants_said() -> None:
    private = {"enablePublicEndpoint": False}
    networks = {"enabled": True, "gcpPublicCidrsAccessEnabled": False}
    new = dataclasses.replace(CLUSTER, private_endpoint=True).plan(None).steps[0].request["cluster"]
    assert new["controlPlaneEndpointsConfig"] == {"ipEndpointsConfig": {**private, "authorizedNetworksConfig": networks}}
    office = {"cidrBlocks": [{"cidrBlock": "203.0.113.0/24", "displayName": "office"}]}
    assert changed(private_endpoint=True) == [
        update(desiredControlPlaneEndpointsConfig={"ipEndpointsConfig": {**private, "authorizedNetworksConfig": {**networks, **office}}})
    ]


@pytest.mark.parametrize("closed", [False, True])
def test_networks_that_are_there_are_judged_with_the_address(closed: bool) -> None:
    """It is to lose its public address, with networks of the internet; or has none, and gets such networks."""
    world = {"cidrBlocks": [{"cidrBlock": "8.8.8.0/24"}]}
    ip = {"enablePublicEndpoint": False} if closed else {"enablePublicEndpoint": True, "authorizedNetworksConfig": world}
    live = {**LIVE, "controlPlaneEndpointsConfig": {"ipEndpointsConfig": ip}}
    asked = {"master_authorized_networks": [{"cidr_block": "8.8.8.0/24"}]} if closed else {"private_endpoint": True}
    with pytest.raises(InvalidInput, match=r"no client reaches it from 8\.8\.8\.0/24"):
        dataclasses.replace(CLUSTER, **asked).plan(live)
    dataclasses.replace(CLUSTER, **asked, **({"private_endpoint": False} if closed else {"master_authorized_networks": []})).plan(live)


def test_a_control_plane_does_not_leave_its_nodes_behind() -> None:
    pools = [{"name": name, "version": f"{version}.9-gke.1"} for name, version in (("a", "1.32"), ("b", "1.33"))]
    live = {**LIVE, "nodePools": pools}
    words = r"cannot be upgraded to 1.35: .* older than that: a \(1.32.9-gke.1\). Upgrade these node pools first"
    with pytest.raises(InvalidInput, match=words):
        dataclasses.replace(CLUSTER, version="1.35").plan(live)
    assert steps(dataclasses.replace(CLUSTER, version="1.35").plan({**live, "nodePools": pools[1:]})) == [
        update(desiredMasterVersion="1.35")
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"services_secondary_range_name": "s"}, "ipAllocationPolicy"),
        ({"private_endpoint": True, "private_nodes": False}, "needs private nodes"),
        (
            {"private_endpoint": True, "master_authorized_networks": [{"cidr_block": f"{ip}/8"} for ip in ("10.0.0.0", "8.0.0.0")]},
            "no public address, and no client reaches it from 8.0.0.0/8. Give master_authorized_networks ranges of networks",
        ),
        ({"master_authorized_networks": [{"cidr_block": "office"}]}, "master_authorized_networks: 'office' does not appear to be"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(change: Body, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        dataclasses.replace(CLUSTER, release_channel="STABLE", **change).plan(LIVE)


def test_a_cluster_in_error_is_made_again_if_it_is_ours_and_empty() -> None:
    live = {**LIVE, "status": "ERROR", "statusMessage": "no quota.", "nodePools": [{"name": FIRST_POOL}]}
    plan = CLUSTER.plan(live)
    assert [sent for sent, _body in steps(plan)] == ["DELETE delete", "POST create", "DELETE nodePools.delete"]
    assert plan.replaces
    for desired, pools in ((dataclasses.replace(CLUSTER, owner=None), []), (CLUSTER, [{"name": "gpu"}])):
        with pytest.raises(InvalidInput, match=r"is in ERROR and cannot be repaired: no quota\. Delete it"):
            desired.plan({**live, "nodePools": pools})


def test_a_protection_that_nobody_speaks_of_stays() -> None:
    live = {**LIVE, "resourceLabels": {**OURS, "muster-protected": "true"}}
    assert dataclasses.replace(CLUSTER, labels={}).plan(live).steps == (), "nobody spoke of the protection"
    ((_sent, request_),) = steps(dataclasses.replace(CLUSTER, deletion_protection=False).plan(live))
    assert request_["resourceLabels"] == OURS


def test_a_diff_shows_what_was_asked_for() -> None:
    plan = dataclasses.replace(CLUSTER, managed_prometheus=False).plan(LIVE)
    assert plan.before == {"monitoringConfig": {"managedPrometheusConfig": {"enabled": True}}}
    assert plan.after == {"monitoringConfig": {"managedPrometheusConfig": {"enabled": False}}}


def test_node_pools_of_others_keep_a_cluster() -> None:
    ours = {"name": "a", "config": {"resourceLabels": OURS}}
    made = {"name": "nap", "config": {}, "autoscaling": {"autoprovisioned": True}}
    assert CLUSTER.used_by({**LIVE, "nodePools": [ours, made]}) == ""
    theirs = {"name": "b", "config": {}}
    assert CLUSTER.used_by({**LIVE, "nodePools": [ours, theirs]}) == "has node pools of others (b), which would go with it"


@pytest.mark.parametrize(
    ("live", "asked", "done"),
    [("1.34.6-gke.1", "1.34", True), ("1.35.1-gke.1", "1.34", True),
     ("1.34.6-gke.1", "1.34.7", False), ("1.34.6-gke.9", "1.34.6-gke.10", False)],
)  # fmt: skip
def test_a_later_version_will_do(live: str, asked: str, done: bool) -> None:
    assert reached(live, asked) is done


def test_a_version_that_is_none_is_refused() -> None:
    assert version_key("1.34.6-gke.1154000") == (1, 34, 6, 1154000)
    with pytest.raises(InvalidInput, match=r"in quotes"):
        version_key("1.3x")


def run(google: Google, resource: GkeCluster) -> Outcome:
    mark = {"muster-owner": resource.owner} if resource.owner else {}
    options = ConvergeOptions(absent=False, check=False, mark=mark)
    return converge(resource, Api(google, FakeClock()), options, WaitOptions(wait=True, seconds=600))


def test_nobody_waits_for_upgrades_of_google_that_change_nothing() -> None:
    google = Google()
    google.things[CLUSTER.path] = {**LIVE, "status": "RECONCILING"}
    assert not run(google, CLUSTER).plan.changed
    assert len(google.asked) == 1
    with pytest.raises(WaitTimeout, match=r"GKE cluster x is not ready after 600 s. Last seen: RECONCILING"):
        run(google, dataclasses.replace(CLUSTER, labels={"a": "b"}))
    assert google.writes == []


def test_no_password_or_key_of_an_old_cluster_is_in_results_and_diffs() -> None:
    google = Google()
    secrets = {"username": "admin", "password": "CANARY", "clientKey": "CANARY", "clusterCaCertificate": "ca"}
    google.things[CLUSTER.path] = {**LIVE, "masterAuth": secrets}
    live = run(google, CLUSTER).live or {}
    assert live["masterAuth"] == {"clusterCaCertificate": "ca"}
    assert "CANARY" not in repr(read_cluster(Api(google, FakeClock()), PROJECT, "us-central1", "x", "m"))


# Node pools

POOL = GkeNodePool(
    project=PROJECT, owner="m", name="gpu", cluster_name="x", location="us-central1",
    config=node_config({"machine_type": "n1-standard-4", "accelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}),
    autoscaling={"enabled": True, "totalMinNodeCount": 0, "totalMaxNodeCount": 4},
)  # fmt: skip
TAINT = {"key": "a", "value": "b", "effect": "NO_EXECUTE"}
NODES: Body = {
    "name": "gpu",
    "status": "RUNNING",
    "version": "1.34.6-gke.1154000",
    "locations": ["us-central1-a", "us-central1-b"],
    "autoscaling": {"enabled": True, "totalMaxNodeCount": 4, "locationPolicy": "BALANCED"},
    "management": {"autoUpgrade": True},
    "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"},
    "maxPodsConstraint": {"maxPodsPerNode": "110"},
    "config": {
        "machineType": "n1-standard-4",
        "diskSizeGb": 100,
        "imageType": "COS_CONTAINERD",
        "serviceAccount": "default",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "accelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": "1", "gpuSharingConfig": {}}],
        "labels": {"goog-x": "1"},
        "taints": [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
            {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NO_SCHEDULE"},
        ],
        "resourceLabels": {"goog-gke-accelerator-type": "nvidia-tesla-t4", **OURS},
        "metadata": {"disable-legacy-endpoints": "true"},
    },
}  # fmt: skip


def with_config(**options: t.Any) -> Body:
    return {**(POOL.config or {}), **node_config(options)}


def pool_changed(live: Body | None = None, **change: t.Any) -> list[tuple[str, Body]]:
    found = steps(dataclasses.replace(POOL, **change).plan(live or NODES))
    return [(sent.replace("nodePools.", ""), body) for sent, body in found]


def test_options_become_the_config_of_the_api() -> None:
    sharing = {"gpu_sharing_strategy": "MPS", "max_shared_clients_per_gpu": 4}
    gpu = {"type": "nvidia-l4", "count": 2, "gpu_driver_version": "LATEST", "gpu_partition_size": None, "gpu_sharing_config": sharing}
    affinity = {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name", "values": ["r"]}
    found = node_config(
        {
            "machine_type": "g2-standard-24", "disk_size_gb": 200, "disk_type": None, "accelerators": [gpu], "spot": False, "gvnic": True,
            "labels": {"a": 1}, "workload_metadata": "GKE_METADATA", "reservation_affinity": affinity,
            "other": {"kubeletConfig": {"cpuManagerPolicy": "static"}, "machineType": "loses"},
        }
    )  # fmt: skip
    assert found == {
        "machineType": "g2-standard-24",
        "diskSizeGb": 200,
        "accelerators": [
            {
                "acceleratorType": "nvidia-l4",
                "acceleratorCount": 2,
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
                "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 4},
            }
        ],
        "spot": False,
        "gvnic": {"enabled": True},
        "labels": {"a": "1"},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "key": affinity["key"], "values": ["r"]},
        "kubeletConfig": {"cpuManagerPolicy": "static"},
    }


def test_a_pool_is_made_as_asked_with_the_mark_and_scopes_that_leave_it_to_roles() -> None:
    ((sent, request_),) = steps(POOL.plan(None))
    assert sent == "POST nodePools.create"
    made = request_["nodePool"]
    assert made["initialNodeCount"] == 0
    assert made["config"]["resourceLabels"] == OURS
    assert made["config"]["oauthScopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    assert not [key for key in made if "." in key or key == "nodeCount"]


@pytest.mark.parametrize(
    ("numbers", "first"),
    [
        ({"autoscaling": {"enabled": True, "minNodeCount": 2, "maxNodeCount": 3}}, 2),
        ({"autoscaling": {"enabled": True, "totalMinNodeCount": 3, "totalMaxNodeCount": 9}}, 1),
        ({"autoscaling": None, "node_count": 0}, 0),
        ({"autoscaling": None, "node_count": 2}, 2),
        ({"initial_node_count": 4}, 4),
    ],
)
def test_a_new_pool_begins_with_the_nodes_that_it_has_at_least(numbers: Body, first: int) -> None:
    ((_sent, request_),) = steps(dataclasses.replace(POOL, **numbers).plan(None))
    assert request_["nodePool"]["initialNodeCount"] == first


@pytest.mark.parametrize(
    "alike",
    [
        {},
        {"node_locations": ["us-central1-b", "us-central1-a"]},
        {"version": "1.33"},
        {"initial_node_count": 7},
        {"max_pods_per_node": 110},
        {"management": {"autoUpgrade": True, "autoRepair": False}},
        {"config": with_config(taints=[], labels={}, spot=False, tags=[])},
        {"config": with_config(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}])},
        {"config": with_config(resource_labels={}, image_type="cos_containerd")},
        {"queued_provisioning": False},
        {"placement_policy": None},
    ],
)
def test_what_gke_adds_to_a_pool_is_no_difference(alike: Body) -> None:
    assert pool_changed(**alike) == []


@pytest.mark.parametrize(
    ("change", "sent", "request_"),
    [
        ({"autoscaling": {"enabled": True, "totalMaxNodeCount": 9}}, "POST setAutoscaling",
         {"autoscaling": {"enabled": True, "totalMaxNodeCount": 9, "locationPolicy": "BALANCED"}}),
        ({"autoscaling": {"enabled": False}}, "POST setAutoscaling", {"autoscaling": {"enabled": False}}),
        ({"management": {"autoRepair": True}}, "POST setManagement", {"management": {"autoRepair": True, "autoUpgrade": True}}),
        ({"upgrade_settings": {"maxSurge": 2}}, "PUT update", {"upgradeSettings": {"maxSurge": 2, "strategy": "SURGE"}}),
        ({"upgrade_settings": {"strategy": "BLUE_GREEN"}}, "PUT update", {"upgradeSettings": {"strategy": "BLUE_GREEN"}}),
        ({"queued_provisioning": True}, "PUT update", {"queuedProvisioning": {"enabled": True}}),
        ({"config": with_config(resource_labels={"a": "b"})}, "PUT update",
         {"resourceLabels": {"labels": {"a": "b", "goog-gke-accelerator-type": "nvidia-tesla-t4", **OURS}}}),
    ],
)  # fmt: skip
def test_each_change_of_a_pool_has_its_method(change: Body, sent: str, request_: Body) -> None:
    assert pool_changed(**change) == [(sent, request_)]


def test_a_short_version_is_that_of_the_control_plane() -> None:
    """The newest 1.35 may be newer than it, and Google refuses nodes that are."""
    live = {**NODES, "_master": "1.35.1-gke.1001000"}
    assert pool_changed(live, version="1.35") == [("PUT update", {"nodeVersion": "1.35.1-gke.1001000"})]
    assert pool_changed({**live, "_master": "1.36.0-gke.1"}, version="1.35") == [("PUT update", {"nodeVersion": "1.35"})]
    assert pool_changed(live, version="1.35.1-gke.7") == [("PUT update", {"nodeVersion": "1.35.1-gke.7"})]
    for version, asked in (("1.35", None), ("1.35.1-gke.7", "1.35.1-gke.7")):
        ((_sent, request_),) = steps(dataclasses.replace(POOL, version=version).plan(None))
        assert request_["nodePool"].get("version") == asked


def test_a_number_of_nodes_ends_the_autoscaling_and_is_set() -> None:
    change = {"autoscaling": None, "node_count": 3}
    assert pool_changed({**NODES, "_nodeCount": 1}, **change) == [
        ("POST setAutoscaling", {"autoscaling": {"enabled": False}}),
        ("POST setSize", {"nodeCount": 3}),
    ]
    fixed = {key: value for key, value in NODES.items() if key != "autoscaling"}
    assert pool_changed({**fixed, "_nodeCount": [2, 3]}, **change) == [("POST setSize", {"nodeCount": 3})]
    assert pool_changed({**fixed, "_nodeCount": 3}, **change) == []
    assert pool_changed({**fixed, "_nodeCount": 0}, autoscaling=None, node_count=0) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": with_config(oauth_scopes=["x"])}, "config.oauthScopes"),
        ({"config": with_config(reservation_affinity={"consume_reservation_type": "NO_RESERVATION"})}, "config.reservationAffinity"),
        ({"node_count": 2}, "node_count and autoscaling would each change"),
        ({"autoscaling": {"enabled": True, "minNodeCount": 3, "maxNodeCount": 2}}, "minimum must not be over the maximum"),
        (
            {"config": with_config(machine_type="ct5lp-hightpu-4t"), "placement_policy": {"tpuTopology": "4x4"}},
            "by the number of each zone, and autoscaling has .*. Use min_node_count: 0 and max_node_count: 4",
        ),
        ({"version": "newest"}, "no version of GKE"),
        ({"config": with_config(taints=[{"key": "a", "value": v, "effect": "NO_EXECUTE"} for v in "bc"])}, "a:NO_EXECUTE more than once"),
    ],
)  # fmt: skip
def test_what_a_pool_cannot_be_is_refused_before_anything_is_sent(change: Body, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pool_changed(**change)


def test_totals_are_for_slices_of_one_machine() -> None:
    single = {"config": with_config(machine_type="ct5lp-hightpu-8t"), "placement_policy": {"tpuTopology": "2x4"}}
    assert steps(dataclasses.replace(POOL, **single).plan(None))


def test_a_pool_without_a_number_of_nodes_is_not_made() -> None:
    with pytest.raises(InvalidInput, match=r"autoscaling, node_count or initial_node_count is needed"):
        dataclasses.replace(POOL, autoscaling=None).plan(None)


def test_a_stock_out_names_zone_and_machine_and_what_to_try() -> None:
    told = dataclasses.replace(POOL, node_locations=["us-central1-a"]).hint(["STOCKOUT"])
    assert told.startswith("Google has no n1-standard-4 with 1 x nvidia-tesla-t4 left in us-central1-a. Try other zones")
    assert "spot: true" in told
    assert "spot" not in dataclasses.replace(POOL, config=with_config(spot=True)).hint(["STOCKOUT"])
    assert POOL.hint(["QUOTA_EXCEEDED"]) == ""
