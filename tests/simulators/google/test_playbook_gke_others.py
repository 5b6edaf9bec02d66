# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/gke.yml and gke_teardown.yml where something is in the way: settings that cannot be, and what belongs to somebody else."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulators.google.client import PROJECT, Simulator
from simulators.google.play import DATA_TOO, MANAGEMENT, NO_MACHINE, SETTINGS, Play, failure, hold, left, playground
from simulators.google.reader import COMPUTE, GKE, IAM, REGION, Reader, cluster
from simulators.processes import recap


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    settings = {"muster_systems": [], "gke_manage_broker_vm": True, "gke_node_pools_pools": [MANAGEMENT]}
    with playground(tmp_path_factory.mktemp("gke"), settings) as ground:
        yield ground


@pytest.fixture(scope="module")
def google(play: Play) -> Simulator:
    return play.google


TAINTED = {**MANAGEMENT, "config": {"machine_type": "e2-standard-4", "taints": [{"key": "a", "value": "b", "effect": "NO_SCHEDULE"}]}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "project": ({"muster_gcp_project": ""}, "Nothing is not the ID of a Google Cloud project. Set muster_gcp_project"),
    "region": ({"muster_gcp_region": ""}, "Nothing is not a region. Set muster_gcp_region, such as us-central1"),
    "doors": ({"gke_cluster_master_authorized_networks": []}, "could reach the API server of doors, this run included."),
    "private": (
        {"gke_cluster_master_authorized_networks": [{"cidr_block": "10.0.0.0/8"}]}, "no request from the internet comes from 10.0.0.0/8",
    ),
    "closed": (
        {
            "gke_cluster_private_only": True,
            "gke_cluster_master_authorized_networks": [{"cidr_block": "10.0.0.0/8"}, {"cidr_block": "8.0.0.0/8"}],
        },
        "no client reaches the API server from 8.0.0.0/8, and GKE refuses such ranges",
    ),
    "cidr": ({"gke_network_cidr": "10.40.0.0/20"}, "The smallest range that fits is a /16, such as 10.40.0.0/16."),
    "nodes": ({"muster_gke_nodes": 3}, "may have 4 nodes together, with those that upgrades add, and the network has addresses for 3"),
    "tainted": ({"gke_node_pools_pools": [TAINTED]}, "so that the pods of GKE itself, such as DNS, would have no node"),
    "slice": ({"muster_systems": ["tpu"], "tpu_topology": "4x5"}, "no slice with topology 4x5 (20 chips). The nearest are 4x4 or 4x8"),
    "open": (
        {"gke_network_firewall_rules": [{"name": "admits-all", "allowed": [{"ip_protocol": "tcp"}]}]}, "admits-all has no source_ranges",
    ),
    "editor": ({"gcp_identity_node_roles": ["roles/editor"]}, "roles/editor would give every pod"),
    "bucket": ({"gcs_buckets_buckets": [{"name": "Google-Bucket"}]}, "Google-Bucket cannot be the name of a bucket"),
    "owner": (
        {"muster_gcp_owner": f"{'m' * 40}--northamerica-northeast1"}, "m--northamerica-northeast1 (65 characters) cannot be the owner",
    ),
    "long": ({"muster_gke_name": "m" * 30}, "m-tpu cannot be the name of a service account"),
}  # fmt: skip


def test_what_cannot_be_is_refused_before_anything_is_asked(play: Play, google: Simulator) -> None:
    """One run for a cluster of each."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    hosts = {
        name: {
            **local, **SETTINGS, **play.settings, "muster_gke_name": name, "muster_kubeconfig": str(play.folder / f"{name}.kubeconfig"),
            **wrong,
        }
        for name, (wrong, _words) in REFUSED.items()
    }  # fmt: skip
    inventory = play.folder / "refused.yml"
    inventory.write_text(yaml.safe_dump({"muster_clusters": {"hosts": hosts}}), encoding="utf-8")
    google.clear()
    play = dataclasses.replace(play, settings={})
    done = play("gke", "-i", str(inventory))
    counts = {line.split()[0]: line for line in done.stdout.splitlines() if " failed=" in line}
    for name, (_wrong, words) in REFUSED.items():
        assert words in play.said(), name
        assert " failed=1 " in counts[name]
    assert google.ask("requests") == []


@pytest.mark.prove
def test_what_is_not_ours_is_refused_and_stays(play: Play, google: Simulator, reader: Reader) -> None:
    """An address of the broker's name. What was made before it in the run is torn down without it."""
    google.enable()
    body = {"name": "muster-broker", "addressType": "EXTERNAL"}
    reader.write("POST", f"{COMPUTE}/regions/{REGION}/addresses", body)
    before = hold(google)
    done = play("gke", *NO_MACHINE)
    assert recap(done)["failed"] == 1, failure(done)
    assert "another owner created it" in play.said()
    assert left(before, hold(google))
    gone = play("gke_teardown", **DATA_TOO)
    assert gone.returncode == 0, failure(gone)
    after = hold(google)
    assert left(before, after) == {}
    assert {kind: {name: after[kind].get(name) for name in rows} for kind, rows in before.items()} == before


