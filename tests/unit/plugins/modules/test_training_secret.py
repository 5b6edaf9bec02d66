# SPDX-License-Identifier: GPL-3.0-or-later
"""training_secret: keys are made once, replaced when that is said, refused with the reason, and never shown."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import types
import typing as t
from itertools import count

import pytest
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from ansible_collections.muster.ml.plugins.action import training_secret_info as info_action
from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    ApplyFailed,
    Conflict,
    Failed,
    Forbidden,
    InvalidInput,
    MusterError,
    NotFound,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import FIELD_MANAGER
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.plugins.modules import training_secret, training_secret_info
from ansible_collections.muster.ml.plugins.plugin_utils import _action
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster, Request

KEY, PHRASE = "studioml-runner-key-secret", "studioml-runner-passphrase-secret"
SIGNING, CLIENT = "studioml-signing", "studioml-client-signing-key"
CANARY = "canary-7Qx9-passphrase"
OWN, *MADE = [rsa.generate_private_key(65537, 1024) for _key in range(4)]  # noqa: S505 -- nobody uses them, and they are quick
OWN_PEM = keys.rsa_pair(OWN, Sensitive(CANARY)).private.reveal()
SIGNER, STRANGER = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())


@pytest.fixture(autouse=True)
def small_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "BITS", 1024)
    ready = itertools.cycle(MADE)
    monkeypatch.setattr(keys, "new_rsa_key", lambda _fresh: next(ready))


def run(cluster: FakeCluster, content: str = "decryption_key", *, check: bool = False, **params: t.Any) -> t.Any:
    given = {"content": content, "namespace": "default", **params}
    told: list[str] = []
    said = {"warn": told.append, "progress": told.append}
    return {**tasks.run(training_secret, cluster, given, check=check, diff=True, **said), "_told": told}


def actions(result: dict[str, t.Any]) -> dict[str, str]:
    return {entry["name"]: entry["action"] for entry in result["objects"]}


def text(cluster: FakeCluster, name: str, key: str) -> str:
    found = cluster.stored("Secret", name, "default")
    assert found is not None
    return base64.b64decode(found["data"][key]).decode()


def secret(name: str, **values: str) -> dict[str, t.Any]:
    """Of somebody else."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}, "data": data}


def theirs(**changed: str) -> list[dict[str, t.Any]]:
    """A key and its passphrase as kubectl made them from files."""
    pair = keys.rsa_pair(OWN, Sensitive(CANARY))
    values = {"ssh-privatekey": OWN_PEM, "ssh-publickey": pair.public, "ssh-passphrase": CANARY, **changed}
    phrase = values.pop("ssh-passphrase")
    return [secret(KEY, **values), secret(PHRASE, **{"ssh-passphrase": phrase})]


def writes(cluster: FakeCluster) -> list[Request]:
    return [one for one in cluster.writes if one.ref.kind == "Secret"]


def kill_at(cluster: FakeCluster, number: int, *, stored: bool) -> None:
    """End the run at its nth write of a Secret, before or after it is stored."""
    whole, count = cluster.apply, 0

    def apply(manifest: t.Any, **more: t.Any) -> t.Any:
        nonlocal count
        if manifest["kind"] != "Secret" or more["dry_run"]:
            return whole(manifest, **more)
        count += 1
        if count == number and stored:
            whole(manifest, **more)
        if count == number:
            raise KeyboardInterrupt
        return whole(manifest, **more)

    cluster.apply = apply  # type: ignore[method-assign]


# Shows row 002.19.
def test_a_key_pair_and_its_passphrase_are_made_as_the_runner_mounts_them(cluster: FakeCluster) -> None:
    result = run(cluster)
    assert actions(result) == {PHRASE: "created", KEY: "created"}
    phrase = text(cluster, PHRASE, "ssh-passphrase")
    assert phrase == phrase.strip() != ""
    key = keys.read_rsa_key(Sensitive(text(cluster, KEY, "ssh-privatekey")), Sensitive(phrase), "it")
    keys.check_rsa_public(text(cluster, KEY, "ssh-publickey"), key, "it")
    assert result["fingerprints"] == {"ssh-publickey": keys.fingerprint(key.public_key())}


