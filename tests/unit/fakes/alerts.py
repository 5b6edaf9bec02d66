# SPDX-License-Identifier: GPL-3.0-or-later

"""The alerts of one system of each shape, in the namespace ml."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import (
    Alerts,
    RequestAlerts,
    TrainingAlerts,
    servers_alerts,
    training_alerts,
)
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.metrics import alerts_of as of_vllm
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.manifests import RabbitmqCluster, manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import alerts_of as of_triton

Rules = list[dict[str, t.Any]]
VERSIONS = {
    "Job": "batch/v1",
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "PyTorchJob": "kubeflow.org/v1",
}


def workload(kind: str, name: str, **spec: t.Any) -> dict[str, t.Any]:
    return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": spec}


def training(*objects: dict[str, t.Any]) -> Rules:
    return training_alerts(TrainingAlerts(), "ml", "mnist", objects)


def every() -> dict[str, Rules]:
    broker = RabbitmqCluster(name="rabbitmq", namespace="ml", pod=PodSettings(image="docker.io/library/rabbitmq:4.2.9"), alerts=Alerts())
    mounted = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "training"}}]}
    queued = {"metadata": {"name": "mnist", "labels": {"kueue.x-k8s.io/queue-name": "training"}}}
    waiting = {**workload("Job", "mnist"), **queued}
    return {
        "elastic": training({**waiting, "spec": {"template": {"spec": mounted}}}),
        "pytorchjob": training({**workload("PyTorchJob", "mnist"), **queued}),
        "pytorchjob that goes": training({**workload("PyTorchJob", "mnist", runPolicy={"ttlSecondsAfterFinished": 60}), **queued}),
        "jobset": training(workload("JobSet", "mnist")),
        "persia": training(workload("StatefulSet", "mnist-embedding-worker"), workload("Job", "mnist-nn-worker")),
        "rabbitmq": [*servers_alerts(Alerts(), "ml", manifests(broker)), *broker.alerts_of_metrics],
        "vllm": [*servers_alerts(Alerts(), "ml", [workload("Deployment", "llm")]), *of_vllm("llm", "ml", RequestAlerts())],
        "triton": of_triton("triton", "ml", RequestAlerts()),
    }
