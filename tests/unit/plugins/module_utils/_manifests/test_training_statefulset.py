# SPDX-License-Identifier: GPL-3.0-or-later
"""One replica group."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings, resources
from ansible_collections.muster.ml.plugins.module_utils._manifests.training_statefulset import TrainingStatefulSet, manifests

Golden = t.Callable[..., None]


def group(pod: dict[str, t.Any] | None = None, **fields: t.Any) -> TrainingStatefulSet:
    settings = PodSettings.from_params({"image": "example/train:1", **(pod or {})})
    return TrainingStatefulSet(**{"name": "trainer", "namespace": "ml", "replicas": 2, "pod": settings, **fields})


def pod_spec(objects: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    return next(o for o in objects if o["kind"] == "StatefulSet")["spec"]["template"]["spec"]


def test_the_least_that_can_be_said(golden: Golden) -> None:
    golden("training_statefulset_minimal", manifests(group()))


def test_everything_that_can_be_said(golden: Golden) -> None:
    pod = {
        "image_pull_policy": "Always",
        "image_pull_secrets": ["registry"],
        "command": ["python3", "train.py"],
        "args": ["--rank=$(REPLICA_INDEX)"],
        "env": [
            {"name": "SEED", "value": "7"},
            {"name": "TOKEN", "value_from": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            {"name": "MASTER_PORT", "value": "23456"},
        ],
        "resources": {"requests": {"cpu": 80, "memory": "600Gi"}, "limits": {"memory": "600Gi", "nvidia.com/gpu": 8}},
        "ports": [{"name": "ddp", "container_port": 23456}, {"name": "metrics", "container_port": 9400}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "volume_mounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        "shm_size": "16Gi",
        "init_containers": [{"name": "fetch", "image": "example/fetch:1"}],
        "readiness_probe": {"tcpSocket": {"port": 23456}},
        "startup_probe": {"tcpSocket": {"port": 23456}, "failureThreshold": 60},
        "liveness_probe": {"exec": {"command": ["true"]}},
        "node_selector": {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {}},
        "topology_spread_constraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "priority_class_name": "training",
        "service_account_name": "trainer",
        "termination_grace_period_seconds": 120,
        "pod_security_context": {},
    }
    objects = manifests(
        group(
            pod,
            replicas=8,
            nproc_per_node=8,
            labels={"team": "ads"},
            pod_disruption_budget={"min_available": "90%", "max_unavailable": None},
            overrides={"spec": {"minReadySeconds": 5, "template": {"spec": {"dnsPolicy": "ClusterFirstWithHostNet"}}}},
        )
    )
    golden("training_statefulset_full", objects, manifests(group()))


def test_world_size_is_replicas_times_processes() -> None:
    env = {e["name"]: e.get("value") for e in pod_spec(manifests(group(replicas=8, nproc_per_node=8)))["containers"][0]["env"]}
    assert (env["WORLD_SIZE"], env["MASTER_ADDR"]) == ("64", "trainer-0.trainer.ml.svc")


def test_the_users_variable_wins_over_ours() -> None:
    objects = manifests(group({"env": [{"name": "WORLD_SIZE", "value": "1"}]}))
    values = [e["value"] for e in pod_spec(objects)["containers"][0]["env"] if e["name"] == "WORLD_SIZE"]
    assert values == ["1"]


@pytest.mark.parametrize(
    ("desired", "result"),
    [
        ({"limits": {"nvidia.com/gpu": 1}}, {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}),
        ({"requests": {"google.com/tpu": "4"}}, {"requests": {"google.com/tpu": "4"}, "limits": {"google.com/tpu": "4"}}),
        ({"requests": {"cpu": "500m"}}, {"requests": {"cpu": "500m"}}),
        (None, {}),
    ],
)
def test_resources(desired: dict[str, t.Any] | None, result: dict[str, t.Any]) -> None:
    assert resources(desired, "resources") == result


@pytest.mark.parametrize(
    ("desired", "said"),
    [
        ({"limits": {"memory": "12 GB"}}, r"resources\.limits\.memory: '12 GB' is not a quantity"),
        ({"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}, "limits equal to requests"),
        ({"limits": {"nvidia.com/gpu": "0.5"}}, "not a whole number"),
        ({"limits": {"cpu": "500m"}, "requests": {"cpu": 1}}, "more than its limit"),
        ({"limits": {"gpu": 1}}, "'gpu' is not a resource"),
        ({"limit": {"cpu": 1}}, "Did you mean 'limits'"),
    ],
)
def test_resources_that_cannot_be(desired: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        resources(desired, "resources")


@pytest.mark.parametrize(
    ("pod", "fields", "said"),
    [
        ({}, {"replicas": -1}, "replicas: -1 is too small"),
        ({}, {"nproc_per_node": 0}, "nproc_per_node"),
        ({}, {"name": "Trainer"}, "not a valid name"),
        ({}, {"name": "t" * 53}, "53 characters, 52 fit"),
        ({"image": "a b"}, {}, "white space"),
        ({"volume_mounts": [{"name": "data", "mountPath": "/d", "read_only": True}]}, {}, "Did you mean 'readOnly'"),
        ({"volume_mounts": [{"name": "data", "mountPath": "/d"}]}, {}, "no volume is called 'data'"),
        ({"volumes": [{"name": "d"}, {"name": "d"}]}, {}, "there twice"),
        ({"ports": [{"name": "a", "container_port": 1}, {"name": "b", "container_port": 1}]}, {}, "used twice"),
        ({"ports": [{"name": "a", "container_port": 0}]}, {}, "too small"),
        ({"env": [{"name": "A"}]}, {}, "either value or value_from"),
        ({"env": [{"name": "A B", "value": 1}]}, {}, "cannot name"),
        ({"shm_size": "1 GB"}, {}, "shm_size"),
        ({}, {"pod_disruption_budget": {"min_available": 1, "max_unavailable": 1}}, "either"),
        ({}, {"pod_disruption_budget": {"min_available": "most"}}, "neither a number"),
    ],
)
def test_bad_input_is_refused_by_name(pod: dict[str, t.Any], fields: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        manifests(group(pod, **fields))


def test_an_image_is_needed() -> None:
    with pytest.raises(InvalidInput, match="image: missing"):
        PodSettings.from_params({})


@pytest.mark.parametrize("value", [True, 3.1, 83, None, ["a"]])
@pytest.mark.parametrize("option", ["env", "args", "command"])
def test_what_yaml_did_not_read_as_text_is_refused(option: str, value: t.Any) -> None:
    if option == "env" and value is None:
        return  # without a value it needs value_from
    pod = {option: [{"name": "A", "value": value}] if option == "env" else ["a", value]}
    with pytest.raises(InvalidInput, match=r"(env A: value|\[1\]) is not text but .*quotes"):
        manifests(group(pod=pod))
