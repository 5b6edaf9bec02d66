# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting by watches, with a clock that passes only when somebody waits."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._kube.errors import (
    Failed,
    Forbidden,
    Gone,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Event, Manifest, Ref
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
    return wait_until(cluster, refs, clock=cluster.clock, **{"timeout": 60, **options})


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


def test_an_api_server_that_stays_away_ends_at_the_deadline(pods: Scripted) -> None:
    pods.acts = [Unreachable("refused")] * 1000
    with pytest.raises(WaitTimeout, match="3 of 3 objects not ready after 60 s"):
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
    pods.fail("list", "", Forbidden("may not list pods"))
    with pytest.raises(Forbidden):
        wait(pods, [*PODS, other], timeout=10_000)
    assert pods.clock.now < 2000


def test_an_object_that_appears_later(pods: Scripted) -> None:
    late = Ref("v1", "Pod", "late", "default")
    pods.acts = [lambda: pods.add(pod(late, "Succeeded"))]
    assert wait(pods, [late])[late]


def test_own_predicates(pods: Scripted) -> None:
    from ansible_collections.muster.ml.plugins.module_utils._kube.ready import READY

    wait(pods, PODS, predicates={"Pod": lambda _found: READY})


def test_a_claim_that_binds_with_its_first_pod_is_not_waited_for() -> None:
    cluster = FakeCluster()
    cluster.add(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
         "volumeBindingMode": "WaitForFirstConsumer"},
    )  # fmt: skip
    ref = Ref("v1", "PersistentVolumeClaim", "c", "default")
    claim = {**pod(ref), "kind": "PersistentVolumeClaim", "spec": {"storageClassName": "late"}}
    wait(cluster, [ref], known={ref: claim})
    claim["spec"] = {"storageClassName": "at-once"}
    cluster.add(claim)
    with pytest.raises(WaitTimeout, match="Pending"):
        wait(cluster, [ref], known={ref: claim})


def test_progress_is_told_when_it_changed_and_not_too_often(pods: Scripted) -> None:
    told: list[str] = []
    steps = [finish(pods, PODS[0]), lambda: None, finish(pods, PODS[1]), lambda: None, finish(pods, PODS[2])]
    pods.acts = list(steps)
    wait(pods, PODS, on_progress=told.append)
    assert told == [
        "1 of 3 ready; Pod default/p1 Pending",
        "2 of 3 ready; Pod default/p2 Pending",
        "3 of 3 ready",
    ]


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
