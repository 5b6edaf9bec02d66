# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of clusters and node pools: made, changed in every way, deleted. Google's API reads back what the modules say they did."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from simulators.google.client import PROJECT, Simulator
from simulators.google.conftest import killed
from simulators.google.reader import COMPUTE, GKE, REGION, Reader, cluster
from simulators.modules import Run

Body = dict[str, Any]
NAME = "ground"
CLUSTER = f"{GKE}/{REGION}/clusters/{NAME}"
CLUSTERS = "container.projects.locations.clusters"
CREATE = "container:projects.locations.clusters.nodePools.create (create)"
OWNER = {"owner": NAME}
GROUND: Body = {"name": NAME, "location": REGION, **OWNER}
OURS = {"muster-owner": NAME}
SCOPES = "https://www.googleapis.com/auth"
ZONES = [f"{REGION}-a", f"{REGION}-b"]


def cluster_of(ground: dict[str, str], **more: Any) -> Body:
    return {
        **GROUND,
        **ground,
        "release_channel": "REGULAR",
        "version": "1.34",
        "private_nodes": True,
        "master_authorized_networks": [{"cidr_block": "203.0.113.0/24", "display_name": "office"}],
        "node_locations": ZONES,
        "addons": {"gcs_fuse_csi_driver": True, "gcp_filestore_csi_driver": False},
        "labels": {"team": "ml"},
        **more,
    }


def other_cluster(ground: dict[str, str], name: str) -> Body:
    """Another one beside it; two clusters cannot have one range for Services."""
    return {**cluster_of(ground), "name": name, "owner": name, "services_secondary_range_name": "other-services"}


def test_a_network_has_a_life_of_its_own(changes: Run, run: Run, reader: Reader) -> None:
    network = {"name": "life", "routing_mode": "REGIONAL", "owner": "t"}
    made = changes("gcp_network", **network, auto_create_subnetworks=True)
    assert made["actions"] == ["compute:networks.insert (create)"]
    assert made["network"]["description"] == "(muster-owner=t)"
    changes("gcp_network", **{**network, "routing_mode": "GLOBAL"}, mtu=8896)
    found = reader.get(f"{COMPUTE}/global/networks/life")
    assert (found["routingConfig"]["routingMode"], found["mtu"], found["autoCreateSubnetworks"]) == ("GLOBAL", 8896, False)
    assert "Google cannot change it" in run("gcp_network", **network, description="new")["msg"]
    assert "Google cannot turn that back" in run("gcp_network", **network, auto_create_subnetworks=True)["msg"]
    assert "does not have the mark" in run("gcp_network", name="life", owner="other", state="absent")["kept"]


def test_a_cluster_is_made(changes: Run, reader: Reader, ground: dict[str, str]) -> None:
    done = changes("gke_cluster", **cluster_of(ground))
    assert done["actions"] == [
        "container:projects.locations.clusters.create (create)",
        "container:projects.locations.clusters.nodePools.delete (delete the nodes that GKE wants for a new cluster)",
    ]
    assert done["diff"]["before"] == {}
    assert done["cluster"]["status"] == "RUNNING"
    assert done["cluster"]["endpoint"]
    found = reader.get(CLUSTER)
    assert found.get("nodePools", []) == []
    assert found["workloadIdentityConfig"] == {"workloadPool": f"{PROJECT}.svc.id.goog"}
    assert found["networkConfig"]["defaultEnablePrivateNodes"] is True
    assert found["resourceLabels"] == {"team": "ml", **OURS}
    assert found["currentMasterVersion"].startswith("1.34.")


