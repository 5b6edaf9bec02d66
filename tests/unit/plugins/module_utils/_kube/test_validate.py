# SPDX-License-Identifier: GPL-3.0-or-later
"""Every problem of every object is told at once."""

import re
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.validate import check_deletion, check_objects, check_owner


def config(**changes: t.Any) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ml"}, "data": {"x": "1"}, **changes}


def pod(**container: t.Any) -> dict[str, t.Any]:
    spec = {"containers": [{"name": "c", "image": "x", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("text", "not a mapping but str"),
        (config(apiVersion="v1beta"), "apiVersion is 'v1beta'"),
        (config(apiVersion=None), "apiVersion is missing"),
        (config(kind=""), "kind is missing"),
        (config(metadata=None), "metadata is missing"),
        (config(metadata={}), "metadata.name is missing"),
        (config(metadata={"generateName": "a-"}), "generateName creates a new object in every run"),
        (config(metadata={"name": "A_b"}), "'A_b' is not a DNS name"),
        (config(metadata={"name": "a" * 254}), "at most 253"),
        (config(kind="Namespace", metadata={"name": "a.b"}), "is not a DNS label"),
        (config(metadata={"name": "a", "namespace": "A"}), "metadata.namespace 'A'"),
        (config(metadata={"name": "a", "labels": {"x": 1}}), "metadata.labels.x is not a string but int"),
        (config(metadata={"name": "a", "labels": {"x": "a b"}}), "'a b' is not a label value"),
        (config(metadata={"name": "a", "labels": ["x"]}), "metadata.labels is not a mapping"),
        (config(metadata={"name": "a", "annotations": {"x": True}}), "metadata.annotations.x is not a string but bool"),
        (config(data={"x": 1.5}), "data.x is not a string but float"),
        (pod(resources={"limits": {"memory": "12 GB"}}), "limits.memory: '12 GB' is not a quantity"),
        (pod(env=[{"name": "A", "value": 1}]), "containers[c].env[A].value is not a string but int"),
        (config(apiVersion="rbac.authorization.k8s.io/v1", kind="Role", metadata={"name": "a/b"}), "must not contain '/'"),
        (config(apiVersion="x.io/v1", kind="Foo", metadata={"name": "a%b"}), "must not contain '/' or '%'"),
        (config(metadata={"name": 5}), "metadata.name is not a string but int; put it in quotes"),
        (config(metadata={"name": "a", "namespace": 0}), "metadata.namespace 0"),
        (config(kind="Secret", stringData={"password": None}), "stringData.password is null; give it a value"),
        (config(kind="Secret", data={"password": None}), "data.password is null; give it a value"),
        (config(data={None: "x"}), "data has the key null"),
        (config(data={8080: "x", "8080": "y"}), "data has the key 8080 beside the same as text"),
        (pod(env=[{"name": "A", "value": "1", 5: "x"}]), "spec.containers[0].env[0] has the key 5"),
        (config(apiVersion="x.io/v1", kind="Foo", spec={"a": [float("nan")]}), "spec.a[0] is nan, which JSON has no number for"),
        (config(apiVersion="apps"), "apiVersion is 'apps'"),
    ],
)  # fmt: skip
def test_a_problem_is_named(manifest: t.Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        check_objects([manifest])


@pytest.mark.parametrize(
    "manifest",
    [
        config(),
        config(data=None),
        config(metadata={"name": "a.b-c", "labels": {"x": ""}, "annotations": {"any": "thing at all / 1"}}),
        config(apiVersion="rbac.authorization.k8s.io/v1", kind="ClusterRole", metadata={"name": "system:node:X"}),
        config(apiVersion="x.io/v1alpha1", kind="Foo", spec={"limits": {"any": "thing"}, "hard": {"x": {"y": 1}}}),
        config(apiVersion="x.io/v1", kind="Foo", spec={"limits": {"version": "1.10.3"}}),
        config(apiVersion="apiextensions.k8s.io/v1", kind="CustomResourceDefinition", spec={"capacity": {"description": "1 to 5"}}),
        config(data={"sizeLimit": "1 big one"}),
        config(metadata={"name": "a", "namespace": None}),
        config(metadata={"name": "a", "namespace": ""}),
        config(apiVersion="x.io/stable", kind="Foo"),
        config(apiVersion="user.openshift.io/v1", kind="Identity", metadata={"name": "htpasswd:Alice"}),
        config(apiVersion="certificates.k8s.io/v1beta1", kind="ClusterTrustBundle", metadata={"name": "x.io:signer:a"}),
        config(apiVersion="networking.k8s.io/v1", kind="IPAddress", metadata={"name": "2001:db8::1"}),
        pod(resources={"limits": {"cpu": 1, "memory": "12Gi", "nvidia.com/gpu": "1"}}, env=[{"name": "A", "value": "1"}]),
    ],
)
def test_what_is_well_has_no_problem(manifest: t.Any) -> None:
    check_objects([manifest])


def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_objects([config(), config(), pod(resources={"limits": {"cpu": "1 core"}}), {"kind": "Pod"}, None])
    message = str(caught.value)
    assert "ConfigMap ml/a: occurs 2 times" in message
    assert "'1 core' is not a quantity" in message
    assert "Pod (object 4): apiVersion is missing" in message
    assert "object 5: is not a mapping" in message
    assert message.endswith("Nothing was changed.")
    assert len(caught.value.details["problems"]) == 5


def test_the_same_object_in_two_versions_is_a_duplicate() -> None:
    twice = [config(apiVersion="apps/v1", kind="X"), config(apiVersion="apps/v1beta1", kind="X")]
    with pytest.raises(InvalidInput, match="2 times"):
        check_objects(twice)


def test_to_delete_only_the_name_matters() -> None:
    check_deletion([config(data={"x": 1})])
    with pytest.raises(InvalidInput, match="objects to delete"):
        check_deletion([{"kind": "Pod", "metadata": {}}])


@pytest.mark.parametrize("owner", ["", "a b", "x" * 64, "-a"])
def test_an_owner_must_be_a_label_value(owner: str) -> None:
    with pytest.raises(InvalidInput, match="owner"):
        check_owner(owner)