@pytest.mark.parametrize("content", ["decryption_key", "signing_key"])
def test_a_second_run_writes_nothing_and_keeps_the_key(cluster: FakeCluster, content: str) -> None:
    first, before = run(cluster, content), len(cluster.writes)
    again = run(cluster, content)
    assert again["fingerprints"] == first["fingerprints"]
    assert not again["changed"]
    assert len(cluster.writes) == before


@pytest.mark.parametrize("content", ["decryption_key", "signing_key"])
def test_check_mode_writes_nothing_and_makes_no_key(cluster: FakeCluster, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(keys, "new_rsa_key", lambda _fresh: pytest.fail("made a key"))
        without.setattr(keys, "new_signing_pair", lambda _fresh: pytest.fail("made a key"))
        planned = run(cluster, content, check=True)
    assert planned["changed"]
    assert planned["fingerprints"] == {"ssh-publickey": None}
    assert cluster.writes == []
    done = run(cluster, content)
    assert actions(done) == actions(planned)
    assert not run(cluster, content, check=True)["changed"]
    assert run(cluster, content, generation=2, check=True)["fingerprints"] == {"ssh-publickey": None}


@pytest.mark.parametrize("content", ["decryption_key", "signing_key"])
def test_a_new_generation_is_made_once(cluster: FakeCluster, content: str) -> None:
    first = run(cluster, content)
    phrase = text(cluster, PHRASE, "ssh-passphrase") if content == "decryption_key" else ""
    second = run(cluster, content, generation=2)
    assert second["fingerprints"] != first["fingerprints"]
    assert [name for name, action in actions(second).items() if action == "updated"] == [KEY if phrase else CLIENT]
    for generation in (2, 1):  # a playbook that was not told of the new one replaces nothing
        again = run(cluster, content, generation=generation)
        assert again["fingerprints"] == second["fingerprints"]
        assert not again["changed"]
    if phrase:
        assert text(cluster, PHRASE, "ssh-passphrase") == phrase


def test_a_new_generation_shows_both_fingerprints_in_its_diff(cluster: FakeCluster) -> None:
    first = run(cluster)["fingerprints"]["ssh-publickey"]
    result = run(cluster, generation=2)
    (entry,) = result["diff"]
    assert first in json.dumps(entry["before"])
    assert result["fingerprints"]["ssh-publickey"] in json.dumps(entry["after"])


def test_own_keys_are_stored_as_they_are(cluster: FakeCluster) -> None:
    result = run(cluster, private_key=OWN_PEM, passphrase=CANARY)
    assert result["fingerprints"] == {"ssh-publickey": keys.fingerprint(OWN.public_key())}
    assert (text(cluster, KEY, "ssh-privatekey"), text(cluster, PHRASE, "ssh-passphrase")) == (OWN_PEM, CANARY)
    again = keys.rsa_pair(OWN, Sensitive(CANARY)).private.reveal()
    assert again != OWN_PEM
    for params in ({}, {"private_key": again, "passphrase": CANARY}):
        assert not run(cluster, **params)["changed"]


def test_another_own_key_needs_a_new_generation(cluster: FakeCluster) -> None:
    made = run(cluster)
    before = len(cluster.writes)
    with pytest.raises(InvalidInput, match=r"holds the key SHA256:.*generation: 2 replaces it"):
        run(cluster, private_key=OWN_PEM, passphrase=CANARY)
    assert len(cluster.writes) == before
    result = run(cluster, private_key=OWN_PEM, passphrase=CANARY, generation=2)
    assert result["fingerprints"] != made["fingerprints"]
    assert not run(cluster, private_key=OWN_PEM, passphrase=CANARY, generation=2)["changed"]


def test_another_passphrase_encrypts_the_same_key(cluster: FakeCluster) -> None:
    made = run(cluster)
    result = run(cluster, passphrase=CANARY)
    assert result["fingerprints"] == made["fingerprints"]
    assert list(actions(result).items()) == [(KEY, "updated"), (PHRASE, "updated")]
    keys.read_rsa_key(Sensitive(text(cluster, KEY, "ssh-privatekey")), Sensitive(CANARY), "it")
    assert not run(cluster, passphrase=CANARY)["changed"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("change", [{}, {"passphrase": CANARY}, {"passphrase": CANARY, "generation": 2}])
def test_a_run_that_was_killed_between_two_writes_is_finished_by_the_next(change: dict[str, t.Any], number: int, stored: bool) -> None:
    cluster = FakeCluster()
    if change:
        run(cluster)
    kill_at(cluster, number, stored=stored)
    with contextlib.suppress(KeyboardInterrupt):
        run(cluster, **change)
    del cluster.apply  # type: ignore[method-assign]
    result = run(cluster, **change)
    phrase = Sensitive(text(cluster, PHRASE, "ssh-passphrase"))
    key = keys.read_rsa_key(Sensitive(text(cluster, KEY, "ssh-privatekey")), phrase, "it")
    assert result["fingerprints"]["ssh-publickey"] == keys.fingerprint(key.public_key())
    assert not run(cluster, **change)["changed"]


def test_somebody_elses_keys_are_used_as_they_are(cluster: FakeCluster) -> None:
    cluster.add(*theirs())
    for params in ({}, {"private_key": OWN_PEM, "passphrase": CANARY}):
        result = run(cluster, **params)
        assert set(actions(result).values()) == {"unchanged"}
        assert result["fingerprints"] == {"ssh-publickey": keys.fingerprint(OWN.public_key())}
    assert writes(cluster) == []
    assert "labels" not in cluster.stored("Secret", KEY, "default")["metadata"]  # type: ignore[index]
    run(cluster, state="absent", delete_data=True)
    assert cluster.stored("Secret", KEY, "default")


def test_somebody_elses_keys_are_taken_over_by_their_own_word(cluster: FakeCluster) -> None:
    cluster.add(*theirs())
    for params in ({"generation": 2}, {"passphrase": "another"}):
        with pytest.raises((Conflict, ApplyFailed), match=r"was not made by Muster, and differs in data.*adopt: true"):
            run(cluster, **params)
    assert writes(cluster) == []
    assert run(cluster, adopt=True)["fingerprints"] == {"ssh-publickey": keys.fingerprint(OWN.public_key())}
    assert text(cluster, KEY, "ssh-privatekey") == OWN_PEM
    assert not run(cluster)["changed"]
    assert set(actions(run(cluster, state="absent")).values()) == {"kept"}
    assert set(actions(run(cluster, state="absent", delete_data=True)).values()) == {"deleted"}


def openssh() -> str:
    return OWN.private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption()).decode()


def plain() -> str:
    return OWN.private_bytes(s.Encoding.PEM, s.PrivateFormat.TraditionalOpenSSL, s.NoEncryption()).decode()


def another_public() -> str:
    return keys.rsa_pair(MADE[0], Sensitive("x")).public


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ssh-privatekey": openssh()}, f"Secret default/{KEY}: ssh-privatekey is an OpenSSH private key"),
        ({"ssh-passphrase": f"{CANARY}\n"}, f"Secret default/{PHRASE}: ssh-passphrase has a line break"),
        ({"ssh-publickey": another_public()}, "ssh-publickey does not belong to its private key"),
    ],
    ids=count(),
)
def test_somebody_elses_keys_that_the_runner_cannot_use_are_refused(cluster: FakeCluster, changed: dict[str, str], told: str) -> None:
    cluster.add(*theirs(**changed))
    with pytest.raises(InvalidInput, match=told):
        run(cluster)
    assert cluster.writes == []