def networks(cluster: Body) -> Any:
    return cluster["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]["authorizedNetworksConfig"].get("cidrBlocks", [])


def components(cluster: Body, field: str) -> Any:
    return cluster[field]["componentConfig"].get("enableComponents", [])


def window(cluster: Body) -> Any:
    return cluster["maintenancePolicy"]["window"]


SYSTEM = ["SYSTEM_COMPONENTS"]
WEEKEND = {"start_time": "2026-01-03T01:00:00Z", "end_time": "2026-01-03T13:00:00Z", "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}
# The first as Ansible writes what YAML read as a time.
NIGHTS = {"start_time": "2026-01-02 23:00:00+00:00", "end_time": "2026-01-03T07:00:00+02:00", "recurrence": "FREQ=DAILY"}


@pytest.mark.parametrize(
    ("change", "read", "expected"),
    [
        ({"release_channel": "STABLE"}, lambda c: c["releaseChannel"]["channel"], "STABLE"),
        ({"version": "1.35"}, lambda c: c["currentMasterVersion"][:5], "1.35."),
        ({"release_channel": "UNSPECIFIED"}, lambda c: c.get("releaseChannel", {}).get("channel"), None),
        ({"master_authorized_networks": [{"cidr_block": "198.51.100.7/32"}]}, networks, [{"cidrBlock": "198.51.100.7/32"}]),
        ({"master_authorized_networks": []}, networks, []),
        ({"private_endpoint": True}, lambda c: c["privateClusterConfig"]["enablePrivateEndpoint"], True),
        ({"private_nodes": False, "private_endpoint": False}, lambda c: c["networkConfig"]["defaultEnablePrivateNodes"], False),
        ({"workload_identity": False}, lambda c: c.get("workloadIdentityConfig", {}), {}),
        ({"addons": {"gcp_filestore_csi_driver": True}}, lambda c: c["addonsConfig"]["gcpFilestoreCsiDriverConfig"]["enabled"], True),
        ({"addons": {"http_load_balancing": False}}, lambda c: c["addonsConfig"]["httpLoadBalancing"]["disabled"], True),
        ({"gateway_api": True}, lambda c: c["networkConfig"]["gatewayApiConfig"]["channel"], "CHANNEL_STANDARD"),
        ({"managed_prometheus": False}, lambda c: c["monitoringConfig"].get("managedPrometheusConfig", {}), {}),
        ({"logging_components": SYSTEM}, lambda c: components(c, "loggingConfig"), SYSTEM),
        ({"logging_components": []}, lambda c: components(c, "loggingConfig"), []),
        ({"monitoring_components": [*SYSTEM, "DCGM"]}, lambda c: components(c, "monitoringConfig"), [*SYSTEM, "DCGM"]),
        ({"maintenance_window": {"daily_start_time": "03:00"}}, lambda c: window(c)["dailyMaintenanceWindow"]["startTime"], "03:00"),
        ({"maintenance_window": WEEKEND}, lambda c: window(c)["recurringWindow"]["recurrence"], WEEKEND["recurrence"]),
        ({"maintenance_window": NIGHTS}, lambda c: window(c)["recurringWindow"]["window"],
         {"startTime": "2026-01-02T23:00:00Z", "endTime": "2026-01-03T05:00:00Z"}),
        ({"maintenance_window": {"daily_start_time": "4:00"}}, lambda c: window(c)["dailyMaintenanceWindow"]["startTime"], "04:00"),
        ({"maintenance_window": {}}, lambda c: c["maintenancePolicy"].get("window", {}), {}),
        ({"node_locations": [*ZONES, f"{REGION}-c"]}, lambda c: c["locations"], [*ZONES, f"{REGION}-c"]),
        ({"labels": {"team": "ops", "cost": "7"}}, lambda c: c["resourceLabels"], {"team": "ops", "cost": "7", **OURS}),
        ({"deletion_protection": True}, lambda c: c["resourceLabels"]["muster-protected"], "true"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) and value else "",
)  # fmt: skip
def test_a_cluster_is_changed(changes: Run, reader: Reader, change: Body, read: Callable[[Body], Any], expected: Any) -> None:
    identity = bool(reader.get(CLUSTER).get("workloadIdentityConfig"))
    done = changes("gke_cluster", **{**GROUND, "workload_identity": identity, **change})
    assert done["diff"]["before"] != done["diff"]["after"]
    assert read(reader.get(CLUSTER)) == expected


def test_several_changes_of_a_cluster_go_one_after_another(changes: Run, reader: Reader) -> None:
    done = changes(
        "gke_cluster", **GROUND, labels={"team": "ml"}, deletion_protection=False, addons={"dns_cache": True}, node_locations=ZONES,
        managed_prometheus=True, release_channel="REGULAR", private_nodes=True,
    )  # fmt: skip
    assert len(done["actions"]) == 7, "labels, channel, private nodes, identity, addons, monitoring, zones"
    assert reader.get(CLUSTER)["resourceLabels"] == {"team": "ml", **OURS}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"network": "other"}, "Google cannot change it"),
        ({"cluster_secondary_range_name": "other"}, "Google cannot change it"),
        ({"master_ipv4_cidr": "172.16.0.0/28"}, "Google cannot change it"),
        ({"version": "1.37"}, "one minor version at a time"),
        ({"version": "latest"}, "no version of GKE"),
        ({"owner": "other"}, "it has muster-owner=ground, and it is left as it is"),
        ({"owner": "other", "adopt": True}, "it has muster-owner=ground, and it is left as it is"),
    ],
)
def test_what_a_cluster_cannot_be_is_refused_before_anything_is_sent(google: Simulator, run: Run, change: Body, words: str) -> None:
    google.clear()
    refused = run("gke_cluster", **{**GROUND, "labels": {"new": "label"}, **change})
    assert refused["failed"]
    assert "GKE cluster ground" in refused["msg"] or "version" in refused["msg"]
    assert words in refused["msg"]
    assert google.attempts() == []


# A whole one: a short one would be that of the control plane.
OLDER = "1.34.6-gke.1154000"


