# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a store, as YAML in a golden file, and names of buckets."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store.manifests import ObjectStore, check_buckets, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
POD = PodSettings(image="ghcr.io/versity/versitygw:v1.8.0", resources={"limits": {"memory": "1Gi"}})


def test_a_store(golden: Golden) -> None:
    golden("object_store", manifests(ObjectStore(name="store", namespace="ml", pod=POD, storage_class_name="fast")))


def test_without_a_policy_there_is_none() -> None:
    made = manifests(ObjectStore(name="store", namespace="ml", pod=POD, network_policy=False))
    assert [item["kind"] for item in made] == ["Service", "StatefulSet"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ab", "is not a name"),
        ("a" * 64, "is not a name"),
        ("Upper", "is not a name"),
        ("under_score", "is not a name"),
        ("-first", "is not a name"),
        ("last-", "is not a name"),
        ("line\n", "is not a name"),
        ("two..dots", "two dots"),
        ("192.168.5.4", "is an IP address"),
        ("xn--a", "AWS keeps"),
        ("a--x-s3", "AWS keeps"),
    ],
)
def test_names_that_no_store_takes_are_refused(name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        check_buckets(["good", name])


def test_names_of_buckets_count_once() -> None:
    assert check_buckets(["abc", "a.b-3", "9" * 63, "abc"]) == ["abc", "a.b-3", "9" * 63]
