# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities are equal when their numbers are, however they are written."""

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core import quantity
from ansible_collections.muster.ml.plugins.module_utils._kube import quantities

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@pytest.mark.parametrize(
    ("left", "right"),
    [("1000m", "1"), ("1", 1), ("0.5Gi", "512Mi"), ("1e3", "1k"), ("1.0", "1"), ("1024Ki", "1Mi"), (".5", "500m"), ("1E", "1e18")],
)
def test_the_same_amount_has_one_text(left: object, right: object) -> None:
    assert quantity.canonical(left) == quantity.canonical(right)


@pytest.mark.parametrize("wrong", ["12 GB", "12GB", "1,5", "", "Gi", "1 Gi", "--1", True, "0x10", "12gi"])
def test_what_is_no_quantity_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(wrong)  # type: ignore[arg-type]


@given(st.integers(-(10**12), 10**12), st.sampled_from(SUFFIXES))
def test_canonical_keeps_the_amount_and_is_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert quantity.parse(quantity.canonical(text)) == quantity.parse(text)
    assert quantity.canonical(quantity.canonical(text)) == quantity.canonical(text)


@given(st.integers(1, 10**6))
def test_a_thousand_milli_is_one(number: int) -> None:
    assert quantity.parse(f"{number * 1000}m") == decimal.Decimal(number)


def test_quantities_are_found_where_the_api_has_them() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "containers": [{"resources": {"limits": {"cpu": "1"}, "requests": {"memory": "2Gi"}}}],
            "volumes": [{"emptyDir": {"sizeLimit": "3Gi"}}],
            "replicas": "4",
        },
    }
    assert dict(quantities.quantities(manifest)) == {
        "spec.containers[0].resources.limits.cpu": "1",
        "spec.containers[0].resources.requests.memory": "2Gi",
        "spec.volumes[0].emptyDir.sizeLimit": "3Gi",
    }


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "x.io/v1", "kind": "Foo", "spec": {"limits": {"version": "1.10"}}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "spec": {"limits": {"version": "1.10"}}},
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": {"versions": [{"schema": {"default": {"limits": {"version": "1.10"}}}}]},
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"sizeLimit": "1.10", "limits": "1.10"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {"sizeLimit": "1.10"}}},
    ],
)
def test_what_only_has_the_name_of_a_quantity_is_left_as_it_is(manifest: dict[str, object]) -> None:
    assert quantities.with_canonical_quantities(manifest) == manifest
    assert list(quantities.quantities(manifest)) == []
