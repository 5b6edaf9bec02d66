# SPDX-License-Identifier: GPL-3.0-or-later
"""object_info: an object, or all of a kind, without their secret values."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.modules import object_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"kind": "ConfigMap", "name": "a"}, ["a"]),
        ({"kind": "ConfigMap", "name": "a", "namespace": "other"}, []),
        ({"kind": "ConfigMap"}, ["a", "b"]),
        ({"kind": "ConfigMap", "namespace": "other"}, ["b"]),
        ({"kind": "Namespace", "name": "other"}, ["other"]),
        ({"kind": "Robot", "api_version": "robots.example.com/v1"}, []),
        ({"kind": "Robot", "api_version": "robots.example.com/v1", "name": "a"}, []),
    ],
)
def test_what_is_there_is_read(cluster: FakeCluster, params: dict[str, t.Any], names: list[str]) -> None:
    cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "other"}})
    found = tasks.run(object_info, cluster, params, check=True)
    assert [one["metadata"]["name"] for one in found["resources"]] == names
    assert not found["changed"]
    assert not cluster.writes


@pytest.mark.parametrize("name", ["login", None])
def test_no_secret_value_is_shown(cluster: FakeCluster, name: str | None) -> None:
    cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "default"}, "data": {"key": "Y2FuYXJ5"}})
    found = tasks.run(object_info, cluster, {"kind": "Secret", "name": name})
    assert found["resources"][0]["data"].keys() == {"key"}
    assert "Y2FuYXJ5" not in str(found)
    assert "canary" not in str(found)
