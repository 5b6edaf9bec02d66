# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/gke.yml and gke_teardown.yml with their roles: one project's life.

Role gcp_artifact_registry is among them. The tests stand on each other, in order: the plan, the run, again, later changes, another key,
teardown; then from what teardown kept a run that is killed, runs that fail and one that finishes; then everything goes. Every run has the
permissions that docs/platforms/gke.md publishes for it, and no others. Google's own libraries and gcloud read back what is there.

What is not ours is in test_playbook_gke_others.py; faults, interruptions and changes one by one are in test_modules_*.py.
"""

import base64
import copy
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import container_v1, storage
from google.oauth2.credentials import Credentials
from support import canary, released

from simulators.google.client import ACCESS_TOKEN, PROJECT, Simulator
from simulators.google.play import DATA_TOO, MANAGEMENT, NO_MACHINE, ROOT, TOKEN, Play, failure, hold, left, playground
from simulators.google.reader import COMPUTE, GKE, IAM, PROJECTS, REGION, STORAGE, ZONE, Reader
from simulators.processes import recap

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
OFFICE: dict[str, Any] = {
    "name": "office",
    "source_ranges": ["198.51.100.0/24", "203.0.113.0/24"],
    "allowed": [{"ip_protocol": "tcp", "ports": ["443", "8443"]}],
}
GUESTS: dict[str, Any] = {**OFFICE, "name": "guests"}
BUCKETS = STORE, SCRIPTS, MODELS, CHECKPOINTS = [f"{PROJECT}-muster-{name}" for name in ("studioml", "scripts", "models", "checkpoints")]
MARK = f"muster-owner=muster--{REGION}"
OURS = {"muster-owner": f"muster--{REGION}"}
CLUSTER = f"{GKE}/{REGION}/clusters/muster"
DISK = f"{COMPUTE}/zones/{ZONE}/disks/muster-broker"
MACHINE = f"{COMPUTE}/zones/{ZONE}/instances/muster-broker"
IMAGES = f"https://artifactregistry.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/repositories"
INFERENCE = f"{COMPUTE}/global/addresses/muster-inference"
HMAC = "storage:projects.hmacKeys"


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    settings = {
        "muster_systems": ["studioml", "elastic", "triton", "tpu"],
        "gke_node_pools_pools": [MANAGEMENT, GPU],
        "tpu_type": "v5p",
        "tpu_topology": "2x2x2",
        "tpu_slices": 2,
        "gke_network_firewall_rules": [OFFICE, GUESTS],
        "muster_gke_nodes": 50,
        "triton_gateway": True,
    }
    # The release cannot be reached from here.
    jobset = released.manifest("jobset", {"jobsets.jobset.x-k8s.io/v1alpha2": "JobSet"})
    file = released.written(tmp_path_factory.mktemp("released"), jobset)
    settings |= {"jobset_manifest": file.pop("manifest"), "jobset_options": file}
    with playground(tmp_path_factory.mktemp("gke"), settings) as ground:
        yield ground


@pytest.fixture(scope="module")
def google(play: Play) -> Simulator:
    return play.google


def run(play: Play, **settings: Any) -> subprocess.CompletedProcess[str]:
    done = play("gke", *NO_MACHINE, **settings)
    assert done.returncode == 0, failure(done)
    return done


def whole(google: Simulator) -> dict[str, set[str]]:
    """What there is, by name; a key of the buckets has another one each time, and what Google makes has a part of the cluster's id.

    What was deleted is kept by Google for a while.
    """
    return {
        kind: {"one"} if kind == "hmacKeys" else {re.sub(r"(/gke-.*?)-[0-9a-f]{8}(-[0-9a-f]{4}$)?", r"\1-ID", name) for name in rows}
        for kind, rows in hold(google).items()
        if not kind.startswith("deleted")
    }


# Shows rows 002.1 and 003.1.
def test_the_plan_from_nothing_is_what_the_run_then_does(play: Play, google: Simulator) -> None:
    """Call by call, from a project with no API enabled; only what is on the cluster can be planned once there is one."""
    nothing = hold(google)
    google.clear()
    planned = play("gke", "--check")
    assert planned.returncode == 0, failure(planned)
    assert (google.attempts(), hold(google)) == ([], nothing)
    assert not Path(play.settings["muster_kubeconfig"]).exists()
    plan = play.actions()
    assert len(plan) >= 25
    assert "pods 10.40.0.0/18 (50 nodes x 256 (110 pods a node))" in play.said()
    google.clear()
    run(play)
    assert google.writes() == play.actions() == [*plan, f"{HMAC}.create"]


def test_again_nothing_is_changed(play: Play, google: Simulator) -> None:
    """No write is sent to Google or to the cluster."""
    google.clear()
    play.api_server.clear()
    done = run(play)
    assert (recap(done)["changed"], google.attempts(), play.api_server.writes()) == (0, [], []), failure(done)


@pytest.mark.prove
def test_a_run_for_another_region_is_refused_and_its_teardown_leaves_everything(play: Play, google: Simulator) -> None:
    """Another team's inventory with the default name, in the same project: networks, accounts, rules, addresses and buckets are once in a
    project. So is the kubeconfig on this machine."""
    there = hold(google)
    kubeconfig = Path(play.settings["muster_kubeconfig"]).read_text(encoding="utf-8")
    google.clear()
    done = play("gke", *NO_MACHINE, muster_gcp_region="europe-west1")
    assert recap(done)["failed"] == 1, failure(done)
    assert f"Google network muster exists and does not carry the mark muster-owner=muster--europe-west1: it has {MARK}" in play.said()
    gone = play("gke_teardown", **DATA_TOO, muster_gcp_region="europe-west1")
    assert gone.returncode == 0, failure(gone)
    for noun in ("network", "service account", "firewall", "address", "bucket"):
        assert re.search(rf"Google {noun} \S+ was kept: .* but {MARK}", play.said()), noun
    assert (google.attempts(), hold(google)) == ([], there)
    assert Path(play.settings["muster_kubeconfig"]).read_text(encoding="utf-8") == kubeconfig


# Shows row 002.16.
def test_the_kubeconfig_has_no_secret(play: Play, reader: Reader) -> None:
    path = Path(play.settings["muster_kubeconfig"])
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert TOKEN not in text
    assert ACCESS_TOKEN not in text
    found, cluster = yaml.safe_load(text), reader.get(CLUSTER)
    ours = found["clusters"][0]["cluster"]
    assert ours["server"] == f"https://{cluster['endpoint']}"
    assert ours["certificate-authority-data"] == cluster["masterAuth"]["clusterCaCertificate"]
    assert found["users"][0]["user"]["exec"]["command"] == "gke-gcloud-auth-plugin"


# Shows rows 002.2, 002.11, 003.3 and 003.4.
def test_doors_are_closed(reader: Reader) -> None:
    cluster = reader.get(CLUSTER)
    assert cluster["workloadIdentityConfig"] == {"workloadPool": f"{PROJECT}.svc.id.goog"}
    assert cluster["resourceLabels"] == OURS
    assert [row["cidrBlock"] for row in cluster["masterAuthorizedNetworksConfig"]["cidrBlocks"]] == ["203.0.113.0/24"]
    pools = {row["name"]: row for row in cluster["nodePools"]}
    assert pools.keys() == {"management", "gpu", "tpu-0", "tpu-1"}
    for pool in pools.values():
        assert pool["config"]["serviceAccount"] == f"muster-nodes@{PROJECT}.iam.gserviceaccount.com"
        assert pool["networkConfig"]["enablePrivateNodes"] is True
    broker = reader.get(f"{COMPUTE}/global/firewalls/muster-broker")
    assert broker["allowed"] == [{"IPProtocol": "tcp", "ports": ["5671", "15671"]}]
    assert broker["targetTags"] == ["muster-broker"]
    assert sorted(broker["sourceRanges"]) == ["10.40.0.0/18", "10.40.80.0/25", "203.0.113.0/24"]
    assert reader.get(f"{COMPUTE}/global/firewalls/muster-broker-ssh")["sourceRanges"] == ["203.0.113.0/24"]
    machine = reader.get(MACHINE)
    assert machine["tags"]["items"] == ["muster-broker"]
    assert (machine["machineType"].rpartition("/")[2], reader.get(DISK)["sizeGb"]) == ("e2-standard-2", "20")
    static = reader.get(f"{COMPUTE}/regions/{REGION}/addresses/muster-broker")["address"]
    assert static in str(machine["networkInterfaces"])
    assert not machine.get("serviceAccounts")
    policy = reader.members("POST", f"{PROJECTS}:getIamPolicy")
    ours = {role for role, members in policy.items() if any("muster-" in member for member in members)}
    assert ours == {"roles/container.defaultNodeServiceAccount"}
    for bucket in BUCKETS:
        found = reader.get(f"{STORAGE}/b/{bucket}")["iamConfiguration"]
        assert (found["uniformBucketLevelAccess"]["enabled"], found["publicAccessPrevention"]) == (True, "enforced")
    for system, account, bucket in (("elastic", "elastic", SCRIPTS), ("triton", "triton-models", MODELS)):
        email = f"muster-{system}@{PROJECT}.iam.gserviceaccount.com"
        pods = reader.members("POST", f"{IAM}/{email}:getIamPolicy")
        assert pods == {"roles/iam.workloadIdentityUser": [f"serviceAccount:{PROJECT}.svc.id.goog[ml/{account}]"]}
        access = reader.members("GET", f"{STORAGE}/b/{bucket}/iam")
        reads = {role for role, members in access.items() if f"serviceAccount:{email}" in members}
        assert reads == {"roles/storage.objectViewer", "roles/storage.legacyBucketReader"}
    images = reader.members("GET", f"{IMAGES}/muster:getIamPolicy")
    assert images == {"roles/artifactregistry.reader": [f"serviceAccount:muster-nodes@{PROJECT}.iam.gserviceaccount.com"]}


# Shows row 003.17.
def test_each_slice_of_tpus_has_a_pool_that_begins_with_no_node(reader: Reader) -> None:
    """The slices of the training, in the one zone that they can be in."""
    pools = {row["name"]: row for row in reader.get(CLUSTER)["nodePools"]}
    for pool in (pools["tpu-0"], pools["tpu-1"]):
        assert pool["config"]["machineType"] == "ct5p-hightpu-4t"
        assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "2x2x2"}
        assert pool["locations"] == [f"{REGION}-a"]
        assert pool.get("initialNodeCount", 0) == 0
        scaling = {"enabled": True, "maxNodeCount": 2, "locationPolicy": "ANY"}
        assert {key: value for key, value in pool["autoscaling"].items() if value} == scaling
        assert pool["config"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
        assert {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"} in pool["config"]["taints"]


# Shows row 003.18.
def test_pods_of_the_training_write_its_bucket_and_nothing_else(play: Play, google: Simulator, reader: Reader) -> None:
    """By Workload Identity, and through the driver that shows a bucket as a folder."""
    email = f"muster-tpu@{PROJECT}.iam.gserviceaccount.com"
    assert reader.get(CLUSTER)["addonsConfig"]["gcsFuseCsiDriverConfig"] == {"enabled": True}
    pods = reader.members("POST", f"{IAM}/{email}:getIamPolicy")
    assert pods == {"roles/iam.workloadIdentityUser": [f"serviceAccount:{PROJECT}.svc.id.goog[ml/tpu]"]}
    access: dict[str, set[str]] = {}
    for bucket in hold(google)["buckets"]:
        for role, members in reader.members("GET", f"{STORAGE}/b/{bucket}/iam").items():
            if f"serviceAccount:{email}" in members:
                access.setdefault(bucket, set()).add(role)
    assert access == {CHECKPOINTS: {"roles/storage.objectUser", "roles/storage.legacyBucketReader"}}
    account = play.api_server.cluster.stored("ServiceAccount", "tpu", "ml")
    assert account
    assert account["metadata"]["annotations"]["iam.gke.io/gcp-service-account"] == email


@pytest.mark.prove
def test_a_training_is_planned_for_the_slices_of_the_pools(play: Play, google: Simulator) -> None:
    """By playbooks/tpu.yml: pods for the nodes of the pools, and the bucket as the folder that the script writes to."""
    google.clear()
    planned = play("tpu", "--check", tpu_image="example/jax-tpu:0.10", tpu_options={"pod_annotations": {"team": "vision"}})
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    for line in (
        "JobSet ml/jax-digits",
        "replicas: 2",
        "completions: 2",
        "google.com/tpu: '4'",
        "cloud.google.com/gke-tpu-accelerator: tpu-v5p-slice",
        "cloud.google.com/gke-tpu-topology: 2x2x2",
        "alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool",
        "gke-gcsfuse/volumes: 'true'",
        "team: vision",
        f"bucketName: {CHECKPOINTS}",
        "serviceAccountName: tpu",
    ):
        assert line in planned.stdout, line


def test_a_gateway_of_triton_has_its_address_and_its_classes(reader: Reader) -> None:
    """Global, as the inventory's class of Gateways takes no other one; it outlives whatever is on the cluster."""
    address = reader.get(INFERENCE)
    assert (address["status"], address["labels"]) == ("RESERVED", OURS)
    assert reader.get(CLUSTER)["networkConfig"]["gatewayApiConfig"] == {"channel": "CHANNEL_STANDARD"}


