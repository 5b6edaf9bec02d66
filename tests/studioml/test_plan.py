# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of role studioml from nothing, at an API server that has nothing: complete, and without a secret of the inventory."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rabbitmq.playing import played
from simulators.apiserver import ApiServer
from support import canary

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys

PARTS = {"StatefulSet ml/rabbitmq", "StatefulSet ml/store", "Deployment ml/studioml-go-runner", "Secret ml/studioml-client-login",
         "Secret ml/studioml-runner-key-secret", "Secret ml/studioml-client-signing-key", "ConfigMap ml/studioml-go-runner-ca",
         "Namespace ml"}  # fmt: skip
BROKER_PASSWORD, CLIENT_PASSWORD, ADMIN_PASSWORD, STORE_KEY, PHRASE = (
    f"canary-{name}-7Kq2x" for name in ("broker", "client", "admin", "store", "phrase")
)


@pytest.fixture
def cluster() -> Iterator[ApiServer]:
    found = ApiServer(None, "token")
    yield found
    assert found.writes() == []
    found.stop()


def plan(cluster: ApiServer, folder: Path, secrets: dict[str, str], **options: Any) -> str:
    """What it prints at -vvv. Meanwhile the processes are watched."""
    own = {"muster_kubeconfig": cluster.kubeconfig(), "muster_namespace": "ml", "gpu_drivers_flavour": "none", "studioml_runner_gpus": 0}
    existing = ("-i", "inventories/existing")
    output = played("playbooks/studioml.yml", folder, {**own, **options}, "--check", "--diff", "-vvv", secrets=secrets, where=existing)
    assert canary.in_open_files(secrets, [Path(tempfile.gettempdir(), f"ansible-local-{os.getuid()}")]) == set()
    return output


def planned(output: str) -> set[str]:
    return set(re.findall(r"^\s*--- before: (\S+ \S+) \(absent\)", output, re.MULTILINE))


def test_everything_is_planned_that_the_parts_need(cluster: ApiServer, tmp_path: Path) -> None:
    password = {"rabbitmq_admin_password": ADMIN_PASSWORD}
    found = planned(plan(cluster, tmp_path, {"administrator": ADMIN_PASSWORD}, **password))
    assert found >= PARTS
    assert len(found) == 31


def test_with_a_broker_a_store_and_keys_of_the_user_nothing_secret_is_shown(cluster: ApiServer, tmp_path: Path) -> None:
    pair = keys.rsa_pair(keys.new_rsa_key(to_be_dropped()), Sensitive(PHRASE))
    private = pair.private.reveal()
    options = {
        "studioml_amqp_url": f"amqps://runner:{BROKER_PASSWORD}@broker.example:5671/%2f",
        "studioml_management": {"login_host": "broker.example", "login_user": "experimenter", "login_password": CLIENT_PASSWORD},
        "studioml_endpoint_url": "https://store.example", "studioml_store_ca": "-----BEGIN CERTIFICATE-----",
        "studioml_access_key": "access", "studioml_secret_key": STORE_KEY,
        "studioml_runner_private_key": private, "studioml_runner_passphrase": PHRASE,
    }  # fmt: skip
    secrets = {
        "broker": BROKER_PASSWORD, "client": CLIENT_PASSWORD, "store": STORE_KEY, "passphrase": PHRASE, "key": private.splitlines()[10],
    }  # fmt: skip
    found = planned(plan(cluster, tmp_path, secrets, **options))
    assert "Deployment ml/studioml-go-runner" in found
    assert not [name for name in found if name.endswith(("/rabbitmq", "/store"))]
