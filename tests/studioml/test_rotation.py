# SPDX-License-Identifier: GPL-3.0-or-later
"""Before a key is replaced, role studioml_runner waits for the requests that only the old one opens, or says that it cannot."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rabbitmq.playing import played
from simulators.apiserver import ApiServer

from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker

SECRETS = {"key": "canary-private-key", "broker": PASSWORD}
QUEUE = ("queues", "/", "rmq_test")


def key(generation: int) -> dict[str, Any]:
    """The Secret with the key that opens requests."""
    data = {"ssh-privatekey": base64.b64encode(b"canary-private-key").decode()}
    annotations = {"muster.ml/key-generation": str(generation)}
    metadata = {"name": "studioml-runner-key-secret", "namespace": "ml", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    found = FakeBroker()
    for name in ("rmq_test", "other"):
        found.put(("queues", "/", name), {"durable": True, "auto_delete": False, "arguments": {}})
    yield found
    found.stop()


@pytest.fixture
def cluster() -> Iterator[ApiServer]:
    found = ApiServer(None, "token", key(1))
    yield found
    assert found.writes() == []
    found.stop()


def rotate(cluster: ApiServer, folder: Path, *more: str, fails: bool = False, **settings: Any) -> str:
    given = {"kubeconfig": cluster.kubeconfig(), "settings": settings}
    return played("tests/studioml/rotation.yml", folder, given, "-vvv", *more, secrets=SECRETS, fails=fails)


def test_it_waits_until_no_request_is_left_and_only_where_a_key_is_replaced(cluster: ApiServer, broker: FakeBroker, tmp_path: Path) -> None:
    broker.messages[QUEUE].append("a request")
    broker.messages["queues", "/", "other"].append("of somebody else")
    settings = {"studioml_runner_management": broker.login(), "studioml_runner_drain_timeout": 3}
    stopped = rotate(cluster, tmp_path, fails=True, studioml_runner_key_generation=2, **settings)
    assert "queue rmq_test in vhost / has 1 messages, 0 of them held by consumers" in stopped
    assert "queue other" not in stopped
    rotate(cluster, tmp_path, "--check", studioml_runner_key_generation=2, **settings)
    cluster.cluster.add(key(2))
    asked = len(broker.requests)
    rotate(cluster, tmp_path, studioml_runner_key_generation=2, **settings)
    assert len(broker.requests) == asked
    cluster.cluster.add(key(1))
    broker.messages[QUEUE].clear()
    settings["studioml_runner_drain_timeout"] = 60
    rotate(cluster, tmp_path, studioml_runner_key_generation=2, **settings)


def test_a_queue_that_the_runners_leave_out_is_not_waited_for(cluster: ApiServer, broker: FakeBroker, tmp_path: Path) -> None:
    broker.messages[QUEUE].append("a request")
    settings = {"studioml_runner_management": broker.login(), "studioml_runner_queue_mismatch": "_test$"}
    rotate(cluster, tmp_path, studioml_runner_key_generation=2, studioml_runner_drain_timeout=20, **settings)


def test_it_says_that_it_cannot_see_the_queues(cluster: ApiServer, tmp_path: Path) -> None:
    refused = rotate(cluster, tmp_path, fails=True, studioml_runner_key_generation=2)
    assert "studioml_runner_key_generation is 2, and the key is number 1" in refused
    rotate(cluster, tmp_path, studioml_runner_key_generation=2, studioml_runner_drain=False)
