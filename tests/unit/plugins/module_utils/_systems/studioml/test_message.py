# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of StudioML: what is built is what the runner reads, byte by byte."""

from __future__ import annotations

import json
import sys
import typing as t

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, message
from ansible_collections.muster.ml.tests.unit.fakes.studioml import request_of, unsealed

pytestmark = pytest.mark.usefixtures("small_keys")
RUNNER = rsa.generate_private_key(65537, 2048)
PAIR = keys.rsa_pair(RUNNER, Sensitive("canary-passphrase"))
CLIENT = keys.new_signing_pair(to_be_dropped())
RESOURCES = {"cpus": 1, "gpus": 0, "hdd": "6gb", "ram": "6gb", "gpuMem": "0gb"}
REQUEST = {
    "config": {"experimentLifetime": "30m", "env": {"AWS_SECRET_ACCESS_KEY": "canary-secret"}},
    "experiment": {
        "key": "1606243639_de40c8d0",
        "status": "waiting",
        "pythonver": "3.8",
        "time_added": 1538073290.258281,
        "resources_needed": RESOURCES,
    },
}


def built() -> dict[str, t.Any]:
    """The message under its envelope."""
    body = json.loads(message.build(REQUEST, PAIR.public, CLIENT.private))
    assert body.keys() == {"message"}
    return dict(body["message"])


def test_what_is_built_is_what_the_runner_reads() -> None:
    """Its payload, and a signature over the text of the payload in the form of SSH."""
    assert request_of(message.build(REQUEST, PAIR.public, CLIENT.private), RUNNER, CLIENT.public) == REQUEST


def test_the_clear_part_has_the_names_that_the_runner_reads_and_nothing_secret() -> None:
    content = built()
    sealed = {"payload", "fingerprint", "signature"}
    assert {key: value for key, value in content.items() if key not in sealed} == {
        "experiment": {"status": "waiting", "pthonver": "3.8"},
        "time_added": 1538073290.258281,
        "experiment_lifetime": "30m",
        "resources_needed": RESOURCES,
    }
    assert content["fingerprint"] == CLIENT.fingerprint
    assert "canary" not in json.dumps(content)


def test_each_message_has_a_key_and_a_nonce_of_its_own() -> None:
    (secret, boxed), (other, second) = (unsealed(built()["payload"], RUNNER) for _message in range(2))
    assert len(secret) == 32
    assert len(boxed) == 24 + 16 + len(json.dumps(REQUEST))
    assert secret != other
    assert boxed[:24] != second[:24]


@pytest.mark.parametrize(
    ("queue", "prefix"), [("rmq_cpu_a", "rmq_cpu_"), ("rmq_cpu_", "rmq_cpu_"), ("rmq_cpu", "rmq_"), ("rmq", None), ("sqs_a", None)]
)
def test_the_longest_prefix_counts(queue: str, prefix: str | None) -> None:
    assert message.longest_prefix(queue, ["rmq_", "rmq_cpu_"]) == prefix


def test_a_message_is_not_built_with_keys_that_nobody_could_use() -> None:
    with pytest.raises(InvalidInput, match="the runner's public key is a private key"):
        message.build(REQUEST, PAIR.private.reveal(), CLIENT.private)
    with pytest.raises(InvalidInput, match="the signing key is a RSA PRIVATE KEY"):
        message.build(REQUEST, PAIR.public, PAIR.private)


def test_a_missing_library_is_named_as_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nacl", None)
    monkeypatch.delitem(sys.modules, "nacl.secret", raising=False)
    with pytest.raises(ImportError) as missing:
        message.seal(b"x", PAIR.public)
    assert "PyNaCl" in failure(missing.value)["msg"]