def pool(name: str = "gpu", **more: Any) -> Body:
    return {
        "cluster_name": NAME,
        "location": REGION,
        "name": name,
        **OWNER,
        "config": {
            "machine_type": "n1-standard-4",
            "accelerators": [{"type": "nvidia-tesla-t4", "count": 1, "gpu_driver_version": "DEFAULT"}],
            "spot": True,
            "labels": {"pool": "gpu", "old": "yes"},
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        },
        "autoscaling": {"total_min_node_count": 0, "total_max_node_count": 4},
        **more,
    }


def pool_url(name: str = "gpu") -> str:
    return f"{CLUSTER}/nodePools/{name}"


def management(**more: Any) -> Body:
    """Like the roles make it, from a version that can be upgraded."""
    asked = {"config": {"machine_type": "e2-standard-4"}, "autoscaling": {"min_node_count": 1, "max_node_count": 3}, "version": OLDER}
    return pool("management", **{**asked, **more})


def test_a_pool_is_made(changes: Run, reader: Reader) -> None:
    done = changes("gke_node_pool", **management())
    assert done["node_pool"]["status"] == "RUNNING"
    assert reader.get(pool_url("management"))["version"] == OLDER


def test_a_pool_of_gpus_is_made(changes: Run, reader: Reader) -> None:
    done = changes("gke_node_pool", **pool())
    assert done["actions"] == [CREATE]
    assert done["node_pool"]["status"] == "RUNNING"
    found = reader.get(pool_url())
    assert found["config"]["accelerators"][0]["gpuDriverInstallationConfig"]["gpuDriverVersion"] == "DEFAULT"
    assert found["config"]["spot"] is True
    assert found["autoscaling"]["totalMaxNodeCount"] == 4
    assert found["config"]["resourceLabels"]["muster-owner"] == NAME


