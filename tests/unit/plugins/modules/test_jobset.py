# SPDX-License-Identifier: GPL-3.0-or-later
"""Module jobset against a cluster in memory."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._training.status import INDEX_LABELS
from ansible_collections.muster.ml.plugins.modules import jobset
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended, pod

JOB: dict[str, t.Any] = {"name": "lm", "namespace": "default", "image": "example/jax:0.10", "slices": 2, "hosts": 2, "wait": False}
SET = Ref("jobset.x-k8s.io/v1alpha2", "JobSet", "lm", "default")


@pytest.fixture
def served(cluster: FakeCluster) -> FakeCluster:
    cluster.kinds_served["jobset.x-k8s.io/v1alpha2", "JobSet"] = ServedKind("jobsets", namespaced=True)
    return cluster


def run(cluster: FakeCluster, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
    return tasks.run(jobset, cluster, {**JOB, **more}, check=check)


def actions(result: dict[str, t.Any]) -> dict[str, str]:
    return {entry["kind"]: entry["action"] for entry in result["objects"]}


def labels(index: int, host: int = 0) -> dict[str, str]:
    return {
        INDEX_LABELS[0]: str(host),
        "muster.ml/jobset": "lm",
        "jobset.sigs.k8s.io/replicatedjob-name": "slice",
        "jobset.sigs.k8s.io/job-index": str(index),
    }


def test_it_is_suspended_and_goes_on_without_training_again(served: FakeCluster) -> None:
    run(served)
    assert actions(run(served, suspend=True))["JobSet"] == "updated"
    served.set_status(SET, {"conditions": [{"type": "Suspended", "status": "True", "reason": "SuspendedJobs"}]})
    told = run(served, suspend=True, wait=True, wait_for="running")
    assert (told["changed"], told["state"]) == (False, "Pending")
    assert [group["reason"] for group in told["groups"]] == ["is suspended", "is suspended"]
    assert actions(run(served, suspend=False))["JobSet"] == "updated"


def test_it_is_suspended_when_its_pods_are_gone(served: FakeCluster) -> None:
    run(served)
    served.set_status(SET, {"conditions": [{"type": "Suspended", "status": "True", "reason": "SuspendedJobs"}]})
    served.add(pod("lm-slice-0-0-a", labels=labels(0)), pod("lm-slice-0-1-a", labels=labels(0, 1), phase="Succeeded"))
    with pytest.raises(WaitTimeout, match="is not suspended yet, 1 pod left"):
        run(served, suspend=True, wait=True, wait_for="running", wait_timeout=1)


def queued(served: FakeCluster, *conditions: dict[str, str]) -> dict[str, t.Any]:
    """The state of a JobSet that Kueue keeps from running, where its Workload says this."""
    run(served, queue_name="research", queue_priority_class="urgent")
    live = served.get(SET)
    assert live is not None
    assert live["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "urgent"
    live["spec"]["suspend"] = True
    live["metadata"]["uid"] = "u1"
    served.add(live)
    served.set_status(SET, {"conditions": [{"type": "Suspended", "status": "True", "reason": "SuspendedJobs"}]})
    if conditions:
        named = {"name": "jobset-lm-1", "namespace": "default", "labels": {"kueue.x-k8s.io/job-uid": "u1"}}
        served.kinds_served["kueue.x-k8s.io/v1beta2", "Workload"] = ServedKind("workloads", namespaced=True)
        served.add(
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": named, "status": {"conditions": list(conditions)}}
        )
    return run(served, queue_name="research", queue_priority_class="urgent")


PENDING = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota"}
STOPPED = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "for a more urgent one"}
RESERVED = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}
CHECKS = {"type": "Admitted", "status": "False", "message": "waits for nodes"}


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ([PENDING], "research: insufficient unused quota"),
        ([PENDING, STOPPED], "research: insufficient unused quota; it was stopped: Preempted: for a more urgent one"),
        ([{**PENDING, "message": STOPPED["message"]}, STOPPED], "research: it was stopped: Preempted: for a more urgent one"),
        ([RESERVED, CHECKS], "research: has its quota; waits for nodes"),
        ([], "research: this cluster has no Kueue (role muster.ml.kueue)"),
    ],
)
def test_its_queue_says_why_it_waits(served: FakeCluster, conditions: list[dict[str, str]], said: str) -> None:
    told = queued(served, *conditions)
    assert (told["state"], told["reason"]) == ("Pending", f"slice-0, slice-1: waits in queue {said}")


def test_each_slice_is_a_group(served: FakeCluster) -> None:
    run(served)
    served.set_status(SET, {"restarts": 1})
    served.add(pod("lm-slice-0-0-a", labels=labels(0)), pod("lm-slice-0-1-a", labels=labels(0, 1)))
    served.add(pod("lm-slice-1-0-a", labels=labels(1)))
    told = run(served)
    assert [(group["name"], group["desired"], group["running"]) for group in told["groups"]] == [("slice-0", 2, 2), ("slice-1", 2, 1)]
    assert told["reason"] == "slice-1: 1 of 2 pods are missing, after 1 restart"
    assert told["summary"]["restarts"] == 1
    assert told["table"] == ["JobSet default/lm: Degraded, 2 slices of 2 hosts, 1 restart", "slice-0: 2", "slice-1: 1"]


def test_a_wait_shows_its_progress(served: FakeCluster) -> None:
    run(served)
    served.add(*(pod(f"lm-slice-{index}-{host}-a", labels=labels(index, host)) for index in (0, 1) for host in (0, 1)))
    served.log_lines["default", "lm-slice-0-0-a"] = '{"event": "step", "hosts": 4, "step": 10, "steps": 40, "loss": 0.25}\n'
    with pytest.raises(WaitTimeout, match=r"slice-1 2/2; 25 %, step 10 of 40, loss 0\.25"):
        run(served, wait=True, wait_for="completed", wait_timeout=0)


def test_its_end_is_that_of_the_jobset(served: FakeCluster) -> None:
    run(served)
    served.set_status(SET, {"conditions": [{"type": "Completed", "status": "True"}]})
    served.requests.clear()
    told = run(served, wait=True, wait_for="completed")
    assert (told["state"], told["changed"], served.writes) == ("Succeeded", False, [])
    assert actions(run(served, restart=True))["JobSet"] == "recreated"


def test_a_failure_is_that_of_the_pod(served: FakeCluster) -> None:
    run(served)
    failed = {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "jobset failed"}
    served.set_status(SET, {"conditions": [failed]})
    bad = ended(1, message="ValueError: no data")
    served.add(pod("lm-slice-1-0-a", "Failed", labels=labels(1), state=bad))
    with pytest.raises(Failed, match="ReachedMaxRestarts"):
        run(served, wait=True, wait_for="completed")
    told = run(served)
    assert told["groups"][1]["reason"] == "ReachedMaxRestarts: lm-slice-1-0-a: ValueError: no data"
