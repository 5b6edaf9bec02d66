# SPDX-License-Identifier: GPL-3.0-or-later
"""object_store: what is refused, what is made, the login that stays, buckets through a forwarded port."""

import base64
import json
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    InvalidInput,
    NotFound,
    Unauthorized,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube import client
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store import store as stores
from ansible_collections.muster.ml.plugins.modules import object_store
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.store import FakeStore
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions

STATEFUL_SET = Ref("apps/v1", "StatefulSet", "store", "default")
SECRET = Ref("v1", "Secret", "store-login", "default")
LABELS = {"app.kubernetes.io/name": "object-store", "app.kubernetes.io/instance": "store"}
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def run(cluster: FakeCluster, *, check: bool = False, warn: t.Any = None, **params: t.Any) -> dict[str, t.Any]:
    cluster.add(tasks.DISKS)
    warnings = warn if warn is not None else []
    given = {"namespace": "default", **params}
    result = tasks.run(object_store, cluster, given, check=check, warn=warnings.append, diff=True)
    hidden = keys(cluster).values() if cluster.get(SECRET) else ()
    assert not [key for key in hidden if key in json.dumps([result, warnings], default=str)]
    return result


def keys(cluster: FakeCluster) -> dict[str, str]:
    found = cluster.get(SECRET)
    assert found is not None
    return {key: base64.b64decode(revealed(value)).decode() for key, value in found["data"].items()}


