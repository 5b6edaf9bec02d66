# SPDX-License-Identifier: GPL-3.0-or-later
"""Which values of an object are secret, and that none of them comes out again."""

import base64
import copy
import json
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive, printable
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.plugins.module_utils._kube import redact, responses
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import digest
from ansible_collections.muster.ml.plugins.module_utils._kube.validate import check_objects
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

HIDDEN = "hunter2-hunter2"


def marked(paths: str, **content: t.Any) -> Manifest:
    metadata = {"name": "a", "namespace": "default", "annotations": {"muster.ml/sensitive": paths}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def apply(cluster: FakeCluster, manifest: Manifest, **options: t.Any) -> t.Any:
    return apply_objects(cluster, [manifest], owner="o", check=False, **options)


def test_equal_values_look_equal_and_keys_stay() -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": HIDDEN}
    metadata = {"name": "s", "annotations": last}
    secret = {"kind": "Secret", "metadata": metadata, "data": {"a": HIDDEN, "b": HIDDEN, "c": "x"}}
    shown = printable(redact.seal_secrets(secret))
    assert HIDDEN not in json.dumps(shown)
    assert shown["data"]["a"] == shown["data"]["b"] != shown["data"]["c"]


@pytest.mark.parametrize(
    ("paths", "content"),
    [
        ("spec.password", {"spec": {"password": HIDDEN}}),
        ("data['nats.conf']", {"data": {"nats.conf": HIDDEN}}),
        (r"data.nats\.conf", {"data": {"nats.conf": HIDDEN}}),
        ("spec.users[*].token", {"spec": {"users": [{"name": "a", "token": "x"}, {"name": "b", "token": HIDDEN}]}}),
        ("spec.users[1].token", {"spec": {"users": [{"token": "x"}, {"token": HIDDEN}]}}),
        ("spec.*", {"spec": {"one": HIDDEN, "other": {"deep": [HIDDEN]}}}),
        ("spec", {"spec": {"one": HIDDEN}}),
        ("spec.list", {"spec": {"list": [HIDDEN]}}),
        ("spec.none , spec.password", {"spec": {"none": "x", "password": HIDDEN}}),
    ],
)
def test_a_marked_value_is_in_no_text_digest_or_diff(paths: str, content: dict[str, t.Any]) -> None:
    manifest = marked(paths, **content)
    check_objects([manifest])
    other = json.loads(json.dumps(manifest).replace(HIDDEN, "another-value"))
    sealed = redact.seal_secrets(copy.deepcopy(manifest))
    assert digest(sealed) == digest(redact.seal_secrets(copy.deepcopy(other)))
    assert HIDDEN not in str(sealed)
    cluster = FakeCluster()
    assert HIDDEN not in json.dumps(apply(cluster, manifest).result(diff=True))
    assert not apply(cluster, manifest).changed
    report = apply(cluster, other)
    assert report.changes[0].reason == "secret values changed"
    assert HIDDEN not in json.dumps(report.result(diff=True))
    assert "another-value" not in json.dumps(report.result(diff=True))


@pytest.mark.parametrize("paths", ["data.nats.conf", "spec.pasword", "spec.users[7]", "spec.users[*].name.first", "spec[", "a b"])
def test_a_path_that_matches_nothing_is_an_error_before_anything_is_sent(paths: str) -> None:
    cluster = FakeCluster()
    manifest = marked(paths, data={"nats.conf": HIDDEN}, spec={"password": HIDDEN, "users": [{"name": "x"}]})
    with pytest.raises(InvalidInput, match=r"muster.ml/sensitive") as caught:
        apply(cluster, manifest)
    assert HIDDEN not in str(caught.value)
    assert cluster.requests == []


def named(kind: str, api_version: str = "v1", **content: t.Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "default"}, **content}