@pytest.mark.prove
def test_a_bucket_of_another_project_is_named_and_the_teardown_goes_on(play: Play, google: Simulator, reader: Reader) -> None:
    """What a run has made before it was refused the name goes; and Google may be too busy for a listing for a while."""
    google.reset()
    google.enable()
    account = {"description": f"(muster-owner=muster--{REGION})"}
    made = reader.write("POST", IAM, {"accountId": "muster-storage", "serviceAccount": account})
    reader.get(f"{IAM}/{made['email']}")  # the first look does not see it yet
    google.clear()
    google.fault("throttle", "compute.firewalls.list", status=503)
    buckets = [{"name": "training-data", "readers": ["group:ops@example.com"], "writers": ["group:ml@example.com"]}]
    gone = play("gke_teardown", **DATA_TOO, muster_systems=["studioml"], gcs_buckets_buckets=buckets)
    assert gone.returncode == 0, failure(gone)
    assert "Google bucket training-data was kept: it cannot be judged: another project owns it" in play.said()
    assert google.writes() == ["iam:projects.serviceAccounts.delete"]


def made_by_somebody_else(reader: Reader) -> None:
    """A network with a cluster in it, both called theirs."""
    reader.write("POST", f"{COMPUTE}/global/networks", {"name": "theirs", "autoCreateSubnetworks": False})
    reader.subnetwork(REGION, "theirs", "theirs", "10.60.144.0/24", pods="10.60.0.0/17", services="10.60.128.0/20")
    pool = {"workloadPool": f"{PROJECT}.svc.id.goog"}
    body = cluster("theirs", "theirs", "theirs", initialNodeCount=1, workloadIdentityConfig=pool)
    reader.write("POST", f"{GKE}/{REGION}/clusters", body)


@pytest.mark.prove
def test_a_cluster_of_somebody_elses_is_used_and_left_as_it_was(play: Play, google: Simulator, reader: Reader) -> None:
    """With gke_manage_cluster: false. So is a kubeconfig that Muster did not write. Our node pool stays while others have pods on it."""
    google.reset()
    google.enable()
    made_by_somebody_else(reader)
    kubeconfig = Path(play.folder / "theirs.kubeconfig")
    adopted = {
        "muster_gke_name": "theirs", "muster_kubeconfig": str(kubeconfig), "gke_manage_cluster": False, "gke_manage_broker_vm": False,
        "gke_node_pools_pools": [MANAGEMENT], "muster_systems": ["studioml"],
    }  # fmt: skip
    before = hold(google)
    kubeconfig.write_text("somebody else's\n", encoding="utf-8")
    refused = play("gke", **adopted)
    assert recap(refused)["failed"] == 1, failure(refused)
    assert "is not the kubeconfig that Muster writes for theirs--us-central1." in play.said()
    assert kubeconfig.read_text(encoding="utf-8") == "somebody else's\n"
    kubeconfig.unlink()
    done = play("gke", **adopted)
    assert done.returncode == 0, failure(done)
    pools = {row["name"] for row in reader.get(f"{GKE}/{REGION}/clusters/theirs")["nodePools"]}
    assert pools == {"default-pool", "management"}
    stored = play.api_server.cluster.stored
    assert stored("Namespace", "ml"), "the key of the buckets is in a Secret in it"
    google.clear()
    pod = {"metadata": {"name": "web", "namespace": "theirs"}, "spec": {"nodeName": "gke-muster-management-0"}}
    play.api_server.cluster.add({"apiVersion": "v1", "kind": "Pod", **pod})
    kept = play("gke_teardown", **adopted, **DATA_TOO)
    assert (recap(kept)["failed"], google.attempts()) == (1, []), failure(kept)
    assert "A node pool of GKE cluster theirs stays, and nothing in the cloud was removed: it has what is not of this" in play.said()
    told = play("gke_teardown", "--check", **adopted, muster_delete_cluster=True)
    assert told.returncode == 0, failure(told)
    play.api_server.cluster.objects = {key: one for key, one in play.api_server.cluster.objects.items() if "theirs" not in key}
    gone = play("gke_teardown", **adopted, **DATA_TOO)
    assert gone.returncode == 0, failure(gone)
    after = hold(google)
    assert left(before, after) == {}
    assert after["clusters"].keys() == before["clusters"].keys()
    assert not stored("Namespace", "ml"), "it was empty once the Secret had gone"
    assert kubeconfig.exists()
