# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the roles that set up AWS and nats-operator."""

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.filter.efs_mount_targets import efs_mount_targets
from ansible_collections.muster.ml.plugins.filter.image_version import image_version
from ansible_collections.muster.ml.plugins.filter.service_account_trust import service_account_trust
from ansible_collections.muster.ml.plugins.filter.triton_rules import triton_rules
from ansible_collections.muster.ml.plugins.filter.vpc_subnets import vpc_subnets

CLUSTER = {"account": "123456789012", "partition": "aws-us-gov", "oidc_provider": "oidc.eks.example/id/A"}


def trusted(identity: str, **cluster: str) -> dict[str, t.Any]:
    policy = service_account_trust({**CLUSTER, **cluster}, identity, "ml", "elastic")
    (statement,) = policy.pop("Statement")
    assert policy == {"Version": "2012-10-17"}
    assert statement.pop("Effect") == "Allow"
    return t.cast("dict[str, t.Any]", statement)


def test_pod_identity_trusts_eks() -> None:
    assert trusted("pod_identity") == {"Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}


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


def test_a_zone_keeps_its_ranges_and_takes_none_of_another_zone() -> None:
    """us-east-1a was given up: its ranges stay with it, as a subnet cannot move."""
    live = [
        {"availability_zone": "1a", "cidr_block": "10.40.0.0/20"},
        {"availability_zone": "1b", "cidr_block": "10.40.16.0/20"},
        {"availability_zone": "1a", "cidr_block": "10.40.128.0/23"},
        {"availability_zone": "1z", "cidr_block": "10.99.0.0/20"},
    ]
    rows = vpc_subnets("10.40.0.0/16", ["1b", "1c"], live)
    assert [(row["zone"], row["cidr"]) for row in rows] == [
        ("1b", "10.40.130.0/23"),
        ("1c", "10.40.132.0/23"),
        ("1b", "10.40.16.0/20"),
        ("1c", "10.40.32.0/20"),
    ]
    assert vpc_subnets("10.40.0.0/16", ["1a", "1b"]) == vpc_subnets("10.40.0.0/16", ["1a", "1b"], live)


def test_a_range_that_two_zones_share_belongs_to_neither() -> None:
    live = [{"availability_zone": "1a", "cidr_block": "10.40.0.0/20"}, {"availability_zone": "1b", "cidr_block": "10.40.128.0/23"}]
    rows = vpc_subnets("10.40.0.0/16", ["1a", "1b"], live)
    assert [row["cidr"] for row in rows if not row["public"]] == ["10.40.16.0/20", "10.40.32.0/20"]


def test_no_place_for_one_more_zone_is_told() -> None:
    live = [{"availability_zone": f"old-{n}", "cidr_block": f"10.40.{16 * n}.0/20"} for n in range(7)]
    with pytest.raises(AnsibleFilterError, match="no place left for subnets in 1a, 1b: other zones have 7 of 8"):
        vpc_subnets("10.40.0.0/16", ["1a", "1b"], live)


def test_irsa_may_trust_several_service_accounts_of_a_driver() -> None:
    policy = service_account_trust(CLUSTER, "irsa", "kube-system", ["efs-csi-node-sa", "efs-csi-controller-sa"])
    assert policy["Statement"][0]["Condition"]["StringEquals"]["oidc.eks.example/id/A:sub"] == [
        "system:serviceaccount:kube-system:efs-csi-controller-sa",
        "system:serviceaccount:kube-system:efs-csi-node-sa",
    ]


def test_alerts_of_a_server_are_rules_of_prometheus() -> None:
    (group,) = triton_rules({"queue_time_ms": 20}, "ml")
    assert group["name"] == "muster-triton"
    assert 'namespace="ml",job="triton"' in group["rules"][0]["expr"]
    assert group["rules"][0]["expr"].endswith("> 20")
    for wrong in ({"queue_time_ms": 0}, {"queue_time": 20}):
        with pytest.raises(AnsibleFilterError, match="queue_time"):
            triton_rules(wrong, "ml")
