# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs as manifests, and what their logs say."""

from __future__ import annotations

import json
import re
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._pod_programs.elastic_launch import LOG_PREFIX
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.native import NODE_LOST, manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import ElasticJob, from_params
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.world import World, with_reported, world

JOB: dict[str, t.Any] = {
    "name": "digits",
    "namespace": "ml",
    "image": "example/torch:1",
    "replicas": 2,
    "min_replicas": 1,
    "max_replicas": 3,
    "script": "train.py",
    "files": {"train.py": "print()"},
}


def job(**more: t.Any) -> ElasticJob:
    return from_params({**JOB, **more})


def of_kind(kind: str, **more: t.Any) -> dict[str, t.Any]:
    (found,) = [item for item in manifests(job(**more)) if item["kind"] == kind]
    return found


def env(**more: t.Any) -> dict[str, t.Any]:
    container = of_kind("Job", **more)["spec"]["template"]["spec"]["containers"][0]
    return {entry["name"]: entry.get("value") for entry in container["env"]}


def test_only_the_size_changes_when_it_is_scaled() -> None:
    two, three = of_kind("Job"), of_kind("Job", replicas=3)
    assert (three["spec"].pop("completions"), three["spec"].pop("parallelism")) == (3, 3)
    assert (two["spec"].pop("completions"), two["spec"].pop("parallelism")) == (2, 2)
    assert two == three
    assert job().parts == job(replicas=3).parts != job(max_restarts=9).parts


# Shows row 004.15.
def test_pods_meet_at_the_stable_name_of_pod_0() -> None:
    assert env()["PET_RDZV_ENDPOINT"] == "digits-0.digits.ml.svc:29400"
    assert env()["PET_NNODES"] == "1:3"
    assert env()["PET_RDZV_ID"] == "digits-$(MUSTER_RUN_UID)"
    assert of_kind("Service")["spec"]["publishNotReadyAddresses"]
    assert of_kind("Job")["spec"]["template"]["spec"]["subdomain"] == of_kind("Service")["metadata"]["name"]


def test_etcd_is_where_the_user_says() -> None:
    with_etcd = env(rdzv_backend="etcd-v2", rdzv_endpoint="etcd:2379", rdzv_conf={"protocol": "https"})
    assert with_etcd["PET_RDZV_ENDPOINT"] == "etcd:2379"
    assert with_etcd["PET_RDZV_CONF"].endswith("protocol=https")