def test_a_passphrase_that_does_not_fit_is_refused_and_so_is_a_lost_one(cluster: FakeCluster) -> None:
    cluster.add(*theirs(**{"ssh-passphrase": "another"}))
    with pytest.raises(Failed, match=f"cannot be decrypted with the passphrase in Secret default/{PHRASE}"):
        run(cluster)
    cluster = FakeCluster()
    run(cluster)
    del cluster.objects["", "Secret", "default", PHRASE]
    before = len(cluster.writes)
    with pytest.raises(Failed, match=f"Secret default/{PHRASE}, which has the passphrase of .* does not exist"):
        run(cluster)
    assert len(cluster.writes) == before
    assert run(cluster, generation=2)["changed"]


@pytest.mark.parametrize(
    ("content", "params", "told"),
    [
        ("decryption_key", {"private_key": openssh(), "passphrase": CANARY}, "private_key is an OpenSSH private key"),
        ("decryption_key", {"private_key": OWN_PEM, "passphrase": "another"}, "cannot be decrypted with its passphrase"),
        ("decryption_key", {"private_key": OWN_PEM, "passphrase": f"{CANARY}\n"}, "passphrase has a line break"),
        ("decryption_key", {"private_key": OWN_PEM}, "private_key needs passphrase"),
        ("decryption_key", {"passphrase": ""}, "passphrase is empty"),
        ("decryption_key", {"private_key": OWN_PEM, "passphrase": CANARY, "public_key": another_public()}, "does not belong"),
        ("decryption_key", {"public_keys": {"rmq_": "x"}}, "public_keys does not belong to content decryption_key"),
        ("decryption_key", {"name": "Keys"}, "not a valid name"),
        ("decryption_key", {"generation": 0}, "generation: 0 is too small"),
        ("signing_key", {"private_key": plain()}, "is a RSA PRIVATE KEY, not an OPENSSH PRIVATE KEY"),
        ("signing_key", {"passphrase": CANARY}, "passphrase does not belong to content signing_key"),
        ("signing_key", {"private_key": SIGNER.private.reveal(), "public_key": STRANGER.public}, "does not belong"),
        ("signing_public_keys", {"public_keys": {"rmq": SIGNER.public}}, "the prefix 'rmq' has 3 characters"),
        ("signing_public_keys", {"public_key_secrets": {"rmq": "x"}}, "public_key_secrets: the prefix 'rmq' has 3"),
        ("signing_public_keys", {"public_keys": {"rmq_": another_public()}}, "public_keys.rmq_ does not begin with ssh-ed25519"),
        ("signing_public_keys", {"public_keys": {"rmq_": SIGNER.public}, "public_key_secrets": {"rmq_": "x"}}, "both have"),
        ("response_public_keys", {"public_keys": {"rmq_": SIGNER.public}}, "does not begin with -----BEGIN RSA PUBLIC"),
    ],
)  # fmt: skip
def test_what_runner_or_client_cannot_use_is_refused_before_anybody_is_asked(content: str, params: dict[str, t.Any], told: str) -> None:
    cluster = FakeCluster()
    with pytest.raises(InvalidInput, match=told):
        run(cluster, content, **params)
    assert cluster.requests == []


