# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight of job modules: what does not fit is refused before anything is created, and nothing that runs is."""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, NoRoom
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.modules import elastic_job, persia_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.gang import GPU, Things
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA as SMALL

Manifest = dict[str, t.Any]
X = Things()
LABELS = {"muster.ml/elastic-job": "digits", "muster.ml/group": "worker"}
ELASTIC: Manifest = {
    "name": "digits",
    "namespace": "default",
    "image": "example/torch:1",
    "replicas": 3,
    "max_replicas": 9,
    "script": "/train.py",
    "resources": {"limits": {GPU: 1}},
    "wait": True,
    "wait_for": "running",
}
PERSIA: Manifest = {**SMALL, "nn_worker": {"replicas": 3, "entry": "train.py", "resources": {"limits": {GPU: 1}}}}


class Said(t.NamedTuple):
    result: Manifest
    warnings: list[str]
    progress: list[str]


def run(cluster: FakeCluster, given: Manifest, module: types.ModuleType = elastic_job, *, check: bool = False) -> Said:
    warnings: list[str] = []
    progress: list[str] = []
    found = tasks.run(module, cluster, given, check=check, warn=warnings.append, progress=progress.append)
    return Said(found, warnings, progress)


def elastic(cluster: FakeCluster, *, check: bool = False, **more: t.Any) -> Said:
    return run(cluster, {**ELASTIC, **more}, check=check)


@pytest.fixture
def two(cluster: FakeCluster) -> FakeCluster:
    """Two nodes with a GPU each."""
    cluster.add(*X.nodes(2, gpu=1))
    return cluster


def asked(cluster: FakeCluster) -> list[str]:
    """What was listed that only the preflight reads."""
    return [one.ref.kind for one in cluster.requests if one.verb == "list" and one.ref.kind in ("Node", "ResourceQuota")]


def trains(cluster: FakeCluster, number: int, **more: t.Any) -> None:
    """A job of so many pods, which are on the first node."""
    elastic(cluster, replicas=number, preflight=False, wait=False, **more)
    for index in range(number):
        name = f"digits-{index}"
        cluster.add(X.pod(name, "n0", X.container(gpu=1), namespace="default", labels=LABELS))


def replicas(cluster: FakeCluster) -> int:
    job = cluster.stored("Job", "digits", "default")
    assert job is not None
    return int(job["spec"]["completions"])


def test_a_job_that_does_not_fit_is_refused_before_anything_is_created(two: FakeCluster) -> None:
    with pytest.raises(NoRoom) as caught:
        elastic(two)
    assert two.writes == []
    assert caught.value.message == (
        "Training default/digits is not created. Not all pods fit at once. 2 of 3 pods of group digits fit, each with 1 nvidia.com/gpu: "
        "2 nodes with room for 1. This fits: digits with 2."
    )
    assert "preflight: false" in str(caught.value.hint)
    assert caught.value.details["preflight"]["nearest"] == [{"name": "digits", "replicas": 2}]


def test_each_group_of_persia_is_judged(two: FakeCluster) -> None:
    with pytest.raises(NoRoom, match=r"2 of 3 pods of group adult-trainer fit.*This fits: adult-trainer with 2"):
        run(two, PERSIA, persia_job)
    assert two.writes == []


@pytest.mark.parametrize(("module", "given"), [(elastic_job, ELASTIC), (persia_job, PERSIA)])
def test_what_fits_is_created_without_a_word(two: FakeCluster, module: types.ModuleType, given: Manifest) -> None:
    two.add(X.node("n2", gpu=1))
    said = run(two, {**given, "wait": False}, module)
    assert (said.result["changed"], said.warnings, said.progress) == (True, [], [])
    assert asked(two) == ["Node", "ResourceQuota"]


def test_preflight_false_asks_nothing(two: FakeCluster) -> None:
    said = elastic(two, preflight=False, wait=False)
    assert (said.result["changed"], said.warnings, asked(two)) == (True, [], [])


def test_a_plan_says_it_and_is_the_same(two: FakeCluster) -> None:
    plan = elastic(two, check=True)
    assert len(plan.warnings) == 1
    assert "2 of 3 pods of group digits fit" in plan.warnings[0]
    made = elastic(two, preflight=False, wait=False)
    assert [row["action"] for row in plan.result["objects"]] == [row["action"] for row in made.result["objects"]]


