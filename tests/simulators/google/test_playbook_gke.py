# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/gke.yml and gke_teardown.yml with their roles: one project's life.

The tests stand on each other, in order: what is refused before anything is made, the plan, the run, again, a system, later changes, what is
not ours in the way, teardown; then faults, a run that is killed and few permissions, from an empty project each. Google's own libraries and
gcloud read back what is there.
"""

from __future__ import annotations

import base64
import copy
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import container_v1, storage
from google.oauth2.credentials import Credentials
from support import canary

from simulators.google.client import ACCESS_TOKEN, PROJECT, Simulator
from simulators.google.play import REGION, ROOT, TOKEN, ZONE, Play, playground, recap
from simulators.google.reader import Reader, gcloud

MANAGEMENT: dict[str, Any] = {
    "name": "management",
    "config": {"machine_type": "e2-standard-4"},
    "autoscaling": {"enabled": True, "total_min_node_count": 1, "total_max_node_count": 3},
}
GPU: dict[str, Any] = {
    "name": "gpu",
    "config": {
        "machine_type": "n1-standard-4",
        "accelerators": [{"type": "nvidia-tesla-t4", "count": 1, "gpu_driver_version": "DEFAULT"}],
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    },
    "autoscaling": {"enabled": True, "total_min_node_count": 0, "total_max_node_count": 4},
    "node_locations": [ZONE],
}
OFFICE = {
    "name": "office",
    "source_ranges": ["198.51.100.0/24", "203.0.113.0/24"],
    "allowed": [{"ip_protocol": "tcp", "ports": ["443", "8443"]}],
}
STORE, SCRIPTS = (f"{PROJECT}-muster-{name}" for name in ("studioml", "scripts"))
DATA_TOO = {"gcs_buckets_remove_data": True, "gcp_broker_vm_remove_data": True}
# RabbitMQ itself runs in scenario rabbitmq: here there is no machine behind the address.
NO_MACHINE = ("--skip-tags", "gcp_broker_vm_configure")


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    settings = {
        "muster_systems": [],
        "gke_manage_broker_vm": True,
        "gke_node_pools_pools": [MANAGEMENT, GPU],
        "gke_network_firewall_rules": [OFFICE],
        "muster_gke_nodes": 50,
    }
    with playground(tmp_path_factory.mktemp("gke"), settings) as ground:
        yield ground


@pytest.fixture(scope="module")
def google(play: Play) -> Simulator:
    return play.google


@pytest.fixture(scope="module")
def reader(google: Simulator) -> Reader:
    return Reader(google)


def hold(google: Simulator) -> dict[str, Any]:
    found: dict[str, Any] = google.ask("holdings")
    return found


def run(play: Play, **settings: Any) -> subprocess.CompletedProcess[str]:
    done = play("gke", *NO_MACHINE, **settings)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    return done


def unchanged(play: Play, **settings: Any) -> None:
    """Another run changes nothing and sends no write to Google or to the cluster."""
    play.google.clear()
    play.api_server.clear()
    done = run(play, **settings)
    assert (recap(done)["changed"], play.google.attempts(), play.api_server.writes()) == (0, [], []), done.stdout[
        -3000:
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"muster_gcp_project": ""}, "Nothing is not the ID of a Google Cloud project. Set muster_gcp_project"),
        ({"muster_gcp_region": ""}, "Nothing is not a region. Set muster_gcp_region, such as us-central1"),
        ({"gke_cluster_master_authorized_networks": []}, "could reach the API server of muster, this run included."),
        ({"gke_cluster_master_authorized_networks": [{"cidr_block": "10.0.0.0/8"}]}, "no request from the internet comes from 10.0.0.0/8"),
        ({"gke_network_cidr": "10.40.0.0/20"}, "The smallest range that fits is a /17, such as 10.40.0.0/17."),
        ({"muster_gke_nodes": 8}, "may have 9 nodes together, with those that upgrades add, and the network has addresses for 8"),
        ({"gke_node_pools_pools": [GPU]}, "so that the pods of GKE itself, such as DNS, would have no node"),
        ({"gke_network_firewall_rules": [{"name": "open", "allowed": [{"ip_protocol": "tcp"}]}]}, "open has no source_ranges"),
        ({"gcp_identity_node_roles": ["roles/editor"]}, "roles/editor would give every pod"),
        ({"gcs_buckets_buckets": [{"name": "Google-Bucket"}]}, "Google-Bucket cannot be the name of a bucket"),
        ({"muster_gke_name": "m" * 30}, "m-elastic cannot be the name of a service account"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_asked(
    play: Play, google: Simulator, settings: dict[str, Any], words: str
) -> None:
    google.clear()
    done = play("gke", **settings)
    assert recap(done)["failed"] == 1, done.stdout[-3000:]
    assert words in play.said()
    assert google.ask("requests") == []


def test_the_plan_from_nothing_is_what_the_run_then_does(play: Play, google: Simulator) -> None:
    """Call by call, from a project with no API enabled."""
    nothing = hold(google)
    google.clear()
    planned = play("gke", "--check")
    assert planned.returncode == 0, planned.stdout[-3000:] + planned.stderr[-500:]
    assert google.attempts() == []
    assert hold(google) == nothing
    assert not Path(play.settings["muster_kubeconfig"]).exists()
    plan = play.actions()
    assert len(plan) >= 25
    assert "pods 10.40.0.0/18 (50 nodes x 256 (110 pods a node))" in play.said()
    google.clear()
    run(play)
    assert play.actions() == google.writes()
    assert google.writes() == plan


def test_again_nothing_is_changed(play: Play) -> None:
    unchanged(play)


def test_the_kubeconfig_has_no_secret(play: Play, reader: Reader) -> None:
    path = Path(play.settings["muster_kubeconfig"])
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert TOKEN not in text
    assert ACCESS_TOKEN not in text
    found = yaml.safe_load(text)
    cluster = reader.container(f"{REGION}/clusters/muster")
    assert found["clusters"][0]["cluster"]["server"] == f"https://{cluster['endpoint']}"
    assert (
        found["clusters"][0]["cluster"]["certificate-authority-data"] == cluster["masterAuth"]["clusterCaCertificate"]
    )
    assert found["users"][0]["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"


def test_doors_are_closed(reader: Reader) -> None:
    cluster = reader.container(f"{REGION}/clusters/muster")
    assert cluster["workloadIdentityConfig"] == {"workloadPool": f"{PROJECT}.svc.id.goog"}
    assert cluster["resourceLabels"] == {"muster-owner": "muster"}
    assert [row["cidrBlock"] for row in cluster["masterAuthorizedNetworksConfig"]["cidrBlocks"]] == ["203.0.113.0/24"]
    pools = {row["name"]: row for row in cluster["nodePools"]}
    assert pools.keys() == {"management", "gpu"}
    for pool in pools.values():
        assert pool["config"]["serviceAccount"] == f"muster-nodes@{PROJECT}.iam.gserviceaccount.com"
        assert pool["networkConfig"]["enablePrivateNodes"] is True
    broker = reader.compute("global/firewalls/muster-broker")
    assert (broker["allowed"], broker["targetTags"]) == (
        [{"IPProtocol": "tcp", "ports": ["5671", "15671"]}],
        ["muster-broker"],
    )
    assert sorted(broker["sourceRanges"]) == ["10.40.0.0/18", "10.40.80.0/25", "203.0.113.0/24"]
    assert reader.compute("global/firewalls/muster-broker-ssh")["sourceRanges"] == ["203.0.113.0/24"]
    machine = reader.compute(f"zones/{ZONE}/instances/muster-broker")
    assert machine["tags"]["items"] == ["muster-broker"]
    assert not machine.get("serviceAccounts")
    policy = reader.members("projects", f"projects/{PROJECT}:getIamPolicy")
    ours = {role for role, members in policy.items() if any("muster-" in member for member in members)}
    assert ours == {"roles/container.defaultNodeServiceAccount"}
    for bucket in (STORE, SCRIPTS):
        found = reader.get("storage", f"b/{bucket}")["iamConfiguration"]
        assert (found["uniformBucketLevelAccess"]["enabled"], found["publicAccessPrevention"]) == (True, "enforced")
    pods = reader.members(
        "iam", f"projects/{PROJECT}/serviceAccounts/muster-elastic@{PROJECT}.iam.gserviceaccount.com:getIamPolicy"
    )
    assert pods == {"roles/iam.workloadIdentityUser": [f"serviceAccount:{PROJECT}.svc.id.goog[ml/elastic]"]}


def test_googles_libraries_see_it(google: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in google.environment().items():
        monkeypatch.setenv(name, value)
    credentials = Credentials(ACCESS_TOKEN)
    clusters = container_v1.ClusterManagerClient(transport="rest", credentials=credentials)
    cluster = clusters.get_cluster(name=f"projects/{PROJECT}/locations/{REGION}/clusters/muster")
    assert (cluster.network, cluster.subnetwork, cluster.release_channel.channel.name) == (
        "muster",
        "muster",
        "REGULAR",
    )
    gpu = next(pool for pool in cluster.node_pools if pool.name == "gpu")
    assert (gpu.config.taints[0].key, gpu.autoscaling.total_max_node_count) == ("nvidia.com/gpu", 4)
    driver = gpu.config.accelerators[0].gpu_driver_installation_config.gpu_driver_version.name
    assert driver == "DEFAULT"
    bucket = storage.Client(project=PROJECT, credentials=credentials).get_bucket(STORE)
    assert (bucket.location, bucket.labels) == (REGION.upper(), {"muster-owner": "muster"})
    assert [rule["action"]["type"] for rule in bucket.lifecycle_rules] == ["AbortIncompleteMultipartUpload"]
    if shutil.which("gcloud"):
        found = gcloud(google, "container", "clusters", "describe", "muster", f"--region={REGION}")
        assert (found["releaseChannel"], found["status"]) == ({"channel": "REGULAR"}, "RUNNING")
        found = gcloud(google, "compute", "routers", "nats", "list", "--router=muster", f"--region={REGION}")
        assert [row["natIpAllocateOption"] for row in found] == ["AUTO_ONLY"]


def hmac_keys(reader: Reader) -> dict[str, str]:
    rows = reader.get("storage", f"projects/{PROJECT}/hmacKeys?showDeletedKeys=false").get("items", [])
    return {row["accessId"]: row["state"] for row in rows}


def stored(play: Play) -> dict[str, str]:
    """The Secret with the HMAC key, as the cluster has it."""
    secret = play.api_server.cluster.stored("Secret", "gcs-hmac", "ml")
    assert secret
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_systems_bring_what_they_need(play: Play, google: Simulator) -> None:
    """The key of the buckets; with roles filestore_csi and gcp_identity a class for shared files and the service account of pods."""
    play.settings["muster_systems"] = ["studioml", "elastic"]
    google.clear()
    planned = play("gke", "--check", *NO_MACHINE)
    assert (planned.returncode, google.attempts()) == (0, []), planned.stdout[-3000:] + planned.stderr[-500:]
    assert play.actions() == ["storage:projects.hmacKeys.create"]
    run(play)
    assert google.writes() == play.actions() == ["storage:projects.hmacKeys.create"]
    shared = play.api_server.cluster.stored("StorageClass", "filestore")
    assert shared
    assert shared["parameters"] == {"tier": "standard", "network": "muster"}
    account = play.api_server.cluster.stored("ServiceAccount", "elastic", "ml")
    assert account
    email = f"muster-elastic@{PROJECT}.iam.gserviceaccount.com"
    assert account["metadata"]["annotations"]["iam.gke.io/gcp-service-account"] == email
    unchanged(play)


def test_the_key_of_the_buckets_is_in_the_secret_only(play: Play, reader: Reader) -> None:
    secret = stored(play)
    assert hmac_keys(reader) == {secret["access_key"]: "ACTIVE"}
    for place in [*play.folder.glob("*.log"), *play.folder.glob("*.actions"), play.folder / "kubeconfig"]:
        assert not canary.in_text({"hmac": secret["secret_key"]}, place.read_bytes()), place
    logins = {name: play.api_server.cluster.stored("Secret", name, "ml") for name in (
        "gcp-broker-admin", "studioml-runner-login", "studioml-client-login")}  # fmt: skip
    passwords = {name: base64.b64decode(login["data"]["password"]).decode() for name, login in logins.items() if login}
    assert len(passwords) == 3
    assert not canary.in_text(passwords, "".join(play.outputs).encode())


def test_the_key_of_the_buckets_is_rotated_once(play: Play, google: Simulator, reader: Reader) -> None:
    before = stored(play)
    google.clear()
    run(play, gcs_buckets_rotate=True)
    after = stored(play)
    assert after["access_key"] != before["access_key"]
    assert hmac_keys(reader) == {after["access_key"]: "ACTIVE"}
    assert not canary.in_text({"hmac": after["secret_key"]}, play.outputs[-1].encode())
    unchanged(play)


def later() -> dict[str, Any]:
    management, gpu = copy.deepcopy(MANAGEMENT), copy.deepcopy(GPU)
    management["config"]["labels"] = {"pool": "management"}
    management["autoscaling"]["total_max_node_count"] = 5
    gpu["config"]["taints"].append({"key": "team", "value": "ml", "effect": "NO_EXECUTE"})
    gpu["config"]["labels"] = {"pool": "gpu"}
    return {
        "gke_node_pools_pools": [management, gpu],
        "gke_cluster_master_authorized_networks": [{"cidr_block": "203.0.113.0/25"}, {"cidr_block": "198.51.100.0/24"}],
        "gcp_broker_vm_allowed_ranges": ["203.0.113.0/25"],
        "gke_network_firewall_rules": [
            {**OFFICE, "source_ranges": ["203.0.113.0/25"], "allowed": [{"ip_protocol": "tcp", "ports": ["443"]}]}
        ],
        "gke_cluster_release_channel": "RAPID",
        "gke_cluster_logging_components": ["SYSTEM_COMPONENTS"],
        "muster_gcp_labels": {"team": "ml"},
        "gcs_buckets_buckets": [
            {"name": STORE, "versioning": True, "lifecycle_rules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]},
            {"name": SCRIPTS, "readers": [f"serviceAccount:muster-elastic@{PROJECT}.iam.gserviceaccount.com"]},
        ],
    }  # fmt: skip


def test_what_changes_later_is_applied(play: Play, google: Simulator, reader: Reader) -> None:
    """Labels, taints, autoscaling, authorised networks, channel, logging, lifecycle; and firewalls that get narrower."""
    google.clear()
    planned = play("gke", "--check", *NO_MACHINE, **later())
    assert planned.returncode == 0, planned.stdout[-3000:] + planned.stderr[-500:]
    assert google.attempts() == []
    plan = play.actions()
    play.settings |= later()
    run(play)
    assert google.writes() == plan == play.actions()
    cluster = reader.container(f"{REGION}/clusters/muster")
    assert cluster["releaseChannel"] == {"channel": "RAPID"}
    assert cluster["loggingConfig"]["componentConfig"]["enableComponents"] == ["SYSTEM_COMPONENTS"]
    assert cluster["resourceLabels"] == {"muster-owner": "muster", "team": "ml"}
    ranges = {row["cidrBlock"] for row in cluster["masterAuthorizedNetworksConfig"]["cidrBlocks"]}
    assert ranges == {"203.0.113.0/25", "198.51.100.0/24"}
    pools = {row["name"]: row for row in cluster["nodePools"]}
    assert pools["management"]["autoscaling"]["totalMaxNodeCount"] == 5
    assert pools["management"]["config"]["labels"] == {"pool": "management"}
    assert sorted(row["key"] for row in pools["gpu"]["config"]["taints"]) == ["nvidia.com/gpu", "team"]
    office = reader.compute("global/firewalls/muster-office")
    assert (office["sourceRanges"], office["allowed"]) == (
        ["203.0.113.0/25"],
        [{"IPProtocol": "tcp", "ports": ["443"]}],
    )
    assert sorted(reader.compute("global/firewalls/muster-broker")["sourceRanges"]) == [
        "10.40.0.0/18",
        "10.40.80.0/25",
        "203.0.113.0/25",
    ]
    bucket = reader.get("storage", f"b/{STORE}")
    assert bucket["lifecycle"]["rule"] == [{"action": {"type": "Delete"}, "condition": {"age": 30}}]
    assert (bucket["versioning"], bucket["labels"]) == ({"enabled": True}, {"muster-owner": "muster", "team": "ml"})
    if shutil.which("gcloud"):
        found = gcloud(google, "container", "node-pools", "describe", "gpu", "--cluster=muster", f"--region={REGION}")
        assert sorted(row["key"] for row in found["config"]["taints"]) == ["nvidia.com/gpu", "team"]
        found = gcloud(google, "compute", "firewall-rules", "describe", "muster-office")
        assert found["sourceRanges"] == ["203.0.113.0/25"]
    unchanged(play)


def test_a_rule_is_deleted_where_its_row_says_so(play: Play, reader: Reader) -> None:
    play.settings["gke_network_firewall_rules"] = [{"name": "office", "state": "absent"}]
    run(play)
    assert reader.compute("global/firewalls/muster-office") == {}
    unchanged(play)


def cluster_version(reader: Reader) -> str:
    return str(reader.container(f"{REGION}/clusters/muster")["currentMasterVersion"])


def test_the_version_is_raised_by_one_minor(play: Play, google: Simulator, reader: Reader) -> None:
    major, minor = cluster_version(reader).split(".")[:2]
    google.clear()
    refused = play("gke", *NO_MACHINE, muster_gke_version=f"{major}.{int(minor) - 1}")
    assert (recap(refused)["failed"], google.attempts()) == (1, [])
    run(play, muster_gke_version=f"{major}.{int(minor) + 1}")
    assert cluster_version(reader).startswith(f"{major}.{int(minor) + 1}.")


def test_another_type_of_machine_brings_new_nodes(play: Play, google: Simulator, reader: Reader) -> None:
    pools = copy.deepcopy(play.settings["gke_node_pools_pools"])
    pools[0]["config"]["machine_type"] = "e2-standard-8"
    google.clear()
    run(play, gke_node_pools_pools=pools)
    assert set(google.writes()) == {"container:projects.locations.clusters.nodePools.update"}
    found = reader.container(f"{REGION}/clusters/muster/nodePools/management")
    assert found["config"]["machineType"] == "e2-standard-8"
    run(play)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"spot": True}, "spot"), ({"service_account": f"other@{PROJECT}.iam.gserviceaccount.com"}, "service")],
)
def test_what_a_pool_cannot_change_is_refused_with_the_reason(
    play: Play, google: Simulator, change: dict[str, Any], words: str
) -> None:
    pools = copy.deepcopy(play.settings["gke_node_pools_pools"])
    pools[1]["config"].update(change)
    google.clear()
    done = play("gke", *NO_MACHINE, gke_node_pools_pools=pools)
    assert (recap(done)["failed"], google.attempts()) == (1, []), done.stdout[-3000:]
    assert words in play.said()
    assert "Google cannot change" in play.said()


# Teardown


def left(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[str]]:
    """What is there besides, by kind. Enabled APIs stay, and what Google itself has made with them or keeps for a while."""
    kinds = {kind for kind in after if kind not in ("services", "identityPools") and not kind.startswith("deleted")}
    found = {kind: sorted(after[kind].keys() - before.get(kind, {}).keys()) for kind in kinds}
    googles = re.compile(
        r"roles/.* (serviceAccount:.*gserviceaccount[.]com|user:owner@example[.]com)$|.*-compute@developer[.]gserviceaccount[.]com$"
    )
    rest = {
        kind: [name for name in names if f"@{PROJECT}." in name or not googles.match(name)]
        for kind, names in found.items()
    }
    return {kind: names for kind, names in rest.items() if names}


def test_teardown_takes_what_is_ours_and_keeps_data(play: Play, google: Simulator) -> None:
    """A plan first. A network of somebody else's, and what it has, stay."""
    google.clear()
    planned = play("gke_teardown", "--check")
    assert (planned.returncode, google.attempts()) == (0, []), planned.stdout[-3000:] + planned.stderr[-500:]
    plan = play.actions()
    done = play("gke_teardown")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert google.writes() == plan == play.actions()
    kept = left({}, hold(google))
    assert sorted(kept.pop("buckets")) == [SCRIPTS, STORE]
    assert [name.rsplit("/", 1)[-1] for name in kept.pop("disks")] == ["muster-broker"]
    assert kept == {}
    assert not Path(play.settings["muster_kubeconfig"]).exists()
    google.clear()
    again = play("gke_teardown")
    assert (again.returncode, recap(again)["changed"], google.attempts()) == (0, 0, []), again.stdout[-3000:]