def test_an_empty_secret_of_public_keys_has_a_placeholder() -> None:
    for content, name in (("signing_public_keys", SIGNING), ("response_public_keys", "studioml-report-keys")):
        cluster = FakeCluster()
        assert actions(run(cluster, content)) == {name: "created"}
        assert text(cluster, name, "info")
        assert not run(cluster, content)["changed"]
        assert actions(run(cluster, content, state="absent")) == {name: "deleted"}


def test_public_keys_come_and_go_by_prefix_and_those_of_others_stay(cluster: FakeCluster) -> None:
    run(cluster, "signing_key")
    own = run(cluster, "signing_key")["fingerprints"]["ssh-publickey"]
    both = {"public_keys": {"rmq_cpu_": SIGNER.public}, "public_key_secrets": {"rmq_test": CLIENT}}
    result = run(cluster, "signing_public_keys", **both)
    assert result["fingerprints"] == {"rmq_cpu_": SIGNER.fingerprint, "rmq_test": own}
    assert text(cluster, SIGNING, "rmq_test") == text(cluster, CLIENT, "ssh-publickey")
    commented = {**both, "public_keys": {"rmq_cpu_": f"{SIGNER.public.strip()} me@here"}}
    assert not run(cluster, "signing_public_keys", **commented)["changed"]
    stored = cluster.stored("Secret", SIGNING, "default")
    assert stored is not None
    stored["data"]["rmq_by_hand_"] = base64.b64encode(b"ssh-ed25519 x").decode()
    result = run(cluster, "signing_public_keys", public_keys=both["public_keys"])
    assert actions(result) == {SIGNING: "updated"}
    assert cluster.stored("Secret", SIGNING, "default")["data"].keys() == {"info", "rmq_cpu_", "rmq_by_hand_"}  # type: ignore[index]


