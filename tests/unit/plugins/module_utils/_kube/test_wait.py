# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting by watches, with a clock that passes only when somebody waits."""

from __future__ import annotations

import threading
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, Forbidden, Gone, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import POD, Event, Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.ready import READY, claim, deletion_state
from ansible_collections.muster.ml.plugins.module_utils._kube.wait import wait_until
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

PODS = [Ref("v1", "Pod", f"p{number}", "default") for number in range(3)]


def pod(ref: Ref, phase: str = "Pending", **status: t.Any) -> Manifest:
    metadata = {"name": ref.name, "namespace": ref.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase, **status}}


class Scripted(FakeCluster):
    """Each watch plays the next act: something that happens in the cluster, an error, or nothing."""

    acts: list[t.Callable[[], None] | Exception]

    def watch(self, *args: t.Any, **options: t.Any) -> t.Iterator[Event]:
        if self.acts:
            act = self.acts.pop(0)
            if isinstance(act, Exception):
                raise act
            act()
        return super().watch(*args, **options)


def wait(cluster: FakeCluster, refs: list[Ref], **options: t.Any) -> dict[Ref, Manifest | None]:
    return wait_until(cluster, refs, **{"timeout": 60, **options})


@pytest.fixture
def pods() -> Scripted:
    cluster = Scripted()
    cluster.acts = []
    cluster.add(*map(pod, PODS))
    return cluster


def finish(cluster: Scripted, *refs: Ref) -> t.Callable[[], None]:
    def act() -> None:
        for ref in refs:
            cluster.set_status(ref, {"phase": "Succeeded"})

    return act


def test_what_is_known_to_be_ready_costs_nothing(pods: Scripted) -> None:
    wait(pods, PODS, known={ref: pod(ref, "Succeeded") for ref in PODS})
    assert pods.requests == []


def test_one_list_and_watch_for_many(pods: Scripted) -> None:
    pods.acts = [finish(pods, *PODS)]
    found = wait(pods, PODS)
    assert [request.verb for request in pods.requests] == ["list", "watch"]
    assert all(item and item["status"]["phase"] == "Succeeded" for item in found.values())


def test_one_object_is_watched_by_name(pods: Scripted) -> None:
    pods.acts = [finish(pods, PODS[0])]
    wait(pods, PODS[:1])
    assert [(request.verb, request.ref.name) for request in pods.requests] == [("get", "p0"), ("watch", "p0")]


def test_the_end_of_one_watch_is_the_start_of_the_next(pods: Scripted) -> None:
    pods.acts = [finish(pods, PODS[0]), lambda: None, finish(pods, *PODS[1:])]
    wait(pods, PODS)
    assert [request.verb for request in pods.requests] == ["list", "watch", "watch", "watch"]


def test_history_that_is_gone_is_read_again(pods: Scripted) -> None:
    pods.acts = [Gone("410"), finish(pods, *PODS)]
    wait(pods, PODS)
    assert [request.verb for request in pods.requests][:2] == ["list", "list"]


def test_a_restarting_api_server_is_waited_out(pods: Scripted) -> None:
    pods.acts = [Unreachable("refused"), Unreachable("refused"), finish(pods, *PODS)]
    wait(pods, PODS)


def test_the_deadline_tells_that_nobody_answers(pods: Scripted) -> None:
    pods.acts = [Unreachable("The API server does not answer.")] * 1000
    with pytest.raises(WaitTimeout, match=r"Pod default/p0: Pending.*\. The API server does not answer\."):
        wait(pods, PODS, timeout=9)


def test_the_deadline_tells_each_object(pods: Scripted) -> None:
    pods.acts = [finish(pods, PODS[0])]
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, PODS, timeout=30)
    assert caught.value.last_seen == ["Pod default/p1: Pending", "Pod default/p2: Pending"]
    assert pods.clock.now <= 1000 + 30 + 10


def test_a_failure_ends_the_wait_at_once(pods: Scripted) -> None:
    pods.acts = [lambda: pods.set_status(PODS[1], {"phase": "Failed", "reason": "Evicted"})]
    with pytest.raises(Failed, match=r"Pod default/p1: failed \(Evicted\)"):
        wait(pods, PODS)
    assert pods.clock.now < 1060


