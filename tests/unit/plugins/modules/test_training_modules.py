# SPDX-License-Identifier: GPL-3.0-or-later
"""persia_job, training_statefulset, nats_cluster, job_info and job_logs against a cluster in memory."""

import collections
import json
import types
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core import sensitive
from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    Immutable,
    InvalidInput,
    MissingKind,
    NotFound,
    ServerError,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LABEL_GROUP
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers as nats_edge
from ansible_collections.muster.ml.plugins.module_utils._systems.nats.manifests import NatsCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native, operator
from ansible_collections.muster.ml.plugins.modules import (
    dataset,
    elastic_job,
    job_info,
    job_logs,
    jobset,
    nats_cluster,
    persia_job,
    training_statefulset,
    triton_server,
)
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended, labels, pod
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions, context, run
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA as SMALL

JOB: dict[str, t.Any] = {**SMALL, "metrics": {"enabled": False}, "wait": False}
NATS: dict[str, t.Any] = {"name": "n", "namespace": "default", "replicas": 2, "max_payload": 1000}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "persiajobs.persia.com"},
    "spec": {
        "group": "persia.com",
        "scope": "Namespaced",
        "names": {"plural": "persiajobs", "kind": "PersiaJob"},
        "versions": [{"name": "v1"}],
    },
}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def desired_nats(cluster: FakeCluster, params: dict[str, t.Any]) -> NatsCluster:
    return nats_cluster.Life(context(nats_cluster, cluster, params)).desired("default")


def finish(cluster: FakeCluster) -> None:
    """The trainers end well, as their Job tells it."""
    cluster.set_status(Ref("batch/v1", "Job", "adult-trainer", "default"), COMPLETE)
    done = ended(0, "Completed", '{"auc": 0.74}')
    cluster.add(pod("adult-trainer-0-abcde", "Succeeded", labels=labels("trainer"), state=done))


@pytest.mark.parametrize(
    ("module", "params", "told"),
    [
        (persia_job, {**JOB, "embedding_worker": None}, "embedding_worker"),
        (persia_job, {**JOB, "global_config": None}, "global_config, global_config_path"),
        (persia_job, {**JOB, "global_config_path": "/x"}, "mutually exclusive: global_config"),
        (persia_job, {**JOB, "log_level": "loud"}, "log_level"),
        (jobset, {"name": "lm", "image": "a:1"}, "tpu, hosts"),
        (jobset, {"name": "lm", "image": "a:1", "hosts": 1, "image_pull_policy": "Sometimes"}, "image_pull_policy"),
        (dataset, {"name": "d", "claim_name": "c", "sha256": "0"}, "url, url_secret"),
        (triton_server, {"model_repository": "/m", "model_control_mode": "often"}, "model_control_mode"),
    ],
)
def test_options_that_the_argument_spec_refuses(module: types.ModuleType, params: dict[str, t.Any], told: str) -> None:
    given = {name: value for name, value in params.items() if value is not None}
    (error,) = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.CONSTRAINTS).validate(given).error_messages
    assert told in error


# persia_job


