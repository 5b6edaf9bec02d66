# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kueue: what is applied, which jobs need it in order to be created, and which queues are refused."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.kueue.kueue import KueueController, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {
    "namespace": "kueue-system",
    "image": "registry.k8s.io/kueue/kueue:v0.19.2",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
}
QUOTA = {"cpu": "448", "memory": "1Ti", "google.com/tpu": 16}
QUEUES: dict[str, t.Any] = {
    "resource_flavors": [
        {"name": "any"},
        {"name": "v5e", "node_labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}},
    ],
    "cluster_queues": [
        {
            "name": "research",
            "cohort_name": "lab",
            "flavors": [
                {"name": "v5e", "nominal_quota": QUOTA, "borrowing_limit": {"google.com/tpu": 8}},
                {"name": "any", "nominal_quota": {"cpu": "64", "memory": "256Gi"}},
            ],
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "admission_checks": ["queued"],
        }
    ],
    "local_queues": [{"name": "training", "namespace": "ml", "cluster_queue": "research"}],
    "priority_classes": [{"name": "urgent", "value": 1000}],
    "provisioning_requests": [
        {
            "name": "queued",
            "class_name": "queued-provisioning.gke.io",
            "parameters": {"maxRunDurationSeconds": 3600},
            "managed_resources": ["google.com/tpu"],
            "node_selector": {"autoscaling.gke.io/provisioning-request": "ResizeRequestName"},
        },
        {"name": "asked", "class_name": "check-capacity.autoscaling.x-k8s.io"},
    ],
}


def test_the_controller_with_its_webhooks(golden: Golden) -> None:
    golden("kueue", manifests(KueueController(**GIVEN)))


def test_the_queues(golden: Golden) -> None:
    made = manifests(KueueController(**GIVEN, **QUEUES))
    golden("kueue_queues", [one for one in made if one["apiVersion"] == "kueue.x-k8s.io/v1beta2"])


def test_jobs_in_no_queue_are_created_without_it() -> None:
    webhooks = [webhook for one in manifests(KueueController(**GIVEN)) for webhook in one.get("webhooks", ())]
    others = [hook for hook in webhooks if hook["rules"][0]["apiGroups"] != ["kueue.x-k8s.io"]]
    assert sorted({hook["rules"][0]["resources"][0] for hook in others}) == ["jobs", "jobsets"]
    only = [{"key": "kueue.x-k8s.io/queue-name", "operator": "Exists"}]
    assert [hook["objectSelector"]["matchExpressions"] for hook in others] == [only] * 4


def test_it_may_change_no_pod_and_no_secret_nor_definition_of_others() -> None:
    rules = [rule for one in manifests(KueueController(**GIVEN)) for rule in one.get("rules", ())]
    assert [rule for rule in rules if "pods" in rule["resources"]] == []
    guarded = {
        "secrets",
        "customresourcedefinitions",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    }
    writing = [r for r in rules if guarded & set(r["resources"]) and not set(r["verbs"]) <= {"list", "watch"}]
    assert len(writing) == 4
    assert [rule for rule in writing if not rule.get("resourceNames")] == []


def test_another_configuration_starts_it_again() -> None:
    objects = manifests(KueueController(**GIVEN))
    config = json.loads(next(one for one in objects if one["kind"] == "ConfigMap")["data"]["config.yaml"])
    assert config["integrations"]["frameworks"] == ["batch/job", "jobset.x-k8s.io/jobset"]
    deployment = next(one for one in objects if one["kind"] == "Deployment")
    assert deployment["spec"]["template"]["metadata"]["annotations"]["muster.ml/config-hash"]


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ({"flavors": [{"name": "any", "nominal_quota": {"cpu": 4}}]}, "q has no quota of memory"),
        ({"flavors": [{"name": "any", "nominal_quota": {"google.com/tpu": 4}}]}, "q has no quota of cpu and memory"),
        (
            {"flavors": [{"name": "any", "nominal_quota": {"cpu": 4, "memory": "8 GB"}}]},
            "any: nominal_quota.memory: '8 GB' is not a quantity",
        ),
        (
            {"flavors": [{"name": "any", "nominal_quota": {"cpu": 4, "memory": "8Gi"}, "borrowing_limit": {"cpu": 1}}]},
            "q has a borrowing_limit and no cohort_name",
        ),
        (
            {
                "cohort_name": "lab",
                "flavors": [
                    {
                        "name": "any",
                        "nominal_quota": {"cpu": 4, "memory": "8Gi"},
                        "lending_limit": {"nvidia.com/gpu": 1},
                    }
                ],
            },
            "lending_limit.nvidia.com/gpu: no flavor of the queue has a nominal_quota of it",
        ),
    ],
)
def test_a_queue_that_could_not_work_is_refused(queue: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        manifests(KueueController(**GIVEN, cluster_queues=[{"name": "q", **queue}]))


def test_a_name_counts_once() -> None:
    twice = [{"name": "any"}, {"name": "any"}]
    with pytest.raises(InvalidInput, match="resource_flavors: any is there twice"):
        manifests(KueueController(**GIVEN, resource_flavors=twice))