def test_what_was_kept_is_used_by_the_next_run(play: Play, google: Simulator, reader: Reader) -> None:
    disk = reader.compute(f"zones/{ZONE}/disks/muster-broker")
    bucket = reader.get("storage", f"b/{STORE}")
    run(play)
    assert reader.compute(f"zones/{ZONE}/disks/muster-broker")["id"] == disk["id"]
    machine = reader.compute(f"zones/{ZONE}/instances/muster-broker")
    assert machine["disks"][0]["source"].endswith("/disks/muster-broker")
    assert reader.get("storage", f"b/{STORE}")["timeCreated"] == bucket["timeCreated"]
    unchanged(play)
    google.workload("muster", REGION)


def test_teardown_with_data_leaves_nothing_of_ours(play: Play, google: Simulator, reader: Reader) -> None:
    """A load balancer that a Service left keeps the network: the run says what is in the way, and goes on when it is gone."""
    done = play("gke_teardown", **DATA_TOO)
    assert recap(done)["failed"] == 1
    assert "k8s-fw-" in play.said()
    for kind, names in left({}, hold(google)).items():
        for name in names:
            if kind in ("forwardingRules", "targetPools", "firewalls", "disks"):
                reader.send("DELETE", "compute", name)
    for _look in range(5):
        left({}, hold(google))
        reader.compute("global/firewalls")
    done = play("gke_teardown", **DATA_TOO)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert left({}, hold(google)) == {}


