# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs as PyTorchJobs."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.native import manifests as native
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.pytorch_job import manifests, with_run_of
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import ElasticJob, from_params
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.training import KIND
from ansible_collections.muster.ml.tests.unit.plugins.module_utils._systems.elastic.test_native import JOB as NATIVE

JOB: dict[str, t.Any] = {**NATIVE, "backend": "pytorchjob"}


def job(**more: t.Any) -> ElasticJob:
    return from_params({**JOB, **more})


def pytorch_job(**more: t.Any) -> dict[str, t.Any]:
    (found,) = [item for item in manifests(job(**more), "run-1") if item["kind"] == "PyTorchJob"]
    return found


def test_golden(golden: t.Callable[[str, list[dict[str, t.Any]]], None]) -> None:
    """All of it; what is in the ConfigMaps is the native backend's, too."""
    more = {"storage": {"claim_name": "digits", "size": "1Gi"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    found = pytorch_job(**more)
    # A hash of the launcher, whatever that is today.
    del found["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"]
    golden("elastic_job_pytorchjob", [found])


def test_what_the_pods_need_is_the_same_with_either_backend() -> None:
    theirs, ours = manifests(job(), "run-1"), native(job(backend="native"))
    for left, right in zip(theirs[:-1], ours[:-1], strict=True):
        left["metadata"].pop("annotations", None)
        right["metadata"].pop("annotations", None)
        assert left == right
    container = pytorch_job()["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert container["command"] == ours[-1]["spec"]["template"]["spec"]["containers"][0]["command"]


def test_only_the_size_changes_when_it_is_scaled() -> None:
    two, three = pytorch_job(), pytorch_job(replicas=3)
    (form,) = KIND.backend("pytorchjob").workloads
    assert (form.desired_replicas(two), form.desired_replicas(three)) == (2, 3)
    assert form.sized(two, 3) == three
    del (two["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"], three["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"])
    assert two == three
    assert job().parts == job(replicas=3).parts != job(backend="native").parts


def test_a_run_that_goes_on_keeps_its_id() -> None:
    (new,) = [item for item in manifests(job(), "run-2") if item["kind"] == "PyTorchJob"]
    assert with_run_of(new, pytorch_job()) == pytorch_job()
    assert with_run_of(new, {"spec": {}}) == new


def test_pods_meet_at_worker_0_or_at_an_etcd() -> None:
    policy = pytorch_job()["spec"]["elasticPolicy"]
    assert (policy["rdzvBackend"], policy["rdzvHost"], policy["rdzvPort"]) == ("c10d", "digits-worker-0.ml.svc", 29400)
    conf = {"protocol": "https"}
    policy = pytorch_job(rdzv_backend="etcd-v2", rdzv_endpoint="etcd:2379", rdzv_conf=conf)["spec"]["elasticPolicy"]
    assert (policy["rdzvBackend"], policy["rdzvHost"], policy["rdzvPort"]) == ("etcd-v2", "etcd", 2379)
    assert {"key": "protocol", "value": "https"} in policy["rdzvConf"]
    assert {"key": "join_timeout", "value": "600"} in policy["rdzvConf"]


def test_a_deadline_stops_the_pods_too() -> None:
    spec = pytorch_job(active_deadline_seconds=90, ttl_seconds_after_finished=60)["spec"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "None", "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 90}
    assert spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["activeDeadlineSeconds"] == 90


def test_overrides_come_last() -> None:
    assert pytorch_job(overrides={"spec": {"runPolicy": {"cleanPodPolicy": "All"}}})["spec"]["runPolicy"]["cleanPodPolicy"] == "All"
    with pytest.raises(InvalidInput, match="name of PyTorchJob"):
        pytorch_job(overrides={"metadata": {"name": "other"}})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"backoff_limit": 2}, "backoff_limit: with backend pytorchjob"),
        ({"name": "d" * 52, "max_replicas": 2000}, "64 characters"),
        ({"replicas": 4}, "replicas: 4"),
    ],
)
def test_what_it_cannot_do_is_refused(wrong: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        job(**wrong)
