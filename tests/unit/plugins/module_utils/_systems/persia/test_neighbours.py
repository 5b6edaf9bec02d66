# SPDX-License-Identifier: GPL-3.0-or-later
"""Two trainings at the same NATS servers would mix their batches and embeddings."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, InvalidInput, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.training import require_alone
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

URL = "nats://persia-nats-service:4222"


def cluster(label: str = "muster.ml/job", url: str = URL, phase: str = "Running", **metadata: t.Any) -> FakeCluster:
    found = FakeCluster()
    found.add(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "old-emb-server-0", "namespace": "ml", "labels": {label: "old"}, **metadata},
            "spec": {"containers": [{"name": "emb", "env": [{"name": "PERSIA_NATS_URL", "value": url}]}]},
            "status": {"phase": phase},
        },
    )
    return found


@pytest.mark.parametrize("label", ["muster.ml/job", "persia_job"], ids=["native", "operator"])
@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_another_training_at_the_same_servers_is_named(label: str, phase: str) -> None:
    with pytest.raises(InvalidInput, match=r"Training ml/new .*\(nats://persia-nats-service:4222\) as old, whose pods run"):
        require_alone(URL, "ml", "new", cluster(label=label, phase=phase))


@pytest.mark.parametrize(
    "other",
    [{"url": "nats://others:4222"}, {"phase": "Succeeded"}, {"phase": "Failed"}],
    ids=lambda other: next(iter(other)) + str(next(iter(other.values())))[:9],
)
def test_who_does_not_use_them_any_more_is_no_neighbour(other: dict[str, t.Any]) -> None:
    require_alone(URL, "ml", "new", cluster(**other))


ENDING = {"deletionTimestamp": "2026-11-23T09:00:00Z", "finalizers": ["x/y"]}


def test_pods_that_end_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found, answers = cluster(**ENDING), [0]
    listed = found.list

    def list_pods(*args: t.Any, **options: t.Any) -> t.Any:
        answers[0] += 1
        return listed(*args, **options) if answers[0] < 5 else []

    monkeypatch.setattr(found, "list", list_pods)
    require_alone(URL, "ml", "new", found)
    assert found.clock.monotonic() > 1000


def test_pods_that_do_not_end_are_named() -> None:
    with pytest.raises(WaitTimeout, match="pod old-emb-server-0 is ending"):
        require_alone(URL, "ml", "new", cluster(**ENDING))


def test_a_training_is_not_its_own_neighbour() -> None:
    require_alone(URL, "ml", "old", cluster())


def test_who_may_not_list_pods_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster()

    def refuse(*_args: object, **_options: object) -> t.NoReturn:
        raise Forbidden("pods is forbidden")

    monkeypatch.setattr(found, "list", refuse)
    require_alone(URL, "ml", "new", found)