# Shows row 004.17.
def test_gpus_and_shared_memory() -> None:
    spec = of_kind("Job", resources={"limits": {"nvidia.com/gpu": 1}}, shm_size="8Gi")["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"] == {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in spec["volumes"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]


def _tolerated(**more: t.Any) -> list[tuple[str, int | None]]:
    found = of_kind("Job", **more)["spec"]["template"]["spec"].get("tolerations") or []
    return [(entry.get("key", ""), entry.get("tolerationSeconds")) for entry in found]


def test_pods_leave_a_lost_node_when_the_user_says() -> None:
    not_ready, unreachable = NODE_LOST
    assert _tolerated() == [(not_ready, 30), (unreachable, 30)]
    assert _tolerated(unreachable_toleration_seconds=0) == [(not_ready, 0), (unreachable, 0)]
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert _tolerated(tolerations=[gpu]) == [("nvidia.com/gpu", None), (not_ready, 30), (unreachable, 30)]
    own = {"key": unreachable, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 900}
    assert _tolerated(tolerations=[own]) == [(unreachable, 900), (not_ready, 30)]
    assert _tolerated(tolerations=[{"operator": "Exists"}]) == [("", None)]


# Shows rows 004.6 and 004.7.
def test_checkpoints_are_on_a_class_or_a_claim_of_the_user() -> None:
    storage = {"claim_name": "lustre", "mount_path": "/shared", "access_modes": ["ReadWriteMany"]}
    spec = of_kind("PersistentVolumeClaim", storage={**storage, "storage_class_name": "fsx-sc", "size": "1200Gi"})["spec"]
    assert (spec["storageClassName"], spec["resources"]["requests"]["storage"]) == ("fsx-sc", "1200Gi")
    there = manifests(job(storage=storage))
    assert "PersistentVolumeClaim" not in [item["kind"] for item in there]
    assert "'claimName': 'lustre'" in str(there)


def test_a_script_in_a_bucket_is_fetched_first() -> None:
    spec = of_kind("Job", script="s3://bucket/folder/main.py")["spec"]["template"]["spec"]
    assert spec["initContainers"][0]["command"][-2:] == ["s3://bucket/folder/main.py", "/run/muster/script/main.py"]
    assert spec["containers"][0]["command"][-1] == "/run/muster/script/main.py"


@pytest.mark.parametrize("backend", ["native", "pytorchjob"])
def test_the_sum_of_a_script_in_a_bucket_reaches_the_program_that_fetches_it(backend: str) -> None:
    found = str(manifests(job(script="s3://bucket/main.py", script_sha256="0" * 64, backend=backend)))
    assert f"'s3://bucket/main.py', '/run/muster/script/main.py', '{'0' * 64}']" in found


def test_only_the_container_that_fetches_the_script_has_the_keys() -> None:
    of_store = {"script_endpoint_url": "http://store:7070", "script_credentials_secret": "reader"}
    spec = of_kind("Job", script="s3://bucket/main.py", **of_store)["spec"]["template"]["spec"]
    assert {"name": "DATASET_ENDPOINT_URL", "value": "http://store:7070"} in spec["initContainers"][0]["env"]
    assert spec["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "reader"}}]
    assert "reader" not in str(spec["containers"])


def test_a_script_that_cannot_be_fetched_fails_the_job() -> None:
    rules = {url: of_kind("Job", script=url)["spec"]["podFailurePolicy"]["rules"] for url in ("s3://b/main.py", "train.py")}
    told = {url: [rule["onExitCodes"]["containerName"] for rule in found if "onExitCodes" in rule] for url, found in rules.items()}
    assert told == {"s3://b/main.py": ["fetch-script", "worker", "worker", "worker"], "train.py": ["worker"] * 3}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"replicas": 4}, "replicas: 4"),
        ({"min_replicas": 0}, "min_replicas"),
        ({"script": "other.py"}, "script: 'other.py'"),
        ({"script": "s3://bucket"}, "names no object"),
        ({"script_credentials_secret": "reader"}, "script_credentials_secret: 'train.py' is in no bucket"),
        ({"script_sha256": "0" * 64}, "script_sha256: 'train.py' is in no bucket"),
        ({"script": "s3://bucket/main.py", "script_sha256": "sha256:abc"}, "script_sha256: not 64 hexadecimal digits"),
        ({"rdzv_backend": "etcd-v2"}, "rdzv_endpoint"),
        ({"rdzv_endpoint": "etcd:2379"}, "pod 0"),
        *(
            ({"rdzv_backend": "etcd-v2", "rdzv_endpoint": endpoint}, "is not HOST:PORT")
            for endpoint in ("http://etcd:2379", "etcd:2379/v2", "etcd:23790000", "a b:1", "::1:2379")
        ),
        ({"rdzv_backend": "etcd-v2", "rdzv_endpoint": "etcd:99999"}, "rdzv_endpoint"),
        ({"env": [{"name": "PET_MODULE", "value": "1"}]}, "PET_MODULE .* torchrun would not run a file of Python"),
        ({"env": [{"name": "PET_NNODES", "value": "2"}]}, "PET_NNODES .* Use option replicas, min_replicas"),
        ({"env": [{"name": "WORLD_SIZE", "value": "2"}]}, "WORLD_SIZE .* set for each"),
        ({"args": ["--nproc_per_node=4", "main.py"]}, "flag of torchrun.* Use option nproc_per_node"),
        ({"args": ["--rdzv-endpoint", "a:1", "main.py"]}, "Use option rdzv_endpoint"),
        ({"rdzv_conf": {"join_timeout": 5}}, "Use option join_timeout"),
        ({"rdzv_conf": {"ca_cert": "/a,/b"}}, "ca_cert has a comma"),
        ({"script": "/workspace/run.sh"}, "no Python program"),
        ({"script": "s3://bucket/train.tar.gz"}, "no Python program. Several files"),
        ({"script": "train", "files": {"train": "#!/bin/bash\npython main.py"}}, "'train' is for /bin/bash"),
        ({"nproc_per_node": "many"}, "nproc_per_node"),
        ({"storage": {"claim_name": "x", "size": "1 GB"}}, "storage.size"),
        ({"resources": {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}}, "equal to requests"),
    ],
)
def test_what_cannot_work_is_refused(wrong: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifests(job(**wrong))
    assert re.search(said, str(caught.value))


def test_a_script_has_the_grace_period_but_for_what_the_launcher_needs() -> None:
    assert (env()["MUSTER_GRACE"], env(termination_grace_period_seconds=150)["MUSTER_GRACE"]) == ("27", "147")
    assert env(termination_grace_period_seconds=0)["MUSTER_GRACE"] == "1"


def line(event: str, when: float, **fields: t.Any) -> str:
    return "noise " + LOG_PREFIX + json.dumps({"event": event, "time": when, **fields})


# Shows row 004.19.
def test_the_newest_rendezvous_and_the_steps_after_it_count() -> None:
    first = [line("rendezvous", 1, round=0, nodes=2), line("step", 2, world_size=2, step=5, epoch=0)]
    met = world(["\n".join(first), LOG_PREFIX + "{broken"])
    assert (met.nodes, met.step, met.makes_progress) == (2, 5, True)
    again = [*first, line("rendezvous", 3, round=1, nodes=3)]
    assert not world(again).makes_progress
    # A pod that says it later does not form the round again.
    going = world([*again, line("step", 3.5, world_size=3, step=6), line("rendezvous", 3.6, round=1, nodes=3)])
    assert (going.nodes, going.formed, going.makes_progress) == (3, 3, True)


def test_the_first_rank_repeats_the_round() -> None:
    told = [line("rendezvous", 90, round=4, nodes=3, formed=7.5), line("step", 91, world_size=3, step=99)]
    assert (world(told).nodes, world(told).formed, world(told).makes_progress) == (3, 7.5, True)
    old = [line("rendezvous", 8, round=5, nodes=2), line("rendezvous", 9, round=4, nodes=3, formed=7.5)]
    assert world(old).nodes == 2


def test_a_lost_rendezvous_counts_its_rounds_from_the_start() -> None:
    first = [line("rendezvous", 1, round=0, nodes=2), line("step", 2, world_size=2, step=5)]
    again = [*first, line("rendezvous_lost", 3, index=1), line("rendezvous", 9, round=0, nodes=2)]
    assert (world(again).formed, world(again).makes_progress) == (9, False)


def test_a_persia_job_may_have_the_same_name() -> None:
    names = {(item["kind"], item["metadata"]["name"]) for item in manifests(job())}
    assert names == {
        ("ConfigMap", "digits-elastic"), ("ConfigMap", "digits-elastic-files"), ("Service", "digits"), ("Job", "digits"),
        ("NetworkPolicy", "digits-elastic"),
    }  # fmt: skip
    assert all("muster.ml/job" not in item["metadata"]["labels"] for item in manifests(job()))


def test_a_reason_stays_until_the_pods_have_met() -> None:
    lost = [line("rendezvous_lost", 1, index=1, reason="no route")]
    assert world(lost).reason == "pod 1: no route"
    assert world([*lost, line("rendezvous", 2, round=0, nodes=2)]).reason == ""


@pytest.mark.parametrize(
    "event",
    [
        *({"event": "step", "time": 5, **fields} for fields in ({"epoch": "3"}, {"step": [1]}, {"accuracy": "x"}, {"epoch": None})),
        *({"event": "rendezvous", "time": 5, **fields} for fields in ({"round": "0"}, {"formed": None}, {"formed": "x"})),
        {"event": "step", "time": 10**400},
    ],
)  # fmt: skip
def test_what_a_script_writes_in_the_place_of_a_number_is_passed_over(event: dict[str, t.Any]) -> None:
    seen = world([f"{LOG_PREFIX}{json.dumps(event)}\n{LOG_PREFIX}{'[' * 100000}\n"])
    assert (seen.epoch, seen.step, seen.round, seen.accuracy) == (None, None, None, None)


def test_a_status_without_time_or_values_is_passed_over() -> None:
    reported = {"metrics": [{"name": "epoch"}, {"value": "2"}], "lastUpdatedTime": None, "progressPercentage": 3}
    assert with_reported(World(), reported) == World(percent=3)
