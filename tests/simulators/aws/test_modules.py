# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module's life: made, changed in every way, deleted. boto3 reads back what the module says it did."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulators.aws.client import REGION, Simulator
from simulators.modules import Run

CLUSTER = "ground"
POLICY = "arn:aws:eks::aws:cluster-access-policy"
Body = dict[str, Any]


@pytest.fixture
def eks(aws: Simulator) -> Any:
    return aws.client("eks")


@pytest.fixture
def cluster(aws: Simulator, ground: Body, run: Run) -> str:
    """A cluster for what lives in one; the first test that needs it makes it."""
    if CLUSTER not in aws.client("eks").list_clusters()["clusters"]:
        made = run(
            "eks_cluster",
            name=CLUSTER,
            version="1.33",
            role_arn=ground["control"],
            subnet_ids=ground["subnets"][:2],
            authentication_mode="API",
            bootstrap_self_managed_addons=False,
        )
        assert not made.get("failed"), made["msg"]
    return CLUSTER


def whole_cluster(ground: Body) -> Body:
    return {
        "name": "whole",
        "version": "1.33",
        "role_arn": ground["control"],
        "subnet_ids": ground["subnets"][:2],
        "endpoint_private_access": True,
        "public_access_cidrs": ["203.0.113.0/24"],
        "authentication_mode": "API_AND_CONFIG_MAP",
        "logging": ["audit"],
        "tags": {"team": "ml", "stage": "test"},
    }


def test_a_cluster_is_made(changes: Run, eks: Any, ground: Body) -> None:
    done = changes("eks_cluster", **whole_cluster(ground))
    assert done["actions"] == ["eks:create_cluster (create)"]
    assert done["diff"]["before"] == {}
    assert done["cluster"]["status"] == "ACTIVE"
    assert done["cluster"]["endpoint"].startswith("https://")
    found = eks.describe_cluster(name="whole")["cluster"]
    assert found["accessConfig"] == {"authenticationMode": "API_AND_CONFIG_MAP"}
    assert found["resourcesVpcConfig"]["publicAccessCidrs"] == ["203.0.113.0/24"]