def test_a_missing_right_ends_the_wait_at_once(pods: Scripted) -> None:
    other = Ref("v1", "ConfigMap", "a", "default")
    for verb, name in (("list", ""), ("get", PODS[0].name)):
        pods.fail(verb, name, Forbidden("may not read pods"))
    with pytest.raises(Forbidden):
        wait(pods, [*PODS, other], timeout=10_000)
    assert pods.clock.now < 2000


def test_an_object_that_appears_later(pods: Scripted) -> None:
    late = Ref("v1", "Pod", "late", "default")
    pods.acts = [lambda: pods.add(pod(late, "Succeeded"))]
    assert wait(pods, [late])[late]


def test_own_predicates(pods: Scripted) -> None:
    wait(pods, PODS, predicates={POD: lambda _found: READY})


def test_a_claim_that_binds_with_its_first_pod_is_not_waited_for() -> None:
    cluster = FakeCluster()
    cluster.add(LATE, at_once := pending_claim("at-once"))
    wait(cluster, [CLAIM], known={CLAIM: pending_claim()})
    with pytest.raises(WaitTimeout, match="Pending"):
        wait(cluster, [CLAIM], known={CLAIM: at_once})


def test_progress_is_told_when_it_changed_and_not_too_often(pods: Scripted) -> None:
    told: list[str] = []
    steps = [finish(pods, PODS[0]), lambda: None, finish(pods, PODS[1]), lambda: None, finish(pods, PODS[2])]
    pods.acts = list(steps)
    wait(pods, PODS, on_progress=told.append)
    assert told == ["1 of 3 ready; Pod default/p1 and 1 more Pending", "2 of 3 ready; Pod default/p2 Pending", "3 of 3 ready"]


def test_equal_reasons_of_pods_are_told_once() -> None:
    cluster = FakeCluster()
    for number in range(4):
        waiting = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no GPU."}]}
        item = pod(Ref("v1", "Pod", f"w-{number}", "default"), **waiting)
        item["metadata"]["labels"] = {"a": "b"}
        cluster.add(item)
    ref = Ref("apps/v1", "StatefulSet", "w", "default")
    selector = {"matchLabels": {"a": "b"}}
    cluster.add({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "namespace": "default", "generation": 0},
                 "spec": {"replicas": 4, "selector": selector}})  # fmt: skip
    with pytest.raises(WaitTimeout) as caught:
        wait(cluster, [ref])
    assert caught.value.last_seen == ["StatefulSet default/w: 0 of 4 ready; pod w-0 (and 3 more) Pending: no GPU"]


# Claims

CLAIM = Ref("v1", "PersistentVolumeClaim", "c", "default")
LATE: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "volumeBindingMode": "WaitForFirstConsumer",
}


def pending_claim(storage_class: str = "late", **metadata: t.Any) -> Manifest:
    found = {**pod(CLAIM), "kind": "PersistentVolumeClaim", "spec": {"storageClassName": storage_class}}
    found["metadata"].update(metadata)
    return found


def test_a_claim_of_a_class_that_does_not_exist_says_so_in_progress_and_at_the_end(pods: Scripted) -> None:
    told: list[str] = []
    pods.add(pending_claim("nope"))
    pods.say(CLAIM, "ProvisioningFailed", 'storageclass.storage.k8s.io "nope" not found', type="Warning")
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, [CLAIM], on_progress=told.append)
    assert told == ["0 of 1 ready; PersistentVolumeClaim default/c Pending: there is no StorageClass nope"]
    assert caught.value.last_seen == [
        "PersistentVolumeClaim default/c: Pending: there is no StorageClass nope; "
        'ProvisioningFailed: storageclass.storage.k8s.io "nope" not found'
    ]


def test_a_class_that_comes_later_counts(pods: Scripted) -> None:
    pods.add(pending_claim())
    pods.acts = [lambda: pods.add(LATE)]
    wait(pods, [CLAIM])


def test_a_class_that_may_not_be_read_is_no_reason_to_fail(pods: Scripted) -> None:
    pods.add(pending_claim())
    pods.fail("get", "late", *[Forbidden("User x may not get storageclasses")] * 9)
    pods.acts = [lambda: pods.set_status(CLAIM, {"phase": "Bound"})]
    wait(pods, [CLAIM])


def test_that_a_class_could_not_be_read_is_told_at_the_end(pods: Scripted) -> None:
    pods.add(pending_claim())
    pods.fail("get", "late", *[Forbidden("User x may not get storageclasses")] * 9)
    with pytest.raises(WaitTimeout, match=r"Pending \(when StorageClass late binds could not be read: User x may not get storageclasses\)"):
        wait(pods, [CLAIM])
    assert sum(request.ref.kind == "StorageClass" for request in pods.requests) == 1