def test_a_secret_without_a_public_key_is_named_and_check_mode_expects_it(cluster: FakeCluster) -> None:
    params = {"public_key_secrets": {"rmq_test": CLIENT}}
    with pytest.raises(NotFound, match=f"Secret default/{CLIENT} has no ssh-publickey for the prefix 'rmq_test'"):
        run(cluster, "signing_public_keys", **params)
    assert writes(cluster) == []
    assert run(cluster, "signing_public_keys", check=True, **params)["fingerprints"] == {"rmq_test": None}


def test_public_keys_that_kubectl_made_are_used_as_they_are_or_taken_over(cluster: FakeCluster) -> None:
    cluster.add(secret(SIGNING, info="Dummy", rmq_=f"{SIGNER.public.strip()} me@here"))
    keep = {"public_keys": {"rmq_": SIGNER.public}}
    assert not run(cluster, "signing_public_keys", **keep)["changed"]
    more = {"public_keys": {"rmq_": SIGNER.public, "rmq_b_": keys.new_signing_pair(to_be_dropped()).public}}
    with pytest.raises(Conflict, match=r"was not made by Muster, and differs in data.rmq_b_"):
        run(cluster, "signing_public_keys", **more)
    assert run(cluster, "signing_public_keys", adopt=True, **more)["changed"]
    assert text(cluster, SIGNING, "info") == "Dummy"


def test_keys_are_deleted_by_their_own_word_only_and_nobody_elses(cluster: FakeCluster) -> None:
    run(cluster)
    cluster.add(secret("other", **{"ssh-privatekey": "x"}))
    kept = run(cluster, state="absent")
    assert actions(kept) == {KEY: "kept", PHRASE: "kept"}
    assert "delete_data: true deletes it" in kept["_told"][0]
    assert set(actions(run(cluster, state="absent", delete_data=True, check=True)).values()) == {"deleted"}
    assert cluster.stored("Secret", KEY, "default")
    assert set(actions(run(cluster, state="absent", delete_data=True)).values()) == {"deleted"}
    assert cluster.stored("Secret", KEY, "default") is None
    assert cluster.stored("Secret", "other", "default")
    assert run(cluster, state="absent", delete_data=True)["objects"] == []


def test_keys_of_another_owner_are_refused(cluster: FakeCluster) -> None:
    run(cluster)
    with pytest.raises(Conflict, match=r"belongs to training_secret.default.studioml-runner-key-secret"):
        run(cluster, name="second")
    assert cluster.stored("Secret", "second", "default") is None


@pytest.mark.parametrize("name", [KEY, PHRASE])
def test_a_secret_that_may_not_be_read_is_refused_and_not_overwritten(cluster: FakeCluster, name: str) -> None:
    run(cluster)
    before = len(cluster.writes)
    cluster.fail("get", name, Forbidden(f'secrets "{name}" is forbidden'))
    with pytest.raises(Forbidden, match=name):
        run(cluster, generation=2)
    assert len(cluster.writes) == before


def test_a_missing_namespace_is_named() -> None:
    with pytest.raises(NotFound, match="Namespace nowhere does not exist"):
        run(FakeCluster(), namespace="nowhere")


def spellings(cluster: FakeCluster) -> set[str]:
    """What must not be seen of the stored secrets: passphrases, lines of private keys, and both as the API has them."""
    found = {CANARY, *OWN_PEM.splitlines()[4:-1], *SIGNER.private.reveal().splitlines()[1:-1]}
    for manifest in cluster.objects.values():
        for key, value in (manifest.get("data") or {}).items():
            if manifest["kind"] == "Secret" and key in ("ssh-privatekey", "ssh-passphrase"):
                lines = base64.b64decode(value).decode().splitlines()
                found |= {value[40:80], value, *(line for line in lines if len(line) > 24 and "--" not in line)}
    return {one for one in found if one} | {base64.b64encode(one.encode()).decode()[:-4] for one in found if one}


def seen(cluster: FakeCluster, content: str, **params: t.Any) -> str:
    """Everything that a task shows: result, diff, warnings and progress, or the error with all that it is chained to."""
    try:
        return str(run(cluster, content, **params))
    except MusterError as exc:
        parts = [str(failure(exc)), repr(exc), str(exc.details)]
        chained: BaseException | None = exc.__cause__ or exc.__context__
        while chained and not chained.__class__.__module__.startswith("_pytest"):
            parts.append(repr(chained))
            chained = chained.__cause__ or chained.__context__
        return "\n".join(parts)