def test_lost_objects_come_back(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    cluster.remove(Ref("apps/v1", "StatefulSet", "adult-emb-server", "default"))
    again = run(persia_job, cluster, JOB)
    assert [key for key, action in actions(again).items() if action == "created"] == ["StatefulSet/adult-emb-server"]


def test_a_finished_training_gives_its_servers_back_and_is_not_trained_again(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    finish(cluster)
    over = run(persia_job, cluster, JOB)
    assert over["state"] == "Succeeded"
    server = cluster.stored("StatefulSet", "adult-emb-server", "default")
    loader = cluster.stored("Job", "adult-data-compose", "default")
    assert server is not None
    assert loader is not None
    assert (server["spec"]["replicas"], loader["spec"]["suspend"]) == (0, True)
    cluster.requests.clear()
    assert not run(persia_job, cluster, JOB)["changed"]
    assert cluster.writes == []
    lists = collections.Counter(request.ref for request in cluster.requests if request.verb == "list")
    assert set(lists.values()) == {1}


def planned_end(cluster: FakeCluster) -> dict[str, t.Any]:
    """What a dry run returns of a training that has ended well."""
    run(persia_job, cluster, JOB)
    finish(cluster)
    run(persia_job, cluster, JOB)
    plan = run(persia_job, cluster, JOB, check=True)
    cluster.requests.clear()
    return plan


def listed(cluster: FakeCluster) -> bool:
    return any(request.verb == "list" for request in cluster.requests)


def test_a_plan_with_nothing_to_do_is_the_answer_of_the_run_that_follows_once(cluster: FakeCluster) -> None:
    plan = planned_end(cluster)
    answer = run(persia_job, cluster, {**JOB, "planned": plan})
    assert {request.verb for request in cluster.requests} == {"get"}
    assert answer == run(persia_job, cluster, JOB)
    cluster.requests.clear()
    assert run(persia_job, cluster, {**JOB, "planned": answer}) == answer
    assert listed(cluster)


def test_a_plan_of_other_options_is_not_the_answer(cluster: FakeCluster) -> None:
    run(persia_job, cluster, {**JOB, "planned": planned_end(cluster), "wait_timeout": 7})
    assert listed(cluster)


def test_a_plan_of_another_run_is_not_the_answer(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned_end(cluster)
    monkeypatch.setattr(sensitive, "_KEY", b"another run")
    run(persia_job, cluster, {**JOB, "planned": plan})
    assert listed(cluster)


def test_a_plan_is_not_the_answer_of_another_plan(cluster: FakeCluster) -> None:
    run(persia_job, cluster, {**JOB, "planned": planned_end(cluster)}, check=True)
    assert listed(cluster)


def test_a_training_that_was_removed_after_the_plan_is_made_again(cluster: FakeCluster) -> None:
    plan = planned_end(cluster)
    cluster.remove(Ref("batch/v1", "Job", "adult-trainer", "default"))
    assert run(persia_job, cluster, {**JOB, "planned": plan})["changed"]


def test_a_training_that_is_not_over_or_changes_has_no_plan_to_pass_on(cluster: FakeCluster) -> None:
    assert "plan" not in run(persia_job, cluster, JOB, check=True)
    run(persia_job, cluster, JOB)
    assert "plan" not in run(persia_job, cluster, JOB, check=True)
    finish(cluster)
    assert "plan" not in run(persia_job, cluster, JOB, check=True)
    run(persia_job, cluster, JOB)
    assert "plan" in run(persia_job, cluster, JOB, check=True)
    assert "plan" not in run(persia_job, cluster, {**JOB, "restart": True}, check=True)


def test_results_are_what_the_trainers_logged_last(cluster: FakeCluster) -> None:
    desired = {**JOB, "results_pattern": r"(?:epoch=(?P<epoch>\d+)|result) loss=(?P<loss>[0-9.]+) auc=(?P<auc>[0-9.]+)"}
    started = run(persia_job, cluster, desired)
    assert "found" not in started
    assert started["summary"].keys() == {"ok", "state", "pods", "job", "backend"}
    assert started["table"] == ["data-compose: 0", "emb-server: 0", "middleware: 0", "trainer: 0"]
    finish(cluster)
    cluster.log_lines["default", "adult-trainer-0-abcde"] = "epoch=1 loss=0.55 auc=0.72\nresult loss=0.5 auc=0.75\n"
    over = run(persia_job, cluster, desired)
    assert [row["epoch"] for row in over["found"]] == ["1", None]
    assert {key: over["summary"][key] for key in ("ok", "loss", "auc", "epochs", "job")} == {
        "ok": True, "loss": 0.5, "auc": 0.75, "epochs": 1, "job": "default/adult",
    }  # fmt: skip
    assert [line.split() for line in over["table"][:2]] == [["epoch", "loss", "auc"], ["1", "0.55", "0.72"]]
    assert over["table"][2] == "PERSIA default/adult: loss 0.5, auc 0.75 on held-out data"
    cluster.log_lines["default", "adult-trainer-0-abcde"] = "nothing to say\n"
    summary = run(persia_job, cluster, desired)["summary"]
    assert (summary["ok"], summary["loss"], summary["epochs"]) == (False, None, 0)


def test_a_plan_waits_for_nothing_and_asks_for_nothing_that_a_restart_removes_first(cluster: FakeCluster) -> None:
    patient = {**JOB, "wait": True, "wait_for": "running", "wait_timeout": 0}
    assert run(persia_job, cluster, patient, check=True)["changed"]
    run(persia_job, cluster, JOB)
    cluster.fail("apply", "adult-trainer", Immutable("The pods of a Job cannot be changed."))
    other = {**patient, "files": {"train.py": "other", "data_loader.py": ""}, "restart": True}
    assert actions(run(persia_job, cluster, other, check=True))["Job/adult-trainer"] == "recreated"


@pytest.mark.parametrize("backend", ["native", "operator"])
def test_another_version_of_muster_restarts_no_process_of_a_running_training(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    def specs() -> list[t.Any]:
        kinds = [("apps/v1", "StatefulSet"), ("batch/v1", "Job"), *([("persia.com/v1", "PersiaJob")] if backend == "operator" else [])]
        return [one["spec"] for kind in kinds for one in cluster.list(*kind, "default")]

    if backend == "operator":
        cluster.add(CRD)
    job = {**JOB, "backend": backend}
    run(persia_job, cluster, job)
    before = specs()
    assert before
    monkeypatch.setattr(native, "persia_env", lambda *_of: [{"name": "NEW", "value": "1"}])
    monkeypatch.setattr(operator, "_own_env", lambda _group: [{"name": "NEW", "value": "1"}])
    assert set(actions(run(persia_job, cluster, job)).values()) == {"unchanged"}
    assert specs() == before


def test_restart_trains_again(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    finish(cluster)
    run(persia_job, cluster, JOB)
    cluster.remove(Ref("v1", "Pod", "adult-trainer-0-abcde", "default"))
    run(persia_job, cluster, {**JOB, "restart": True})
    server = cluster.stored("StatefulSet", "adult-emb-server", "default")
    trainer = cluster.stored("Job", "adult-trainer", "default")
    assert server is not None
    assert trainer is not None
    assert (server["spec"]["replicas"], trainer.get("status")) == (1, None)


def test_a_failed_training_says_why(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    cluster.set_status(Ref("batch/v1", "Job", "adult-trainer", "default"), failed)
    cluster.add(pod("adult-trainer-0-x", "Failed", labels=labels("trainer"), state=ended(137, "OOMKilled")))
    cluster.log_lines["default", "adult-trainer-0-x"] = "step 7\nallocating\n"
    with pytest.raises(Failed) as error:
        run(persia_job, cluster, {**JOB, "wait": True, "wait_for": "completed"})
    assert "adult-trainer-0-x: OOMKilled (exit status 137)" in str(error.value)
    assert "[adult-trainer-0-x] allocating" in str(error.value)
    assert "restart: true" in str(error.value)


def test_waiting_ends_with_the_reason(cluster: FakeCluster) -> None:
    with pytest.raises(WaitTimeout, match=r"is not running after 30 s\. Last seen: Pending.*emb-server, .*: 1 of 1 pods are missing"):
        run(persia_job, cluster, {**JOB, "wait": True, "wait_for": "running", "wait_timeout": 30})


def test_a_wait_shows_the_progress_of_the_first_trainer(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    for group in run(persia_job, cluster, JOB)["groups"]:
        cluster.add(pod(f"adult-{group['name']}-0", labels=labels(group["name"])))
    steps = "".join(f"2026-11-27T08:00:{step}Z MUSTER step={step} steps=60 epoch=2 epochs=4 loss=0.5\n" for step in (28, 29, 30))
    cluster.log_lines["default", "adult-trainer-0"] = steps
    line = "50 %, 30 s left, epoch 2 of 4, step 30 of 60, loss 0.5, 1 steps/s"
    assert run(job_info, cluster, {"name": "adult", "namespace": "default"})["progress"]["line"] == line
    shown: list[str] = []
    cluster.requests.clear()
    run(persia_job, cluster, {**JOB, "wait": True, "wait_for": "running"}, progress=shown.append)
    assert [request for request in cluster.requests if request.verb == "logs"] == []
    with pytest.raises(WaitTimeout, match=f"trainer 1/1.*; {line}"):
        run(persia_job, cluster, {**JOB, "wait": True, "wait_for": "completed", "wait_timeout": 30}, progress=shown.append)
    assert shown == [f"Running: {line}"]
    cluster.fail("logs", "adult-trainer-0", ServerError("the node of this pod does not answer"))
    assert run(job_info, cluster, {"name": "adult", "namespace": "default"})["progress"]["line"] == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"global_config": {"common_config": {"metrics_config": {"push_interval": 1}}}}, "push_interval_seconds"),
        ({"embedding_worker": {"replicas": 1, "resources": {"limits": {"memory": "12 GB"}}}}, "12Gi"),
        ({"backend": "operator", "node_selector": {"a": "b"}}, "no field for"),
        ({"results_pattern": "("}, "results_pattern: '\\(' is not a regular expression"),
    ],
)
def test_bad_input_asks_the_cluster_nothing(cluster: FakeCluster, fields: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        run(persia_job, cluster, {**JOB, **fields})
    assert cluster.requests == []


def operators_job(cluster: FakeCluster) -> Ref:
    """A PersiaJob that the operator has seen, whose pods run."""
    cluster.add(CRD)
    run(persia_job, cluster, {**JOB, "backend": "operator"})
    ref = Ref("persia.com/v1", "PersiaJob", "adult", "default")
    stored = cluster.objects[ref.identity]
    stored["metadata"]["finalizers"] = ["persiajobs.persia.com"]
    mine = {"persia_job": "adult"}
    for word in ("embedding-ps", "embedding-worker", "dataloader", "nn-worker"):
        cluster.add(pod(f"adult-{word}-0", labels=mine))
    return ref


def test_a_missing_operator_is_named_where_its_finalizer_stays(cluster: FakeCluster) -> None:
    operators_job(cluster)
    with pytest.raises(WaitTimeout, match=r"finalizer persiajobs\.persia\.com.*remove_finalizer: true"):
        run(persia_job, cluster, {"name": "adult", "namespace": "default", "state": "absent", "wait_timeout": 10})
    cluster.requests.clear()
    gone = run(persia_job, cluster, {"name": "adult", "namespace": "default", "state": "absent", "remove_finalizer": True, "wait": False})
    assert actions(gone)["PersiaJob/adult"] == "deleted"
    assert cluster.stored("Pod", "adult-nn-worker-0", "default") is None


def test_somebody_elses_persiajob_is_neither_joined_nor_removed(cluster: FakeCluster) -> None:
    cluster.add(CRD)
    metadata = {"name": "adult", "namespace": "default"}
    cluster.add({"apiVersion": "persia.com/v1", "kind": "PersiaJob", "metadata": metadata, "spec": {}})
    cluster.add(pod("adult-nn-worker-0", labels={"persia_job": "adult"}))
    stored = cluster.objects[Ref("persia.com/v1", "PersiaJob", "adult", "default").identity]
    stored["spec"] = {"nnWorker": {"replicas": 1}}
    with pytest.raises(Immutable, match="other options: backend"):
        run(persia_job, cluster, JOB)
    for more in ({**JOB, "recreate": True}, {"name": "adult", "namespace": "default", "state": "absent"}):
        with pytest.raises(InvalidInput, match="was not created by this module"):
            run(persia_job, cluster, more)
    assert cluster.writes == []


# training_statefulset

GROUP = {"name": "w", "namespace": "default", "replicas": 2, "nproc_per_node": 4, "image": "a:1"}


def test_a_group_is_made_once_and_loses_its_budget(cluster: FakeCluster) -> None:
    first = run(training_statefulset, cluster, {**GROUP, "pod_disruption_budget": {"max_unavailable": "1"}})
    assert (first["world_size"], first["master_addr"]) == (8, "w-0.w.default.svc")
    assert actions(first) == {"Service/w": "created", "StatefulSet/w": "created", "PodDisruptionBudget/w": "created"}
    assert actions(run(training_statefulset, cluster, GROUP))["PodDisruptionBudget/w"] == "deleted"
    assert not run(training_statefulset, cluster, GROUP)["changed"]
    gone = run(training_statefulset, cluster, {"name": "w", "namespace": "default", "state": "absent"})
    assert set(actions(gone).values()) == {"deleted"}


def test_a_foreign_budget_of_the_same_name_stays(cluster: FakeCluster) -> None:
    foreign = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "w", "namespace": "default"}}
    cluster.add(foreign)
    run(training_statefulset, cluster, GROUP)
    assert cluster.stored("PodDisruptionBudget", "w", "default") is not None


# nats_cluster


def serve(cluster: FakeCluster, *peers: list[int], payload: int = 1000) -> None:
    """Server pods that answer."""
    for index, others in enumerate(peers):
        name = f"n-{index}"
        cluster.add(pod(name, labels={"app": "nats", "nats_cluster": "n"}))
        varz = {"remotes": len(others), "max_payload": payload, "version": "2.15.2"}
        cluster.proxy["default", name, 8222, "/varz"] = (200, json.dumps(varz))


def test_nats_servers_are_asked_themselves(cluster: FakeCluster) -> None:
    serve(cluster, [1], [0])
    cluster.controllers["StatefulSet"] = lambda item: {
        "observedGeneration": 1,
        "readyReplicas": item["spec"]["replicas"],
        "replicas": item["spec"]["replicas"],
    }
    result = run(nats_cluster, cluster, {**NATS, "wait": True})
    assert result["url"] == "nats://n:4222"
    assert result["servers"] == [
        {"pod": "n-0", "version": "2.15.2", "peers": 1, "max_payload": 1000},
        {"pod": "n-1", "version": "2.15.2", "peers": 1, "max_payload": 1000},
    ]
    cluster.requests.clear()
    assert not run(nats_cluster, cluster, {**NATS, "wait": True})["changed"]
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("peers", "payload", "said"),
    [
        (([], [0]), 1000, "n-0: routes to 0 of 1 other servers"),
        (([1], [0]), 5, "n-0: max_payload is 5, not 1000"),
        (([1],), 1000, "1 of 2 servers have a pod"),
    ],
)
def test_what_servers_lack_is_told(cluster: FakeCluster, peers: tuple[list[int], ...], payload: int, said: str) -> None:
    serve(cluster, *peers, payload=payload)
    desired = desired_nats(cluster, NATS)
    found = nats_edge.views(cluster, nats_edge.pods_of(cluster, desired))
    assert said in (nats_edge.missing(desired, found) or "")


def test_servers_that_are_as_desired_are_asked_once(cluster: FakeCluster) -> None:
    serve(cluster, [1], [0])
    options = {**NATS, "backend": "operator"}
    found = nats_edge.replace_outdated(cluster, desired_nats(cluster, options), timeout=1, progress=print)
    assert [view.pod for view in found] == ["n-0", "n-1"]
    assert [request.verb for request in cluster.requests].count("list") == 1


@pytest.mark.parametrize("backend", ["native", "operator"])
def test_servers_that_only_have_to_run_are_not_asked(backend: str, cluster: FakeCluster) -> None:
    cluster.kinds_served["nats.io/v1alpha2", "NatsCluster"] = ServedKind("natsclusters", True)
    cluster.controllers["StatefulSet"] = lambda _item: {"observedGeneration": 1, "readyReplicas": 2, "replicas": 2}
    options = {**NATS, "backend": backend, "image": "nats:2", "wait": True, "wait_for": "running", "wait_timeout": 30}
    for index, phase in enumerate(["Running", "Pending"]):
        cluster.add(pod(f"n-{index}", phase, labels={"app": "nats", "nats_cluster": "n"}))
    with pytest.raises(WaitTimeout, match=r"default/n does not run after .* s\. Last seen: 1 of 2 servers run; n-1: "):
        run(nats_cluster, cluster, options)
    cluster.add(pod("n-1", labels={"app": "nats", "nats_cluster": "n"}))
    assert run(nats_cluster, cluster, options)["servers"] == []
    assert not [request for request in cluster.requests if request.verb == "proxy"]


def test_a_proxy_that_answers_otherwise_is_told(cluster: FakeCluster) -> None:
    cluster.add(pod("n-0", labels={"app": "nats", "nats_cluster": "n"}))
    cluster.proxy["default", "n-0", 8222, "/varz"] = (200, "<html>")
    (view,) = nats_edge.views(cluster, cluster.list("v1", "Pod", "default"))
    assert view.error == "/varz answers no JSON: <html>"


def test_nats_without_its_operator_is_one_clear_error(cluster: FakeCluster) -> None:
    with pytest.raises(MissingKind, match=r"role muster\.ml\.nats_operator"):
        run(nats_cluster, cluster, {**NATS, "backend": "operator"})
    with pytest.raises(InvalidInput, match="max_pending"):
        run(nats_cluster, cluster, {**NATS, "max_payload": 99999999})
    assert cluster.writes == []


# job_info, job_logs


def test_info_tells_each_rank(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    finish(cluster)
    info = run(job_info, cluster, {"name": "adult", "namespace": "default"})
    assert (info["changed"], info["exists"], info["state"], info["backend"]) == (False, True, "Succeeded", "native")
    (trainer,) = [group for group in info["groups"] if group["name"] == "trainer"]
    assert trainer["ranks"][0]["message"] == '{"auc": 0.74}'
    assert trainer["ranks"][0]["exit_code"] == 0
    assert run(job_info, cluster, {"name": "no", "namespace": "default"})["state"] == "Unknown"


def said(event: str, **fields: t.Any) -> str:
    return f"muster.ml/elastic {json.dumps({'event': event, **fields})}\n"


def test_info_tells_the_world_of_an_elastic_job(cluster: FakeCluster) -> None:
    mine = {"name": "digits", "namespace": "default", "kind": "elastic_job"}
    options = {"image": "example/torch:1", "replicas": 2, "min_replicas": 1, "script": "/train.py", "wait": False}
    run(elastic_job, cluster, {"name": "digits", "namespace": "default", **options})
    belongs = {"muster.ml/elastic-job": "digits", LABEL_GROUP: "worker"}
    for index in (0, 1):
        cluster.add(pod(f"digits-{index}", labels={**belongs, "apps.kubernetes.io/pod-index": str(index)}))
    assert run(job_info, cluster, mine)["world"]["step"] is None
    met = said("rendezvous", time=1.0, round=0, nodes=2)
    cluster.log_lines["default", "digits-0"] = met + said("step", time=2.0, world_size=2, epoch=3, step=41)
    cluster.log_lines["default", "digits-1"] = met
    info = run(job_info, cluster, mine)
    assert (info["state"], info["backend"]) == ("Running", "native")
    assert info["summary"] == {
        "ok": True, "state": "Running", "pods": 2, "job": "default/digits", "backend": "c10d", "accuracy": None, "nodes": 2,
        "world_size": 2, "epochs": 4, "rounds": 1, "steps": 41,
    }  # fmt: skip
    assert info["table"] == [
        "Elastic PyTorch default/digits: Running",
        "world: 2 processes in 2 pods; rounds of the rendezvous by c10d: 1",
        "trained: 4 epochs, 41 steps",
    ]
    options["state"] = "present"
    assert run(elastic_job, cluster, {"name": "digits", "namespace": "default", **options})["table"] == info["table"]
    assert {key: info["world"][key] for key in ("nodes", "world_size", "epoch", "step", "accuracy")} == {
        "nodes": 2, "world_size": 2, "epoch": 3, "step": 41, "accuracy": None,
    }  # fmt: skip


def test_other_trainings_have_no_world(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    assert run(job_info, cluster, {"name": "adult", "namespace": "default"})["world"] == {}


def test_logs_have_the_rank_in_front_and_are_searched(cluster: FakeCluster) -> None:
    run(persia_job, cluster, JOB)
    finish(cluster)
    text = "epoch=1 loss=0.55 auc=0.72\nepoch=2 loss=0.54 auc=0.74\nbye\n"
    cluster.log_lines["default", "adult-trainer-0-abcde"] = text
    options = {"name": "adult", "namespace": "default", "group_names": ["trainer"], "tail_lines": 1}
    logs = run(job_logs, cluster, {**options, "search": r"epoch=(?P<epoch>\d+) loss=\S+ auc=(?P<auc>[\d.]+)"})
    assert logs["lines"] == ["[trainer-0] bye"]
    assert logs["found"] == [
        {"group": "trainer", "rank": 0, "epoch": "1", "auc": "0.72"},
        {"group": "trainer", "rank": 0, "epoch": "2", "auc": "0.74"},
    ]
    everything = run(job_logs, cluster, {**options, "tail_lines": 0})
    assert len(everything["lines"]) == 3
    cluster.add(pod("adult-trainer-0-abcde", "Running", labels=labels("trainer"), restarts=1))
    cluster.earlier_log_lines["default", "adult-trainer-0-abcde"] = "killed\n"
    assert run(job_logs, cluster, {**options, "previous": True})["lines"] == ["[trainer-0] killed"]


def test_logs_are_waited_for(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the training nor its pods need exist yet."""
    steps = [
        lambda: run(persia_job, cluster, JOB),
        lambda: finish(cluster),
        lambda: cluster.log_lines.update({("default", "adult-trainer-0-abcde"): "epoch=1\nepoch=2\n"}),
    ]
    monkeypatch.setattr(cluster.clock, "sleep", lambda _seconds: steps.pop(0)())
    options = {"name": "adult", "namespace": "default", "group_names": ["trainer"], "search": r"epoch=(?P<epoch>\d+)"}
    assert len(run(job_logs, cluster, {**options, "matches": 2})["found"]) == 2
    assert steps == []
    with pytest.raises(WaitTimeout, match=r"do not have 3 matches .* after 0 s\. Last seen: 2 of 3 matches"):
        run(job_logs, cluster, {**options, "matches": 3, "wait_timeout": 0})


def test_a_group_that_is_made_last_is_waited_for(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    run(persia_job, cluster, JOB)
    finish(cluster)
    cluster.log_lines[("default", "adult-trainer-0-abcde")] = "epoch=1\n"
    later = {key: cluster.objects.pop(key) for key in list(cluster.objects) if key[3].startswith("adult-trainer")}
    monkeypatch.setattr(cluster.clock, "sleep", lambda _seconds: cluster.objects.update(later))
    options = {"name": "adult", "namespace": "default", "group_names": ["trainer"], "search": "epoch=1", "matches": 1}
    assert len(run(job_logs, cluster, options)["found"]) == 1


def test_a_kind_that_is_installed_meanwhile_is_seen(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery is remembered, so that a run asks once; who waits has to ask again."""
    asked: list[str] = []

    def resource(api_version: str, kind: str, *, refresh: bool = False) -> None:
        asked.extend([f"{api_version}/{kind}"] if refresh else [])

    monkeypatch.setattr(cluster.clock, "sleep", lambda _seconds: None)
    real = cluster.resource
    monkeypatch.setattr(cluster, "resource", lambda *key, **how: resource(*key, **how) if "ersia" in key[1] else real(*key, **how))
    with pytest.raises(WaitTimeout, match="There is no training default/adult"):
        run(job_logs, cluster, {"name": "adult", "namespace": "default", "search": "x", "matches": 1, "wait_timeout": 0})
    assert set(asked) == {"persia.com/v1/PersiaJob"}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"search": "("}, InvalidInput, "not a regular expression"),
        ({"matches": 1}, InvalidInput, "has nothing to count"),
        ({"group_names": ["trainers"]}, NotFound, "has no group 'trainers', it has .*Did you mean 'trainer'"),
        ({"name": "other"}, NotFound, "There is no training default/other"),
    ],
)
def test_logs_that_cannot_be(cluster: FakeCluster, options: dict[str, t.Any], error: type[Exception], said: str) -> None:
    run(persia_job, cluster, JOB)
    with pytest.raises(error, match=said):
        run(job_logs, cluster, {"name": "adult", "namespace": "default", **options})