DATA = {"password": base64.b64encode(HIDDEN.encode()).decode()}
INNER = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": {"password": HIDDEN}}
LOOK_ALIKES = {
    **{kind: named(kind, stringData={"password": HIDDEN}, data=DATA) for kind in (
        "secret", "SECRET", "Secrets", " Secret ", "v1 secrets", "v1/Secret", "sec ret", "Sercet", "Secert", "Sekret", "Secret\n",
    )},
    "data only": named("secret", data=DATA),
    **{key: named("Secret", **{key: DATA}) for key in ("stringdata", "StringData", "string_data", "datas", "DATA", "binaryData")},
    "another group": named("Secret", "vault.example/v1", data={"password": HIDDEN}),
    "another kind with stringData": named("Password", stringData={"password": HIDDEN}),
    "another kind with the type of a Secret": named("Sealed", type="kubernetes.io/basic-auth", data=DATA),
    "opaque": named("Thing", type="Opaque", data={"password": HIDDEN}),
    "in a template": named("Foo", "x.io/v1", spec={"template": {"type": "kubernetes.io/tls", "data": {"tls.key": HIDDEN}}}),
    "whole in a template": named("Foo", "x.io/v1", spec={"forProvider": {"manifest": INNER}}),
    "in a list of a template": named("Template", "template.openshift.io/v1", objects=[named("ConfigMap"), INNER]),
    "misspelt in a template": named("Foo", "x.io/v1", spec={"objects": [{**INNER, "kind": "secret", "data": DATA}]}),
    "list": {"apiVersion": "v1", "kind": "list", "items": [INNER]},
    "list of its own": {"apiVersion": "v1", "kind": "SecretList", "items": [INNER]},
}  # fmt: skip


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_looks_like_a_secret_is_in_no_output(name: str, check: bool, served: bool) -> None:
    """Whether the cluster serves such a kind or not: in the diff, the error, and all that a result has."""
    item, cluster = LOOK_ALIKES[name], FakeCluster()
    if served:
        cluster.kinds_served[item["apiVersion"], item["kind"]] = ServedKind("things", True)
    shown = []
    for text in (HIDDEN, "another-" + HIDDEN):
        wish = json.loads(json.dumps(item).replace(HIDDEN, text))
        try:
            report = apply_objects(cluster, [wish], owner="o", check=check)
            shown.append(json.dumps(report.result(diff=True)))
        except MusterError as error:
            shown.append(json.dumps(failure(error)))
    assert HIDDEN not in "".join(shown)
    assert DATA["password"] not in "".join(shown)


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_looks_like_a_secret_is_sealed_in_what_a_server_says_about_it(name: str) -> None:
    sent = redact.seal_everything(copy.deepcopy(LOOK_ALIKES[name]))
    told = f"spec.x: the password {HIDDEN} ({DATA['password']}) is known"
    for status, reason in ((422, "Invalid"), (400, "BadRequest"), (403, "Forbidden"), (500, "InternalError")):
        text = str(responses.to_error(status, {"reason": reason, "message": told}, verb="apply", ref=None, what="x", sent=sent))
        assert HIDDEN not in text
        assert DATA["password"] not in text


@pytest.mark.parametrize(
    "item",
    [
        named("ConfigMap", data={"password": "seen"}),
        named("SecretStore", "external-secrets.io/v1", spec={"provider": {"vault": {"path": "seen"}}}),
        named("Foo", "x.io/v1", spec={"template": {"type": "ClusterIP", "data": {"x": "seen"}}}),
        named("Foo", "x.io/v1", spec={"schema": {"properties": {"kind": {"type": "string"}, "stringData": {"x": {"type": "seen"}}}}}),
    ],
)  # fmt: skip
def test_what_is_no_secret_is_shown(item: Manifest) -> None:
    assert "seen" in str(redact.seal_everything(copy.deepcopy(item)))


def test_a_secret_in_a_template_is_compared_and_not_applied_again() -> None:
    cluster = FakeCluster()
    cluster.kinds_served["x.io/v1", "Foo"] = ServedKind("foos", True)
    wish = named("Foo", "x.io/v1", spec={"forProvider": {"manifest": INNER}})
    assert apply(cluster, copy.deepcopy(wish)).changed
    assert (cluster.stored("Foo", "a", "default") or {})["spec"] == wish["spec"]
    assert not apply(cluster, copy.deepcopy(wish)).changed
    changed = apply(cluster, json.loads(json.dumps(wish).replace(HIDDEN, "other")))
    assert changed.changes[0].reason == "secret values changed"


def test_a_value_is_hidden_where_the_object_that_is_there_does_not_carry_the_mark_yet() -> None:
    cluster = FakeCluster()
    cluster.add({**marked("x", data={"password": HIDDEN}), "metadata": {"name": "a", "namespace": "default"}})
    report = apply(cluster, marked("data.password", data={"password": "new"}), adopt=True)
    assert HIDDEN not in json.dumps(report.result(diff=True))


def test_a_mark_that_somebody_else_wrote_and_that_cannot_be_read_hides_everything() -> None:
    assert HIDDEN not in str(redact.seal_secrets(marked("spec[", spec={"password": HIDDEN}, data={"x": HIDDEN})))


