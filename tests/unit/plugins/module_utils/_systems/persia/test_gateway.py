# SPDX-License-Identifier: GPL-3.0-or-later
"""A push gateway that exists already, and what a training pushed."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, NotFound
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import gateway
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def cluster(ready: bool | None = True, **spec: t.Any) -> FakeCluster:
    found = FakeCluster()
    found.add(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "push", "namespace": "monitoring"},
            "spec": {"clusterIP": "10.1.1.1", "ports": [{"port": 9091}], **spec},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "push-1", "namespace": "monitoring", "labels": {"kubernetes.io/service-name": "push"}},
            "endpoints": [] if ready is None else [{"conditions": {"ready": ready}}],
        },
    )
    return found


@pytest.mark.parametrize(
    ("address", "spec"),
    [
        (None, {}),
        ("push.monitoring:9091", {}),
        ("push.monitoring.svc:9091", {}),
        ("push.monitoring.svc.cluster.local:9091", {}),
        ("push.monitoring:1234", {"clusterIP": "None"}),
        ("push.monitoring:9091", {"type": "ExternalName", "ports": None}),
        # Outside of the cluster, where only pods can tell.
        ("push.example.com:9091", {}),
        ("10.2.3.4:9091", {}),
        ("example.com:9091", {}),
        ("other.monitoring.example:9091", {}),
    ],
)
def test_what_may_answer_is_used(address: str | None, spec: dict[str, t.Any]) -> None:
    gateway.require(address, "ml", cluster(**spec))


@pytest.mark.parametrize(
    ("address", "ready", "why"),
    [
        ("push:9091", True, "Service ml/push does not exist"),
        ("other.monitoring:9091", True, "Service monitoring/other does not exist"),
        ("push.elsewhere.svc:9091", True, "Service elsewhere/push does not exist"),
        ("push.monitoring:80", True, "Service monitoring/push has no port 80, but 9091"),
        ("push.monitoring:9091", False, "Service monitoring/push has no pod that is ready"),
        ("push.monitoring:9091", None, "Service monitoring/push has no pod that is ready"),
    ],
)
def test_a_gateway_that_cannot_answer_is_refused(address: str, ready: bool | None, why: str) -> None:
    with pytest.raises(NotFound) as raised:
        gateway.require(address, "ml", cluster(ready))
    assert raised.value.message == f"metrics.address: '{address}': {why}."


def test_what_may_not_be_read_is_not_judged() -> None:
    found = cluster(None)
    found.fail("get", "push", Forbidden("no"))
    gateway.require("push.monitoring:9091", "ml", found)


def test_the_last_trainer_counts() -> None:
    assert gateway.logged(["nothing"]) == {}
    assert gateway.logged(['MUSTER metrics {"error": "x"}\n', 'a\nMUSTER metrics {"processes": 4}\n']) == {"metrics": {"processes": 4}}