# What is not ours

STRANGERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "network": ("compute", f"projects/{PROJECT}/global/networks", {"name": "muster", "autoCreateSubnetworks": False}),
    "service account": (
        "iam", f"projects/{PROJECT}/serviceAccounts", {"accountId": "muster-nodes", "serviceAccount": {"displayName": "x"}},
    ),
    "bucket": ("storage", f"b?project={PROJECT}", {"name": STORE, "location": REGION}),
    "address": (
        "compute", f"projects/{PROJECT}/regions/{REGION}/addresses", {"name": "muster-broker", "addressType": "EXTERNAL"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRANGERS)
def test_what_is_not_ours_is_refused_and_stays(play: Play, google: Simulator, reader: Reader, kind: str) -> None:
    """In a project of its own; what was made before it in the run is torn down without it."""
    google.reset()
    google.enable()
    service, path, body = STRANGERS[kind]
    reader.send("POST", service, path, **body)
    for _look in range(3):
        before = hold(google)
    kubeconfig = str(play.folder / f"{kind}.kubeconfig")
    done = play("gke", *NO_MACHINE, muster_kubeconfig=kubeconfig)
    assert recap(done)["failed"] == 1, done.stdout[-3000:]
    assert "somebody else created it" in play.said()
    gone = play("gke_teardown", muster_kubeconfig=kubeconfig, **DATA_TOO)
    assert gone.returncode == 0, gone.stdout[-3000:] + gone.stderr[-500:]
    after = hold(google)
    assert left(before, after) == {}
    assert {kind: {name: after[kind].get(name) for name in rows} for kind, rows in before.items()} == before


def settled(reader: Reader, service: str, where: str) -> None:
    """Until no operation runs there: the simulator goes on with each look."""
    while True:
        rows = reader.get(service, f"{where}/operations").get(
            {"compute": "items", "container": "operations"}[service], []
        )
        if all(row["status"] == "DONE" for row in rows):
            return
        for row in rows:
            reader.get(service, f"{where}/operations/{row['name']}")


def made_by_somebody_else(reader: Reader) -> None:
    """A network with a cluster in it, both called theirs."""
    project, region = f"projects/{PROJECT}", f"projects/{PROJECT}/regions/{REGION}"
    reader.send("POST", "compute", f"{project}/global/networks", name="theirs", autoCreateSubnetworks=False)
    settled(reader, "compute", f"{project}/global")
    secondary = [
        {"rangeName": "pods", "ipCidrRange": "10.60.0.0/17"},
        {"rangeName": "services", "ipCidrRange": "10.60.128.0/20"},
    ]
    reader.send(
        "POST", "compute", f"{region}/subnetworks", name="theirs", network=f"{project}/global/networks/theirs",
        ipCidrRange="10.60.144.0/24", secondaryIpRanges=secondary,
    )  # fmt: skip
    settled(reader, "compute", region)
    ranges = {"useIpAliases": True, "clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"}
    cluster = {
        "name": "theirs", "network": "theirs", "subnetwork": "theirs", "initialNodeCount": 1, "ipAllocationPolicy": ranges,
        "workloadIdentityConfig": {"workloadPool": f"{PROJECT}.svc.id.goog"},
    }  # fmt: skip
    reader.send("POST", "container", f"projects/{PROJECT}/locations/{REGION}/clusters", cluster=cluster)
    settled(reader, "container", f"projects/{PROJECT}/locations/{REGION}")


def test_a_cluster_of_somebody_elses_is_used_and_left_as_it_was(play: Play, google: Simulator, reader: Reader) -> None:
    google.reset()
    google.enable()
    made_by_somebody_else(reader)
    kubeconfig = play.folder / "theirs.kubeconfig"
    theirs = {
        "muster_gke_name": "theirs", "muster_kubeconfig": str(kubeconfig), "muster_systems": [], "gke_manage_broker_vm": False,
        "gke_network_firewall_rules": [], "gke_node_pools_pools": [{**MANAGEMENT, "name": "ours"}], "gcs_buckets_buckets": [],
    }  # fmt: skip
    before = hold(google)
    refused = play("gke", **theirs, gke_cluster_network="theirs", gke_manage_network=False)
    assert recap(refused)["failed"] == 1
    assert "GKE cluster theirs exists and does not carry the label muster-owner=theirs" in play.said()
    adopted = {**theirs, "gke_manage_cluster": False}
    kubeconfig.write_text("somebody else's\n", encoding="utf-8")
    refused = play("gke", **adopted)
    assert "is not the kubeconfig that Muster writes for theirs" in play.said()
    assert kubeconfig.read_text(encoding="utf-8") == "somebody else's\n"
    kubeconfig.unlink()
    run(play, **adopted)
    pools = {row["name"] for row in reader.container(f"{REGION}/clusters/theirs")["nodePools"]}
    assert pools == {"default-pool", "ours"}
    gone = play("gke_teardown", **adopted, **DATA_TOO)
    assert gone.returncode == 0, gone.stdout[-3000:] + gone.stderr[-500:]
    after = hold(google)
    assert left(before, after) == {}
    assert after["clusters"].keys() == before["clusters"].keys()
    assert kubeconfig.exists()


# Faults, each in the way of a run from an empty project

POOLS = "container.projects.locations.clusters.nodePools.create"
NO_MACHINES = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "The zone does not have enough resources available"}
NO_NETWORKS = {"code": "QUOTA_EXCEEDED", "message": "Quota 'NETWORKS' exceeded. Limit: 15.0 globally."}
FAULTS: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "refuse",
        "serviceusage.services.batchEnable",
        {"status": 403, "message": "Permission denied"},
        "Permission denied",
    ),
    ("operation_error", "compute.networks.insert", NO_NETWORKS, "Quota 'NETWORKS' exceeded"),
    ("drop", "compute.routers.insert", {}, "could not be reached"),
    ("refuse", "iam.projects.serviceAccounts.create", {"status": 403, "message": "no accounts"}, "no accounts"),
    (
        "operation_error",
        "container.projects.locations.clusters.create",
        {"code": 13, "message": "lost"},
        "lost",
    ),
    ("stock_out", POOLS, {}, "Google has no e2-standard-4 left in us-central1. Try other zones"),
    ("quota", POOLS, {"metric": "CPUS"}, "quota"),
    ("refuse", "storage.buckets.insert", {"status": 403, "message": "no buckets"}, "no buckets"),
    ("operation_error", "compute.instances.insert", NO_MACHINES, "try another zone"),
]
RIDDEN_OUT = (
    ("throttle", "compute.subnetworks.get"),
    ("throttle", "container.projects.locations.clusters.get"),
    ("throttle", "iam.projects.serviceAccounts.get"),
    ("slow", "container.projects.locations.clusters.create"),
    ("stale", "compute.networks.get"),
)


