# SPDX-License-Identifier: GPL-3.0-or-later
"""Ownership of fields, on objects as a real API server (1.36) stored them."""

import copy
import json
import pathlib
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._kube import fields
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import FIELD_MANAGER, Manifest, manager_of
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import prepare
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

RECORDED = pathlib.Path(__file__).parent / "recorded"
APPLIED: list[dict[str, Manifest]] = json.loads((RECORDED / "applied.json").read_text())
SCALED: Manifest = json.loads((RECORDED / "scaled.json").read_text())
KINDS = [pair["stored"]["kind"] for pair in APPLIED]


US = manager_of("apply.t2")


def desired(pair: dict[str, Manifest]) -> Manifest:
    return prepare(pair["sent"], owner="apply.t2", namespaced=True, namespace="default")


def of(kind: str) -> dict[str, Manifest]:
    return APPLIED[KINDS.index(kind)]


@pytest.mark.parametrize("pair", APPLIED, ids=KINDS)
def test_we_own_all_that_we_sent(pair: dict[str, Manifest]) -> None:
    """Whatever the server defaulted, normalised or dropped."""
    assert fields.unowned_paths(desired(pair), pair["stored"], US) == []


@pytest.mark.parametrize("pair", APPLIED, ids=KINDS)
def test_the_digest_is_that_of_the_wish(pair: dict[str, Manifest]) -> None:
    """A change of the digest would make every object of every user be written once more; do that knowingly."""
    key = "muster.ml/applied"
    # Recorded by version 1, which did not say for whom and where an object was made.
    digest = desired(pair)["metadata"]["annotations"][key].split(":")[1]
    assert f"1:{digest}" == pair["stored"]["metadata"]["annotations"][key]


def test_a_field_that_somebody_else_changed_is_no_longer_ours() -> None:
    lost = fields.unowned_paths(desired(of("Deployment")), SCALED, US)
    assert lost == ["spec.replicas"]
    assert fields.other_manager(SCALED, "spec.replicas", US) == "kubectl"


