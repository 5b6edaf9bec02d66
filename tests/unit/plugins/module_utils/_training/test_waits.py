# SPDX-License-Identifier: GPL-3.0-or-later
"""The waits of trainings, NATS, etcd and data sets: they end at their deadline whoever stays silent, and say what refuses pods."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core import clock as clocks
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Gone, ServerError, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube import storage, watching
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Event, Manifest, Ref
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LABEL_JOB
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.dataset import fetching
from ansible_collections.muster.ml.plugins.module_utils._systems.dataset.manifests import Dataset
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import members as etcd
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import EtcdCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers
from ansible_collections.muster.ml.plugins.module_utils._systems.nats.manifests import NatsCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.training import KIND as PERSIA
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import labels, pod, workload
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering

QUOTA = 'Error creating: pods "x" is forbidden: exceeded quota: q'
SIZE = 60


class Silent(http.server.ThreadingHTTPServer):
    """An API server with many server pods, none of which answers: the proxy says nothing, or 503 at once."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A client that no longer listens is no news."""


class Handler(Answering):
    server: Silent

    def do_GET(self) -> None:
        status, answer = (200, {"metadata": {"resourceVersion": "1"}, "items": [pod(f"n-{number}") for number in range(SIZE)]})
        if "/proxy/" in self.path:
            status, answer = 503, {"message": "error trying to reach service: dial tcp 10.0.0.1:8222: i/o timeout"}
            if not self.server.at_once:
                self.server.over.wait(60)
        self.reply(status, None if "watch=true" in self.path else answer)


@contextlib.contextmanager
def silent(*, at_once: bool) -> t.Iterator[HttpCluster]:
    server = Silent(at_once=at_once)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    cluster = HttpCluster(Transport(Connection(server=f"http://127.0.0.1:{server.server_port}", source="a test"), time))
    try:
        yield cluster
    finally:
        cluster.close()
        server.over.set()
        server.shutdown()
        server.server_close()


def unseen(_message: str) -> None:
    """Progress that nobody reads."""


SERVERS = NatsCluster(name="n", namespace="default", replicas=SIZE, pod=PodSettings(image="nats:2"))


@pytest.mark.parametrize(("ask", "at_once"), [(servers.wait, False), (servers.wait, True), (servers.replace_outdated, False)])
def test_sixty_servers_that_do_not_answer_end_with_the_wait(
    ask: t.Callable[..., t.Any], at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "LEAST_FOR_AN_ANSWER", 3.0)  # the list of pods is answered in less, on a busy machine too
    with silent(at_once=at_once) as cluster:
        began = time.monotonic()
        with pytest.raises(
            WaitTimeout, match=r"default/n is not as desired after .* s\. Last seen: 0 of 60 servers have all 59 routes; n-0: "
        ):
            ask(cluster, SERVERS, timeout=3.0, progress=unseen)
        assert time.monotonic() - began < 60  # one after the other they take 180 s