def test_a_run_that_does_not_wait_says_it_and_goes_on(two: FakeCluster) -> None:
    said = elastic(two, wait=False)
    assert "2 of 3 pods of group digits fit" in said.warnings[0]
    assert replicas(two) == 3


def test_a_job_may_begin_with_min_replicas(two: FakeCluster) -> None:
    said = elastic(two, min_replicas=2, wait=False)
    assert said.warnings[0].startswith("Training default/digits begins with less than 3 pods. Not all pods fit at once.")
    assert replicas(two) == 3
    two.remove(Ref("batch/v1", "Job", "digits", "default"))
    with pytest.raises(NoRoom):
        elastic(two, replicas=4, min_replicas=3)


def test_a_run_without_changes_asks_nothing(two: FakeCluster) -> None:
    trains(two, 3)
    two.requests.clear()
    assert not elastic(two, wait=False).result["changed"]
    assert asked(two) == []


def test_more_pods_are_judged_beside_those_that_run(two: FakeCluster) -> None:
    trains(two, 1)
    with pytest.raises(NoRoom, match=r"stays at 1 pod\. .* 1 of 2 more pods of group digits fit.*This fits: digits with 2"):
        elastic(two, replicas=3, min_replicas=1)
    assert replicas(two) == 1
    said = elastic(two, replicas=3, min_replicas=1, wait=False)
    assert "1 of 2 more pods" in said.warnings[0]
    assert replicas(two) == 3


def test_less_pods_ask_nothing(two: FakeCluster) -> None:
    trains(two, 3, min_replicas=1)
    two.requests.clear()
    elastic(two, replicas=1, min_replicas=1, wait=False)
    assert (asked(two), replicas(two)) == ([], 1)


def test_pods_that_run_where_no_new_one_may_be_are_not_asked_for_again(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=4, cordoned=True), X.node("n1", gpu=1))
    trains(cluster, 4)
    said = elastic(cluster, replicas=5, min_replicas=4, wait=False)
    assert (said.warnings, replicas(cluster)) == ([], 5)


def test_pods_of_the_job_that_wait_are_counted_once(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=3))
    trains(cluster, 1)
    cluster.add(X.pod("digits-1", "", X.container(gpu=1), namespace="default", labels=LABELS, phase="Pending"))
    quota = X.quota({"pods": "3"}, {"pods": "2"})
    quota["metadata"]["namespace"] = "default"
    cluster.add({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    assert elastic(cluster, replicas=3, min_replicas=1, wait=False).warnings == []


def test_the_room_of_a_training_that_is_started_again_is_its_own(cluster: FakeCluster) -> None:
    cluster.add(X.node("n0", gpu=3))
    trains(cluster, 3)
    assert elastic(cluster, restart=True, wait=False, max_restarts=1).warnings == []
    for index in range(3):
        cluster.remove(Ref("v1", "Pod", f"digits-{index}", "default"))
    cluster.add(X.pod("other", "n0", X.container(gpu=1)))
    before = cluster.stored("Job", "digits", "default")
    with pytest.raises(NoRoom, match=r"is not restarted\. .* 2 of 3 pods"):
        elastic(cluster, restart=True)
    after = cluster.stored("Job", "digits", "default")
    assert before is not None
    assert after is not None
    assert before["metadata"]["uid"] == after["metadata"]["uid"]


def test_who_may_not_look_goes_on_without_a_word(two: FakeCluster) -> None:
    listed = two.list

    def listing(api_version: str, kind: str, namespace: str | None = None, selector: str | None = None) -> t.Any:
        if kind == "Node" or (kind == "Pod" and namespace is None):
            raise Forbidden(f"User x may not list {kind}.")
        return listed(api_version, kind, namespace, selector)

    two.list = listing  # type: ignore[method-assign]
    said = elastic(two, wait=False)
    assert (said.result["changed"], said.warnings, said.progress) == (True, [], [])


def test_where_nodes_may_come_it_goes_on(two: FakeCluster) -> None:
    node = X.node("n2", gpu=0)
    node["spec"]["providerID"] = "gce://project/zone/n2"
    two.add(node)
    said = elastic(two, wait=False)
    assert (said.warnings, said.progress, replicas(two)) == ([], [], 3)
