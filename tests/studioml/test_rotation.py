# SPDX-License-Identifier: GPL-3.0-or-later
"""Before a key is replaced, role studioml_runner waits for the requests that only the old one opens, or says that it cannot."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.apiserver import ApiServer
from support.places import BIN, ROOT

from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker

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


def rotate(cluster: ApiServer, folder: Path, *more: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    own = {"kubeconfig": cluster.kubeconfig(), "settings": settings, "ansible_python_interpreter": sys.executable}
    path = folder / "settings.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(own))
    where = ("-i", "localhost,", "-c", "local", "-e", f"@{path}")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "NO_COLOR": "1"}
    done = subprocess.run(
        [BIN / "ansible-playbook", *where, "tests/studioml/rotation.yml", "-vvv", *more],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "canary-private-key" not in done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    return done


def test_it_waits_until_no_request_is_left_and_only_where_a_key_is_replaced(cluster: ApiServer, broker: FakeBroker, tmp_path: Path) -> None:
    broker.messages[QUEUE].append("a request")
    broker.messages["queues", "/", "other"].append("of somebody else")
    settings = {"studioml_runner_management": broker.login(), "studioml_runner_drain_timeout": 3}
    stopped = rotate(cluster, tmp_path, studioml_runner_key_generation=2, **settings)
    assert stopped.returncode != 0
    assert "queue rmq_test in vhost / has 1 messages, 0 of them held by consumers" in stopped.stdout
    assert "queue other" not in stopped.stdout
    planned = rotate(cluster, tmp_path, "--check", studioml_runner_key_generation=2, **settings)
    assert planned.returncode == 0, planned.stdout
    cluster.cluster.add(key(2))
    asked = len(broker.requests)
    again = rotate(cluster, tmp_path, studioml_runner_key_generation=2, **settings)
    assert (again.returncode, len(broker.requests)) == (0, asked)
    cluster.cluster.add(key(1))
    broker.messages[QUEUE].clear()
    settings["studioml_runner_drain_timeout"] = 60
    passed = rotate(cluster, tmp_path, studioml_runner_key_generation=2, **settings)
    assert passed.returncode == 0, passed.stdout


def test_a_queue_that_the_runners_leave_out_is_not_waited_for(cluster: ApiServer, broker: FakeBroker, tmp_path: Path) -> None:
    broker.messages[QUEUE].append("a request")
    settings = {"studioml_runner_management": broker.login(), "studioml_runner_queue_mismatch": "_test$"}
    passed = rotate(cluster, tmp_path, studioml_runner_key_generation=2, studioml_runner_drain_timeout=20, **settings)
    assert passed.returncode == 0, passed.stdout


def test_it_says_that_it_cannot_see_the_queues(cluster: ApiServer, tmp_path: Path) -> None:
    refused = rotate(cluster, tmp_path, studioml_runner_key_generation=2)
    assert refused.returncode != 0
    assert "studioml_runner_key_generation is 2, and the key is number 1" in refused.stdout
    given_up = rotate(cluster, tmp_path, studioml_runner_key_generation=2, studioml_runner_drain=False)
    assert given_up.returncode == 0, given_up.stdout
