# SPDX-License-Identifier: GPL-3.0-or-later
"""elastic_job against a cluster in memory."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Conflict,
    Immutable,
    InvalidInput,
    ServerError,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native, spec
from ansible_collections.muster.ml.plugins.module_utils._training.status import INDEX_LABELS
from ansible_collections.muster.ml.plugins.modules import elastic_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended, pod

JOB_KIND = ("batch/v1", "Job")
JOB: dict[str, t.Any] = {
    "name": "digits",
    "namespace": "default",
    "image": "example/torch:1",
    "replicas": 2,
    "min_replicas": 1,
    "max_replicas": 3,
    "script": "/train.py",
    "storage": {"claim_name": "digits", "size": "1Gi"},
    "wait": False,
}


def run(cluster: FakeCluster, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    return tasks.run(elastic_job, cluster, {**JOB, **more}, check=check)


def actions(result: dict[str, t.Any]) -> dict[str, str]:
    return {entry["kind"]: entry["action"] for entry in result["objects"]}


def uid(manifest: dict[str, t.Any] | None) -> str:
    assert manifest is not None
    return str(manifest["metadata"]["uid"])


def test_scaling_keeps_the_job(cluster: FakeCluster) -> None:
    run(cluster)
    before = cluster.stored("Job", "digits", "default")
    assert actions(run(cluster, replicas=3))["Job"] == "updated"
    after = cluster.stored("Job", "digits", "default")
    assert uid(before) == uid(after)
    assert after is not None
    assert after["spec"]["completions"] == after["spec"]["parallelism"] == 3


def test_one_that_has_ended_stays(cluster: FakeCluster) -> None:
    run(cluster)
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    cluster.set_status(Ref("batch/v1", "Job", "digits", "default"), done)
    again = run(cluster, replicas=3)
    assert (again["state"], again["changed"]) == ("Succeeded", False)
    assert actions(run(cluster, restart=True))["Job"] == "recreated"


def test_bad_input_asks_nobody(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidInput, match="replicas: 9"):
        run(cluster, replicas=9)
    assert cluster.requests == []


def with_pods(cluster: FakeCluster, count: int) -> None:
    """A job of that many pods that run and have met."""
    run(cluster, replicas=count, max_replicas=max(count, 3))
    for index in range(count):
        labels = {"muster.ml/elastic-job": "digits", "muster.ml/group": "worker", "batch.kubernetes.io/job-completion-index": str(index)}
        cluster.add(pod(f"digits-{index}", labels=labels))
        said = {"event": "rendezvous", "time": 5.0, "round": 0, "nodes": count}
        cluster.log_lines["default", f"digits-{index}"] = f"muster.ml/elastic {json.dumps(said)}\n"


def test_a_look_reads_few_logs_however_many_pods_there_are(cluster: FakeCluster) -> None:
    with_pods(cluster, 200)
    cluster.requests.clear()
    seen = run(cluster, replicas=200, max_replicas=200, wait=True, wait_for="running")
    assert seen["world"]["nodes"] == 200
    read = [request.ref.name for request in cluster.requests if request.verb == "logs"]
    # First ranks by host name, and the youngest pods.
    assert set(read) == {"digits-0", "digits-1", "digits-10", "digits-198", "digits-199"}


def test_a_round_beyond_the_end_of_a_talkative_log_is_found(cluster: FakeCluster) -> None:
    with_pods(cluster, 2)
    for index in (0, 1):
        cluster.log_lines["default", f"digits-{index}"] += "batch done\n" * 400
    assert run(cluster, wait=True, wait_for="running")["world"]["nodes"] == 2


def test_a_log_that_cannot_be_read_does_not_matter(cluster: FakeCluster) -> None:
    with_pods(cluster, 3)
    cluster.fail("logs", "digits-1", ServerError("the node of this pod does not answer"))
    assert run(cluster, replicas=3, wait=True, wait_for="running")["world"]["nodes"] == 3


def test_a_size_that_the_training_does_not_reach_is_taken_back(cluster: FakeCluster) -> None:
    with_pods(cluster, 2)
    with pytest.raises(WaitTimeout, match=r"has 2 of 3 pods.*It is back at 2 replicas") as caught:
        run(cluster, replicas=3, max_replicas=3, wait=True, wait_for="running", world_timeout=20)
    assert "raise world_timeout" in str(caught.value)
    job = cluster.stored("Job", "digits", "default")
    assert job is not None
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2


def test_a_size_whose_new_pod_keeps_failing_is_taken_back_before_time_is_up(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pods(cluster, 2)
    real = FakeCluster.list

    def fail(self: FakeCluster, *args: t.Any) -> t.Any:
        """A pod of the new rank fails as often as pods are listed."""
        if args[1] == "Pod":
            labels = {"muster.ml/elastic-job": "digits", "muster.ml/group": "worker", INDEX_LABELS[0]: "2"}
            name = f"digits-2-{len(cluster.journal)}"
            state = ended(1)
            state["terminated"]["finishedAt"] = f"2026-11-21T10:00:{6 + len(cluster.journal) % 50:02}Z"
            cluster.add(pod(name, "Failed", labels=labels, state=state))
            cluster.log_lines["default", name] = "no such device\n"
        return real(self, *args)

    monkeypatch.setattr(FakeCluster, "list", fail)
    with pytest.raises(WaitTimeout, match=r"(?s)keeps failing: pod digits-2-.*no such device\nIt is back at 2 replicas"):
        run(cluster, replicas=3, max_replicas=3, wait=True, wait_for="running", world_timeout=600)
    assert cluster.clock.now < 1100


def test_a_size_that_the_training_reaches_stays(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pods(cluster, 3)
    met = {"event": "rendezvous", "time": 9.0, "round": 1, "nodes": 2}
    real = FakeCluster.apply

    def apply(self: FakeCluster, manifest: dict[str, t.Any], **options: t.Any) -> t.Any:
        """The pods meet anew as soon as the Job has changed."""
        if manifest["kind"] == "Job" and not options["dry_run"]:
            cluster.log_lines["default", "digits-0"] += f"muster.ml/elastic {json.dumps(met)}\n"
        return real(self, manifest, **options)

    monkeypatch.setattr(FakeCluster, "apply", apply)
    assert run(cluster, replicas=2, max_replicas=3, wait=True, wait_for="running", world_timeout=20)["world"]["nodes"] == 2
    job = cluster.stored("Job", "digits", "default")
    assert job is not None
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2


def step(cluster: FakeCluster, number: int) -> None:
    """The script of the first rank reports a step."""
    said = {"event": "step", "time": 5.0 + number, "world_size": 2, "epoch": 0, "step": number}
    cluster.log_lines["default", "digits-0"] += f"muster.ml/elastic {json.dumps(said)}\n"


def test_a_step_that_was_there_before_is_not_the_one_that_is_waited_for(cluster: FakeCluster) -> None:
    with_pods(cluster, 2)
    step(cluster, 7)
    assert run(cluster, wait=True, wait_for="running")["world"]["step"] == 7
    with pytest.raises(
        WaitTimeout, match=r"Training default/digits makes no step after 30 s\. Last seen: Running; 2 of 2 pods have met; epoch 1, step 7\."
    ) as caught:
        run(cluster, wait=True, wait_for="step", wait_timeout=30)
    assert "use wait_for: running" in str(caught.value.hint)


def test_the_wait_for_a_step_ends_with_the_next_one(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pods(cluster, 2)
    step(cluster, 7)
    real = cluster.watch

    def watch(*args: t.Any, **options: t.Any) -> t.Any:
        """Meanwhile it trains."""
        step(cluster, 8)
        return real(*args, **options)

    monkeypatch.setattr(cluster, "watch", watch)
    assert run(cluster, wait=True, wait_for="step", wait_timeout=30)["summary"]["steps"] == 8


def test_the_wait_for_a_step_ends_with_the_training(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with_pods(cluster, 2)

    def watch(*_args: t.Any, **_options: t.Any) -> t.Any:
        done = {"conditions": [{"type": "Complete", "status": "True"}]}
        cluster.set_status(Ref("batch/v1", "Job", "digits", "default"), done)
        return iter(())

    monkeypatch.setattr(cluster, "watch", watch)
    assert run(cluster, wait=True, wait_for="step", wait_timeout=30)["state"] == "Succeeded"


# training-operator and Kubeflow Trainer

KUBEFLOW = {"pytorchjob": ("kubeflow.org/v1", "PyTorchJob"), "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainJob")}
with_kubeflow = pytest.mark.parametrize("backend", KUBEFLOW)


@pytest.fixture
def kubeflow(cluster: FakeCluster) -> FakeCluster:
    for api_version, kind in (*KUBEFLOW.values(), ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")):
        cluster.kinds_served[api_version, kind] = ServedKind(f"{kind.lower()}s", True)
    return cluster


def in_kubeflow(cluster: FakeCluster, backend: str, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    fixed = {"min_replicas": None, "max_replicas": None} if backend == "trainjob" else {}
    return run(cluster, check, backend=backend, **fixed, **more)


def as_pytorchjob(cluster: FakeCluster, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    return in_kubeflow(cluster, "pytorchjob", check, **more)


def elastic_policy(cluster: FakeCluster) -> dict[str, t.Any]:
    found = cluster.stored("PyTorchJob", "digits", "default")
    assert found is not None
    return dict(found["spec"]["elasticPolicy"])


@with_kubeflow
def test_a_kubeflow_job_names_its_backend(kubeflow: FakeCluster, backend: str) -> None:
    made = in_kubeflow(kubeflow, backend)
    assert (made["backend"], [(one["kind"], one["desired"]) for one in made["groups"]]) == (backend, [(KUBEFLOW[backend][1], 2)])
    assert made["summary"]["backend"] == "c10d"
    assert kubeflow.stored("Job", "digits", "default") is None


def test_the_size_of_a_train_job_changes_with_another_run_only(kubeflow: FakeCluster) -> None:
    in_kubeflow(kubeflow, "trainjob")
    with pytest.raises(Immutable, match="other options: max_replicas, min_replicas; a TrainJob cannot change, its size neither"):
        in_kubeflow(kubeflow, "trainjob", replicas=3)
    told = actions(in_kubeflow(kubeflow, "trainjob", replicas=3, recreate=True))
    assert (told["TrainJob"], told["TrainingRuntime"]) == ("recreated", "recreated")
    made = kubeflow.stored("TrainJob", "digits", "default")
    assert made is not None
    assert made["spec"]["trainer"]["numNodes"] == 3


def test_a_train_job_keeps_the_program_that_it_began_with(kubeflow: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    in_kubeflow(kubeflow, "trainjob")
    monkeypatch.setitem(native.PROGRAMS, "launch.py", "of another version\n")
    assert set(actions(in_kubeflow(kubeflow, "trainjob")).values()) == {"unchanged"}


@pytest.mark.parametrize("backend", ["native", "pytorchjob", "trainjob"])
def test_a_training_stays_in_its_pods_when_another_version_of_muster_would_make_others(
    kubeflow: FakeCluster, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """That version also has another option, with a default. What the user changes is refused, and the number of pods changes, as ever."""

    def again(**more: t.Any) -> dict[str, str]:
        return actions(run(kubeflow, **more) if backend == "native" else in_kubeflow(kubeflow, backend, **more))

    def specs() -> list[t.Any]:
        kinds = (JOB_KIND, KUBEFLOW["pytorchjob"], KUBEFLOW["trainjob"], (KUBEFLOW["trainjob"][0], "TrainingRuntime"))
        return [found["spec"] for _api, kind in kinds if (found := kubeflow.stored(kind, "digits", "default"))]

    again()
    before = specs()
    monkeypatch.setattr(native, "_lost_node", lambda *_of: [])
    newer = dataclasses.make_dataclass("ElasticJob", [("new_option", int, 5)], bases=(spec.ElasticJob,), frozen=True, kw_only=True)
    monkeypatch.setattr(spec, "ElasticJob", newer)
    assert set(again().values()) == {"unchanged"}
    assert specs() == before
    if backend != "trainjob":
        again(replicas=3)
        assert len(str(specs())) == len(str(before))
        assert specs() != before
    with pytest.raises(Immutable, match="other options: max_restarts"):
        again(max_restarts=9)


def test_what_pods_reported_to_the_trainer_is_their_progress(kubeflow: FakeCluster) -> None:
    in_kubeflow(kubeflow, "trainjob")
    metrics = [{"name": "epoch", "value": "2.98"}, {"name": "accuracy", "value": "0.91"}, {"name": "step", "value": "many"}]
    status = {"progressPercentage": 30, "metrics": metrics, "lastUpdatedTime": "2026-11-27T08:00:00Z"}
    kubeflow.set_status(Ref(*KUBEFLOW["trainjob"], "digits", "default"), {"trainerStatus": status})
    found = in_kubeflow(kubeflow, "trainjob")
    assert {key: found["world"][key] for key in ("percent", "epoch", "accuracy", "step")} == {
        "percent": 30, "epoch": 2, "accuracy": 0.91, "step": None,
    }  # fmt: skip
    assert (found["summary"]["epochs"], found["summary"]["accuracy"]) == (3, 0.91)


def test_scaling_keeps_the_run_and_a_new_one_meets_elsewhere(kubeflow: FakeCluster) -> None:
    as_pytorchjob(kubeflow)
    first = elastic_policy(kubeflow)
    assert actions(as_pytorchjob(kubeflow, replicas=3))["PyTorchJob"] == "updated"
    after = kubeflow.stored("PyTorchJob", "digits", "default")
    assert after is not None
    assert after["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 3
    assert elastic_policy(kubeflow) == first
    assert actions(as_pytorchjob(kubeflow, check=True, restart=True))["PyTorchJob"] == "recreated"
    assert actions(as_pytorchjob(kubeflow, restart=True))["PyTorchJob"] == "recreated"
    assert elastic_policy(kubeflow)["rdzvId"] != first["rdzvId"]


@with_kubeflow
def test_the_backend_changes_with_a_word(kubeflow: FakeCluster, backend: str) -> None:
    kind = KUBEFLOW[backend][1]
    run(kubeflow)
    with pytest.raises(Immutable, match="backend"):
        in_kubeflow(kubeflow, backend)
    told = actions(in_kubeflow(kubeflow, backend, recreate=True))
    assert (told["Job"], told[kind]) == ("deleted", "created")
    assert kubeflow.stored("Job", "digits", "default") is None
    with pytest.raises(Immutable, match="backend"):
        run(kubeflow)
    assert actions(run(kubeflow, recreate=True))[kind] == "deleted"
    assert kubeflow.stored("TrainingRuntime", "digits", "default") is None


@with_kubeflow
@pytest.mark.parametrize(
    ("condition", "state"), [("Succeeded", "Succeeded"), ("Complete", "Succeeded"), ("Failed", "Failed"), ("X", "Pending")]
)
def test_its_state_is_what_the_operator_says(kubeflow: FakeCluster, backend: str, condition: str, state: str) -> None:
    in_kubeflow(kubeflow, backend)
    said = {"conditions": [{"type": "Created", "status": "True"}, {"type": condition, "status": "True"}]}
    kubeflow.set_status(Ref(*KUBEFLOW[backend], "digits", "default"), said)
    assert in_kubeflow(kubeflow, backend)["state"] == state


@with_kubeflow
def test_a_kubeflow_job_of_another_owner_is_left_alone(kubeflow: FakeCluster, backend: str) -> None:
    api_version, kind = KUBEFLOW[backend]
    metadata = {"name": "digits", "namespace": "default", "labels": {"muster.ml/owner": "other"}}
    kubeflow.add({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}})
    with pytest.raises(Conflict, match="other"):
        in_kubeflow(kubeflow, backend)
    # Beside it, a Job of that name has no owner.
    assert actions(run(kubeflow))["Job"] == "created"


def test_a_run_keeps_the_program_that_it_began_with(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher of another version of Muster would change the pods of a Job, which Kubernetes refuses."""
    run(cluster)
    written = len(cluster.writes)
    monkeypatch.setitem(native.PROGRAMS, "launch.py", "of another version\n")
    assert set(actions(run(cluster)).values()) == {"unchanged"}
    assert len(cluster.writes) == written
    assert actions(run(cluster, replicas=3))["ConfigMap"] == "unchanged"
    assert actions(run(cluster, restart=True))["ConfigMap"] == "updated"