def test_events_tell_that_a_claim_binds_late_to_who_may_not_read_its_class(pods: Scripted) -> None:
    pods.add(pending_claim())
    pods.fail("get", "late", *[Forbidden("no")] * 9)
    pods.acts = [lambda: pods.say(CLAIM, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")]
    wait(pods, [CLAIM])


def test_an_api_server_that_fails_when_asked_for_a_class_is_asked_again(pods: Scripted) -> None:
    pods.add(pending_claim(), LATE)
    pods.fail("get", "late", Unreachable("restarting"), Unreachable("restarting"))
    wait(pods, [CLAIM], known={CLAIM: pending_claim()})


def test_a_claim_that_binds_late_is_waited_for_when_it_is_deleted(pods: Scripted) -> None:
    pods.add(LATE, pending_claim(deletionTimestamp="2026-11-21T12:00:00Z", finalizers=["kubernetes.io/pvc-protection"]))
    with pytest.raises(WaitTimeout, match=r"waits for its finalizers kubernetes\.io/pvc-protection"):
        wait(pods, [CLAIM], predicates={CLAIM.group_kind: deletion_state}, goal="gone")


def test_a_caller_who_knows_better_when_a_claim_is_ready_is_believed(pods: Scripted) -> None:
    pods.add(LATE, pending_claim())
    with pytest.raises(WaitTimeout, match="default/c: Pending"):
        wait(pods, [CLAIM], predicates={CLAIM.group_kind: claim})


# Pods that are refused

JOB = Ref("batch/v1", "Job", "j", "default")
QUOTA = 'Error creating: pods "j-x" is forbidden: exceeded quota: q'


@pytest.fixture
def refused(pods: Scripted) -> Scripted:
    pods.add({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {}})
    pods.say(JOB, "FailedCreate", QUOTA, type="Warning")
    return pods


def test_pods_that_are_refused_are_told_while_waiting_and_at_the_end(refused: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    asked, listen, watch = threading.Event(), refused.events_of, refused.watch

    def events_of(ref: Ref, uid: str | None = None) -> list[Manifest]:
        asked.set()
        return listen(ref, uid)

    def watch_later(api_version: str, kind: str, *args: t.Any, **options: t.Any) -> t.Iterator[Event]:
        if kind == "Pod":  # pods, who come first, say nothing until the Job was asked after
            asked.wait(5)
        return watch(api_version, kind, *args, **options)

    monkeypatch.setattr(refused, "events_of", events_of)
    monkeypatch.setattr(refused, "watch", watch_later)
    with pytest.raises(WaitTimeout) as caught:
        wait(refused, [*PODS, JOB], on_progress=told.append)
    assert f"0 of 4 ready; Job default/j 0 of 1 succeeded; FailedCreate: {QUOTA}" in told
    assert f"Job default/j: 0 of 1 succeeded; FailedCreate: {QUOTA}" in caught.value.last_seen


def test_a_refusal_that_is_over_leaves_the_progress(refused: Scripted) -> None:
    told: list[str] = []
    refused.acts = [lambda: None, lambda: refused.say(JOB, "SuccessfulCreate", "Created pod: j-y", at=30)]
    with pytest.raises(WaitTimeout):
        wait(refused, [JOB], on_progress=told.append)
    assert [line.endswith(QUOTA) for line in told] == [True, False]


SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "default", "generation": 0},
       "spec": {"replicas": 4, "selector": {"matchLabels": {"a": "b"}}}}  # fmt: skip


def test_a_pod_that_does_not_start_is_told_while_its_workload_is_waited_for(pods: Scripted) -> None:
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}
    of_set = {"name": "x", "namespace": "default", "labels": {"a": "b"}}
    pods.add(SET, {**pod(PODS[0], containerStatuses=[crashed]), "metadata": of_set})
    told: list[str] = []
    with pytest.raises(WaitTimeout):
        wait(pods, [ref_of(SET)], on_progress=told.append)
    assert told[-1].endswith("StatefulSet default/s 0 of 4 ready; pod x Pending: CrashLoopBackOff after Error (exit status 1)")