@pytest.mark.parametrize(
    ("change", "read", "expected"),
    [
        ({"version": "1.34"}, lambda c: c["version"], "1.34"),
        ({"endpoint_public_access": False}, lambda c: c["resourcesVpcConfig"]["endpointPublicAccess"], False),
        (
            {"endpoint_public_access": True, "public_access_cidrs": ["198.51.100.0/24"]},
            lambda c: c["resourcesVpcConfig"]["publicAccessCidrs"],
            ["198.51.100.0/24"],
        ),
        ({"logging": ["api", "audit"]}, lambda c: c["logging"]["clusterLogging"][0], {"types": ["api", "audit"], "enabled": True}),
        ({"logging": []}, lambda c: [row["enabled"] for row in c["logging"]["clusterLogging"]], [False]),
        ({"authentication_mode": "API"}, lambda c: c["accessConfig"]["authenticationMode"], "API"),
        ({"support_type": "STANDARD"}, lambda c: c["upgradePolicy"]["supportType"], "STANDARD"),
        ({"deletion_protection": True}, lambda c: c["deletionProtection"], True),
        ({"tags": {"team": "ops", "cost": "7"}}, lambda c: c["tags"], {"team": "ops", "cost": "7"}),
        ({"tags": {"more": "x"}, "purge_tags": False}, lambda c: c["tags"], {"team": "ops", "cost": "7", "more": "x"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) and value else "",
)
def test_a_cluster_is_changed(changes: Run, eks: Any, change: Body, read: Callable[[Body], Any], expected: Any) -> None:
    done = changes("eks_cluster", name="whole", **change)
    assert done["diff"]["before"] != done["diff"]["after"]
    assert read(eks.describe_cluster(name="whole")["cluster"]) == expected


def test_several_changes_of_a_cluster_go_one_after_another(changes: Run, eks: Any, ground: Body, aws: Simulator) -> None:
    key, (first, second, _third) = new_key(aws), ground["subnets"]
    other, group = (subnet_beside(aws, ground, second), aws.client("ec2").describe_security_groups()["SecurityGroups"][0]["GroupId"])
    done = changes(
        "eks_cluster", name="whole", version="1.35", logging=["scheduler"], subnet_ids=[first, other],
        security_group_ids=[group], encryption_key_arn=key, deletion_protection=False,
    )  # fmt: skip
    assert len(done["actions"]) == 6
    found = eks.describe_cluster(name="whole")["cluster"]
    assert found["version"] == "1.35"
    assert found["encryptionConfig"][0]["provider"]["keyArn"] == key
    assert sorted(found["resourcesVpcConfig"]["subnetIds"]) == sorted([first, other])
    assert found["resourcesVpcConfig"]["securityGroupIds"] == [group]


def subnet_beside(aws: Simulator, ground: Body, subnet: str) -> str:
    """One more in the same zone."""
    ec2 = aws.client("ec2")
    zone = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]
    made = ec2.create_subnet(VpcId=ground["vpc"], CidrBlock="172.31.240.0/24", AvailabilityZone=zone)
    return str(made["Subnet"]["SubnetId"])


def test_a_cluster_stays_in_its_zones(aws: Simulator, run: Run, ground: Body) -> None:
    aws.clear()
    refused = run("eks_cluster", name="whole", subnet_ids=ground["subnets"])
    assert "EKS cannot change them to" in refused["msg"]
    assert ground["subnets"][0] in refused["msg"]
    assert aws.attempts() == []


def new_key(aws: Simulator) -> str:
    return str(aws.client("kms").create_key()["KeyMetadata"]["Arn"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "1.33"}, "cannot go back to 1.33. Set version to 1.35"),
        ({"version": "1.37"}, "one version at a time"),
        ({"version": "latest"}, "is no version of EKS"),
        ({"authentication_mode": "CONFIG_MAP"}, "cannot go back to CONFIG_MAP"),
        ({"role_arn": "arn:aws:iam::123456789012:role/other"}, "EKS cannot change it"),
        ({"endpoint_public_access": False, "endpoint_private_access": False}, "no client could reach"),
        ({"encryption_key_arn": "arn:aws:kms:us-west-2:123456789012:key/other"}, "cannot change the key"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(aws: Simulator, run: Run, change: Body, words: str) -> None:
    aws.clear()
    refused = run("eks_cluster", name="whole", **change)
    assert refused["failed"]
    assert "EKS cluster whole" in refused["msg"] or "version" in refused["msg"]
    assert words in refused["msg"]
    assert aws.attempts() == []


def test_a_cluster_is_deleted_and_stays_so(changes: Run, run: Run, eks: Any, aws: Simulator) -> None:
    run("eks_cluster", name="whole", deletion_protection=True)
    assert "protected" in run("eks_cluster", name="whole", state="absent")["msg"]
    done = changes("eks_cluster", name="whole", state="absent", deletion_protection=False)
    assert done["cluster"] == {}
    assert "whole" not in eks.list_clusters()["clusters"]
    left = [g["GroupName"] for g in aws.client("ec2").describe_security_groups()["SecurityGroups"]]
    assert not [name for name in left if "whole" in name]


def nodes(ground: Body, cluster_name: str, name: str, least: int = 1, most: int = 2, **more: Any) -> Body:
    scaling = {"min_size": least, "max_size": most}
    named = {"cluster_name": cluster_name, "name": name}
    return {**named, "node_role": ground["node"], "subnets": ground["subnets"][:2], "scaling_config": scaling, **more}


def nodegroup(ground: Body) -> Body:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    return nodes(
        ground, CLUSTER, "gpu", 0, 4, ami_type="AL2023_x86_64_NVIDIA", instance_types=["g5.xlarge", "g6.xlarge"], capacity_type="SPOT",
        labels={"pool": "gpu", "old": "yes"}, taints=[taint], tags={"team": "ml"},
    )  # fmt: skip


def test_a_nodegroup_is_made(changes: Run, eks: Any, cluster: str, ground: Body) -> None:
    done = changes("eks_nodegroup", **nodegroup(ground))
    assert done["nodegroup"]["status"] == "ACTIVE"
    found = eks.describe_nodegroup(clusterName=cluster, nodegroupName="gpu")["nodegroup"]
    assert found["amiType"] == "AL2023_x86_64_NVIDIA"
    assert found["scalingConfig"] == {"minSize": 0, "maxSize": 4, "desiredSize": 0}


def test_the_order_of_subnets_and_types_is_no_difference(run: Run, cluster: str, ground: Body, aws: Simulator) -> None:
    desired = nodegroup(ground)
    desired["subnets"], desired["instance_types"] = desired["subnets"][::-1], desired["instance_types"][::-1]
    aws.clear()
    assert run("eks_nodegroup", **desired)["changed"] is False
    assert aws.attempts() == []


@pytest.mark.parametrize(
    ("change", "read", "expected"),
    [
        ({"labels": {"pool": "gpu2"}}, lambda n: n["labels"], {"pool": "gpu2"}),
        ({"labels": {}}, lambda n: n.get("labels", {}), {}),
        (
            {"taints": [{"key": "nvidia.com/gpu", "effect": "NO_EXECUTE"}, {"key": "spot", "value": "1", "effect": "NO_SCHEDULE"}]},
            lambda n: sorted((x["key"], x["value"], x["effect"]) for x in n["taints"]),
            [("nvidia.com/gpu", "", "NO_EXECUTE"), ("spot", "1", "NO_SCHEDULE")],
        ),
        ({"taints": [{"key": "spot", "value": "2", "effect": "NO_SCHEDULE"}]}, lambda n: [x["value"] for x in n["taints"]], ["2"]),
        ({"taints": []}, lambda n: n["taints"], []),
        ({"scaling_config": {"min_size": 2, "max_size": 8}}, lambda n: n["scalingConfig"], {"minSize": 2, "maxSize": 8, "desiredSize": 2}),
        ({"scaling_config": {"min_size": 0, "max_size": 1}}, lambda n: n["scalingConfig"]["desiredSize"], 1),
        ({"scaling_config": {"min_size": 2, "max_size": 8, "desired_size": 5}}, lambda n: n["scalingConfig"]["desiredSize"], 5),
        ({"update_config": {"max_unavailable_percentage": 33}}, lambda n: n["updateConfig"], {"maxUnavailablePercentage": 33}),
        ({"node_repair_enabled": True}, lambda n: n["nodeRepairConfig"]["enabled"], True),
        ({"tags": {"team": "ops"}}, lambda n: n["tags"], {"team": "ops"}),
        ({"release_version": "1.33.0-20261120"}, lambda n: n["releaseVersion"], "1.33.0-20261120"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) and value else "",
)
def test_a_nodegroup_is_changed(changes: Run, eks: Any, cluster: str, change: Body, read: Callable[[Body], Any], expected: Any) -> None:
    changes("eks_nodegroup", cluster_name=cluster, name="gpu", **change)
    assert read(eks.describe_nodegroup(clusterName=cluster, nodegroupName="gpu")["nodegroup"]) == expected


def test_an_autoscalers_size_stays(run: Run, cluster: str) -> None:
    kept = run("eks_nodegroup", cluster_name=cluster, name="gpu", scaling_config={"min_size": 2, "max_size": 8})
    assert kept["changed"] is False
    assert kept["nodegroup"]["scaling_config"]["desired_size"] == 5


def test_versions_go_up_cluster_first(changes: Run, eks: Any, run: Run, cluster: str) -> None:
    early = run("eks_nodegroup", cluster_name=cluster, name="gpu", version="1.34")
    assert "newer than the cluster's" in early["msg"]
    changes("eks_cluster", name=cluster, version="1.34")
    behind = run("eks_cluster", name=cluster, version="1.35")
    assert "must be updated to match" in behind["msg"]
    done = changes("eks_nodegroup", cluster_name=cluster, name="gpu", version="1.34")
    assert done["actions"] == ["eks:update_nodegroup_version (version 1.33 to 1.34)"]
    assert eks.describe_nodegroup(clusterName=cluster, nodegroupName="gpu")["nodegroup"]["version"] == "1.34"
    assert "cannot go back" in run("eks_nodegroup", cluster_name=cluster, name="gpu", version="1.33")["msg"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"capacity_type": "ON_DEMAND"}, "Create a second node group"),
        ({"disk_size": 500}, "EKS cannot change it"),
        ({"scaling_config": {"min_size": 5, "max_size": 2}}, "must not be over desired_size"),
        ({"taints": [{"key": "a", "effect": "NO_SCHEDULE"}, {"key": "a", "value": "2", "effect": "NO_SCHEDULE"}]}, "more than once"),
    ],
)
def test_a_nodegroup_that_cannot_be_is_refused(aws: Simulator, run: Run, cluster: str, change: Body, words: str) -> None:
    aws.clear()
    refused = run("eks_nodegroup", cluster_name=cluster, name="gpu", **change)
    assert words in refused["msg"]
    assert "node group gpu of cluster ground" in refused["msg"]
    assert aws.attempts() == []


