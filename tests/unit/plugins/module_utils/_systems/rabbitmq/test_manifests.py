# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a broker, as YAML in the golden files."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.manifests import (
    RabbitmqCluster,
    information_units,
    manifests,
    read_live,
)

Golden = t.Callable[..., None]
POD = PodSettings(image="docker.io/library/rabbitmq:4.2.9", resources={"limits": {"memory": "2Gi"}})


def test_one_node_without_tls_and_three_with_it(golden: Golden) -> None:
    plain = manifests(RabbitmqCluster(name="rabbitmq", namespace="ml", pod=POD, tls=False))
    golden("rabbitmq_cluster_one", plain)
    broker = RabbitmqCluster(
        name="rabbitmq",
        namespace="ml",
        pod=POD,
        replicas=3,
        admin_secret="mine",
        storage_class_name="fast",
        network_policy_from=[{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
    )
    golden("rabbitmq_cluster_three", manifests(broker), plain)


@pytest.mark.parametrize("tls", [True, False])
def test_what_a_connection_needs_is_read_from_the_live_object(tls: bool) -> None:
    broker = RabbitmqCluster(name="b", namespace="ml", pod=POD, tls=tls, replicas=3, admin_secret="mine")
    (live,) = (item for item in manifests(broker) if item["kind"] == "StatefulSet")
    found = read_live(live)
    assert (found.host, found.tls, found.replicas, found.admin) == ("b.ml.svc", tls, 3, "mine")


def test_units_are_those_of_rabbitmq() -> None:
    amounts = {"50000000": 50_000_000, "2GB": 2 * 10**9, "2GiB": 2 * 2**30, "2G": 2 * 2**30, "512MB": 512 * 10**6}
    assert {text: int(information_units(text, "x")) for text in amounts} == amounts