def test_nothing_secret_is_seen() -> None:
    cluster, parts = FakeCluster(), []
    signer = SIGNER.private.reveal()
    for content, params in (
        ("decryption_key", {"check": True}), ("decryption_key", {}), ("decryption_key", {"generation": 2}),
        ("decryption_key", {"passphrase": CANARY}), ("decryption_key", {"private_key": OWN_PEM, "passphrase": CANARY}),
        ("decryption_key", {"private_key": OWN_PEM, "passphrase": CANARY, "generation": 3}),
        ("decryption_key", {"private_key": OWN_PEM, "passphrase": "another"}),
        ("decryption_key", {"private_key": OWN_PEM[:300], "passphrase": CANARY}),
        ("decryption_key", {"passphrase": f"{CANARY}\n"}), ("decryption_key", {"state": "absent"}),
        ("signing_key", {}), ("signing_key", {"private_key": signer}), ("signing_key", {"private_key": signer[:90]}),
        ("signing_key", {"private_key": signer, "generation": 2}),
        ("signing_public_keys", {"public_keys": {"rmq_": signer}}),
        ("response_public_keys", {"public_keys": {"rmq_": OWN_PEM}}),
        ("signing_public_keys", {"public_key_secrets": {"rmq_": CLIENT}}),
    ):  # fmt: skip
        shown = seen(cluster, content, **params)
        assert not [one for one in spellings(cluster) if one in shown], f"{content} {sorted(params)}"
        parts.append(shown)
    cluster.add(*theirs())
    for params in ({}, {"generation": 4}, {"passphrase": "another"}, {"private_key": OWN_PEM, "passphrase": CANARY}):
        parts.append(seen(cluster, "decryption_key", **params))
    shown = "\n".join(parts)
    assert "SHA256:" in shown
    assert not [one for one in spellings(cluster) if one in shown]


def test_keys_are_sealed_until_the_request_is_sent(cluster: FakeCluster) -> None:
    whole = cluster.apply

    def apply(manifest: t.Any, **more: t.Any) -> t.Any:
        if manifest["kind"] == "Secret" and not more["dry_run"]:
            assert not [value for value in manifest["data"].values() if not isinstance(value, Sensitive)]
        return whole(manifest, **more)

    cluster.apply = apply  # type: ignore[method-assign]
    run(cluster)
    run(cluster, "signing_key")


def test_our_secrets_say_what_they_hold_without_holding_it_in_public(cluster: FakeCluster) -> None:
    fingerprint = run(cluster, generation=3)["fingerprints"]["ssh-publickey"]
    metadata = cluster.stored("Secret", KEY, "default")["metadata"]  # type: ignore[index]
    assert metadata["annotations"]["muster.ml/key-fingerprints"] == f"ssh-publickey {fingerprint}"
    assert metadata["annotations"]["muster.ml/key-generation"] == "3"
    phrase = cluster.stored("Secret", PHRASE, "default")["metadata"]  # type: ignore[index]
    assert phrase["annotations"].keys() == {"muster.ml/generated", "muster.ml/applied"}
    assert {entry["manager"].split(":")[0] for entry in metadata["managedFields"]} == {FIELD_MANAGER}


def test_ed25519_of_the_public_secret_checks_what_the_client_signs(cluster: FakeCluster) -> None:
    run(cluster, "signing_key")
    run(cluster, "signing_public_keys", public_key_secrets={"rmq_": CLIENT})
    private = s.load_ssh_private_key(text(cluster, CLIENT, "ssh-privatekey").encode(), None)
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    keys.read_ssh_public(text(cluster, SIGNING, "rmq_"), "it").verify(private.sign(b"payload"), b"payload")


LOGIN = "studioml-broker-login"


def test_a_login_is_made_once_and_never_shown(cluster: FakeCluster) -> None:
    first = run(cluster, "broker_login")
    made = text(cluster, LOGIN, "password")
    assert len(made) >= 32
    assert text(cluster, LOGIN, "username") == "studioml"
    again = run(cluster, "broker_login")
    assert not again["changed"]
    assert text(cluster, LOGIN, "password") == made
    assert made not in json.dumps([first, again], default=str)


