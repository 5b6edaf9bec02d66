# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of StudioML: what is built is what the runner reads, byte by byte, and what it refuses is refused with one reason."""

from __future__ import annotations

import base64
import copy
import json
import re
import sys
import typing as t

import nacl.bindings
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, message

PHRASE = Sensitive("canary-passphrase")
RUNNER, OTHER = (rsa.generate_private_key(65537, 2048) for _key in range(2))
PAIR = keys.rsa_pair(RUNNER, PHRASE)
CLIENT, NEIGHBOUR = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())
PUBLIC = {"rmq_": NEIGHBOUR.public, "rmq_cpu_": CLIENT.public}
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


@pytest.fixture(autouse=True)
def small_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "BITS", 2048)


def built(**changed: t.Any) -> dict[str, t.Any]:
    """The message under its envelope, with other values."""
    body = json.loads(message.build(REQUEST, PAIR.public, CLIENT.private))
    assert body.keys() == {"message"}
    return {**body["message"], **changed}


def read(
    content: dict[str, t.Any] | bytes, *, queue: str = "rmq_cpu_test", private: Sensitive = PAIR.private, phrase: Sensitive = PHRASE
) -> message.Opened:  # fmt: skip
    body = content if isinstance(content, bytes) else json.dumps({"message": content}).encode()
    return message.opened(body, queue=queue, private_key=private, passphrase=phrase, public_keys=PUBLIC)


def test_what_is_built_is_opened() -> None:
    assert read(built()) == message.Opened(REQUEST, CLIENT.fingerprint, fingerprint_fits=True)


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


def unsealed(payload: str) -> tuple[bytes, bytes]:
    """The secret and the box, by RSA-OAEP as Go's crypto/rsa has it."""
    sealed, boxed = (base64.b64decode(part) for part in payload.split(","))
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    return RUNNER.decrypt(sealed, oaep), boxed


def test_the_payload_is_what_go_unseals() -> None:
    """As HybridSeal and DecryptBlock of the runner have it, with the functions of NaCl itself."""
    secret, boxed = unsealed(built()["payload"])
    assert len(secret) == 32
    plain = nacl.bindings.crypto_secretbox_open(boxed[24:], boxed[:24], secret)
    assert json.loads(plain) == REQUEST
    assert len(boxed) == 24 + 16 + len(plain)


def test_each_message_has_a_key_and_a_nonce_of_its_own() -> None:
    (secret, boxed), (other, second) = unsealed(built()["payload"]), unsealed(built()["payload"])
    assert secret != other
    assert boxed[:24] != second[:24]


def test_the_signature_is_over_the_text_of_the_payload_in_the_form_of_ssh() -> None:
    content = built()
    raw = base64.b64decode(content["signature"])
    assert raw[:19] == b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x40"
    keys.read_ssh_public(CLIENT.public, "it").verify(raw[19:], content["payload"].encode())


def test_a_bare_signature_of_newer_clients_is_read_too() -> None:
    content = built()
    bare = base64.b64encode(base64.b64decode(content["signature"])[19:]).decode()
    assert read({**content, "signature": bare}).request == REQUEST


def test_another_fingerprint_is_noted_and_not_refused_as_the_runner_does() -> None:
    assert not read(built(fingerprint=NEIGHBOUR.fingerprint)).fingerprint_fits


def flipped(content: dict[str, t.Any], part: int) -> dict[str, t.Any]:
    """One bit of the key or of the box is another one, and that is signed again, or the signature would tell first."""
    parts = [bytearray(base64.b64decode(text)) for text in content["payload"].split(",")]
    parts[part][-1] ^= 1
    payload = ",".join(base64.b64encode(raw).decode() for raw in parts)
    signature, fingerprint = message.sign(payload, CLIENT.private)
    return {**content, "payload": payload, "signature": signature, "fingerprint": fingerprint}


def with_payload(payload: str) -> dict[str, t.Any]:
    signature, fingerprint = message.sign(payload, CLIENT.private)
    return built(payload=payload, signature=signature, fingerprint=fingerprint)


