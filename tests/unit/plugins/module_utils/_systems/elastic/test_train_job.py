# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic jobs as TrainJobs."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gang.groups import groups_of
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.native import manifests as native
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import from_params
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.train_job import manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.training import KIND
from ansible_collections.muster.ml.tests.unit.plugins.module_utils._systems.elastic.test_native import JOB as NATIVE

JOB: dict[str, t.Any] = {
    **{key: value for key, value in NATIVE.items() if key not in ("min_replicas", "max_replicas")},
    "backend": "trainjob",
}


def train_job(**more: t.Any) -> list[dict[str, t.Any]]:
    """The TrainingRuntime and the TrainJob, which come last."""
    return manifests(from_params({**JOB, **more}))[-2:]


def test_golden(golden: t.Callable[[str, list[dict[str, t.Any]]], None]) -> None:
    found = train_job(resources={"limits": {"nvidia.com/gpu": 1}}, active_deadline_seconds=90, ttl_seconds_after_finished=60)
    # A hash of the launcher, whatever that is today.
    del found[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"]["annotations"]
    golden("elastic_job_trainjob", found)


def test_what_the_pods_need_is_the_same_with_either_backend() -> None:
    theirs, ours = manifests(from_params(JOB)), native(from_params({**JOB, "backend": "native"}))
    assert [(item["kind"], item["metadata"]["name"]) for item in theirs[:-2]] == [(i["kind"], i["metadata"]["name"]) for i in ours[:-1]]


def test_the_preflight_sees_the_pods_of_the_runtime_once() -> None:
    groups, unknown = groups_of(train_job(), "ml", KIND.backend("trainjob").pod_sets)
    assert ([(group.name, group.replicas) for group in groups], unknown) == ([("digits", 2)], [])


def test_overrides_change_the_train_job() -> None:
    assert train_job(overrides={"spec": {"suspend": True}})[1]["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_replicas": 4}, "min_replicas: 2 with max_replicas 4, and the size of a TrainJob is fixed"),
        ({"name": "d" * 52}, "name of the last pod: .* has 67 characters"),
    ],
)
def test_what_it_cannot_do_is_refused(wrong: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        train_job(**wrong)
