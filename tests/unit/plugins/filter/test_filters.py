# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the roles that set up AWS and nats-operator."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.filter.efs_mount_targets import efs_mount_targets
from ansible_collections.muster.ml.plugins.filter.image_version import image_version
from ansible_collections.muster.ml.plugins.filter.service_account_trust import service_account_trust

CLUSTER = {"account": "123456789012", "partition": "aws-us-gov", "oidc_provider": "oidc.eks.example/id/A"}


def trusted(identity: str, **cluster: str) -> dict[str, t.Any]:
    policy = service_account_trust({**CLUSTER, **cluster}, identity, "ml", "elastic")
    (statement,) = policy.pop("Statement")
    assert policy == {"Version": "2012-10-17"}
    assert statement.pop("Effect") == "Allow"
    return t.cast("dict[str, t.Any]", statement)


def test_pod_identity_trusts_eks() -> None:
    assert trusted("pod_identity") == {
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
    }


def test_irsa_trusts_one_service_account_of_one_cluster() -> None:
    assert trusted("irsa") == {
        "Principal": {"Federated": "arn:aws-us-gov:iam::123456789012:oidc-provider/oidc.eks.example/id/A"},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {
            "StringEquals": {
                "oidc.eks.example/id/A:aud": "sts.amazonaws.com",
                "oidc.eks.example/id/A:sub": "system:serviceaccount:ml:elastic",
            }
        },
    }


def test_a_plan_for_an_empty_account_has_no_provider_yet() -> None:
    assert trusted("irsa", oidc_provider="")["Principal"]["Federated"].endswith(":oidc-provider/oidc.planned")


def test_a_zone_gets_one_mount_target() -> None:
    places = {"subnet-3": "b", "subnet-2": "a", "subnet-1": "b"}
    subnets = [{"id": name, "availability_zone": zone} for name, zone in places.items()]
    targets = efs_mount_targets(subnets, ["sg-1"])
    assert targets == [{"subnet_id": name, "security_groups": ["sg-1"]} for name in ("subnet-2", "subnet-1")]


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("natsio/nats-operator:0.8.3", "0.8.3"),
        ("natsio/nats-operator:v0.8.2-alpine", "0.8.2"),
        ("natsio/nats-operator:0.8.2@sha256:1.2.3", "0.8.2"),
        ("registry.example:5000/nats-operator", "9.9.9"),
        ("natsio/nats-operator@sha256:0123", "9.9.9"),
        ("natsio/nats-operator:latest", "9.9.9"),
    ],
)
def test_the_version_of_an_image(image: str, version: str) -> None:
    assert image_version(image, "9.9.9") == version