def test_a_user_who_may_see_neither_pods_nor_events_is_told_what_is_known(pods: Scripted) -> None:
    pods.add(SET)
    pods.fail("events", "s", *[Forbidden("no")] * 99)
    pods.fail("list", "", *[Forbidden("no")] * 99)
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, [ref_of(SET)])
    assert caught.value.last_seen == ["StatefulSet default/s: 0 of 4 ready"]


def test_of_many_objects_only_the_first_are_asked_after(pods: Scripted) -> None:
    many = [Ref("v1", "Pod", f"m{number}", "default") for number in range(200)]
    pods.add(*map(pod, many))
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, many)
    assert len(caught.value.last_seen) == 200
    assert sum(request.verb == "events" for request in pods.requests) == 20


# Deletion

NAMESPACE = Ref("v1", "Namespace", "old")


def test_a_namespace_that_stays_tells_its_conditions_in_progress_and_at_the_end(pods: Scripted) -> None:
    status = {"phase": "Terminating", "conditions": [
        {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods. has 1 resource instances"},
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "x.io/hold in 1 resource instances"},
        {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content successfully deleted"}]}  # fmt: skip
    pods.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old", "deletionTimestamp": "2026-11-21T12:00:00Z"},
              "spec": {"finalizers": ["kubernetes"]}})  # fmt: skip
    pods.acts, told = [lambda: pods.set_status(NAMESPACE, status)], []
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, [NAMESPACE], predicates={NAMESPACE.group_kind: deletion_state}, goal="gone", on_progress=told.append)
    why = (
        "is being deleted since 2026-11-21T12:00:00Z; NamespaceContentRemaining: Some resources are remaining: pods. has 1 resource "
        "instances; NamespaceFinalizersRemaining: x.io/hold in 1 resource instances"
    )
    begin, end = "0 of 1 gone; Namespace old is being deleted since", "x.io/hold in 1 resource instances"
    assert [(line[: len(begin)], line[-len(end) :], " ... " in line) for line in told] == [(begin, end, True)]
    assert caught.value.last_seen == [f"Namespace old: {why}"]


def replacement(ref: Ref) -> Manifest:
    found = pod(ref, "Running")
    owner = {"kind": "StatefulSet", "name": "p", "controller": True, "uid": "s"}
    wrote = [
        {"manager": "kubelet", "time": "2026-11-21T12:00:09Z", "subresource": "status"},
        {"manager": "kube-controller-manager", "time": "2026-11-21T12:00:08Z"},
    ]
    found["metadata"].update(uid="another", ownerReferences=[owner], managedFields=wrote)
    return found


def test_what_is_deleted_and_made_again_is_told(pods: Scripted) -> None:
    deleted = {PODS[0]: pods.stored("Pod", "p0", "default")}
    pods.remove(PODS[0])
    pods.add(replacement(PODS[0]))
    told: list[str] = []
    with pytest.raises(WaitTimeout) as caught:
        wait(pods, PODS[:1], known=deleted, predicates={POD: deletion_state}, goal="gone", on_progress=told.append)
    said = "was deleted and created again by kube-controller-manager for StatefulSet p"
    assert told == [f"0 of 1 gone; Pod default/p0 {said}"]
    assert caught.value.last_seen == [f"Pod default/p0: {said}"]


def test_what_was_seen_to_go_is_gone_whatever_comes_after_it(pods: Scripted) -> None:
    def made_again() -> None:
        pods.remove(PODS[0])
        pods.add(replacement(PODS[0]))

    pods.acts = [made_again]
    wait(pods, PODS[:1], predicates={POD: deletion_state}, goal="gone")


def test_an_object_replaced_by_another_of_its_name_is_waited_for(pods: Scripted) -> None:
    def replaced() -> None:
        pods.remove(PODS[0])
        pods.add({**pod(PODS[0], "Succeeded"), "metadata": {"name": "p0", "namespace": "default", "uid": "another"}})

    pods.acts = [replaced]
    found = wait(pods, PODS[:1], known={PODS[0]: pods.stored("Pod", "p0", "default")})[PODS[0]]
    assert found is not None
    assert found["metadata"]["uid"] == "another"


def test_a_server_that_never_has_history_is_not_asked_without_pause(pods: Scripted) -> None:
    pods.acts = [Gone("410")] * 1000
    with pytest.raises(WaitTimeout, match="3 of 3 objects not ready after 60 s"):
        wait(pods, PODS, timeout=60)
    assert len(pods.requests) < 200
