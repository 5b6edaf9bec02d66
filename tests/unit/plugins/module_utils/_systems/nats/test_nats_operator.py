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