@pytest.mark.parametrize(
    ("content", "told", "hard"),
    [
        (lambda: flipped(built(), 1), "was changed after it was encrypted", True),
        (lambda: flipped(built(), 0), "was encrypted for another key than SHA256:", True),
        (lambda: built(payload=built()["payload"]), "signature does not fit: the payload is not what was signed", False),
        (lambda: built(signature=""), "not signed: message.signature is missing", False),
        (lambda: built(fingerprint=""), "not signed: message.fingerprint is missing", False),
        (lambda: {k: v for k, v in built().items() if k != "signature"}, "message.signature is missing", False),
        (lambda: built(signature="no base64!"), "message.signature is not base64", False),
        (lambda: built(signature=base64.b64encode(b"x" * 63).decode()), "signature does not fit", False),
        (lambda: built(signature=7), "message.signature is not text", True),
        (lambda: with_payload("AAAA"), "has 1 parts", True),
        (lambda: with_payload("AAAA,AAAA,AAAA"), "has 3 parts", True),
        (lambda: with_payload("AAAA,!"), "message.payload, box is not base64", True),
        (lambda: with_payload(f"{built()['payload'].split(',')[0]},AAAA"), "message.payload is too short", True),
        (lambda: with_payload(message.seal(b"no json", PAIR.public)), "is not a request in JSON", True),
        (lambda: json.dumps(REQUEST).encode(), "not encrypted: it has no message.payload", True),
        (lambda: b"\xff", "is not JSON", True),
        (lambda: b"[]", "has no message.payload", True),
        (lambda: b"[" * 100_000, "is not JSON", True),
        (lambda: with_payload(message.seal(b"[" * 100_000, PAIR.public)), "is not a request in JSON", True),
        (lambda: built(payload="\ud800"), "signature does not fit", False),
    ],
)  # fmt: skip
def test_a_message_that_the_runner_would_not_run_is_refused_with_one_reason(content: t.Callable[[], t.Any], told: str, hard: bool) -> None:
    with pytest.raises(Failed, match=told) as refused:
        read(content())
    assert refused.value.details == {"hard": hard}
    assert "canary" not in str(failure(refused.value))


TEXTS = st.text() | st.sampled_from([",", "AAAA,AAAA", "\ud800", base64.b64encode(b"\0" * 64).decode()])
VALUES = st.none() | st.booleans() | st.floats() | TEXTS | st.lists(TEXTS, max_size=2)


@given(st.dictionaries(st.sampled_from(["payload", "signature", "fingerprint", "experiment"]), VALUES) | VALUES, st.binary())
def test_whatever_lies_in_a_queue_is_refused_and_nothing_breaks(content: t.Any, noise: bytes) -> None:
    for body in (json.dumps({"message": content}).encode(), noise):
        with pytest.raises(Failed):
            read(body)


def test_a_message_for_another_key_is_refused() -> None:
    other = keys.rsa_pair(OTHER, PHRASE)
    with pytest.raises(Failed, match=re.escape(f"for another key than {other.fingerprint}")) as refused:
        read(built(), private=other.private)
    assert "Does the client have the public key of this runner" in str(refused.value)


def test_a_wrong_passphrase_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the runner's private key cannot be decrypted with its passphrase"):
        read(built(), phrase=Sensitive("another"))


def test_a_signature_for_another_queue_is_refused() -> None:
    """The client's key is that of rmq_cpu_, its neighbour's that of all other queues."""
    with pytest.raises(Failed, match=r"queue rmq_gpu is checked with SHA256:.*, the key of rmq_\."):
        read(built(), queue="rmq_gpu")
    with pytest.raises(Failed, match=r"No public key is known for queue sqs_cpu_test.*Known prefixes: rmq_, rmq_cpu_"):
        read(built(), queue="sqs_cpu_test")


@pytest.mark.parametrize(
    ("queue", "prefix"), [("rmq_cpu_a", "rmq_cpu_"), ("rmq_cpu_", "rmq_cpu_"), ("rmq_cpu", "rmq_"), ("rmq", None), ("sqs_a", None)]
)
def test_the_longest_prefix_counts(queue: str, prefix: str | None) -> None:
    assert message.longest_prefix(queue, PUBLIC) == prefix


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("experiment",), None, "has no experiment"),
        (("config",), None, "has no config"),
        (("experiment", "time_added"), "now", "time_added is not a number"),
        (("experiment", "resources_needed"), None, "resources_needed is missing"),
        (("experiment", "resources_needed", "gpus"), "2", "gpus is not a whole number"),
        (("experiment", "resources_needed", "cpus"), -1, "cpus is not a whole number"),
        (("experiment", "resources_needed", "ram"), 6, "ram is not text"),
    ],
)
def test_a_request_that_go_could_not_read_is_not_built(path: tuple[str, ...], value: t.Any, told: str) -> None:
    request: dict[str, t.Any] = copy.deepcopy(REQUEST)
    inner = request
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InvalidInput, match=told):
        message.build(request, PAIR.public, CLIENT.private)


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
