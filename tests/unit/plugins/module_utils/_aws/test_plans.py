# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for AWS: values in, requests out. Nothing here knows an AWS library."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import CAUSES, Api, too_early
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_addon import EksAddon, as_value, check_version, successor
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import EksCluster
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_nodegroup import EksNodegroup, release_parameter
from ansible_collections.muster.ml.plugins.module_utils._aws.launch_template import LaunchTemplate, without_empty
from ansible_collections.muster.ml.plugins.module_utils._aws.plan import Step, changed_tags
from ansible_collections.muster.ml.plugins.module_utils._cloud.errors import CallRefused
from ansible_collections.muster.ml.plugins.module_utils._cloud.plan import Body, Comparison
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

CLUSTER: Body = {
    "name": "c",
    "arn": "arn:c",
    "status": "ACTIVE",
    "version": "1.34",
    "roleArn": "role",
    "resourcesVpcConfig": {
        "subnetIds": ["a", "b"],
        "securityGroupIds": [],
        "endpointPublicAccess": True,
        "endpointPrivateAccess": False,
        "publicAccessCidrs": ["0.0.0.0/0"],
    },
    "accessConfig": {"authenticationMode": "CONFIG_MAP"},
}


class Ended:
    """An EKS whose updates have failed."""

    def __init__(self, error: Body) -> None:
        self.error = error

    def describe_update(self, **_request: t.Any) -> Body:
        return {"update": {"status": "Failed", "errors": [self.error]}}


def steps(plan: t.Any) -> list[tuple[str, Body]]:
    named = ("name", "clusterName", "nodegroupName")
    return [(s.operation, {k: v for k, v in s.request.items() if k not in named}) for s in plan.steps]


def test_what_a_launch_template_had_and_is_not_to_have_is_a_difference() -> None:
    """EC2 adds defaults, which are none; a key of the disk is no default."""
    data = without_empty(LaunchTemplate("t", disk_kms_key_id="key").data)
    data["MetadataOptions"]["HttpProtocolIpv6"] = "disabled"
    live = {"LaunchTemplateId": "lt-1", "LaunchTemplateData": data}
    assert not LaunchTemplate("t", disk_kms_key_id="key").plan(live).changed
    (step,) = LaunchTemplate("t").plan(live).steps
    assert step.request["LaunchTemplateData"] == without_empty(LaunchTemplate("t").data)


def test_authentication_moves_on_step_by_step() -> None:
    plan = EksCluster("c", authentication_mode="API").plan(CLUSTER)
    modes = [step.request["accessConfig"]["authenticationMode"] for step in plan.steps]
    assert modes == ["API_AND_CONFIG_MAP", "API"]


def test_addresses_do_not_matter_without_public_access() -> None:
    closed = {**CLUSTER["resourcesVpcConfig"], "endpointPublicAccess": False, "publicAccessCidrs": []}
    plan = EksCluster("c", public_access_cidrs=["203.0.113.0/24"]).plan({**CLUSTER, "resourcesVpcConfig": closed})
    assert not plan.changed


def test_what_is_needed_to_make_one_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"does not exist\. To create it, role_arn and subnet_ids are needed"):
        EksCluster("c").plan(None)
    with pytest.raises(InvalidInput, match="node_role and subnets are needed"):
        EksNodegroup("c", "gpu").plan(None)


def test_a_node_group_cannot_miss_more_nodes_than_it_has() -> None:
    sizes = {"minSize": 1, "maxSize": 2}
    EksNodegroup("c", "g", node_role="r", subnets=["a"], scaling_config=sizes, update_config={"maxUnavailable": 2}).plan(None)
    with pytest.raises(InvalidInput, match=r"max_unavailable is 3, and scaling_config\.max_size 2"):
        EksNodegroup("c", "g", node_role="r", subnets=["a"], scaling_config=sizes, update_config={"maxUnavailable": 3}).plan(None)


def test_nodes_that_cannot_be_replaced_are_told_with_the_next_step() -> None:
    """The sentence of EKS does not name the pods (aws/containers-roadmap#1282)."""
    error = {"errorCode": "PodEvictionFailure", "errorMessage": "Reached max retries while trying to evict pods from nodes in node group g"}
    step = Step("update_nodegroup_version", {}, "image", wait="update")
    with pytest.raises(
        Failed, match=r"PodEvictionFailure: Reached max retries .* `kubectl get poddisruptionbudgets --all-namespaces` shows"
    ):
        EksNodegroup("c", "g").under_way(Api(lambda _service: Ended(error), FakeClock()), step, {"update": {"id": "1"}})