def test_a_launcher_that_somebody_removed_is_set_again(cluster: FakeCluster) -> None:
    run(cluster)
    stored = copy.deepcopy(cluster.stored("ConfigMap", "digits-elastic", "default") or {})
    del stored["data"]
    del stored["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]
    cluster.add(stored)
    assert actions(run(cluster))["ConfigMap"] == "updated"


def test_two_first_runs_at_once_have_one_rendezvous(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one runs from its beginning to its end right before the first one creates the PyTorchJob."""
    cluster.kinds_served["kubeflow.org/v1", "PyTorchJob"] = ServedKind("pytorchjobs", True)
    others: list[dict[str, t.Any]] = []
    real = FakeCluster.create

    def create(self: FakeCluster, manifest: dict[str, t.Any], **options: t.Any) -> t.Any:
        if not (others or options["dry_run"]):
            others.append({})
            others[0] = run(cluster, backend="pytorchjob", preflight=False)
        return real(self, manifest, **options)

    monkeypatch.setattr(FakeCluster, "create", create)
    made = run(cluster, backend="pytorchjob", preflight=False)
    assert others[0]["changed"]
    told = [entry.get("reason", "") for entry in made["objects"] if entry["kind"] == "PyTorchJob"]
    assert "was made by another run at the same moment" in told[0]
    names = {
        str(event.object["spec"]["elasticPolicy"]["rdzvId"]) for _version, event in cluster.journal if event.object["kind"] == "PyTorchJob"
    }
    assert len(names) == 1
    writes = len(cluster.writes)
    assert not run(cluster, backend="pytorchjob", preflight=False)["changed"]
    assert len(cluster.writes) == writes
