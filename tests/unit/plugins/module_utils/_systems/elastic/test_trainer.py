# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeflow Trainer's controller is installed as its kustomization has it."""

import dataclasses
import typing as t

import pytest
from support.released import manifest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.trainer import Trainer, manifests

RELEASED = manifest("kubeflow-trainer", {"trainjobs.trainer.kubeflow.org": "TrainJob"})
CONTROLLER = Trainer(manifest="m", manifest_sha256="s", namespace="kubeflow-system", image="muster.local/trainer:2.3.0")


def args(**more: t.Any) -> list[str]:
    (deployment,) = [one for one in manifests(dataclasses.replace(CONTROLLER, **more), RELEASED) if one["kind"] == "Deployment"]
    assert deployment["metadata"]["annotations"] == {"muster.ml/serves": "instances:trainjobs.trainer.kubeflow.org"}
    return list(deployment["spec"]["template"]["spec"]["containers"][0].get("args", []))


def test_pods_may_report_their_progress_where_that_is_wanted() -> None:
    assert args(progress=True) == [*args(), "--feature-gates=TrainJobStatus=true"]


def test_the_secret_that_the_controller_fills_is_applied_without_data() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert", "namespace": "kubeflow-trainer-system"}, "data": {}}
    (made,) = [one for one in manifests(CONTROLLER, [*RELEASED, secret]) if one["kind"] == "Secret"]
    assert "data" not in made


def test_a_missing_manifest_is_told_with_the_way_to_one() -> None:
    with pytest.raises(InvalidInput, match="the project releases no manifest of Trainer 2") as caught:
        dataclasses.replace(CONTROLLER, manifest="")
    assert "kustomize" in str(caught.value.hint)