def test_tags() -> None:
    compare = Comparison()
    change = changed_tags(compare, {"aws:x": "1", "a": "1", "b": "2"}, {"a": "1", "c": "3"}, purge=True)
    assert (change, compare.after["tags"]) == (({"c": "3"}, ["b"]), {"a": "1", "c": "3"})
    for current, desired, purge in (({"a": "1", "b": "2"}, {"a": "1"}, False), ({"a": "1"}, None, True)):
        compare = Comparison()
        assert (changed_tags(compare, current, desired, purge=purge), compare.after) == (({}, []), {})


def test_an_addon_has_one_way_to_its_role() -> None:
    identities = [{"serviceAccount": "controller", "roleArn": "role"}]
    live: Body = {"addonArn": "arn:a", "status": "ACTIVE", "addonVersion": "v1", "_identities": identities}
    desired = EksAddon("c", "a", service_account_role_arn="role")
    request = {"addonName": "a", "podIdentityAssociations": [], "serviceAccountRoleArn": "role"}
    assert steps(desired.plan(live)) == [("update_addon", request)]
    assert steps(desired.plan({**live, "serviceAccountRoleArn": "role", "_identities": []})) == []
    assert steps(EksAddon("c", "a").plan(live)) == []


def test_addon_values_and_versions() -> None:
    assert as_value('{"b": {"c": 1}}') == {"b": {"c": 1}}
    assert as_value("b:\n  c: 1") == {"b": {"c": 1}}
    assert as_value("b: [") == {"text": "b: ["}
    offered = [{"addonVersions": [{"addonVersion": "v2"}, {"addonVersion": "v1"}]}]
    check_version("x", offered, "v1", "1.34")
    with pytest.raises(InvalidInput, match="There are v2, v1"):
        check_version("x", offered, "v3", "1.34")


@pytest.mark.parametrize(
    ("code", "message", "says", "early"),
    [
        ("ThrottlingException", "Rate exceeded", "read", True),
        ("InvalidParameterException", "Role provided in the request does not exist.", "create", True),
        ("InvalidParameterException", "The subnet ID is malformed", "create", False),
        ("ResourceNotFoundException", "No cluster found: it does not exist", "delete", False),
        ("InvalidParameterException", "The specified principalArn is invalid: invalid principal.", "create", True),
    ],
)
def test_when_to_try_again(code: str, message: str, says: str, early: bool) -> None:
    refused = CallRefused(message, code=code).with_cause(message, CAUSES.get(code, ()))
    assert too_early(Step("x", {}, says), refused) is early


def test_what_is_no_answer_of_aws_is_not_hidden() -> None:
    class Broken:
        def describe_nodegroup(self, **_request: t.Any) -> Body:
            raise KeyError("ours")

    api = Api(lambda _service: Broken(), FakeClock())
    with pytest.raises(KeyError, match="ours"):
        EksNodegroup("c", "gpu").read(api)


OFFERED = [
    {
        "addonVersions": [
            {"addonVersion": "v1.36.1", "compatibilities": [{"defaultVersion": False}]},
            {"addonVersion": "v1.36.0", "compatibilities": [{"defaultVersion": True}]},
            {"addonVersion": "v1.35.0", "compatibilities": [{"defaultVersion": False}]},
        ]
    }
]


@pytest.mark.parametrize(
    ("name", "installed", "expected"),
    [
        ("kube-proxy", "v1.36.0", None),
        ("kube-proxy", "v1.35.0", "v1.36.0"),
        ("coredns", "v1.35.0", None),
        ("coredns", "v1.30.0", "v1.36.0"),
    ],
)
def test_an_addon_without_a_version_follows_the_cluster(name: str, installed: str, expected: str | None) -> None:
    assert successor(name, installed, OFFERED, "1.36") == expected


def test_an_addon_that_eks_does_not_offer_stays() -> None:
    assert successor("mine", "v1", [], "1.36") is None


@pytest.mark.parametrize("kind", ["AL2023_x86_64_NVIDIA", "AL2023_ARM_64_STANDARD"])
def test_the_newest_image_is_a_public_parameter(kind: str) -> None:
    assert release_parameter(kind, "1.35").startswith("/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/")
    assert release_parameter("CUSTOM", "1.35") == ""
