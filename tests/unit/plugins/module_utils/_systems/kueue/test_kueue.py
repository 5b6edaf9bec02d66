# SPDX-License-Identifier: GPL-3.0-or-later
"""Kueue: what differs from its released manifest, which jobs need it in order to be created, and which queues are refused."""

import json
import typing as t

import pytest
from support.released import manifest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.kueue.kueue import KueueController, manifests, queues

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
RELEASED = manifest(
    "kueue",
    {"clusterqueues.kueue.x-k8s.io": "ClusterQueue"},
    {
        "vclusterqueue.kb.io": "kueue.x-k8s.io",
        "vdeployment.kb.io": "apps",
        "vjob.kb.io": "batch",
        "vjobset.kb.io": "jobset.x-k8s.io",
        "vpod.kb.io": "",
        "vpytorchjob.kb.io": "kubeflow.org",
        "vrayjob.kb.io": "ray.io",
        "vstatefulset.kb.io": "apps",
        "vtrainjob.kb.io": "trainer.kubeflow.org",
    },
)
GIVEN: dict[str, t.Any] = {
    "manifest": "m",
    "manifest_sha256": "s",
    "namespace": "kueue-system",
    "image": "registry.k8s.io/kueue/kueue:v0.19.2",
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
}
QUOTA = {"cpu": "448", "memory": "1Ti", "google.com/tpu": 16}
QUEUES: dict[str, t.Any] = {
    "resource_flavors": [{"name": "any"}, {"name": "v5e", "node_labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}}],
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


def applied(**given: t.Any) -> list[dict[str, t.Any]]:
    return manifests(KueueController(**GIVEN, **given), RELEASED)


def hooks(objects: list[dict[str, t.Any]]) -> list[str]:
    return [hook["name"] for one in objects for hook in one.get("webhooks", ())]


def test_the_queues(golden: Golden) -> None:
    golden("kueue_queues", queues(KueueController(**GIVEN, **QUEUES)))


def test_jobs_of_kinds_that_it_does_not_queue_are_created_without_it() -> None:
    queued = ("deployment", "job", "jobset", "pod", "pytorchjob", "statefulset", "trainjob")
    assert hooks(applied()) == ["vclusterqueue.kb.io", *(f"v{kind}.kb.io" for kind in queued)]
    assert hooks(applied(integrations=["pod"])) == ["vclusterqueue.kb.io", "vpod.kb.io"]


def test_jobs_in_no_queue_are_created_without_it() -> None:
    selectors = {hook["name"]: hook.get("objectSelector") for one in applied() for hook in one.get("webhooks", ())}
    only = {"matchExpressions": [{"key": "kueue.x-k8s.io/queue-name", "operator": "Exists"}]}
    assert selectors.pop("vclusterqueue.kb.io") is None
    assert list(selectors.values()) == [only] * 7


def test_it_queues_what_its_integrations_say() -> None:
    (config,) = [one for one in applied(integrations=["pod"]) if one["kind"] == "ConfigMap"]
    assert json.loads(config["data"]["controller_manager_config.yaml"]) == {
        "integrations": {"frameworks": ["pod"]},
        "leaderElection": {"leaderElect": True},
    }


def test_an_integration_that_kueue_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="integrations: batch/cronjob is none of Kueue's"):
        applied(integrations=["batch/cronjob"])


def test_another_configuration_starts_it_again() -> None:
    def config_hash(objects: list[dict[str, t.Any]]) -> str:
        (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["muster.ml/config-hash"])

    assert config_hash(applied()) == config_hash(applied())
    assert config_hash(applied()) != config_hash(applied(integrations=["pod"]))


# Shows row 003.22.
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
                "flavors": [{"name": "any", "nominal_quota": {"cpu": 4, "memory": "8Gi"}, "lending_limit": {"nvidia.com/gpu": 1}}],
            },
            "lending_limit.nvidia.com/gpu: no flavor of the queue has a nominal_quota of it",
        ),
    ],
)
def test_a_queue_that_could_not_work_is_refused(queue: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        queues(KueueController(**GIVEN, cluster_queues=[{"name": "q", **queue}]))


def test_a_name_counts_once() -> None:
    twice = [{"name": "any"}, {"name": "any"}]
    with pytest.raises(InvalidInput, match="resource_flavors: any is there twice"):
        queues(KueueController(**GIVEN, resource_flavors=twice))
