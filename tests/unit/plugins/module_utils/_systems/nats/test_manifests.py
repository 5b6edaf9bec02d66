# SPDX-License-Identifier: GPL-3.0-or-later
"""NATS servers, both ways, and how they are judged."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.brief import in_brief
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.nats.manifests import (
    MAX_PENDING,
    NatsCluster,
    ServerView,
    advice,
    manifests,
    missing,
    problems,
    server_config,
    split_image,
)

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
PAYLOAD = 52428800


def nats(pod: dict[str, t.Any] | None = None, **fields: t.Any) -> NatsCluster:
    settings = PodSettings.from_params({"image": "nats:2.14.2", **(pod or {})})
    given = {"name": "persia-nats-service", "namespace": "ml", "max_payload": PAYLOAD, "pod": settings, **fields}
    return NatsCluster(**given)


def test_our_own_statefulset(golden: Golden) -> None:
    golden("nats_cluster_statefulset", manifests(nats()))


def test_the_operators_resource(golden: Golden) -> None:
    pod = {"resources": {"requests": {"cpu": 4, "memory": "32Gi"}, "limits": {"cpu": 4, "memory": "32Gi"}}}
    golden("nats_cluster_operator", manifests(nats(pod, backend="operator", replicas=60)))


# Shows row 000.19.
def test_resources_go_where_the_operator_looks() -> None:
    pod = {"resources": {"limits": {"memory": "8Gi"}}}
    (resource,) = manifests(nats(pod, backend="operator", network_policy=False))
    assert resource["spec"]["pod"]["resources"] == {"limits": {"memory": "8Gi"}}
    assert "resources" not in resource["spec"]


def test_one_server_needs_neither_budget_nor_spread() -> None:
    kinds = [o["kind"] for o in manifests(nats(replicas=1))]
    assert kinds == ["ConfigMap", "Service", "Service", "NetworkPolicy", "StatefulSet"]


def test_a_changed_payload_rolls_the_servers() -> None:
    def annotation(cluster: NatsCluster) -> dict[str, str]:
        workload = next(o for o in manifests(cluster) if o["kind"] == "StatefulSet")
        return t.cast("dict[str, str]", workload["spec"]["template"]["metadata"]["annotations"])

    assert annotation(nats()) != annotation(nats(max_payload=1))
    assert annotation(nats()) == annotation(nats(replicas=5))


@pytest.mark.parametrize(
    ("pod", "fields", "said"),
    [
        ({}, {"replicas": 0}, "replicas: 0 is too small"),
        ({}, {"replicas": -1}, "replicas: -1 is too small"),
        ({}, {"max_payload": MAX_PENDING + 1}, "max_pending"),
        ({}, {"max_payload": 0}, "max_payload"),
        ({}, {"name": "n" * 48}, "47 fit"),
        ({"priority_class_name": "x"}, {"backend": "operator"}, "no field for priority_class_name"),
        ({"image": "nats@sha256:0"}, {"backend": "operator"}, "pinned by digest"),
        ({"image": "nats:2.14.2-alpine"}, {"backend": "operator"}, "has no /nats-server"),
        ({"image": "nats"}, {"backend": "operator"}, "has no tag"),
        ({"image": "h:5000/nats:2.9.25"}, {}, "older than 2.10"),
        ({"resources": {"limits": {"memory": "8 GB"}}}, {"backend": "operator"}, "8G"),
    ],
)
def test_bad_input(pod: dict[str, t.Any], fields: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        manifests(nats(pod, **fields))


def test_the_largest_payload_is_taken() -> None:
    assert manifests(nats(max_payload=MAX_PENDING))


@pytest.mark.parametrize(("image", "parts"), [("nats:2.14.2", ("nats", "2.14.2")), ("h:5000/a/nats:1", ("h:5000/a/nats", "1"))])
def test_image_and_tag(image: str, parts: tuple[str, str]) -> None:
    assert split_image(image) == parts


def test_a_registry_port_is_no_tag() -> None:
    with pytest.raises(InvalidInput, match="no tag"):
        split_image("h:5000/nats")


def view(index: int, peers: int, payload: int = PAYLOAD) -> ServerView:
    """A server as nats-server 2.15 answers: `routes` counts connections, of which there may be several to each peer."""
    return ServerView(f"n-{index}", {"remotes": peers, "routes": 4 * peers, "max_payload": payload})


def test_all_servers_agree() -> None:
    assert problems(nats(), [view(0, 2), view(1, 2), view(2, 2)]) == []


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ([view(0, 1), view(1, 1)], "2 of 3 servers have a pod"),
        ([view(0, 1), view(1, 2), view(2, 2)], "n-0: routes to 1 of 2 other servers"),
        ([view(0, 2, 1048576), view(1, 2), view(2, 2)], "n-0: max_payload is 1048576, not 52428800"),
        ([ServerView("n-0", None, "503"), view(1, 2), view(2, 2)], "n-0: 503"),
        # The smaller cluster is only there once the servers that went are forgotten.
        ([view(0, 3), view(1, 2), view(2, 2)], "n-0: routes to 3 of 2 other servers"),
    ],
)
def test_what_is_wrong_is_said_by_server(views: list[ServerView], said: str) -> None:
    assert said in problems(nats(), views)


def test_a_single_server_has_no_routes() -> None:
    assert missing(nats(replicas=1), [view(0, 0)]) is None
    assert missing(nats(replicas=1), [ServerView("n-0", None, "Pending")]) == "n-0: Pending"


def test_the_progress_of_many_servers_is_one_line() -> None:
    views = [view(index, 59 if index < 41 else 57) for index in range(60)]
    assert in_brief(missing(nats(replicas=60), views) or "") == (
        "41 of 60 servers have all 59 routes; n-41 and 18 more: routes to 57 of 59 other servers"
    )


def test_many_servers_of_the_operator_are_advised_against() -> None:
    assert "each of their 1770 pairs" in (advice(nats(backend="operator", replicas=60)) or "")
    assert advice(nats(backend="operator", replicas=30)) is None
    assert advice(nats(replicas=60)) is None


def test_many_servers_have_few_connections_and_look_up_few_names() -> None:
    lines = [line.strip() for line in server_config(nats(replicas=60)).splitlines()]
    assert "pool_size: -1" in lines
    assert [line for line in lines if line.startswith('"nats://')] == [
        f'"nats://persia-nats-service-{index}.persia-nats-service-mgmt:6222"' for index in range(3)
    ]