@pytest.mark.prove
def test_models_are_planned_for_the_bucket_that_the_server_reads(play: Play, google: Simulator) -> None:
    """By playbooks/triton.yml, with the permission to list objects and no more."""
    google.clear()
    models = [{"model": "add", "src": str(ROOT / "tests/acceptance/triton/files/models/add")}]
    given = {"triton_gateway": False, "triton_models": models, "gpu_drivers_flavour": "none"}
    planned = play("triton", "--check", also=["storage.objects.list"], **given)
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    assert f"model add in gs://{MODELS}/models" in planned.stdout
    assert f"--model-repository=gs://{MODELS}/models" in planned.stdout
    assert "serviceAccountName: triton-models" in planned.stdout


# Shows rows 002.14 and 003.2.
def test_googles_libraries_see_it(google: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in google.environment().items():
        monkeypatch.setenv(name, value)
    credentials = Credentials(ACCESS_TOKEN)
    cluster = container_v1.ClusterManagerClient(transport="rest", credentials=credentials).get_cluster(
        name=f"projects/{PROJECT}/locations/{REGION}/clusters/muster"
    )
    assert (cluster.network, cluster.subnetwork) == ("muster", "muster")
    assert cluster.release_channel.channel.name == "REGULAR"
    gpu = next(pool for pool in cluster.node_pools if pool.name == "gpu")
    management = next(pool for pool in cluster.node_pools if pool.name == "management")
    assert (management.config.machine_type, management.autoscaling.total_max_node_count) == ("e2-standard-4", 3)
    assert (gpu.config.machine_type, gpu.config.accelerators[0].accelerator_type) == ("n1-standard-4", "nvidia-tesla-t4")
    assert (gpu.config.taints[0].key, gpu.autoscaling.total_max_node_count) == ("nvidia.com/gpu", 4)
    driver = gpu.config.accelerators[0].gpu_driver_installation_config.gpu_driver_version.name
    assert driver == "DEFAULT"
    bucket = storage.Client(project=PROJECT, credentials=credentials).get_bucket(STORE)
    assert (bucket.location, bucket.labels) == (REGION.upper(), OURS)
    assert [rule["action"]["type"] for rule in bucket.lifecycle_rules] == ["AbortIncompleteMultipartUpload"]


def hmac_keys(reader: Reader) -> dict[str, str]:
    rows = reader.get(f"{STORAGE}/projects/{PROJECT}/hmacKeys?showDeletedKeys=false").get("items", [])
    return {row["accessId"]: row["state"] for row in rows}


def stored(play: Play, name: str) -> dict[str, str]:
    """A Secret as the cluster has it."""
    secret = play.api_server.cluster.stored("Secret", name, "ml")
    assert secret
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_systems_have_what_they_need_on_the_cluster(play: Play, reader: Reader) -> None:
    """The key of the buckets; with roles filestore_csi and gcp_identity a class for shared files and the service account of pods."""
    assert hmac_keys(reader) == {stored(play, "gcs-hmac")["access_key"]: "ACTIVE"}
    shared = play.api_server.cluster.stored("StorageClass", "filestore")
    assert shared
    assert shared["parameters"] == {"tier": "standard", "network": "muster"}
    for system, name in (("elastic", "elastic"), ("triton", "triton-models")):
        account = play.api_server.cluster.stored("ServiceAccount", name, "ml")
        assert account
        email = f"muster-{system}@{PROJECT}.iam.gserviceaccount.com"
        assert account["metadata"]["annotations"]["iam.gke.io/gcp-service-account"] == email


@pytest.mark.prove
def test_a_system_is_planned_with_what_the_run_will_know_of_the_broker(play: Play, google: Simulator) -> None:
    """Its authority is made when RabbitMQ is installed, after the plan."""
    google.clear()
    planned = play("studioml", "--check", gpu_drivers_flavour="none", studioml_runner_gpus=0)
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    assert "--- before: ConfigMap ml/studioml-go-runner-ca (absent)" in planned.stdout
    assert "StatefulSet ml/rabbitmq" not in planned.stdout


@pytest.mark.prove
@pytest.mark.parametrize("data", [False, True])
def test_the_logins_of_the_broker_go_with_its_data(play: Play, google: Simulator, data: bool) -> None:
    google.clear()
    planned = play("teardown", "--check", "--tags", "gke", gcp_broker_vm_delete_data=data)
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    assert ("--- before: Secret ml/gcp-broker-admin" in planned.stdout) is data


def later(reader: Reader) -> dict[str, Any]:
    management, gpu = copy.deepcopy(MANAGEMENT), copy.deepcopy(GPU)
    management["config"] = {"machine_type": "e2-standard-8", "labels": {"pool": "management"}}
    management["autoscaling"]["total_max_node_count"] = 5
    gpu["config"]["taints"].append({"key": "team", "value": "ml", "effect": "NO_EXECUTE"})
    gpu["config"]["labels"] = {"pool": "gpu"}
    major, minor = reader.get(CLUSTER)["currentMasterVersion"].split(".")[:2]
    return {
        "gke_node_pools_pools": [management, gpu],
        "gke_cluster_master_authorized_networks": [{"cidr_block": "203.0.113.0/25"}, {"cidr_block": "198.51.100.0/24"}],
        "gcp_broker_vm_allowed_ranges": ["203.0.113.0/25"],
        "gke_network_firewall_rules": [
            {**OFFICE, "source_ranges": ["203.0.113.0/25"], "allowed": [{"ip_protocol": "tcp", "ports": ["443"]}]},
            {"name": "guests", "state": "absent"},
        ],
        "tpu_slices": 3,
        "gke_cluster_release_channel": "RAPID",
        "muster_gke_version": f"{major}.{int(minor) + 1}",
        "gke_cluster_options": {"logging_components": ["SYSTEM_COMPONENTS"]},
        "muster_gcp_labels": {"team": "ml"},
        "gcs_buckets_buckets": [
            {"name": STORE, "versioning": True, "lifecycle_rules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]},
            {"name": SCRIPTS, "readers": [f"serviceAccount:muster-elastic@{PROJECT}.iam.gserviceaccount.com"]},
            {"name": MODELS, "readers": [f"serviceAccount:muster-triton@{PROJECT}.iam.gserviceaccount.com"]},
            {"name": CHECKPOINTS, "writers": [f"serviceAccount:muster-tpu@{PROJECT}.iam.gserviceaccount.com"]},
        ],
    }  # fmt: skip


@pytest.mark.prove
def test_what_changes_later_is_applied(play: Play, google: Simulator, reader: Reader) -> None:
    """Version, labels, taints, machines, autoscaling, authorised networks, channel, logging, lifecycle; and firewalls that get narrower.

    What somebody deleted is made again, with the disk that is there.
    """
    changed = later(reader)
    disk = reader.get(DISK)["id"]
    reader.write("DELETE", MACHINE)
    google.clear()
    # With the part that logs in to the broker's machine: there is none, and a plan does not try.
    planned = play("gke", "--check", **changed)
    assert planned.returncode == 0, failure(planned)
    assert google.attempts() == []
    plan = play.actions()
    assert "compute:instances.insert" in plan
    assert plan.count("container:projects.locations.clusters.nodePools.create") == 1
    play.settings |= changed
    run(play)
    assert google.writes() == plan == play.actions()
    cluster = reader.get(CLUSTER)
    assert cluster["releaseChannel"] == {"channel": "RAPID"}
    assert cluster["currentMasterVersion"].startswith(f"{changed['muster_gke_version']}.")
    assert cluster["loggingConfig"]["componentConfig"]["enableComponents"] == ["SYSTEM_COMPONENTS"]
    assert cluster["resourceLabels"] == {**OURS, "team": "ml"}
    ranges = {row["cidrBlock"] for row in cluster["masterAuthorizedNetworksConfig"]["cidrBlocks"]}
    assert ranges == {"203.0.113.0/25", "198.51.100.0/24"}
    pools = {row["name"]: row for row in cluster["nodePools"]}
    assert pools.keys() == {"management", "gpu", "tpu-0", "tpu-1", "tpu-2"}
    assert pools["management"]["autoscaling"]["totalMaxNodeCount"] == 5
    assert pools["management"]["config"]["labels"] == {"pool": "management"}
    assert {name: pool["config"]["resourceLabels"]["team"] for name, pool in pools.items()} == dict.fromkeys(pools, "ml")
    assert reader.get(INFERENCE)["labels"] == {**OURS, "team": "ml"}
    assert pools["management"]["config"]["machineType"] == "e2-standard-8"
    assert sorted(row["key"] for row in pools["gpu"]["config"]["taints"]) == ["nvidia.com/gpu", "team"]
    office = reader.get(f"{COMPUTE}/global/firewalls/muster-office")
    assert office["sourceRanges"] == ["203.0.113.0/25"]
    assert office["allowed"] == [{"IPProtocol": "tcp", "ports": ["443"]}]
    assert reader.get(f"{COMPUTE}/global/firewalls/muster-guests") is None
    broker = reader.get(f"{COMPUTE}/global/firewalls/muster-broker")
    assert sorted(broker["sourceRanges"]) == ["10.40.0.0/18", "10.40.80.0/25", "203.0.113.0/25"]
    assert (reader.get(DISK)["id"], reader.get(MACHINE)["disks"][0]["source"].rpartition("/")[2]) == (disk, "muster-broker")
    bucket = reader.get(f"{STORAGE}/b/{STORE}")
    assert bucket["lifecycle"]["rule"] == [{"action": {"type": "Delete"}, "condition": {"age": 30}}]
    assert (bucket["versioning"], bucket["labels"]) == ({"enabled": True}, {**OURS, "team": "ml"})


# Shows row 002.12.
@pytest.mark.prove
def test_the_key_of_the_buckets_is_rotated_and_nothing_else_is_changed(play: Play, google: Simulator, reader: Reader) -> None:
    before = stored(play, "gcs-hmac")
    google.clear()
    run(play, gcs_buckets_rotate=True)
    assert google.attempts() == play.actions() == [f"{HMAC}.create", f"{HMAC}.update", f"{HMAC}.delete"]
    after = stored(play, "gcs-hmac")
    assert after["access_key"] != before["access_key"]
    assert hmac_keys(reader) == {after["access_key"]: "ACTIVE"}
    for place in [*play.folder.glob("*.log"), *play.folder.glob("*.actions"), play.folder / "kubeconfig"]:
        for key in (before, after):
            assert not canary.in_text({"hmac": key["secret_key"]}, place.read_bytes()), place
    logins = ("gcp-broker-admin", "studioml-runner-login", "studioml-client-login")
    passwords = {name: stored(play, name)["password"] for name in logins}
    assert not canary.in_text(passwords, "".join(play.outputs).encode())


def test_a_cluster_that_others_use_stays(play: Play, google: Simulator) -> None:
    """A plan says the same. What the systems have on the cluster is nobody else's, as the next test shows."""
    cluster = play.api_server.cluster
    cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "diary", "namespace": "theirs"}})
    google.clear()
    for options in (["--check"], []):
        done = play("gke_teardown", *options)
        assert (recap(done)["failed"], google.attempts()) == (1, []), failure(done)
        assert "GKE cluster muster stays, and nothing in the cloud was removed: " in play.said()
        assert "it has what is not of this inventory: namespace theirs. " in play.said()
    cluster.objects = {key: item for key, item in cluster.objects.items() if "theirs" not in key}