def test_a_raised_generation_makes_another_password_once(cluster: FakeCluster) -> None:
    run(cluster, "broker_login")
    made = text(cluster, LOGIN, "password")
    assert run(cluster, "broker_login", generation=2)["changed"]
    raised = text(cluster, LOGIN, "password")
    assert raised != made
    assert not run(cluster, "broker_login", generation=2)["changed"]
    assert text(cluster, LOGIN, "password") == raised


def test_an_own_password_is_stored_and_a_task_without_one_keeps_it(cluster: FakeCluster) -> None:
    assert run(cluster, "broker_login", broker_password=CANARY)["changed"]
    assert not run(cluster, "broker_login")["changed"]
    assert text(cluster, LOGIN, "password") == CANARY


def test_another_user_is_refused_until_a_new_login_is_asked_for(cluster: FakeCluster) -> None:
    run(cluster, "broker_login")
    with pytest.raises(InvalidInput, match="has the login of studioml, and broker_user is other"):
        run(cluster, "broker_login", broker_user="other")
    assert run(cluster, "broker_login", broker_user="other", generation=2)["changed"]
    assert text(cluster, LOGIN, "username") == "other"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"broker_user": "a:b"}, "broker_user has a colon"),
        ({"broker_password": "a:b-canary"}, "broker_password has a colon"),
        ({"broker_password": "a$b"}, r"broker_password has a \$"),
    ],
)
def test_a_login_that_the_runner_cannot_use_is_refused(cluster: FakeCluster, options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        run(cluster, "broker_login", **options)
    assert options.get("broker_password", CANARY) not in str(caught.value)
    assert writes(cluster) == []


def test_the_login_of_somebody_else_is_used_as_it_is(cluster: FakeCluster) -> None:
    cluster.add(secret(LOGIN, username="studioml", password="theirs-4Tz"))
    assert not run(cluster, "broker_login")["changed"]
    assert text(cluster, LOGIN, "password") == "theirs-4Tz"


def test_check_mode_makes_no_password(cluster: FakeCluster) -> None:
    assert run(cluster, "broker_login", check=True)["changed"]
    assert cluster.stored("Secret", LOGIN, "default") is None


def read(cluster: FakeCluster, *names: str) -> dict[str, t.Any]:
    params = {"names": list(names), "namespace": "default"}
    return training_secret_info.execute(Context(params=params, check=False, connect=lambda: cluster, diff=False))


def test_what_was_made_is_read_with_its_generation_and_without_a_write(cluster: FakeCluster) -> None:
    run(cluster, "broker_login")
    run(cluster, "signing_key", generation=2)
    count = len(writes(cluster))
    found = read(cluster, LOGIN, CLIENT, "nosuch")
    assert found["secrets"][LOGIN] == {key: text(cluster, LOGIN, key) for key in ("username", "password")}
    assert found["secrets"][CLIENT]["ssh-privatekey"] == text(cluster, CLIENT, "ssh-privatekey")
    assert found["generations"] == {LOGIN: 1, CLIENT: 2}
    assert (set(found["secrets"]), found["changed"], len(writes(cluster))) == ({LOGIN, CLIENT}, False, count)


def test_what_is_no_text_is_named_and_not_shown(cluster: FakeCluster) -> None:
    cluster.add({**secret("theirs"), "data": {"blob": "/w=="}})
    with pytest.raises(InvalidInput, match="Secret default/theirs: blob is not text"):
        read(cluster, "theirs")


def test_on_the_controller_it_is_never_shown(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cluster, "broker_login", broker_password=CANARY)
    monkeypatch.setattr(_action, "connector", lambda _params: lambda: cluster)
    action = info_action.ActionModule.__new__(info_action.ActionModule)
    action._task = types.SimpleNamespace(check_mode=False, diff=False, name="Read", action="training_secret_info")
    found = action._run_here({"names": [LOGIN], "namespace": "default"})
    assert (found["secrets"][LOGIN]["password"], found["_ansible_no_log"]) == (CANARY, True)
