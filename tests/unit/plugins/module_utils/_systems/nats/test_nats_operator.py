# SPDX-License-Identifier: GPL-3.0-or-later
"""nats-operator: what is applied, and what its account may do."""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._systems.nats.nats_operator import NatsOperator, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {
    "namespace": "ml",
    "image": "natsio/nats-operator:0.8.3",
    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
}


def rules(objects: list[dict[str, t.Any]], kind: str) -> list[dict[str, t.Any]]:
    return [rule for found in objects if found["kind"] == kind for rule in found["rules"]]


def test_an_operator_of_one_namespace(golden: Golden) -> None:
    golden("nats_operator_namespace", manifests(NatsOperator(**GIVEN)))


def test_an_operator_of_all_namespaces_with_everything_set(golden: Golden) -> None:
    operator = NatsOperator(
        **{**GIVEN, "namespace": "nats-io"},
        scope="cluster",
        replicas=2,
        service_accounts=True,
        image_pull_secrets=["registry"],
        node_selector={"pool": "system"},
        tolerations=[{"operator": "Exists"}],
    )
    golden("nats_operator_cluster", manifests(operator))


def test_secrets_are_read_in_one_namespace_only() -> None:
    objects = manifests(NatsOperator(**GIVEN))
    assert [rule for rule in rules(objects, "ClusterRole") if "secrets" in rule["resources"]] == []
    assert [rule for rule in rules(objects, "Role") if "secrets" in rule["resources"]]


def test_tokens_need_a_word_of_their_own() -> None:
    def mints(**more: t.Any) -> bool:
        objects = manifests(NatsOperator(**GIVEN, **more))
        found = [*rules(objects, "Role"), *rules(objects, "ClusterRole")]
        return any("serviceaccounts/token" in rule["resources"] for rule in found)

    assert not mints()
    assert mints(service_accounts=True)