def test_a_port_without_its_default_protocol_is_found() -> None:
    manifest = desired(of("Deployment"))
    ports = manifest["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {"containerPort": 80} in ports
    ports.append({"containerPort": 81})
    assert fields.unowned_paths(manifest, of("Deployment")["stored"], US) == ["spec.template.spec.containers[name=c].ports[3]"]


def test_a_new_variable_in_a_list_map_is_named_by_its_key() -> None:
    manifest = desired(of("StatefulSet"))
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["env"][0] = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
    assert fields.unowned_paths(manifest, of("StatefulSet")["stored"], US) == [
        "spec.template.spec.containers[name=c].env[name=A].valueFrom"
    ]


def test_without_managed_fields_nothing_is_ours() -> None:
    stored = copy.deepcopy(of("Secret")["stored"])
    stored["metadata"]["managedFields"] = [{}]
    assert "data" in fields.unowned_paths(desired(of("Secret")), stored, US)


def test_set_elements_and_indexes() -> None:
    live = {
        "metadata": {
            "managedFields": [
                {"manager": US, "operation": "Apply", "fieldsV1": {"f:spec": {"f:set": {'v:"a"': {}}, "f:list": {"i:0": {"f:x": {}}}}}}
            ]
        }
    }
    wish = {"metadata": {}, "spec": {"set": ["a", "b"], "list": [{"x": 1, "y": 2}]}}
    assert fields.unowned_paths(wish, live, US) == ["spec.set[1]", "spec.list[0].y"]


def entry(manager: str, *names: str, operation: str = "Apply", **more: str) -> Manifest:
    data = {f"f:{name}": {} for name in names}
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:data": data}, **more}


def test_what_is_taken_over_is_added_to_what_is_owned_already() -> None:
    status = entry("one", "s", operation="Update", subresource="status")
    entries = [entry("one", "a", operation="Update"), entry("two", "b"), entry("us", "c"), entry("us", "d", operation="Update"), status]
    taken = fields.transferred_fields({"metadata": {"managedFields": entries}}, ("one", "two"), "us")
    assert taken == [status, {**entry("us", "a", "b", "c", "d")}]


def test_what_was_created_is_owned_as_what_was_applied() -> None:
    """To the server they are two managers: an apply of another value is a conflict until the fields are transferred."""
    live = {"metadata": {"managedFields": [entry("us", "a", operation="Update"), entry("us", "b")]}}
    assert fields.unowned_paths({"metadata": {}, "data": {"a": "1", "b": "2", "c": "3"}}, live, "us") == ["data.c"]
    assert fields.is_created_by(live, "us")
    assert not fields.is_created_by({"metadata": {"managedFields": [entry("us", "a")]}}, "us")


def test_a_patch_of_a_single_field_owns_nothing() -> None:
    """It claims nothing that the next apply would take back."""
    ours = fields.FIELD_MANAGER
    live = {"metadata": {"managedFields": [entry(ours, "a", operation="Update"), entry(ours, "b")]}}
    assert fields.unowned_paths({"metadata": {}, "data": {"a": "1", "b": "2"}}, live, ours) == ["data.a"]


def test_who_only_sets_the_status_has_no_part_in_the_object() -> None:
    entries = [entry("one", "a"), entry("kubelet", "s", operation="Update", subresource="status")]
    assert fields.managers({"metadata": {"managedFields": entries}}) == {"one"}


SECOND, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


@pytest.mark.parametrize(
    ("entries", "makers"),
    [
        ([entry("helm", "a", time=SECOND), entry("lb-controller", "b", time=SECOND)], {"helm"}),
        ([entry("a-tool", "a", "b", time=SECOND), entry("lb-controller", "c", time=SECOND)], {"a-tool"}),
        ([entry("a-tool", "a", time=SECOND), entry("helm", "b", time=LATER), entry("x", "c", time=LATER)], {"a-tool", "helm"}),
        ([entry("kube-scheduler", "a", time=SECOND), entry("helm", "b", time=LATER), entry("x", "c", time=LATER)], {"helm"}),
        ([entry("one", "a", time=LATER), entry("x", "c", time="2026-01-01T00:00:10Z")], {"one"}),
        ([], set()),
    ],
)  # fmt: skip
def test_who_made_an_object_is_not_who_answered_in_the_same_second(entries: list[Manifest], makers: set[str]) -> None:
    assert fields.makers({"metadata": {"managedFields": entries, "creationTimestamp": SECOND}}) == makers


def test_finalizers_stay_when_the_fields_of_their_manager_are_taken() -> None:
    """They would go with the next apply, and with them what another controller does before the object may go."""
    theirs = {**entry("one", "a"), "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, 'v:"x.io/a"': {}}}, "f:data": {"f:a": {}}}}
    (taken,) = fields.transferred_fields({"metadata": {"managedFields": [theirs, entry("us", "c")]}}, ("one",), "us")
    assert "f:finalizers" not in taken["fieldsV1"]["f:metadata"]
    assert set(taken["fieldsV1"]["f:data"]) == {"f:a", "f:c"}


def test_nothing_is_taken_from_who_has_nothing() -> None:
    entries = [entry("one", "a"), entry("us", "c")]
    assert fields.transferred_fields({"metadata": {"managedFields": entries}}, ("nobody",), "us") == entries


NAMES = st.text("abcdef", min_size=1, max_size=3)
LEAVES = st.one_of(st.integers(), st.booleans(), NAMES)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, min_size=1, max_size=3),
        st.lists(inner, max_size=3),
        st.lists(NAMES, unique=True, max_size=3).map(lambda names: [{"name": name, "v": 1} for name in names]),
    ),
    max_leaves=12,
)
SPECS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


def config(spec: t.Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}


@given(SPECS)
def test_after_an_apply_everything_is_owned(spec: t.Any) -> None:
    stored = FakeCluster().apply(config(spec), dry_run=False)
    assert fields.unowned_paths(config(spec), stored, FIELD_MANAGER) == []


@given(SPECS, SPECS)
def test_what_was_not_applied_is_not_owned(first: t.Any, second: t.Any) -> None:
    stored = FakeCluster().apply(config(first), dry_run=False)
    for key in second:
        if key not in first:
            assert f"spec.{key}" in fields.unowned_paths(config(second), stored, FIELD_MANAGER)


def test_the_last_write_is_that_of_any_of_our_managers() -> None:
    entries = [("muster:a", "10:00"), ("muster", "11:00"), ("kubelet", "12:00")]
    live = {"metadata": {"managedFields": [{"manager": manager, "time": time} for manager, time in entries]}}
    assert fields.last_write(live) == "11:00"
    assert fields.last_write({"metadata": {}}) == ""