class Together(FakeCluster):
    """Pods that answer once nine of them are asked at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Barrier(9)

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        self.asked.wait(60)
        return 503, "no"


def members(cluster: FakeCluster, size: int) -> EtcdCluster:
    found = EtcdCluster(name="etcd", namespace="default", replicas=9, pod=PodSettings(image="etcd:v3.5.35"))
    for number in range(size):
        cluster.add(pod(f"etcd-{number}", labels=found.labels))
    return found


def test_members_of_etcd_are_asked_side_by_side() -> None:
    cluster = Together()
    desired = members(cluster, 9)
    with pytest.raises(WaitTimeout, match="etcd-0: /health answers 503"):
        etcd.wait(cluster, desired, timeout=0.2, progress=unseen)


def test_members_of_etcd_whose_claims_cannot_be_read_are_waited_for(cluster: FakeCluster) -> None:
    desired = EtcdCluster(name="etcd", namespace="default", replicas=3, storage_size="1Gi", pod=PodSettings(image="etcd:v3.5.35"))
    for number in range(3):
        cluster.add(pod(f"etcd-{number}", "Pending", labels=desired.labels))
        cluster.fail("get", f"data-etcd-{number}", ServerError(f"no answer for data-etcd-{number}"))
    with pytest.raises(WaitTimeout, match="etcd-0: PersistentVolumeClaim default/data-etcd-0 does not exist"):
        etcd.wait(cluster, desired, timeout=30, progress=unseen)


# What a look asks, and what it says


def follow(cluster: FakeCluster, look: t.Callable[[t.Any], tuple[None, str | None]], timeout: float = 30) -> None:
    pods = watching.Changes.of_pods("default", "a=b")
    watching.watch_until(cluster, pods, look, goal="it is not there", timeout=timeout, progress=lambda _message: None)


def test_a_look_has_as_long_as_is_left(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    monkeypatch.setattr(cluster, "within", lambda seconds: given.append(seconds) or cluster)
    with pytest.raises(WaitTimeout):
        follow(cluster, lambda _asked: (None, "not yet"), timeout=5)
    assert given == [5, 3, 1]


def test_a_server_without_history_does_not_make_a_wait_endless(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[None] = []

    def watch(*_args: t.Any, **_options: t.Any) -> t.Iterator[Event]:
        watched.append(None)
        assert len(watched) < 100
        raise Gone("410")

    monkeypatch.setattr(cluster, "watch", watch)
    with pytest.raises(WaitTimeout, match=r"it is not there after 30 s\. Last seen: not yet\."):
        follow(cluster, lambda _asked: (None, "not yet"))


@pytest.mark.parametrize("error", [Unreachable("It does not answer."), Forbidden("User x may not list pods.")])
def test_the_reason_that_was_known_is_told_beside_the_trouble_that_came(cluster: FakeCluster, error: Exception) -> None:
    answers: list[Exception | str] = ["n-3 has no route"]

    def look(_asked: t.Any) -> tuple[None, str]:
        answer = answers.pop() if answers else error
        if isinstance(answer, Exception):
            raise answer
        return None, answer

    with pytest.raises(WaitTimeout) as caught:
        follow(cluster, look)
    assert caught.value.message == f"it is not there after 30 s. Last seen: n-3 has no route. {error}"


# Pods that are refused


def say_refused(cluster: FakeCluster, item: Manifest) -> None:
    cluster.add(item)
    ref = Ref(item["apiVersion"], item["kind"], item["metadata"]["name"], "default")
    cluster.say(ref, "FailedCreate", QUOTA, type="Warning")


def test_a_training_whose_pods_are_refused_says_so(cluster: FakeCluster) -> None:
    say_refused(cluster, workload("Job", "adult-trainer", "trainer", "nn-worker", 2))
    status = PERSIA.read(cluster, "default", "adult").status
    assert status.groups[0].reason == f"2 of 2 pods are missing (FailedCreate: {QUOTA})"
    assert QUOTA in status.reason


def test_a_training_that_has_its_pods_is_not_asked_after(cluster: FakeCluster) -> None:
    say_refused(cluster, workload("Job", "adult-trainer", "trainer", "nn-worker", 1))
    cluster.add(pod("adult-trainer-0", "Pending", labels=labels("trainer", **{LABEL_JOB: "adult"})))
    assert "quota" not in PERSIA.read(cluster, "default", "adult").status.groups[0].reason
    assert all(request.verb != "events" for request in cluster.requests)


def test_members_of_etcd_that_are_refused_are_told(cluster: FakeCluster) -> None:
    desired = members(cluster, 0)
    say_refused(cluster, workload("StatefulSet", "etcd", "etcd", "etcd", 9))
    with pytest.raises(WaitTimeout, match=r"0 of 9 members have a pod; .*exceeded quota: q"):
        etcd.wait(cluster, desired, timeout=9, progress=unseen)


def test_a_data_set_whose_pod_is_refused_says_so(cluster: FakeCluster) -> None:
    say_refused(cluster, workload("Job", "fetch", "fetch", "fetch", 1))
    data = t.cast(Dataset, type("Data", (), {"namespace": "default", "name": "digits", "claim_name": "c"}))
    with pytest.raises(WaitTimeout, match=r"0 of 1 succeeded; FailedCreate: .*exceeded quota: q"):
        fetching.wait(cluster, data, "fetch", timeout=9, progress=unseen)


def test_a_claim_that_may_not_be_looked_at_is_no_reason_to_fail(cluster: FakeCluster) -> None:
    cluster.fail("get", "c", Forbidden("may not get claims"))
    assert storage.why_unbound(cluster, Ref("v1", "PersistentVolumeClaim", "c", "default")) == ""
