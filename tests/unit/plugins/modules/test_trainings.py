# SPDX-License-Identifier: GPL-3.0-or-later
"""The one life of trainings, for every kind of them."""

import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Immutable, MissingKind
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind
from ansible_collections.muster.ml.plugins.modules import elastic_job, jobset, persia_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA

Options = dict[str, t.Any]

CLAIM = "PersistentVolumeClaim/shared"


class Training(t.NamedTuple):
    """A kind of training, an option of it that pods are made with, and the role of its operator."""

    module: types.ModuleType
    options: Options
    other: Options
    workload: str
    role: str = ""

    def run(self, cluster: FakeCluster, *, check: bool = False, **more: t.Any) -> dict[str, str]:
        """Object -> what was done with it."""
        common = {"namespace": "default", "wait": False, "storage": {"claim_name": "shared", "size": "1Gi"}}
        return tasks.actions(tasks.run(self.module, cluster, {**common, **self.options, **more}, check=check))


SERVED = {
    "PersiaJob": "persia.com/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "TrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
}
_PERSIA = {**PERSIA, "metrics": {"enabled": False}}
_SLOTS = {"embedding_config": {"slots_config": {"age": {"dim": 16}}}}
_ELASTIC = {"name": "digits", "image": "example/torch:1", "replicas": 2, "script": "/train.py"}
_OFTEN = {"max_restarts": 1}
_SLICES = {"name": "lm", "image": "example/jax:0.10", "slices": 2, "hosts": 2}
TRAININGS = {
    "persia": Training(persia_job, _PERSIA, _SLOTS, "Job/adult-trainer"),
    "persia_operator": Training(persia_job, {**_PERSIA, "backend": "operator"}, _SLOTS, "PersiaJob/adult", "persia_operator"),
    "elastic": Training(elastic_job, _ELASTIC, _OFTEN, "Job/digits"),
    "pytorchjob": Training(elastic_job, {**_ELASTIC, "backend": "pytorchjob"}, _OFTEN, "PyTorchJob/digits", "training_operator"),
    "trainjob": Training(elastic_job, {**_ELASTIC, "backend": "trainjob"}, _OFTEN, "TrainJob/digits", "trainer"),
    "jobset": Training(jobset, _SLICES, {"slices": 3}, "JobSet/lm", "jobset"),
}
every_kind = pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS)


@pytest.fixture
def served(cluster: FakeCluster) -> FakeCluster:
    """The cluster with the operators."""
    for kind, api_version in SERVED.items():
        cluster.kinds_served[api_version, kind] = ServedKind(f"{kind.lower()}s", namespaced=True)
    return cluster


@every_kind
def test_a_plan_is_true_and_a_second_run_changes_nothing(served: FakeCluster, training: Training) -> None:
    plan = training.run(served, check=True)
    assert served.writes == []
    made = training.run(served)
    assert (plan, set(made.values())) == (made, {"created"})
    assert training.workload in made
    served.requests.clear()
    assert set(training.run(served).values()) == {"unchanged"}
    assert served.writes == []


@every_kind
def test_a_policy_comes_and_goes_while_the_pods_run(served: FakeCluster, training: Training) -> None:
    (policy,) = [name for name in training.run(served) if name.startswith("NetworkPolicy/")]
    for option, action in ((False, "deleted"), (True, "created")):
        told = training.run(served, network_policy=option)
        assert (told[policy], told[training.workload]) == (action, "unchanged")


@every_kind
def test_other_options_are_refused_until_they_are_meant(served: FakeCluster, training: Training) -> None:
    training.run(served)
    served.requests.clear()
    with pytest.raises(Immutable, match=f"other options: {next(iter(training.other))}") as caught:
        training.run(served, **training.other)
    assert ("of role" in str(caught.value.hint)) == (training.module is not jobset)
    plan = training.run(served, check=True, recreate=True, **training.other)
    assert served.writes == []
    made = training.run(served, recreate=True, **training.other)
    assert (plan, made[training.workload]) == (made, "recreated")
    assert set(training.run(served, **training.other).values()) == {"unchanged"}


@every_kind
def test_a_removal_keeps_the_claim_unless_told(served: FakeCluster, training: Training) -> None:
    made = training.run(served)
    assert training.run(served, state="absent") == {**dict.fromkeys(made, "deleted"), CLAIM: "kept"}
    assert training.run(served, state="absent", delete_data=True) == {CLAIM: "deleted"}
    assert served.stored("PersistentVolumeClaim", "shared", "default") is None


@pytest.mark.parametrize("training", [one for one in TRAININGS.values() if one.role], ids=lambda one: one.role)
def test_without_its_operator_the_role_is_named(cluster: FakeCluster, training: Training) -> None:
    with pytest.raises(MissingKind, match=training.workload.partition("/")[0]) as caught:
        training.run(cluster)
    assert f"(role muster.ml.{training.role})" in str(caught.value.hint)
    assert cluster.writes == []
