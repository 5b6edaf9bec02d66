# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""elastic_job against a cluster in memory."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._kube.errors import Immutable, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._module.run import Context
from ansible_collections.muster.ml.plugins.modules import elastic_job
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

JOB: dict[str, t.Any] = {
    "name": "digits",
    "namespace": "default",
    "image": "example/torch:1",
    "replicas": 2,
    "min_replicas": 1,
    "max_replicas": 3,
    "script": "/train.py",
    "storage": {"claim_name": "digits", "size": "1Gi"},
    "wait": "none",
}


def run(cluster: FakeCluster, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    given = copy.deepcopy({**JOB, **more})
    validated = ArgumentSpecValidator(elastic_job.ARGUMENT_SPEC, **elastic_job.CONSTRAINTS).validate(given)
    assert not validated.error_messages
    return elastic_job.execute(Context(params=validated.validated_parameters, check=check, connect=lambda: cluster))


def actions(result: dict[str, t.Any]) -> dict[str, str]:
    return {entry["kind"]: entry["action"] for entry in result["objects"]}


def uid(manifest: dict[str, t.Any] | None) -> str:
    assert manifest is not None
    return str(manifest["metadata"]["uid"])


def test_it_is_made_once_and_planned_truly(cluster: FakeCluster) -> None:
    plan = run(cluster, check=True)
    assert cluster.writes == []
    assert actions(plan) == actions(run(cluster))
    cluster.requests.clear()
    assert not run(cluster)["changed"]
    assert cluster.writes == []


def test_scaling_keeps_the_job(cluster: FakeCluster) -> None:
    run(cluster)
    before = cluster.stored("Job", "digits", "default")
    assert actions(run(cluster, replicas=3))["Job"] == "updated"
    after = cluster.stored("Job", "digits", "default")
    assert uid(before) == uid(after)
    assert after is not None
    assert after["spec"]["completions"] == after["spec"]["parallelism"] == 3


def test_other_options_need_a_word(cluster: FakeCluster) -> None:
    run(cluster)
    with pytest.raises(Immutable, match="max_restarts"):
        run(cluster, max_restarts=1)
    before = cluster.stored("Job", "digits", "default")
    assert actions(run(cluster, max_restarts=1, recreate=True))["Job"] == "recreated"
    after = cluster.stored("Job", "digits", "default")
    assert uid(before) != uid(after)


def test_one_that_has_ended_stays(cluster: FakeCluster) -> None:
    run(cluster)
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    cluster.set_status(Ref("batch/v1", "Job", "digits", "default"), done)
    again = run(cluster, replicas=3)
    assert (again["state"], again["changed"]) == ("Succeeded", False)
    assert actions(run(cluster, restart=True))["Job"] == "recreated"


def test_the_claim_goes_only_when_asked_for(cluster: FakeCluster) -> None:
    run(cluster)
    assert actions(run(cluster, state="absent"))["PersistentVolumeClaim"] == "kept"
    assert cluster.stored("Job", "digits", "default") is None
    run(cluster, state="absent", delete_data=True)
    assert cluster.stored("PersistentVolumeClaim", "digits", "default") is None


def test_bad_input_asks_nobody(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidInput, match="replicas: 9"):
        run(cluster, replicas=9)
    assert cluster.requests == []