def node_of(aws: Simulator, group: str) -> Body:
    """The first running instance of a node group, with its volume, as EC2 shows them."""
    ec2 = aws.client("ec2")
    chosen = [{"Name": "tag:eks:nodegroup-name", "Values": [group]}, {"Name": "instance-state-name", "Values": ["running"]}]
    instance: Body = ec2.describe_instances(Filters=chosen)["Reservations"][0]["Instances"][0]
    attached = [{"Name": "attachment.instance-id", "Values": [instance["InstanceId"]]}]
    return {**instance, "volume": ec2.describe_volumes(Filters=attached)["Volumes"][0]}


def tags_of(row: Body) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in row["Tags"] if not tag["Key"].startswith("eks:")}


def test_nodes_get_disk_tags_and_metadata_rules_from_their_launch_template(
    changes: Run, run: Run, eks: Any, cluster: str, ground: Body, aws: Simulator
) -> None:
    named = {"name": "ground-templated"}
    done = changes("eks_launch_template", **named, tags={"team": "ml"})
    group = nodes(ground, cluster, "templated", instance_types=["m6i.large"])
    changes("eks_nodegroup", **group, launch_template={**named, "version": "1"})
    node = node_of(aws, "templated")
    assert (tags_of(node), tags_of(node["volume"])) == ({"team": "ml"}, {"team": "ml"})
    assert (node["volume"]["Size"], node["volume"]["Encrypted"], node["volume"]["VolumeType"]) == (100, True, "gp3")
    assert (node["MetadataOptions"]["HttpTokens"], node["MetadataOptions"]["HttpPutResponseHopLimit"]) == ("required", 1)
    assert done["launch_template"]["latest_version_number"] == 1
    done = changes("eks_launch_template", **named, tags={"team": "ml"}, disk_size=200)
    assert done["actions"] == ["ec2:create_launch_template_version (new version)"]
    upgraded = changes("eks_nodegroup", **group, launch_template={**named, "version": "2"})
    assert upgraded["actions"] == ["eks:update_nodegroup_version (launch template version 2)"]
    assert node_of(aws, "templated")["volume"]["Size"] == 200
    refused = run("eks_nodegroup", **group, launch_template={"name": "other", "version": "1"})
    assert "was created with ground-templated; EKS cannot change it to other" in refused["msg"]
    changes("eks_launch_template", **named, tags={"team": "ops"}, disk_size=200)
    assert aws.client("ec2").describe_launch_templates(LaunchTemplateNames=["ground-templated"])["LaunchTemplates"][0]["Tags"] == [
        {"Key": "team", "Value": "ops"}
    ]
    changes("eks_nodegroup", cluster_name=cluster, name="templated", state="absent")
    changes("eks_launch_template", **named, state="absent")


def test_words_for_a_version_of_a_launch_template_are_its_number(
    changes: Run, run: Run, eks: Any, cluster: str, ground: Body, aws: Simulator
) -> None:
    named = {"name": "ground-worded"}
    run("eks_launch_template", **named)
    group = nodes(ground, cluster, "worded", 0, 1)
    changes("eks_nodegroup", **group, launch_template={**named, "version": "$Latest"})
    run("eks_launch_template", **named, disk_size=200)
    assert run("eks_nodegroup", **group, launch_template={**named, "version": "$Default"})["changed"] is False
    done = changes("eks_nodegroup", **group, launch_template={**named, "version": "$Latest"})
    assert done["actions"] == ["eks:update_nodegroup_version (launch template version 2)"]
    assert run("eks_nodegroup", **group, launch_template={**named, "version": "2"})["changed"] is False
    aws.clear()
    refused = run("eks_nodegroup", **group, launch_template={**named, "version": "latest"})
    assert "'latest' is no version of a launch template. Give launch_template.version a number" in refused["msg"]
    planned = run("eks_nodegroup", check=True, **{**group, "name": "x"}, launch_template={"name": "later", "version": "$Latest"})
    assert not planned.get("failed"), planned["msg"]
    assert aws.attempts() == []
    run("eks_nodegroup", cluster_name=cluster, name="worded", state="absent")
    run("eks_launch_template", **named, state="absent")