def start(cluster: FakeCluster, store: FakeStore) -> None:
    """As the controllers and the kubelet do: a pod that is ready, with STORE behind it."""
    store.access_key = keys(cluster)["AWS_ACCESS_KEY_ID"]
    cluster.add(pods.pod("store-0", labels=LABELS, conditions=[{"type": "Ready", "status": "True"}]))
    cluster.forwarded["default", "store-0", 7070] = ("127.0.0.1", store.port)
    found = cluster.get(STATEFUL_SET)
    assert found is not None
    generation = found["metadata"].get("generation")
    cluster.set_status(
        STATEFUL_SET, {"observedGeneration": generation, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    )


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[FakeStore]:
    # What leads to a port of this machine goes past the proxies of the environment.
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    found = FakeStore()
    yield found
    found.stop()


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"image": "ghcr.io/versity/versitygw"}, "is not pinned"),
        ({"image": "ghcr.io/versity/versitygw:latest"}, "is not pinned"),
        ({"name": "s" * 53}, "52 fit"),
        ({"storage_size": "20 GB"}, "not a quantity"),
        ({"buckets": ["good", "Bad"], "wait": True}, "'Bad' is not a name of a bucket"),
        ({"buckets": ["good"]}, "Set wait to true"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(cluster: FakeCluster, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(cluster, **params)
    assert told in f"{caught.value.message} {caught.value.hint}"
    assert not cluster.requests


def test_a_store_is_made_and_a_second_run_changes_nothing_and_keeps_the_login(cluster: FakeCluster) -> None:
    made = run(cluster)
    assert set(actions(made)) == {"NetworkPolicy/store", "Secret/store-login", "Service/store", "StatefulSet/store"}
    assert (made["endpoint"], made["login_secret"]) == ("http://store.default.svc:7070", "store-login")
    before = keys(cluster)
    assert [len(before[name]) for name in NAMES] == [20, 40]
    assert set(actions(run(cluster)).values()) == {"unchanged"}
    assert keys(cluster) == before
    other = FakeCluster()
    run(other)
    assert not set(keys(other).values()) & set(before.values())


def test_the_login_is_in_the_secret_only(cluster: FakeCluster) -> None:
    run(cluster)
    shown = [json.dumps(o) for o in cluster.objects.values() if o["kind"] != "Secret"]
    assert not [key for key in keys(cluster).values() for text in shown if key in text]


def test_missing_buckets_are_created_and_no_other_is_touched(cluster: FakeCluster, store: FakeStore) -> None:
    run(cluster)
    start(cluster, store)
    store.buckets = ["older"]
    planned = run(cluster, check=True, wait=True, buckets=["older", "new", "newer", "new"])
    assert (planned["changed"], planned["created_buckets"], store.buckets) == (True, ["new", "newer"], ["older"])
    made = run(cluster, wait=True, buckets=["older", "new", "newer"])
    assert (made["changed"], made["created_buckets"]) == (True, ["new", "newer"])
    assert made["diff"] == planned["diff"] == [{"before": {"buckets": ["older"]}, "after": {"buckets": ["new", "newer", "older"]}}]
    assert made["buckets"] == ["new", "newer", "older"]
    assert set(actions(made).values()) == {"unchanged"}
    store.requests.clear()
    again = run(cluster, wait=True, buckets=["new"])
    assert (again["changed"], again["diff"], again["created_buckets"], again["buckets"]) == (False, [], [], ["new", "newer", "older"])
    assert [asked for asked in store.requests if not asked.startswith("GET")] == []


def test_check_mode_needs_no_store_that_does_not_exist_yet(cluster: FakeCluster) -> None:
    planned = run(cluster, check=True, wait=True, buckets=["one"])
    assert (planned["changed"], planned["buckets"], planned["created_buckets"]) == (True, ["one"], ["one"])
    assert not cluster.writes
    assert cluster.get(STATEFUL_SET) is None


def test_check_mode_warns_where_a_store_does_not_answer(store: FakeStore) -> None:
    cluster, warnings = FakeCluster(), []
    run(cluster)
    planned = run(cluster, check=True, wait=True, buckets=["one"], warn=warnings)
    assert (planned["changed"], "buckets" in planned) == (False, False)
    assert "Pod default/store-0 does not exist" in warnings[0]
    start(cluster, store)
    cluster.forwarded.clear()
    with pytest.raises(WaitTimeout, match=r"does not answer.*Port 7070 of Pod default/store-0 gives no answer: nobody listens"):
        run(cluster, wait=True, wait_timeout=1, buckets=["one"])


def test_a_store_that_does_not_get_ready_is_told(cluster: FakeCluster) -> None:
    with pytest.raises(WaitTimeout, match="StatefulSet default/store"):
        run(cluster, wait=True, wait_timeout=1, buckets=["one"])


def test_a_bucket_that_another_run_made_in_the_meantime_is_there(cluster: FakeCluster, store: FakeStore) -> None:
    run(cluster)
    start(cluster, store)
    store.refusals["PUT /one"] = (409, "BucketAlreadyOwnedByYou")
    assert run(cluster, wait=True, buckets=["one"])["buckets"] == ["one"]
    store.refusals["PUT /one"] = (400, "TooManyBuckets")
    with pytest.raises(Failed, match="Object store default/store refuses to create bucket one: as the store says"):
        run(cluster, wait=True, buckets=["one"])


def test_a_secret_that_was_changed_after_the_pod_read_it_is_told(cluster: FakeCluster, store: FakeStore) -> None:
    run(cluster)
    start(cluster, store)
    store.access_key = "an older one"
    with pytest.raises(Unauthorized, match="does not take the login of Secret default/store-login") as caught:
        run(cluster, wait=True, buckets=["one"])
    assert "delete pod store-0" in str(caught.value.hint)


def claim() -> dict[str, t.Any]:
    metadata = {"name": "data-store-0", "namespace": "default", "labels": LABELS}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def test_a_lost_login_is_told_before_anything_is_changed(cluster: FakeCluster) -> None:
    run(cluster)
    cluster.remove(SECRET)
    written = len(cluster.writes)
    with pytest.raises(Failed, match="store-login does not exist, but the object store default/store does"):
        run(cluster)
    assert len(cluster.writes) == written
    other = FakeCluster()
    other.add(claim())
    with pytest.raises(Failed, match="PersistentVolumeClaim default/data-store-0 with its objects does"):
        run(other)
    assert not other.writes


@pytest.mark.parametrize("data", [{}, {NAMES[0]: "YQ=="}, {NAMES[0]: "YQ==", NAMES[1]: "/w=="}, {NAMES[0]: "YQ==", NAMES[1]: ""}])
def test_a_secret_without_the_keys_is_told(cluster: FakeCluster, data: dict[str, str]) -> None:
    metadata = {"name": "store-login", "namespace": "default"}
    cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    with pytest.raises(InvalidInput, match=r"Secret default/store-login(: AWS_SECRET_ACCESS_KEY is not text| has no key AWS_)"):
        run(cluster)


def test_a_store_is_reached_from_outside_by_its_name(cluster: FakeCluster, store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cluster)
    asked: list[t.Any] = []
    monkeypatch.setattr(client, "connect", lambda params, _clock: asked.append(params) or cluster)
    where = {"name": "store", "namespace": "default", "kubeconfig": "k", "context": None}
    with pytest.raises(Unreachable, match="Pod default/store-0 does not exist"), stores.inside(where, cluster.clock):
        pass
    start(cluster, store)
    with stores.inside(where, cluster.clock) as found:
        assert found.endpoint == "http://store.default.svc:7070"
        assert found.login.access_key.reveal() == keys(cluster)["AWS_ACCESS_KEY_ID"]
        assert found.way.address.startswith("127.0.0.1:")
    assert asked[0]["kubeconfig"] == "k"
    cluster.remove(SECRET)
    with pytest.raises(NotFound, match="Secret default/store-login, which has the login"), stores.inside(where, cluster.clock):
        pass
    where["name"] = "nosuch"
    with pytest.raises(NotFound, match="StatefulSet default/nosuch does not exist"), stores.inside(where, cluster.clock):
        pass