# Shows row 003.14.
def test_teardown_takes_what_is_ours_and_keeps_data(play: Play, google: Simulator) -> None:
    """A plan first."""
    there = whole(google)
    google.clear()
    planned = play("gke_teardown", "--check")
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    plan = play.actions()
    done = play("gke_teardown")
    assert done.returncode == 0, failure(done)
    assert google.writes() == plan == play.actions()
    kept = left({}, hold(google))
    assert sorted(kept.pop("buckets")) == sorted(BUCKETS)
    assert [name.rsplit("/", 1)[-1] for name in kept.pop("disks")] == ["muster-broker"]
    assert kept == {}
    assert not Path(play.settings["muster_kubeconfig"]).exists()
    play.there = there


POOLS = "container.projects.locations.clusters.nodePools.create"
NO_MACHINES = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "The zone does not have enough resources available"}
RIDDEN_OUT: tuple[tuple[str, str], ...] = (
    ("throttle", "compute.subnetworks.get"),
    ("throttle", "container.projects.locations.clusters.get"),
    ("throttle", "iam.projects.serviceAccounts.get"),
    ("stale", "compute.networks.get"),
    ("drop", "compute.firewalls.insert"),
    ("slow", "compute.instances.insert"),
)
FAULTS: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("stock_out", POOLS, {}, "Google has no e2-standard-8 left in us-central1. Try other zones"),
    ("operation_error", "compute.instances.insert", NO_MACHINES, "try another zone"),
)


