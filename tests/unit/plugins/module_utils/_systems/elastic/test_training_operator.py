# SPDX-License-Identifier: GPL-3.0-or-later
"""training-operator: what is applied, and what its account may do."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.training_operator import TrainingOperator, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {
    "namespace": "training-operator",
    "image": "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489",
    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
}


def test_the_operator_with_its_webhook(golden: Golden) -> None:
    golden("training_operator", manifests(TrainingOperator(**GIVEN)))


def test_its_permissions_end_at_its_namespace(golden: Golden) -> None:
    made = manifests(TrainingOperator(**GIVEN, namespaces=["ml"]))
    golden("training_operator_namespace", [one for one in made if one["kind"] == "ServiceAccount" or "Role" in one["kind"]])
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    assert "--namespace=ml" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    own = manifests(TrainingOperator(**GIVEN, namespaces=["training-operator"]))
    assert len([one for one in own if one["kind"] == "Role"]) == 1
    with pytest.raises(InvalidInput, match="one namespace or of all, not of a, b"):
        manifests(TrainingOperator(**GIVEN, namespaces=["a", "b"]))


def test_autoscalers_need_a_word_of_their_own() -> None:
    def groups(**more: t.Any) -> set[str]:
        objects = manifests(TrainingOperator(**GIVEN, **more))
        return {group for one in objects if one["kind"] == "ClusterRole" for rule in one["rules"] for group in rule["apiGroups"]}

    assert groups(autoscaling=True) - groups() == {"autoscaling"}
