# SPDX-License-Identifier: GPL-3.0-or-later
"""What is applied of a released manifest: all of it, and only what the options say differs."""

import copy
import typing as t

import pytest
from support.released import manifest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.operators import ReleasedOperator, definitions, overlaid

RELEASED = manifest("robot", {"arms.robot.example.com": "Arm", "legs.robot.example.com": "Leg"}, {"varm.example.com": "robot.example.com"})
DEPLOYMENT = "robot-controller-manager"
GIVEN: dict[str, t.Any] = {"manifest": "m", "manifest_sha256": "s", "namespace": "robot-system", "image": "mirror/robot:v1"}


def applied(**given: t.Any) -> list[dict[str, t.Any]]:
    return overlaid(RELEASED, ReleasedOperator(**{**GIVEN, **given}), DEPLOYMENT)


def of_kind(objects: list[dict[str, t.Any]], kind: str) -> dict[str, t.Any]:
    return next(one for one in objects if one["kind"] == kind)


def test_all_but_the_namespace_and_the_deployment_is_as_released() -> None:
    before = copy.deepcopy(RELEASED)
    left_out = ("Namespace", "Deployment")
    same = [one for one in applied() if one["kind"] != "Deployment"]
    assert same == [one for one in RELEASED if one["kind"] not in left_out]
    assert before == RELEASED


def test_the_deployment_differs_in_what_the_options_say() -> None:
    desired = copy.deepcopy(of_kind(RELEASED, "Deployment"))
    desired["metadata"]["annotations"] = {"muster.ml/serves": "instances:arms.robot.example.com instances:legs.robot.example.com"}
    pod = desired["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"pool": "system"}
    pod["containers"][0] |= {"image": "mirror/robot:v1", "imagePullPolicy": "IfNotPresent", "resources": {"limits": {"memory": "1Gi"}}}
    overrides = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "system"}}}}}
    assert of_kind(applied(resources={"limits": {"memory": "1Gi"}}, overrides=overrides), "Deployment") == desired


def test_another_namespace_is_named_wherever_the_released_one_was() -> None:
    moved = applied(namespace="machines")
    assert "robot-system" not in str(moved)
    assert of_kind(moved, "RoleBinding")["metadata"]["namespace"] == "kube-system"
    assert of_kind(moved, "RoleBinding")["subjects"][0]["namespace"] == "machines"
    hook = of_kind(moved, "ValidatingWebhookConfiguration")["webhooks"][0]
    assert hook["clientConfig"]["service"]["namespace"] == "machines"
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "machines"]
    conversion = definitions(moved)[0]["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"]["service"]["namespace"] == "machines"


def test_the_manifest_of_another_project_is_refused() -> None:
    with pytest.raises(InvalidInput, match="m has no Deployment walker"):
        overlaid(RELEASED, ReleasedOperator(**GIVEN), "walker")


def test_what_identifies_the_deployment_cannot_be_overridden() -> None:
    with pytest.raises(InvalidInput, match="cannot be overridden"):
        applied(overrides={"metadata": {"name": "other"}})