@pytest.mark.parametrize(
    "told",
    [
        f'Invalid value: "{HIDDEN}": spec.password in body should be at least 30 chars long',
        f"admission webhook denied it: the password {HIDDEN} is known",
        f"the password {base64.b64encode(HIDDEN.encode()).decode()} is known",
        'Invalid value: "ab": too short',
    ],
)
def test_what_the_server_refuses_is_told_without_the_value(told: str) -> None:
    sent = redact.seal_secrets(marked("spec", spec={"password": HIDDEN, "pin": "ab"}))
    details = {"causes": [{"reason": "FieldValueInvalid", "field": "spec.password", "message": told}]}
    for payload in ({"reason": "Invalid", "message": told, "details": details}, {"reason": "Invalid", "details": details}):
        text = str(responses.to_error(422, payload, verb="apply", ref=None, what="ConfigMap a", sent=sent))
        assert HIDDEN not in text
        assert '"ab"' not in text
        assert base64.b64encode(HIDDEN.encode()).decode() not in text


@pytest.mark.parametrize("before", range(1400, 1500, 20))
def test_no_part_of_a_value_is_left_where_a_long_message_is_cut(before: int) -> None:
    sent = redact.seal_secrets({"kind": "Secret", "metadata": {}, "stringData": {"conf": HIDDEN * 200}})
    text = str(responses.to_error(500, {"message": "x" * before + HIDDEN * 200}, verb="apply", ref=None, what="Secret a", sent=sent))
    assert HIDDEN[:8] not in text


@pytest.mark.parametrize(
    ("values", "said", "told"),
    [
        ({"a": base64.b64encode(HIDDEN.encode()).decode()}, f"it is {HIDDEN}!", "it is <redacted>!"),
        ({"a": "secret", "b": "secret-and-more"}, "secret-and-more", "<redacted>"),
        ({"a": f"{HIDDEN}\n"}, f"it is {HIDDEN}!", "it is <redacted>!"),
        ({"a": 'say "friend"'}, r"it is say \"friend\"!", "it is <redacted>!"),
        ({"a": "ab"}, "unable", "unable"),
        ({"a": 'ä"<&>'}, r'it is "ä\"<&>" or {"A":"ä\"\u003c\u0026\u003e"}', 'it is "<redacted>" or {"A":"<redacted>"}'),
        ({"a": f"user: x\npassword: {HIDDEN}\n"}, f"line 2: 'password: {HIDDEN}' is wrong", "line 2: '<redacted>' is wrong"),
    ],
    ids=[
        "base64-of-it-was-sent",
        "one-begins-as-another",
        "without-its-line-end",
        "quoted",
        "in-every-second-word",
        "as-go-writes-it",
        "a-line-of-it",
    ],
)
def test_a_value_is_found_in_what_a_server_says_however_it_is_spelt(values: dict[str, str], said: str, told: str) -> None:
    assert redact.without_secrets(said, redact.seal_secrets({"kind": "Secret", "metadata": {}, "data": values})) == told


def test_an_object_with_a_mark_of_its_own_is_sealed_by_both() -> None:
    sealed = redact.seal_everything(marked("data.theirs", data={"theirs": HIDDEN, "ours": HIDDEN}), like=marked("data.ours"))
    assert HIDDEN not in str(sealed)


def test_what_kubectl_noted_on_an_object_without_secrets_is_shown() -> None:
    noted = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    manifest = {"kind": "ConfigMap", "metadata": {"name": "a", "annotations": noted}}
    assert redact.seal_secrets(copy.deepcopy(manifest)) == manifest


@pytest.mark.parametrize(
    ("live", "same"),
    [
        ({"users": [{"name": "b", "token": "x"}]}, True),
        ({"users": [{"name": "a", "token": "theirs"}, {"name": "b", "token": Sensitive("x")}]}, True),
        ({"users": [{"name": "b", "token": "y"}]}, False),
        ({"users": [{"name": "a", "token": "x"}]}, False),
        ({}, False),
    ],
)
def test_secret_values_of_a_list_are_compared_by_the_names_of_its_items(live: Manifest, same: bool) -> None:
    assert redact.same_secrets({"users": [{"name": "b", "token": Sensitive("x")}]}, live) is same


@given(st.dictionaries(st.text("ab", min_size=1), st.text("XYZ", min_size=4), min_size=1))
def test_no_value_survives(data: dict[str, str]) -> None:
    shown = json.dumps(
        printable(redact.seal_secrets({"kind": "Secret", "metadata": {"name": "s"}, "data": dict(data), "stringData": data}))
    )
    assert not any(f'"{value}"' in shown for value in data.values())
