# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/gke.yml and gke_teardown.yml with muster_systems: [tpu]: pools of the training's slices, its bucket, its service account.

The tests stand on each other, in order: the plan, the run, again, another slice, what cannot be, teardown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simulators.google.client import PROJECT, Simulator
from simulators.google.play import DATA_TOO, MANAGEMENT, Play, failure, hold, left, playground
from simulators.google.reader import GKE, IAM, REGION, STORAGE, Reader
from simulators.processes import recap

CLUSTER = f"{GKE}/{REGION}/clusters/muster"
BUCKET = f"{PROJECT}-muster-checkpoints"
EMAIL = f"muster-tpu@{PROJECT}.iam.gserviceaccount.com"
POOLS = "container:projects.locations.clusters.nodePools"
SLICES = {"tpu_type": "v5p", "tpu_topology": "2x2x2", "tpu_slices": 2}


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    settings = {"muster_systems": ["tpu"], "gke_node_pools_pools": [MANAGEMENT], **SLICES}
    with playground(tmp_path_factory.mktemp("gke"), settings) as ground:
        yield ground


@pytest.fixture(scope="module")
def google(play: Play) -> Simulator:
    return play.google


def pools(reader: Reader) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in reader.get(CLUSTER)["nodePools"]}


def test_the_plan_from_nothing_is_what_the_run_then_does(play: Play, google: Simulator) -> None:
    nothing = hold(google)
    google.clear()
    planned = play("gke", "--check")
    assert planned.returncode == 0, failure(planned)
    assert (google.attempts(), hold(google)) == ([], nothing)
    plan = play.actions()
    assert plan.count(f"{POOLS}.create") == 3
    google.clear()
    done = play("gke")
    assert done.returncode == 0, failure(done)
    assert google.writes() == play.actions() == plan


def test_each_slice_has_a_pool_that_begins_with_no_node(reader: Reader) -> None:
    found = pools(reader)
    assert found.keys() == {"management", "tpu-0", "tpu-1"}
    for name in ("tpu-0", "tpu-1"):
        pool = found[name]
        assert pool["config"]["machineType"] == "ct5p-hightpu-4t"
        assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "2x2x2"}
        assert pool["locations"] == [f"{REGION}-a"]
        assert pool.get("initialNodeCount", 0) == 0
        scaling = {"enabled": True, "maxNodeCount": 2, "locationPolicy": "ANY"}
        assert {key: value for key, value in pool["autoscaling"].items() if value} == scaling
        assert pool["config"]["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
        assert {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"} in pool["config"]["taints"]


def test_pods_of_the_training_write_its_bucket_and_nothing_else(play: Play, reader: Reader) -> None:
    """By Workload Identity, and through the driver that shows a bucket as a folder."""
    assert reader.get(CLUSTER)["addonsConfig"]["gcsFuseCsiDriverConfig"] == {"enabled": True}
    roles = {"roles/iam.workloadIdentityUser": [f"serviceAccount:{PROJECT}.svc.id.goog[ml/tpu]"]}
    assert reader.members("POST", f"{IAM}/{EMAIL}:getIamPolicy") == roles
    access = {
        name: {role for role, members in reader.members("GET", f"{STORAGE}/b/{name}/iam").items() if f"serviceAccount:{EMAIL}" in members}
        for name in hold(play.google)["buckets"]
    }  # fmt: skip
    writes = {"roles/storage.objectUser", "roles/storage.legacyBucketReader"}
    assert {name: found for name, found in access.items() if found} == {BUCKET: writes}
    account = play.api_server.cluster.stored("ServiceAccount", "tpu", "ml")
    assert account
    assert account["metadata"]["annotations"]["iam.gke.io/gcp-service-account"] == EMAIL


def test_again_nothing_is_changed(play: Play, google: Simulator) -> None:
    google.clear()
    play.api_server.clear()
    done = play("gke")
    assert done.returncode == 0, failure(done)
    assert (recap(done)["changed"], google.attempts(), play.api_server.writes()) == (0, [], []), failure(done)


def test_the_training_is_planned_with_the_slices_of_its_pools(play: Play, google: Simulator, reader: Reader) -> None:
    """By playbooks/tpu.yml: pods for the nodes of the pools, and the bucket as a folder that the script writes to."""
    google.clear()
    planned = play("tpu", "--check", tpu_image="example/jax-tpu:0.10")
    assert (planned.returncode, google.attempts()) == (0, []), failure(planned)
    words = planned.stdout
    assert "+++ after: JobSet ml/digits" in words
    for line in (
        "replicas: 2",
        "completions: 2",
        "google.com/tpu: '4'",
        "cloud.google.com/gke-tpu-accelerator: tpu-v5p-slice",
        "cloud.google.com/gke-tpu-topology: 2x2x2",
        "alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool",
        "gke-gcsfuse/volumes: 'true'",
        f"bucketName: {BUCKET}",
        "serviceAccountName: tpu",
    ):
        assert line in words, line


def test_one_slice_more_is_one_pool_more(play: Play, google: Simulator, reader: Reader) -> None:
    google.clear()
    done = play("gke", tpu_slices=3)
    assert done.returncode == 0, failure(done)
    assert google.writes() == [f"{POOLS}.create"]
    assert pools(reader).keys() == {"management", "tpu-0", "tpu-1", "tpu-2"}


def test_a_slice_that_cannot_be_is_refused_before_anything_is_asked(play: Play, google: Simulator) -> None:
    google.clear()
    done = play("gke", tpu_topology="2x2x3")
    assert recap(done)["failed"] == 1, failure(done)
    assert "no slice with topology 2x2x3 (12 chips). The nearest are 2x2x2 or 2x2x4" in play.said()
    assert google.ask("requests") == []


def test_teardown_takes_every_pool_and_with_data_the_bucket(play: Play, google: Simulator) -> None:
    """As many slices as at first are asked for; the third one is ours, too."""
    google.clear()
    done = play("gke_teardown", **DATA_TOO)
    assert done.returncode == 0, failure(done)
    assert google.writes().count(f"{POOLS}.delete") == 4
    assert left({}, hold(google)) == {}