@pytest.mark.prove
def test_runs_that_are_killed_or_fail_are_taken_up_with_what_was_kept(play: Play, google: Simulator, reader: Reader) -> None:
    """Killed while the cluster is made, and when the address of the Gateway was made, which gets its labels later; then two runs that end
    with one clear error each; what passes by itself is ridden out."""
    disk, bucket = reader.get(DISK), reader.get(f"{STORAGE}/b/{STORE}")
    play.api_server.empty()
    play.killed("container:projects.locations.clusters.create", "gke", *NO_MACHINE)
    play.killed("compute:globalAddresses.insert", "gke", "--tags", "gcp_addresses")
    google.clear()
    for kind, method in RIDDEN_OUT:
        google.fault(kind, method)
    for kind, method, detail, words in FAULTS:
        google.fault(kind, method, **detail)
        done = play("gke", *NO_MACHINE)
        assert recap(done)["failed"] == 1, (method, failure(done))
        assert words.lower() in play.said().lower(), method
        # An element of a loop fails with another word than a task does.
        assert len(re.findall(r"(?m)^(?:fatal|failed): ", play.outputs[-1])) == 1, method
    run(play)
    assert google.ask("faults") == []
    assert whole(google) == play.there
    assert reader.get(DISK)["id"] == disk["id"]
    machine = reader.get(MACHINE)
    assert machine["disks"][0]["source"].endswith("/disks/muster-broker")
    assert reader.get(f"{STORAGE}/b/{STORE}")["timeCreated"] == bucket["timeCreated"]


@pytest.mark.prove
def test_teardown_with_data_leaves_nothing_of_ours(play: Play, google: Simulator, reader: Reader) -> None:
    """A load balancer that a Service left keeps the network until Google removes it. The run names what workloads left, with the disk of a
    claim, which stays."""
    google.workload("muster", REGION, fades=2)
    done = play("gke_teardown", **DATA_TOO)
    assert done.returncode == 0, failure(done)
    assert "In the project are still disk pvc-" in play.said()
    for words in (", load balancer a", ", firewall rule k8s-fw-a", ", network endpoint group k8s1-"):
        assert words in play.said()
    ((kind, (disk,)),) = left({}, hold(google)).items()
    assert kind == "disks"
    reader.write("DELETE", f"https://compute.googleapis.com/compute/v1/{disk}")
    google.clear()
    again = play("gke_teardown", **DATA_TOO)
    assert (again.returncode, recap(again)["changed"], google.attempts()) == (0, 0, []), failure(again)