def test_each_fault_is_one_clear_error_and_the_rerun_converges(play: Play, google: Simulator) -> None:
    google.reset()
    play.api_server.empty()
    play.settings["muster_systems"] = []
    for kind, method in RIDDEN_OUT:
        google.fault(kind, method)
    for kind, method, detail, words in FAULTS:
        google.fault(kind, method, **detail)
        done = play("gke", *NO_MACHINE)
        assert recap(done)["failed"] == 1, (method, done.stdout[-3000:])
        assert words.lower() in play.said().lower(), method
        assert done.stdout.count("[ERROR]") + done.stderr.count("[ERROR]") == 1, method
    run(play)
    assert google.ask("faults") == []
    unchanged(play)
    whole = hold(google)
    google.reset()
    run(play)
    assert {kind: rows.keys() for kind, rows in hold(google).items()} == {
        kind: rows.keys() for kind, rows in whole.items()
    }


def killed_after(play: Play, number: int) -> None:
    """The run, ended with everything that it started once the project has got so many writes."""
    process = subprocess.Popen(
        play.command("gke", *NO_MACHINE), cwd=ROOT, env=play.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    while len(play.google.writes()) < number and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("number", [3, 11, 19])
def test_a_run_that_was_killed_is_taken_up(play: Play, google: Simulator, number: int) -> None:
    """Between two of its requests to Google, or in the middle of one."""
    google.reset()
    Path(play.settings["muster_kubeconfig"]).unlink(missing_ok=True)
    google.clear()
    killed_after(play, number)
    run(play)
    unchanged(play)


def permissions(part: str) -> list[str]:
    """What docs/platforms/gke.md says is needed for it, and for what stands before."""
    page = (ROOT / "docs" / "platforms" / "gke.md").read_text(encoding="utf-8")
    table = page.split("<!-- begin: permissions -->")[1].split("<!-- end: permissions -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    found: list[str] = []
    for name, cell in rows[1:]:
        found += re.findall(r"`([a-z]+\.[A-Za-z.*]+)`", cell)
        if name == part:
            return found
    raise LookupError(part)


def test_the_permissions_of_the_page_are_enough(play: Play, google: Simulator) -> None:
    google.reset()
    Path(play.settings["muster_kubeconfig"]).unlink(missing_ok=True)
    play.api_server.empty()
    play.settings["muster_systems"] = ["studioml"]
    for part, playbook, options, settings in (
        ("check", "gke", ("--check",), {}),
        ("apply", "gke", NO_MACHINE, {}),
        ("check", "gke", ("--check",), {}),
        ("tear down", "gke_teardown", (), DATA_TOO),
    ):
        google.permissions(permissions(part))
        done = play(playbook, *options, **settings)
        assert done.returncode == 0, (part, done.stdout[-3000:] + done.stderr[-500:])
    assert "roles/owner" not in str(hold(google))