def test_machines_of_every_kind_are_made(changes: Run, reader: Reader) -> None:
    shared = {"gpu_sharing_strategy": "TIME_SHARING", "max_shared_clients_per_gpu": 4}
    gpu = {"type": "nvidia-l4", "count": 1, "gpu_driver_version": "LATEST", "gpu_sharing_config": shared}
    config = {
        "machine_type": "g2-standard-8", "accelerators": [gpu], "reservation_affinity": {"consume_reservation_type": "NO_RESERVATION"},
        "disk_size_gb": 200, "disk_type": "pd-ssd", "gvnic": True, "metadata": {"a": "b"}, "tags": ["t"],
        "oauth_scopes": [f"{SCOPES}/logging.write"],
        "other": {"shieldedInstanceConfig": {"enableSecureBoot": True}},
    }  # fmt: skip
    asked = pool(
        "queued", config=config, queued_provisioning=True, placement_policy={"type": "COMPACT"}, max_pods_per_node=64,
        node_locations=[f"{REGION}-a"], management={"auto_repair": False, "auto_upgrade": True}, upgrade_settings={"max_unavailable": 1},
    )  # fmt: skip
    changes("gke_node_pool", **asked)
    found = reader.get(pool_url("queued"))
    (accelerator,) = found["config"]["accelerators"]
    assert accelerator["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "LATEST"}
    assert accelerator["gpuSharingConfig"]["gpuSharingStrategy"] == "TIME_SHARING"
    assert found["queuedProvisioning"] == {"enabled": True}
    assert found["config"]["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    assert found["config"]["shieldedInstanceConfig"]["enableSecureBoot"] is True
    changes("gke_node_pool", **asked, state="absent")


TAINT = {"key": "a", "value": "b", "effect": "NO_EXECUTE"}


@pytest.mark.parametrize(
    ("change", "read", "expected"),
    [
        ({"autoscaling": {"min_node_count": 0, "max_node_count": 9}}, lambda p: p["autoscaling"]["maxNodeCount"], 9),
        ({"autoscaling": {"total_min_node_count": 1, "total_max_node_count": 4, "location_policy": "ANY"}},
         lambda p: (p["autoscaling"]["locationPolicy"], p["autoscaling"]["totalMaxNodeCount"]), ("ANY", 4)),
        ({"config": {"labels": {"pool": "new"}}}, lambda p: p["config"]["labels"], {"pool": "new"}),
        ({"config": {"labels": {}}}, lambda p: p["config"].get("labels", {}), {}),
        ({"config": {"taints": [TAINT]}}, lambda p: p["config"]["taints"], [TAINT]),
        ({"config": {"tags": ["a", "b"]}}, lambda p: p["config"]["tags"], ["a", "b"]),
        ({"config": {"resource_labels": {"team": "ml"}}}, lambda p: sorted(p["config"]["resourceLabels"])[-2:], ["muster-owner", "team"]),
        ({"config": {"machine_type": "e2-standard-8", "disk_size_gb": 200}},
         lambda p: (p["config"]["machineType"], p["config"]["diskSizeGb"]), ("e2-standard-8", 200)),
        ({"config": {"image_type": "UBUNTU_CONTAINERD"}}, lambda p: p["config"]["imageType"], "UBUNTU_CONTAINERD"),
        ({"config": {"gvnic": True}}, lambda p: p["config"]["gvnic"], {"enabled": True}),
        ({"config": {"workload_metadata": "GCE_METADATA"}}, lambda p: p["config"]["workloadMetadataConfig"], {"mode": "GCE_METADATA"}),
        ({"config": {"other": {"kubeletConfig": {"cpuManagerPolicy": "static"}}}},
         lambda p: p["config"]["kubeletConfig"]["cpuManagerPolicy"], "static"),
        ({"version": "1.35"}, lambda p: p["version"][:5], "1.35."),
        ({"node_locations": [f"{REGION}-a"]}, lambda p: p["locations"], [f"{REGION}-a"]),
        ({"management": {"auto_repair": False}}, lambda p: p["management"], {"autoUpgrade": True}),
        ({"upgrade_settings": {"max_surge": 2}}, lambda p: p["upgradeSettings"]["maxSurge"], 2),
    ],
    ids=lambda value: next(iter(value.get("config", value))) if isinstance(value, dict) and value else "",
)  # fmt: skip
def test_a_pool_is_changed(changes: Run, reader: Reader, change: Body, read: Callable[[Body], Any], expected: Any) -> None:
    asked = {"autoscaling": None, "version": None, **change}
    done = changes("gke_node_pool", **management(**{"config": {}, **asked}))
    assert done["diff"]["before"] != done["diff"]["after"]
    assert read(reader.get(pool_url("management"))) == expected


def test_the_number_of_nodes_is_set_and_read_back_from_their_groups(changes: Run, reader: Reader) -> None:
    fixed: Body = {"config": {}, "autoscaling": None, "version": None}
    done = changes("gke_node_pool", **management(**fixed, node_count=2))
    assert [action.split(".")[-1] for action in done["actions"]] == ["setAutoscaling (autoscaling)", "setSize (nodeCount)"]
    groups = reader.get(pool_url("management"))["instanceGroupUrls"]
    assert [reader.get(group)["targetSize"] for group in groups] == [2]
    changes("gke_node_pool", **management(**fixed, node_count=1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": {"spot": False}}, "Google cannot change it"),
        ({"config": {"service_account": "a@b"}}, "Google cannot change it"),
        ({"placement_policy": {"tpu_topology": "2x4"}}, "Google cannot change it"),
        ({"max_pods_per_node": 32}, "Google cannot change it"),
        ({"owner": "other"}, "it has muster-owner=ground, and it is left as it is"),
    ],
)
def test_what_a_pool_cannot_be_is_refused_before_anything_is_sent(google: Simulator, run: Run, change: Body, words: str) -> None:
    google.clear()
    refused = run("gke_node_pool", **pool(**change))
    assert words in refused["msg"], refused
    assert google.attempts() == []


def test_what_google_refuses_is_told_as_google_says_it(google: Simulator, run: Run) -> None:
    for config, words in (
        ({"machine_type": "x9-mega"}, "x9-mega"),
        ({"machine_type": "e2-standard-4", "other": {"noSuchField": 1}}, "noSuchField"),
    ):
        refused = run("gke_node_pool", **pool("wrong", config=config))
        assert words in refused["msg"]
        assert refused["msg"].startswith(f"GKE node pool wrong of cluster ground: {CREATE} was refused")


# Faults: one clear error each, and the rerun converges


def test_a_zone_without_machines_fails_and_the_next_run_tries_again(google: Simulator, run: Run, changes: Run, reader: Reader) -> None:
    google.fault("stock_out", f"{CLUSTERS}.nodePools.create")
    asked = pool("scarce", autoscaling=None, node_count=1, node_locations=[f"{REGION}-a"])
    failed = run("gke_node_pool", **asked)
    assert failed["failed"]
    assert "create failed: STOCKOUT" in failed["msg"]
    assert f"Google has no n1-standard-4 with 1 x nvidia-tesla-t4 left in {REGION}-a. Try other zones" in failed["msg"]
    assert reader.get(pool_url("scarce"))["status"] == "ERROR"
    told = run("gke_node_pool", **{**asked, "owner": None})
    assert "is in ERROR" in told["msg"]
    done = changes("gke_node_pool", **asked)
    assert [action.split(".")[-1] for action in done["actions"]] == ["delete (delete, it is in ERROR)", "create (create)"]
    changes("gke_node_pool", **asked, state="absent")


@pytest.mark.parametrize(
    ("fault", "detail", "words"),
    [
        ("refuse", {"status": 403, "message": 'Required "container.nodePools.create" permission(s) for "projects/p".'},
         "The caller lacks the permission"),
        ("refuse", {"status": 500, "message": "Internal error."}, "Internal error"),
        ("operation_error", {"code": 13, "message": "An internal error has occurred"},
         "create failed: INTERNAL: An internal error has occurred"),
        ("quota", {"metric": "CPUS"}, "QUOTA_EXCEEDED"),
    ],
)  # fmt: skip
def test_a_fault_is_one_clear_error_and_the_rerun_converges(google: Simulator, run: Run, fault: str, detail: Body, words: str) -> None:
    asked = pool("faulty", config={"machine_type": "e2-standard-4"}, autoscaling=None, node_count=1)
    google.fault(fault, f"{CLUSTERS}.nodePools.create", **detail)
    failed = run("gke_node_pool", **asked)
    assert failed["failed"]
    assert words in failed["msg"]
    assert "GKE node pool faulty of cluster ground" in failed["msg"]
    done = run("gke_node_pool", **asked)
    assert not done.get("failed"), done["msg"]
    assert done["node_pool"]["status"] == "RUNNING"
    assert run("gke_node_pool", **asked)["changed"] is False
    assert not run("gke_node_pool", **asked, state="absent").get("failed")


@pytest.mark.parametrize(
    ("fault", "detail"),
    [
        ("throttle", {"status": 429}),
        ("throttle", {"status": 503}),
        ("slow", {"polls": 6}),
        ("stale", {}),
        ("drop", {}),
        ("api_not_enabled", {}),  # not everywhere yet: Service Usage says that it is
    ],
)
def test_what_passes_by_itself_is_waited_for(google: Simulator, run: Run, fault: str, detail: Body) -> None:
    asked = pool("patient", config={"machine_type": "e2-standard-4"}, autoscaling=None, node_count=1)
    method = f"{CLUSTERS}.nodePools." + ("get" if fault == "stale" else "create")
    google.fault(fault, method, 2 if fault == "throttle" else 1, **detail)
    done = run("gke_node_pool", **asked)
    assert not done.get("failed"), done["msg"]
    assert run("gke_node_pool", **asked)["changed"] is False
    assert not run("gke_node_pool", **asked, state="absent").get("failed")


def test_an_api_that_is_not_enabled_is_named_with_the_role_that_enables_it(google: Simulator, run: Run) -> None:
    google.fault("api_not_enabled", f"{CLUSTERS}.nodePools.create")
    google.fault("refuse", "serviceusage.services.get", status=403, message="no")
    failed = run("gke_node_pool", **pool("disabled"))
    assert "SERVICE_DISABLED" in failed["msg"]
    assert "Enable container.googleapis.com, which role gcp_project does" in failed["msg"]


def test_a_cluster_that_is_busy_is_waited_for(google: Simulator, run: Run, reader: Reader) -> None:
    """Somebody else's change of the cluster has not ended: Google refuses ours meanwhile."""
    fingerprint = reader.get(CLUSTER)["labelFingerprint"]
    labels = {"team": "ml", "somebody": "else", **OURS}
    reader.write("POST", f"{CLUSTER}:setResourceLabels", {"resourceLabels": labels, "labelFingerprint": fingerprint})
    # In the simulator time passes for an operation when somebody looks at its cluster.
    somebody = threading.Timer(0.5, lambda: [Reader(google).get(CLUSTER) for _look in range(5)])
    somebody.start()
    done = run("gke_node_pool", **management(config={"tags": ["c"]}, autoscaling=None, version=None))
    somebody.join()  # or it would meet the faults of the next test
    assert not done.get("failed"), done["msg"]
    assert done["node_pool"]["config"]["tags"] == ["c"]
    assert not run("gke_cluster", **GROUND, labels={"team": "ml"}).get("failed")


def test_a_cluster_whose_creation_failed_is_made_again(google: Simulator, run: Run, changes: Run, ground: dict[str, str]) -> None:
    asked = other_cluster(ground, "unlucky")
    google.fault("throttle", f"{CLUSTERS}.get")
    google.fault("slow", f"{CLUSTERS}.create")
    google.fault("operation_error", f"{CLUSTERS}.create", code=13, message="An internal error has occurred")
    failed = run("gke_cluster", **asked)
    assert google.ask("faults") == []
    assert "create failed: INTERNAL: An internal error has occurred" in failed["msg"]
    assert "is in ERROR and cannot be repaired" in run("gke_cluster", **{**asked, "owner": None})["msg"]
    changes("gke_cluster", **asked)
    changes("gke_cluster", name="unlucky", location=REGION, owner="unlucky", state="absent")


@pytest.mark.parametrize(
    ("fault", "method", "detail", "words"),
    [
        ("operation_error", "nodePools.delete", {"code": 13, "message": "An internal error has occurred"}, "failed: INTERNAL"),
        ("quota", "create", {"metric": "CPUS"}, "QUOTA_EXCEEDED"),
    ],
)
def test_a_cluster_whose_creation_was_disturbed_is_finished_by_the_next_run(
    google: Simulator, run: Run, changes: Run, reader: Reader, ground: dict[str, str], fault: str, method: str, detail: Body, words: str
) -> None:
    asked = other_cluster(ground, "disturbed")
    google.fault(fault, f"{CLUSTERS}.{method}", **detail)
    failed = run("gke_cluster", **asked)
    assert failed["failed"]
    assert words in failed["msg"]
    changes("gke_cluster", **asked)
    assert reader.get(f"{GKE}/{REGION}/clusters/disturbed").get("nodePools", []) == []
    changes("gke_cluster", name="disturbed", location=REGION, owner="disturbed", state="absent")


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_run_that_was_killed_is_continued_by_the_next(
    google: Simulator, run: Run, changes: Run, ground: dict[str, str], monkeypatch: pytest.MonkeyPatch, at: int, answered: bool
) -> None:
    asked = other_cluster(ground, "killed")
    with monkeypatch.context() as patch:
        killed(patch, at, answered=answered)
        with pytest.raises(KeyboardInterrupt):
            run("gke_cluster", **asked)
    done = run("gke_cluster", **asked)
    assert not done.get("failed"), done["msg"]
    assert done["cluster"].get("node_pools", []) == []
    assert run("gke_cluster", **asked)["changed"] is False
    changes("gke_cluster", name="killed", location=REGION, owner="killed", state="absent")


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fails", [False, True], ids=["", "stock-out"])
def test_a_pool_of_a_killed_run_is_waited_for_or_made_again(
    google: Simulator, run: Run, monkeypatch: pytest.MonkeyPatch, answered: bool, fails: bool
) -> None:
    asked = pool("killed", autoscaling=None, node_count=1)
    if fails:
        google.fault("stock_out", f"{CLUSTERS}.nodePools.create")
    with monkeypatch.context() as patch:
        killed(patch, 1, answered=answered)
        with pytest.raises(KeyboardInterrupt):
            run("gke_node_pool", **asked)
    done = run("gke_node_pool", **asked)
    if fails and not answered:
        assert "STOCKOUT" in done["msg"], "nothing had been sent before"
        done = run("gke_node_pool", **asked)
    assert not done.get("failed"), done["msg"]
    assert done["node_pool"]["status"] == "RUNNING"
    assert run("gke_node_pool", **asked)["changed"] is False
    assert not run("gke_node_pool", **asked, state="absent").get("failed")


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_changes_of_a_killed_run_are_continued(
    google: Simulator, run: Run, reader: Reader, monkeypatch: pytest.MonkeyPatch, at: int, answered: bool
) -> None:
    tags = [f"t{at}{answered:d}"]
    config = {"tags": tags, "labels": {"at": f"{at}{answered:d}"}, "resource_labels": {"at": f"{at}{answered:d}"}}
    asked = management(config=config, autoscaling=None, version=None)
    with monkeypatch.context() as patch:
        killed(patch, at, answered=answered)
        with pytest.raises(KeyboardInterrupt):
            run("gke_node_pool", **asked)
    done = run("gke_node_pool", **asked)
    assert not done.get("failed"), done["msg"]
    assert len(done["actions"]) == 3 - at + (0 if answered else 1)
    assert reader.get(pool_url("management"))["config"]["tags"] == tags
    assert run("gke_node_pool", **asked)["changed"] is False


# Logins and permissions


def test_what_the_caller_may_not_do_is_named(google: Simulator, run: Run) -> None:
    google.permissions(["container.clusters.get", "container.nodePools.get", "container.operations.get", "compute.*"])
    try:
        refused = run("gke_node_pool", **pool("denied"))
    finally:
        google.permissions(None)
    assert "PERMISSION_DENIED" in refused["msg"]
    assert refused["msg"].count("The caller lacks the permission container.") == 1


def test_credentials_that_are_not_accepted_are_told_without_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "ya29.CANARY")
    refused = run("gke_cluster", **GROUND)
    assert "Google does not accept the credentials" in refused["msg"] or "UNAUTHENTICATED" in refused["msg"]
    assert "renew" in refused["msg"].lower()
    monkeypatch.setenv("GCP_ACCESS_TOKEN", "ya29.CANARY\n")
    broken = run("gke_cluster", **GROUND)
    assert broken["failed"]
    assert "CANARY" not in broken["msg"] + refused["msg"]


def test_a_network_that_leads_nowhere_is_told_soon(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:CANARY@127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://me:CANARY@127.0.0.1:9")
    refused = run("gke_cluster", **GROUND)
    assert "Google could not be reached" in refused["msg"]
    assert "Check the network, the proxy and its certificates" in refused["msg"]
    assert "CANARY" not in refused["msg"]


def test_without_a_project_nothing_is_asked(run: Run, google: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GCP_PROJECT")
    assert "No project is given. Set project, or GCP_PROJECT" in run("gke_cluster", **GROUND)["msg"]


@pytest.mark.parametrize("auth", ["serviceaccount", "application"])
def test_every_kind_of_login_works(google: Simulator, run: Run, monkeypatch: pytest.MonkeyPatch, auth: str) -> None:
    environment = google.environment(auth)
    monkeypatch.delenv("GCP_ACCESS_TOKEN")
    for name in ("GCP_AUTH_KIND", "GCP_SERVICE_ACCOUNT_FILE", "GOOGLE_APPLICATION_CREDENTIALS"):
        if name in environment:
            monkeypatch.setenv(name, environment[name])
    assert run("gke_cluster_info", name=NAME, location=REGION)["exists"] is True


# Owners


def test_a_cluster_of_others_keeps_its_nodes_when_it_is_taken_over(run: Run, changes: Run, reader: Reader, ground: dict[str, str]) -> None:
    """As gcloud makes one, with a default pool."""
    url = f"{GKE}/{REGION}/clusters/theirs"
    body = cluster("theirs", services="other-services", initialNodeCount=1, locations=ZONES)
    reader.write("POST", f"{GKE}/{REGION}/clusters", body)
    asked = {"name": "theirs", "location": REGION, "owner": "theirs"}
    assert "does not carry the label muster-owner=theirs: another owner created it" in run("gke_cluster", **asked)["msg"]
    assert "does not have the mark" in run("gke_cluster", **asked, state="absent")["kept"]
    done = changes("gke_cluster", **asked, adopt=True)
    assert [action.split(".")[-1] for action in done["actions"]] == ["setResourceLabels (labels)", "update (workload identity)"]
    assert [one["name"] for one in reader.get(url)["nodePools"]] == ["default-pool"]
    assert "has node pools of others (default-pool)" in run("gke_cluster", **asked, state="absent")["kept"]
    changes("gke_cluster", **{**asked, "owner": None}, state="absent")


def test_a_cluster_is_made_with_a_window_and_loses_it(changes: Run, reader: Reader, ground: dict[str, str]) -> None:
    asked = other_cluster(ground, "window")
    daily = {"daily_start_time": "03:00"}
    assert len(changes("gke_cluster", **asked, maintenance_window=daily)["actions"]) == 2
    url = f"{GKE}/{REGION}/clusters/window"
    assert window(reader.get(url))["dailyMaintenanceWindow"]["startTime"] == "03:00"
    changes("gke_cluster", **asked, maintenance_window={})
    assert not reader.get(url)["maintenancePolicy"].get("window")
    changes("gke_cluster", **asked, state="absent")


def test_an_autopilot_cluster_of_others_is_taken_over_and_deleted_and_has_no_node_pools(
    run: Run, changes: Run, reader: Reader, google: Simulator
) -> None:
    """As gcloud container clusters create-auto makes one; its own pools do not keep it."""
    body = cluster("auto", services="other-services", autopilot={"enabled": True})
    reader.write("POST", f"{GKE}/{REGION}/clusters", body)
    asked = {"name": "auto", "location": REGION, "owner": "auto"}
    google.clear()
    for state in ("present", "absent"):
        told = run("gke_node_pool", **{**pool("gpu"), "cluster_name": "auto", "owner": "auto"}, state=state)
        assert "Autopilot node pools cannot be accessed or modified. An Autopilot cluster makes its nodes by itself" in told["msg"]
    assert google.attempts() == []
    done = changes("gke_cluster", **asked, adopt=True, labels={"team": "ml"})
    assert done["actions"] == ["container:projects.locations.clusters.setResourceLabels (labels)"]
    changes("gke_cluster", **asked, maintenance_window={"daily_start_time": "03:00"})
    assert run("gke_cluster_info", **asked)["owned"] is True
    assert "does not have the mark" in run("gke_cluster", **{**asked, "owner": "other"}, state="absent")["kept"]
    changes("gke_cluster", **asked, state="absent")


def test_what_has_no_owner_is_refused_kept_and_taken_over_when_asked_for(run: Run, changes: Run, reader: Reader) -> None:
    theirs = pool("theirs", owner=None, config={"machine_type": "e2-standard-4"}, autoscaling=None, node_count=0)
    changes("gke_node_pool", **theirs)
    ours = {**theirs, **OWNER}
    assert "does not carry the label muster-owner=ground: another owner created it" in run("gke_node_pool", **ours)["msg"]
    assert "does not have the mark of this owner" in run("gke_node_pool", **ours, state="absent")["kept"]
    kept = run("gke_cluster", **GROUND, state="absent", deletion_protection=False)["kept"]
    assert "has node pools of others (theirs), which would go with it" in kept
    changes("gke_node_pool", **ours, adopt=True)
    assert reader.get(pool_url("theirs"))["config"]["resourceLabels"]["muster-owner"] == NAME
    changes("gke_node_pool", **ours, state="absent")


def test_a_cluster_is_read(run: Run) -> None:
    found = run("gke_cluster_info", name=NAME, location=REGION, owner=NAME)
    assert (found["exists"], found["owned"], found["status"]) == (True, True, "RUNNING")
    assert found["endpoint"]
    assert found["certificate_authority"]
    assert [one["owner"] for one in found["node_pools"]] == [NAME] * len(found["node_pools"])
    assert run("gke_cluster_info", name=NAME, location=REGION, owner="other")["owned"] is False
    missing = run("gke_cluster_info", name="missing", location=REGION)
    assert (missing["exists"], missing["owned"], missing["endpoint"], missing["cluster"]) == (False, False, "", {})


def test_what_its_workloads_made_is_found(google: Simulator, run: Run) -> None:
    asked = {"name": NAME, "location": REGION, "leftovers": True, "network": "ground"}
    nothing: dict[str, Any] = {"disks": [], "load_balancers": [], "firewalls": [], "network_endpoint_groups": []}
    assert run("gke_cluster_info", **asked)["leftovers"] == nothing
    disk, rule, _pool, wall, group = (path.rsplit("/", 1)[-1] for path in google.workload(NAME, REGION, fades=3))
    assert run("gke_cluster_info", **asked)["leftovers"] == {
        "disks": [{"title": f"disk {disk}", "name": disk, "location": ZONES[0]}],
        "load_balancers": [{"title": f"load balancer {rule}", "name": rule, "location": REGION}],
        "firewalls": [{"title": f"firewall rule {wall}", "name": wall, "location": "global"}],
        "network_endpoint_groups": [{"title": f"network endpoint group {group}", "name": group, "location": ZONES[0]}],
    }
    assert run("gke_cluster_info", **{**asked, "name": "other"})["leftovers"]["firewalls"] == []
    assert run("gke_cluster_info", **{**asked, "network": "other"})["leftovers"]["network_endpoint_groups"] == []
    assert "leftovers" not in run("gke_cluster_info", name=NAME, location=REGION)
    assert run("gke_cluster_info", **{**asked, "location": ZONES[0]})["leftovers"]["disks"] == []


def test_groups_that_may_be_of_another_cluster_of_the_network_are_not_listed(google: Simulator, run: Run, reader: Reader) -> None:
    asked = {"name": "gone", "location": REGION, "leftovers": True, "network": "ground"}
    google.workload(NAME, REGION, fades=3)
    assert run("gke_cluster_info", **asked)["leftovers"]["network_endpoint_groups"] == []
    assert run("gke_cluster_info", **{**asked, "name": NAME})["leftovers"]["network_endpoint_groups"]


def test_a_cluster_is_deleted_and_stays_so(run: Run, changes: Run, reader: Reader) -> None:
    changes("gke_node_pool", **pool(), state="absent")
    run("gke_cluster", **GROUND, deletion_protection=True)
    assert "is protected from deletion. Set deletion_protection: false together with" in run("gke_cluster", **GROUND, state="absent")["msg"]
    done = changes("gke_cluster", **GROUND, state="absent", deletion_protection=False)
    assert done["cluster"] == {}
    assert reader.get(CLUSTER) is None


def test_a_network_goes_when_google_has_removed_what_workloads_left(google: Simulator, run: Run, reader: Reader) -> None:
    """The subnetwork is refused because of it, several times (fades: see workloads.py)."""
    subnet = {"name": NAME, "region": REGION, "network": NAME}
    for module, options in (("gcp_subnetwork", subnet), ("gcp_network", {"name": NAME})):
        if module == "gcp_subnetwork":
            assert "k8s1-" in json.dumps(google.ask("holdings"))
        done = run(module, **options, state="absent")
        assert not done.get("failed"), done["msg"]
        assert done["changed"] is True
    assert reader.get(f"{COMPUTE}/global/networks/{NAME}") is None


def test_what_stays_in_a_network_is_named_with_who_made_it(run: Run, reader: Reader) -> None:
    network = f"projects/{PROJECT}/global/networks/kept"
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "kept", "autoCreateSubnetworks": False})
    rule = {"name": "k8s-fw-a1", "network": network, "sourceRanges": ["10.0.0.0/8"], "allowed": [{"IPProtocol": "tcp"}]}
    reader.write("POST", f"{COMPUTE}/global/firewalls", rule)
    kept = run("gcp_network", name="kept", state="absent", wait_timeout=60)
    assert "Google network kept is busy or still in use after 60 s" in kept["msg"]
    assert "firewalls/k8s-fw-a1' (a Service, Ingress or Gateway on a cluster made it" in kept["msg"]