def test_another_version_of_the_template_leaves_kubernetes_where_it_is(changes: Run, run: Run, eks: Any, ground: Body) -> None:
    """EKS upgrades nodes to the cluster's version where a request for them names none."""
    run("eks_cluster", name="ahead", version="1.33", role_arn=ground["control"], subnet_ids=ground["subnets"][:2])
    template = {"name": "ahead-nodes"}
    run("eks_launch_template", **template)
    group = {"cluster_name": "ahead", "name": "nodes"}
    run("eks_nodegroup", **nodes(ground, **group), launch_template={**template, "version": "1"})
    run("eks_cluster", name="ahead", version="1.34")
    run("eks_launch_template", **template, disk_size=50)
    changes("eks_nodegroup", **group, launch_template={**template, "version": "2"})
    found = eks.describe_nodegroup(clusterName="ahead", nodegroupName="nodes")["nodegroup"]
    assert (found["version"], found["launchTemplate"]["version"]) == ("1.33", "2")
    changes("eks_nodegroup", **group, state="absent")


def test_nodes_with_an_image_of_their_own(changes: Run, run: Run, eks: Any, ground: Body, aws: Simulator) -> None:
    """The image of the launch template decides: EKS takes no version beside it, and goes to the cluster's by itself."""
    ec2, named = aws.client("ec2"), {"name": "imaged-nodes"}
    first, second = (row["ImageId"] for row in ec2.describe_images(Owners=["amazon"])["Images"][:2])
    run("eks_cluster", name="imaged", version="1.33", role_arn=ground["control"], subnet_ids=ground["subnets"][:2])
    ec2.create_launch_template(LaunchTemplateName=named["name"], LaunchTemplateData={"ImageId": first})
    group = nodes(ground, "imaged", "nodes", 1, 1)
    aws.clear()
    for wrong in ({"version": "1.33"}, {"release_version": "latest"}, {"ami_type": "AL2023_x86_64_NVIDIA"}):
        ((option, value),) = wrong.items()
        for more in ({}, {"check": True}):
            refused = run("eks_nodegroup", **more, **group, **wrong, launch_template={**named, "version": "1"})
            assert f"image of its launch template, and EKS takes no {option} {value} beside it" in refused["msg"]
    for template in ({}, {"launch_template": {"name": "nothing"}}):
        assert aws.attempts() == []
        refused = run("eks_nodegroup", **group, ami_type="CUSTOM", **template)
        assert refused["failed"] is True
    aws.clear()
    done = changes("eks_nodegroup", **group, ami_type="CUSTOM", launch_template={**named, "version": "1"})
    assert (done["nodegroup"]["ami_type"], done["nodegroup"]["release_version"]) == ("CUSTOM", first)
    assert node_of(aws, "nodes")["ImageId"] == first
    run("eks_cluster", name="imaged", version="1.34")
    assert run("eks_nodegroup", **group, launch_template={**named, "version": "1"})["changed"] is False
    aws.clear()
    refused = run("eks_nodegroup", **group, version="1.34")
    assert "EKS takes no version 1.34 beside it. Leave out version and release_version" in refused["msg"]
    assert aws.attempts() == []
    data = {"ImageId": second, "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50}}]}
    ec2.create_launch_template_version(LaunchTemplateName=named["name"], LaunchTemplateData=data)
    done = changes("eks_nodegroup", **group, ami_type="CUSTOM", launch_template={**named, "version": "2"})
    assert done["actions"] == ["eks:update_nodegroup_version (launch template version 2)"]
    found = eks.describe_nodegroup(clusterName="imaged", nodegroupName="nodes")["nodegroup"]
    assert (found["version"], found["releaseVersion"], found["launchTemplate"]["version"]) == ("1.34", second, "2")
    assert node_of(aws, "nodes")["ImageId"] == second
    changes("eks_nodegroup", cluster_name="imaged", name="nodes", state="absent")
    run("eks_cluster", name="imaged", state="absent")
    ec2.delete_launch_template(LaunchTemplateName=named["name"])


def test_nodes_are_patched_where_the_newest_image_is_asked_for(changes: Run, run: Run, cluster: str, ground: Body, aws: Simulator) -> None:
    """And stay as they are where it is not."""
    named = {"cluster_name": cluster, "name": "patched"}
    desired = nodes(ground, cluster, "patched")
    made = changes("eks_nodegroup", **desired, release_version="latest")
    assert made["nodegroup"]["release_version"].endswith("-20261101")
    aws.fault("release", "images")
    assert run("eks_nodegroup", **desired)["changed"] is False
    patched = run("eks_nodegroup", **named, release_version="latest")
    assert patched["actions"] == ["eks:update_nodegroup_version (image)"]
    assert patched["nodegroup"]["release_version"].endswith("-20261120")
    assert run("eks_nodegroup", **named, release_version="latest")["changed"] is False
    changes("eks_nodegroup", **named, state="absent")
    bottlerocket = {**desired, "name": "bottle", "ami_type": "BOTTLEROCKET_x86_64"}
    run("eks_nodegroup", **bottlerocket)
    refused = run("eks_nodegroup", **bottlerocket, release_version="latest")
    assert "AWS publishes no newest release of BOTTLEROCKET_x86_64" in refused["msg"]
    changes("eks_nodegroup", cluster_name=cluster, name="bottle", state="absent")


def test_a_cluster_with_nodegroups_says_why_it_stays(run: Run, cluster: str) -> None:
    refused = run("eks_cluster", name=cluster, state="absent")
    assert "Cluster has nodegroups attached. Delete its node groups" in refused["msg"]


def test_a_nodegroup_is_deleted(changes: Run, eks: Any, cluster: str) -> None:
    changes("eks_nodegroup", cluster_name=cluster, name="gpu", state="absent")
    assert eks.list_nodegroups(clusterName=cluster)["nodegroups"] == []


def test_addons(changes: Run, run: Run, eks: Any, cluster: str, ground: Body, aws: Simulator) -> None:
    named = {"cluster_name": cluster, "name": "aws-efs-csi-driver"}
    aws.clear()
    refused = run("eks_addon", **named, version="v9.9.9")
    assert "There are v3.4.1-eksbuild.1, v2.1.13-eksbuild.1" in refused["msg"]
    assert aws.attempts() == []
    associations = [{"service_account": "efs-csi-controller-sa", "role_arn": ground["pod"]}]
    changes("eks_addon", **named, version="v2.1.13-eksbuild.1", pod_identity_associations=associations)
    changes("eks_addon", **named, version="v3.4.1-eksbuild.1", configuration_values={"controller": {"replicaCount": 1}})
    changes("eks_addon", **named, tags={"a": "b"})
    found = eks.describe_addon(clusterName=cluster, addonName="aws-efs-csi-driver")["addon"]
    assert (found["addonVersion"], found["tags"]) == ("v3.4.1-eksbuild.1", {"a": "b"})
    assert found["configurationValues"] == '{"controller":{"replicaCount":1}}'
    changes("eks_addon", **named, pod_identity_associations=[{**associations[0], "role_arn": ground["other-pod"]}])
    owned = run("eks_pod_identity_association", cluster_name=cluster, namespace="kube-system",
                service_account="efs-csi-controller-sa", role_arn=ground["pod"])  # fmt: skip
    assert "belongs to" in owned["msg"]
    changes("eks_addon", **named, state="absent")
    assert eks.list_addons(clusterName=cluster)["addons"] == []


def test_an_addon_keeps_its_role_when_something_else_changes(changes: Run, eks: Any, cluster: str, ground: Body) -> None:
    named = {"cluster_name": cluster, "name": "aws-ebs-csi-driver"}
    changes("eks_addon", **named, service_account_role_arn=ground["web"])
    changes("eks_addon", **named, configuration_values={"controller": {"replicaCount": 1}})
    found = eks.describe_addon(clusterName=cluster, addonName="aws-ebs-csi-driver")["addon"]
    assert found["serviceAccountRoleArn"] == ground["web"]
    changes("eks_addon", **named, state="absent")


def test_access_entries(changes: Run, run: Run, eks: Any, cluster: str, ground: Body) -> None:
    named = {"cluster_name": cluster, "principal_arn": ground["pod"]}

    def policy(name: str, *namespaces: str) -> Body:
        scope = {"type": "namespace", "namespaces": list(namespaces)} if namespaces else {"type": "cluster"}
        return {"policy_arn": f"{POLICY}/{name}", "access_scope": scope}

    def policies() -> dict[str, list[str]]:
        rows = eks.list_associated_access_policies(clusterName=cluster, principalArn=ground["pod"])
        return {r["policyArn"].rsplit("/", 1)[1]: r["accessScope"]["namespaces"] for r in rows["associatedAccessPolicies"]}

    changes("eks_access_entry", **named, kubernetes_groups=["team"], policies=[policy("AmazonEKSViewPolicy")])
    assert policies() == {"AmazonEKSViewPolicy": []}
    changes("eks_access_entry", **named, policies=[policy("AmazonEKSViewPolicy", "ml"), policy("AmazonEKSEditPolicy", "dev")])
    assert policies() == {"AmazonEKSViewPolicy": ["ml"], "AmazonEKSEditPolicy": ["dev"]}
    changes("eks_access_entry", **named, policies=[policy("AmazonEKSEditPolicy", "dev")], tags={"a": "b"})
    assert policies() == {"AmazonEKSEditPolicy": ["dev"]}
    changes("eks_access_entry", **named, kubernetes_groups=["team", "more"])
    assert "cannot change it to EC2" in run("eks_access_entry", **named, type="EC2")["msg"]
    wrong = [{"policy_arn": f"{POLICY}/AmazonEKSViewPolicy", "access_scope": {"type": "namespace"}}]
    assert "Namespaces are given" in run("eks_access_entry", **named, policies=wrong)["msg"]
    changes("eks_access_entry", **named, state="absent")
    assert ground["pod"] not in eks.list_access_entries(clusterName=cluster)["accessEntries"]


def test_access_entries_need_the_right_authentication_mode(run: Run, ground: Body) -> None:
    run("eks_cluster", name="old", role_arn=ground["control"], subnet_ids=ground["subnets"][:2])
    refused = run("eks_access_entry", cluster_name="old", principal_arn=ground["pod"])
    assert "Set the cluster's authentication_mode to API_AND_CONFIG_MAP" in refused["msg"]


def test_pod_identity(changes: Run, eks: Any, cluster: str, ground: Body) -> None:
    named = {"cluster_name": cluster, "namespace": "ml", "service_account": "elastic"}
    changes("eks_pod_identity_association", **named, role_arn=ground["pod"])
    changes("eks_pod_identity_association", **named, role_arn=ground["other-pod"], tags={"a": "b"})
    rows = eks.list_pod_identity_associations(clusterName=cluster, namespace="ml")["associations"]
    found = eks.describe_pod_identity_association(clusterName=cluster, associationId=rows[0]["associationId"])["association"]
    assert (found["roleArn"], found["tags"], len(rows)) == (ground["other-pod"], {"a": "b"}, 1)
    changes("eks_pod_identity_association", **named, state="absent")
    assert eks.list_pod_identity_associations(clusterName=cluster, namespace="ml")["associations"] == []


def test_oidc_provider(changes: Run, run: Run, aws: Simulator) -> None:
    url, iam = "https://oidc.eks.us-west-2.amazonaws.com/id/ABC", aws.client("iam")
    done = changes("iam_oidc_provider", url=url, thumbprints=["a" * 40])
    arn = done["provider"]["arn"]
    assert arn.endswith("oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC")
    changes("iam_oidc_provider", url=url, client_ids=["sts.amazonaws.com", "more"], tags={"a": "b"})
    changes("iam_oidc_provider", url=url, client_ids=["sts.amazonaws.com"], tags={}, thumbprints=["b" * 40])
    found = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    assert (found["ClientIDList"], found["ThumbprintList"], found.get("Tags", [])) == (["sts.amazonaws.com"], ["b" * 40], [])
    assert "is no issuer" in run("iam_oidc_provider", url="oidc.example.org")["msg"]
    changes("iam_oidc_provider", url=url, state="absent")
    assert iam.list_open_id_connect_providers()["OpenIDConnectProviderList"] == []


def test_file_system(changes: Run, run: Run, aws: Simulator, ground: Body) -> None:
    efs, named = aws.client("efs"), {"name": "shared"}
    group = aws.client("ec2").create_security_group(GroupName="efs", Description="x", VpcId=ground["vpc"])["GroupId"]
    targets = [{"subnet_id": subnet, "security_groups": [group]} for subnet in ground["subnets"][:2]]
    done = changes(
        "efs_file_system", **named, throughput_mode="elastic", backup=True, transition_to_ia="AFTER_30_DAYS",
        mount_targets=targets, tags={"team": "ml"},
    )  # fmt: skip
    identity = done["file_system"]["file_system_id"]
    assert {target["life_cycle_state"] for target in done["file_system"]["mount_targets"]} == {"available"}
    changes("efs_file_system", **named, throughput_mode="bursting")
    changes("efs_file_system", **named, backup=False, transition_to_ia="NEVER", tags={})
    changes("efs_file_system", **named, mount_targets=[{"subnet_id": ground["subnets"][0], "security_groups": []}])
    found = efs.describe_file_systems(FileSystemId=identity)["FileSystems"][0]
    assert (found["ThroughputMode"], found["NumberOfMountTargets"]) == ("bursting", 1)
    assert found["Tags"] == [{"Key": "Name", "Value": "shared"}]
    assert efs.describe_backup_policy(FileSystemId=identity)["BackupPolicy"]["Status"] == "DISABLED"
    assert "cannot change it" in run("efs_file_system", **named, encrypted=False)["msg"]
    point = {"file_system_id": identity, "name": "data"}
    directory = {"path": "/data", "creation_info": {"owner_uid": 1000, "owner_gid": 1000, "permissions": "0755"}}
    changes("efs_access_point", **point, posix_user={"uid": 1000, "gid": 1000}, root_directory=directory)
    changes("efs_access_point", **point, tags={"a": "b"})
    assert "cannot change it" in run("efs_access_point", **point, posix_user={"uid": 7, "gid": 7})["msg"]
    found = efs.describe_access_points(FileSystemId=identity)["AccessPoints"][0]
    assert found["RootDirectory"]["CreationInfo"]["Permissions"] == "0755"
    changes("efs_access_point", **point, state="absent")
    assert "delete_data: true deletes it" in run("efs_file_system", **named, state="absent")["kept"]
    changes("efs_file_system", **named, state="absent", delete_data=True)
    assert efs.describe_file_systems()["FileSystems"] == []


def test_a_bucket(changes: Run, run: Run, aws: Simulator) -> None:
    s3, named = aws.client("s3"), {"name": "muster-artifacts"}
    changes("s3_bucket", **named, tags={"muster.ml/owner": "t"})
    assert all(s3.get_public_access_block(Bucket=named["name"])["PublicAccessBlockConfiguration"].values())
    changes("s3_bucket", **named, versioning=True, tags={"muster.ml/owner": "t", "team": "ml"})
    assert s3.get_bucket_versioning(Bucket=named["name"])["Status"] == "Enabled"
    s3.put_object(Bucket=named["name"], Key="train.py", Body=b"print(1)")
    s3.put_object(Bucket=named["name"], Key="train.py", Body=b"print(2)")
    full = run("s3_bucket", **named, state="absent")
    assert full["changed"] is False
    assert full["kept"] in str(full["warnings"])
    assert "holds objects (train.py); delete_data: true deletes it" in full["kept"]
    other = run("s3_bucket", **named, state="absent", only_tagged={"muster.ml/owner": "other"})
    assert (other["changed"], "deprecations" in other) == (False, False)
    assert "does not have the mark of this owner (muster.ml/owner=other)" in other["kept"]
    assert "it has muster.ml/owner=t" in run("s3_bucket", **named, only_tagged={"muster.ml/owner": "other"}, adopt=True)["msg"]
    changes("s3_bucket", **named, state="absent", delete_data=True, only_tagged={"muster.ml/owner": "t"})
    assert s3.list_buckets()["Buckets"] == []


def test_a_bucket_without_an_owner_is_taken_over_only_when_asked_for(changes: Run, run: Run, aws: Simulator) -> None:
    """The mark is made with the bucket, put on one that is taken over, and stays when other tags are purged."""
    s3, mark = aws.client("s3"), {"muster.ml/owner": "t"}
    s3.create_bucket(Bucket="found", CreateBucketConfiguration={"LocationConstraint": REGION})
    assert "run with adopt: true" in run("s3_bucket", name="found", only_tagged=mark)["msg"]
    changes("s3_bucket", name="found", only_tagged=mark, adopt=True)
    changes("s3_bucket", name="made", only_tagged=mark)
    for name in ("found", "made"):
        changes("s3_bucket", name=name, only_tagged=mark, tags={"team": "ml"})
        changes("s3_bucket", name=name, only_tagged=mark, tags={})
        assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == [{"Key": "muster.ml/owner", "Value": "t"}]
        changes("s3_bucket", name=name, only_tagged=mark, state="absent")


def test_a_part_of_a_network_is_removed(changes: Run, run: Run, aws: Simulator) -> None:
    """A module without state, which only removes."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert len(changes("ec2_removal", id=gateway)["actions"]) == 2
    done = changes("ec2_removal", id=vpc)
    assert (done["resource"], [row["VpcId"] for row in ec2.describe_vpcs()["Vpcs"] if row["VpcId"] == vpc]) == ({}, [])
    assert "'i-1' is not the id of a part of a network" in run("ec2_removal", id="i-1")["msg"]


def test_a_network_interface_is_removed_by_its_tag(changes: Run, run: Run, aws: Simulator, ground: Body) -> None:
    """EC2 calls the tags of an interface TagSet."""
    ec2, mark = aws.client("ec2"), {"node.k8s.amazonaws.com/instance_id": "i-1"}
    tags = [{"Key": key, "Value": value} for key, value in mark.items()]
    made = ec2.create_network_interface(
        SubnetId=ground["subnets"][0], TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}]
    )["NetworkInterface"]["NetworkInterfaceId"]
    other = {"node.k8s.amazonaws.com/instance_id": "i-2"}
    assert "was kept" in run("ec2_removal", id=made, only_tagged=other)["kept"]
    changes("ec2_removal", id=made, only_tagged=mark)
    assert made not in [row["NetworkInterfaceId"] for row in ec2.describe_network_interfaces()["NetworkInterfaces"]]


def test_a_bucket_of_a_cluster_of_the_same_name_in_another_region_is_left_alone(run: Run, changes: Run, aws: Simulator) -> None:
    """By a name that both inventories say. The second bucket has the mark without its region."""
    owner = {"muster.ml/owner": "muster"}
    there, here = ({**owner, "muster.ml/region": region} for region in ("us-west-2", "ap-south-1"))
    for name, mark, found in (
        ("of-both", there, "muster.ml/owner=muster, muster.ml/region=us-west-2"),
        ("of-before", owner, "muster.ml/owner=muster"),
    ):
        changes("s3_bucket", name=name, only_tagged=mark)
        aws.clear()
        told = run("s3_bucket", name=name, only_tagged=here)["msg"]
        assert f"muster.ml/region=ap-south-1: it has {found}, and it is left as it is" in told
        assert "run with adopt: true, or give it the tag muster.ml/owner=muster, muster.ml/region=ap-south-1" in told
        kept = run("s3_bucket", name=name, only_tagged=here, state="absent", delete_data=True)["kept"]
        assert kept.endswith(f"(muster.ml/owner=muster, muster.ml/region=ap-south-1), but {found}")
        assert aws.attempts() == []
    assert (
        "take muster.ml/region=us-west-2 away and run with adopt" in run("s3_bucket", name="of-both", only_tagged=here, adopt=True)["msg"]
    )
    changes("s3_bucket", name="of-before", only_tagged=here, adopt=True)


def test_what_is_there(run: Run, cluster: str) -> None:
    found = run("eks_cluster_info", name=cluster)
    assert (found["exists"], found["cluster"]["name"], found["nodegroups"]) == (True, cluster, [])
    assert run("eks_cluster_info", name="none") == {"changed": False, "exists": False, "account": "123456789012", "partition": "aws",
                                                    "region": REGION, "cluster": {}, "owned": False, "oidc_provider": "",
                                                    "nodegroups": [], "addons": [], "roles": []}  # fmt: skip
    named = run("eks_cluster_info", name="none", roles=["control", "nobody"])["roles"]
    assert named == [{"role_name": "control", "arn": "arn:aws:iam::123456789012:role/control", "tags": {}, "owned": False}]


def test_a_role_of_a_cluster_of_the_same_name_in_another_region_is_not_ours(run: Run, aws: Simulator) -> None:
    """An account has its roles once, and clusters of one name in every region. Nobody can tell whose one without a region is."""
    iam, trust = aws.client("iam"), json.dumps({"Version": "2012-10-17", "Statement": []})
    for name, region in (("here", REGION), ("there", "ap-south-1"), ("before", "")):
        tags = {"muster.ml/owner": "twice", **({"muster.ml/region": region} if region else {})}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust, Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    found = run("eks_cluster_info", name="twice", roles=["here", "there", "before"])["roles"]
    assert {role["role_name"]: role["owned"] for role in found} == {"here": True, "there": False, "before": False}


def test_a_file_in_a_bucket_with_a_key_of_kms(changes: Run, run: Run, aws: Simulator, tmp_path: Path) -> None:
    """Encrypted as the bucket says, and found unchanged although its ETag is no MD5."""
    key, script = new_key(aws), tmp_path / "train.py"
    changes("s3_bucket", name="kms-bucket", encryption_key_arn=key)
    for content in ("print(1)", "print(2)"):
        script.write_text(content, encoding="utf-8")
        done = changes("s3_object", bucket="kms-bucket", name="elastic/train.py", src=str(script))
        assert done["object"]["content_length"] == 8
        found = aws.client("s3").get_object(Bucket="kms-bucket", Key="elastic/train.py")
        assert (found["Body"].read().decode(), found["ServerSideEncryption"], found["SSEKMSKeyId"]) == (content, "aws:kms", key)
    planned = run("s3_object", check=True, bucket="no-such-bucket", name="x", src=str(script))
    assert planned["actions"] == ["s3:put_object (upload 8 bytes)"]
    assert "No such file" in run("s3_object", bucket="kms-bucket", name="x", src=str(tmp_path / "none"))["msg"]


def test_a_key_may_be_named_by_an_alias(changes: Run, aws: Simulator, eks: Any, cluster: str) -> None:
    """EKS answers with the key."""
    key = new_key(aws)
    aws.client("kms").create_alias(AliasName="alias/eks", TargetKeyId=key)
    changes("eks_cluster", name=cluster, encryption_key_arn=f"{key.partition(':key/')[0]}:alias/eks")
    assert eks.describe_cluster(name=cluster)["cluster"]["encryptionConfig"][0]["provider"]["keyArn"] == key


def test_an_addon_without_nodes_is_degraded_and_told(run: Run, eks: Any, cluster: str, ground: Body) -> None:
    named = {"cluster_name": cluster, "name": "coredns"}
    lonely = run("eks_addon", **named)
    assert lonely["addon"]["status"] == "DEGRADED"
    assert "EKS add-on coredns of cluster ground is DEGRADED (InsufficientNumberOfReplicas" in str(lonely["warnings"])
    run("eks_nodegroup", **nodes(ground, cluster, "first"))
    healthy = run("eks_addon", **named)
    assert (healthy["changed"], healthy["addon"]["status"], healthy.get("warnings")) == (False, "ACTIVE", None)


def test_a_quota_of_no_gpus_is_told(aws: Simulator, run: Run, cluster: str, ground: Body) -> None:
    gpu = nodes(ground, cluster, "quota", 1, 1, instance_types=["g5.xlarge"])
    assert "VcpuLimitExceeded" in run("eks_nodegroup", **gpu)["msg"]
    aws.quota("gpus", 8)
    assert run("eks_nodegroup", **gpu)["nodegroup"]["status"] == "ACTIVE"
    aws.quota("gpus", 0)


def test_kube_proxy_that_would_be_too_old_keeps_a_cluster_from_its_upgrade(run: Run, eks: Any, ground: Body) -> None:
    """Without the update that follows a cluster, as where somebody pinned the version."""
    named = {"name": "skew", "role_arn": ground["control"], "subnet_ids": ground["subnets"][:2]}
    run("eks_cluster", **named, version="1.31", bootstrap_self_managed_addons=False)
    run("eks_addon", cluster_name="skew", name="kube-proxy")
    for version in ("1.32", "1.33", "1.34"):
        assert run("eks_cluster", name="skew", version=version)["changed"]
    refused = run("eks_cluster", name="skew", version="1.35")
    assert "kube-proxy version skew" in refused["msg"]
    assert "`aws eks list-insights --cluster-name skew`" in refused["msg"]
    assert run("eks_addon", cluster_name="skew", name="kube-proxy")["addon"]["addon_version"].startswith("v1.34.")
    assert run("eks_cluster", name="skew", version="1.35")["changed"]


def test_what_is_left_is_listed_by_its_tags(run: Run, aws: Simulator, ground: Body) -> None:
    """Of every maker, and nothing that has ended or belongs to another cluster."""
    ec2, mark = aws.client("ec2"), "muster.ml/owner"
    made = {}
    for name, key, value in (("ours", mark, "left"), ("cni", "cluster.k8s.amazonaws.com/name", "left"),
                             ("service", "kubernetes.io/cluster/left", "owned"), ("other", mark, "another")):  # fmt: skip
        tags = [{"Key": key, "Value": value}]
        made[name] = ec2.create_network_interface(
            SubnetId=ground["subnets"][0], TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}]
        )["NetworkInterface"]["NetworkInterfaceId"]
    aws.client("logs").create_log_group(logGroupName="/aws/eks/left/cluster")
    for gateway in ("left", "gone"):
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        tags = [{"ResourceType": "natgateway", "Tags": [{"Key": mark, "Value": "left"}]}]
        made[gateway] = ec2.create_nat_gateway(SubnetId=ground["subnets"][0], AllocationId=address, TagSpecifications=tags)["NatGateway"][
            "NatGatewayId"
        ]
    ec2.delete_nat_gateway(NatGatewayId=made["gone"])
    rows = run("eks_remains_info", name="left")["remains"]
    assert sorted((row["id"].rsplit("/", 1)[-1], row["kind"], row["maker"]) for row in rows) == sorted([
        (made["ours"], "ec2 network-interface", "Muster"),
        (made["cni"], "ec2 network-interface", "add-on vpc-cni"),
        (made["service"], "ec2 network-interface", "Kubernetes, for a Service or a volume"),
        (made["left"], "ec2 natgateway", "Muster"),
        ("cluster", "logs log-group", "EKS, which never deletes them"),
    ])  # fmt: skip
    assert len(run("eks_remains_info", name="left", owned_only=True)["remains"]) == 2


def test_nodes_whose_storage_went_first_do_not_end(run: Run, cluster: str, ground: Body) -> None:
    """What a teardown in the wrong order comes to."""
    group = {"cluster_name": cluster, "name": "mounts"}
    run("eks_nodegroup", **nodes(ground, **group))
    system = {"name": "mounted", "delete_data": True}
    run("efs_file_system", name="mounted", mount_targets=[{"subnet_id": ground["subnets"][0]}])
    assert run("efs_file_system", **system, state="absent")["changed"]
    assert "PodEvictionFailure" in run("eks_nodegroup", **group, state="absent")["msg"]