@pytest.mark.parametrize(
    ("owned", "elements", "lost"),
    [
        ([], [{}, {"p": "U"}], ["spec.l[0]", "spec.l[1]"]),
        ([("T", "*"), ("U", "*")], [{}, {"p": "U"}], []),
        ([("U", "*")], [{}, {"p": "U"}], ["spec.l[0]"]),
        ([("U", "*")], [{"p": "U"}, {}], ["spec.l[1]"]),
        ([("T", "*"), ("T", "x")], [{"p": "T"}, {"h": "x"}], []),
        ([("T", "x")], [{"p": "T"}, {"h": "x"}], ["spec.l[1]"]),
        ([("T", "*"), ("U", "*"), ("T", "x"), ("U", "x")], [{}, {"h": "x"}, {"p": "U"}, {"p": "U", "h": "x"}], []),
        ([("U", "*"), ("T", "x"), ("U", "x")], [{}, {"h": "x"}, {"p": "U"}, {"p": "U", "h": "x"}], ["spec.l[0]"]),
        ([("T", "*")], [{"p": None}], []),
    ],
)
def test_each_element_has_an_entry_of_its_own(owned: list[tuple[str, str]], elements: list[Manifest], lost: list[str]) -> None:
    """Keys that an element leaves out have defaults, here T and *. The live list is in the order of the desired one."""
    keys = [json.dumps({"h": host, "p": protocol}) for protocol, host in owned]
    node = {"f:spec": {"f:l": {f"k:{key}": {".": {}} for key in keys}}} if keys else {}
    entry = {"manager": US, "operation": "Apply", "fieldsV1": node}
    there = [{"p": "T", "h": "*", **{key: value for key, value in one.items() if value}} for one in elements]
    live = {"metadata": {"managedFields": [entry]}, "spec": {"l": there}}
    found = fields.unowned_paths({"metadata": {}, "spec": {"l": elements}}, live, US)
    assert found == (lost if keys else ["spec"])


@pytest.mark.parametrize(
    ("kind", "field", "theirs", "ours", "same"),
    [
        ("v1/ConfigMap", "data", {"divisor": "3.10"}, {"divisor": "3.1"}, False),
        ("v1/ConfigMap", "data", {"a": "1Gi"}, {"a": "1024Mi"}, False),
        ("apps/v1/Deployment", "spec", {"metadata": {"divisor": "1.10"}}, {"metadata": {"divisor": "1.1"}}, False),
        ("apps/v1/Deployment", "spec", {"x": {"limits": {"cpu": "1"}}}, {"x": {"limits": {"cpu": "1000m"}}}, True),
        ("v1/Secret", "data", {"a": "MQ=="}, {"a": "MQ=="}, True),
        ("x.io/v1/Foo", "spec", {"limits": {"version": "3.10"}}, {"limits": {"version": "3.1"}}, False),
        ("x.io/v1/Foo", "spec", {"on": True}, {"on": 1}, False),
        ("x.io/v1/Foo", "spec", {"l": [1, 2]}, {"l": [1]}, False),
        ("x.io/v1/Foo", "spec", {"kept": 1}, {"a": {}, "b": [], "c": None, "d": "", "e": False}, True),
        ("resource.k8s.io/v1/ResourceClaim", "spec", {"opaque": {"limits": {"v": "3.10"}}}, {"opaque": {"limits": {"v": "3.1"}}}, False),
        ("autoscaling/v2/HorizontalPodAutoscaler", "spec", {"averageValue": "1"}, {"averageValue": "1000m"}, True),
        ("v1/PersistentVolume", "spec", {"volumeAttributes": {"divisor": "1.0"}}, {"volumeAttributes": {"divisor": "1"}}, False),
    ],
)  # fmt: skip
def test_only_quantities_are_compared_by_what_they_mean(kind: str, field: str, theirs: t.Any, ours: t.Any, same: bool) -> None:
    known = {"apiVersion": kind.rpartition("/")[0], "kind": kind.rpartition("/")[2], "metadata": {}}
    assert (not list(fields.differing_paths({**known, field: theirs}, {**known, field: ours}))) is same
