# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/eks.yml with the roles eks_network, eks_cluster, eks_nodegroups, efs_filesystem and s3_artifacts: one account's life.

The tests stand on each other, in order: plan, a node group that fails, the run that mends it, again, later changes, what is not
ours in the way, a cluster that somebody else made, teardown. What somebody else has in the account is there from the beginning.
"""

import datetime as dt
import json
import random
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._aws.permissions import explained
from simulators.apiserver import node
from simulators.aws.api import Asked
from simulators.aws.cli import Cli
from simulators.aws.client import REGION, SECRET, Simulator, bare_environment
from simulators.aws.holdings import holdings
from simulators.aws.permissions import Need, allows, denied
from simulators.aws.play import NAMES, POLICIES, TOKEN, Play, named, playground, pod_environment, without
from simulators.aws.shapes import NAMES as SHAPES
from simulators.aws.shapes import Maker, make_all
from simulators.fetch import fetch
from simulators.processes import recap

VIEWER = {
    "principal_arn": "arn:aws:iam::123456789012:role/theirs.eks",
    "policies": [{"policy_arn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", "access_scope": {"type": "cluster"}}],
}
# Where runs are killed: other places every day.
DRAW = random.Random(dt.datetime.now(dt.UTC).date().isoformat())  # noqa: S311  # no secret
# What the tests have set for the cluster of Muster's own.
OF_OURS = ("efs_filesystem_subnet_ids", "eks_cluster_access_entries", "eks_cluster_options", "eks_network_zones")
DATA_TOO = {"efs_filesystem_delete_data": True, "s3_artifacts_delete_data": True, "eks_cluster_delete_data": True}
AGENT = "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy"
SYSTEM = {"name": "system", "instance_types": ["m6i.large"], "scaling_config": {"min_size": 2, "max_size": 4}}
GPU = {
    "name": "gpu",
    "ami_type": "AL2023_x86_64_NVIDIA",
    "instance_types": ["g5.2xlarge"],
    "capacity_type": "SPOT",
    "scaling_config": {"min_size": 0, "max_size": 4},
    "labels": {"pool": "gpu"},
    "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
}

IMAGES = {"create_launch_template": "ami-12c6146b", "create_launch_template_version": "ami-1e749f67"}
# Nodes with an image of their own, from a template that somebody else made.
IMAGED = {
    "name": "imaged",
    "ami_type": "CUSTOM",
    "launch_template": {"name": "theirs-image", "version": "1"},
    "instance_types": ["m6i.large"],
    "scaling_config": {"min_size": 0, "max_size": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eks")


@pytest.fixture(scope="module")
def play(folder: Path) -> Iterator[Play]:
    script = folder / "train.py"
    script.write_text("print('epoch 0')\n", encoding="utf-8")
    settings = {
        "eks_cluster_public_access_cidrs": ["203.0.113.0/24"],
        "eks_nodegroups_groups": [SYSTEM, GPU, IMAGED],
        "eks_network_zones": [f"{REGION}a", f"{REGION}b"],
        "eks_network_nat": "per_zone",
        "muster_aws_tags": {"stage": "first"},
        "s3_artifacts_uploads": [{"src": str(script), "object": "elastic/train.py"}],
        "eks_nodegroups_role_policies": [AGENT],
    }
    with playground(folder, settings) as ground:
        ground.api_server.warm_up = 8.0
        yield ground


@pytest.fixture(scope="module")
def aws(play: Play) -> Simulator:
    return play.aws


def made_by_boto3(aws: Simulator) -> None:
    """A network, roles, a cluster with nodes and an add-on, a bucket and a file system, as somebody else would have them."""
    ec2, eks, s3, efs = (aws.client(service) for service in ("ec2", "eks", "s3", "efs"))
    maker = Maker(aws, "theirs", 99)
    maker.network({})
    maker.cluster(accessConfig={"authenticationMode": "API"})
    node_role = maker.role("ec2", "AmazonEKSWorkerNodePolicy")
    eks.create_nodegroup(clusterName="theirs", nodegroupName="theirs", nodeRole=node_role, subnets=maker.subnets)
    maker.addons("coredns", "eks-pod-identity-agent")
    for name in ("create_launch_template", "create_launch_template_version"):
        data = {"ImageId": IMAGES[name]}
        getattr(ec2, name)(LaunchTemplateName="theirs-image", LaunchTemplateData=data)
    s3.create_bucket(Bucket="theirs", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="theirs", Key="train.py", Body=b"print(1)")
    efs.create_file_system(CreationToken="somebody-elses")


@pytest.fixture(scope="module")
def before(aws: Simulator) -> dict[str, Any]:
    """What somebody else has in the account, before Muster comes."""
    aws.quota("vpcs", 6)
    made_by_boto3(aws)
    make_all(aws)
    for _look in range(5):
        found = holdings(aws)
    return found


def test_a_plan_for_an_empty_account_lists_everything_and_writes_nothing(before: dict[str, Any], play: Play, aws: Simulator) -> None:
    aws.clear()
    done = play("eks", "--check", eks_network_zones=2)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert aws.attempts() == []
    assert recap(done)["changed"] >= 20
    for name in (
        "Create the VPC",
        "Create the NAT gateways of the VPC",
        "Create or update the EKS cluster",
        "Create or update the EKS node groups",
        "Create the EFS file system and its mount targets",
        "Create the IAM role of the EFS driver",
        "Create the S3 bucket",
        "Create the IAM role that reads the bucket",
    ):
        assert f": {name}]" in done.stdout
    assert not Path(play.settings["muster_kubeconfig"]).exists()
    assert holdings(aws) == before


def trouble(aws: Simulator) -> None:
    """Throttling, and roles that are not seen yet. A run rides it out."""
    for operation in ("CreateCluster", "CreateNodegroup"):
        aws.fault("role_not_visible", operation, times=2)
    for operation in ("DescribeVpcs", "CreateSubnet", "CreateRole", "CreateAddon"):
        aws.fault("throttle", operation, times=2)


@pytest.mark.prove
def test_nodes_that_cannot_start_end_the_run_with_their_reason(play: Play, aws: Simulator) -> None:
    trouble(aws)
    issue = {"code": "InsufficientFreeAddresses", "message": "no addresses in us-west-2a", "resourceIds": ["subnet-1"]}
    aws.fault("create_failed", "CreateNodegroup", **issue)
    done = play("eks")
    assert done.returncode != 0
    assert recap(done)["failed"] == 1
    assert "EKS node group system of cluster muster: create failed: CREATE_FAILED (InsufficientFreeAddresses" in done.stdout
    assert aws.ask("faults") == []


def test_a_run_makes_it_or_mends_it(play: Play, aws: Simulator) -> None:
    """The endpoint of the new cluster answers after a while."""
    if "muster" not in aws.client("eks").list_clusters()["clusters"]:
        trouble(aws)
    aws.fault("role_not_visible", "CreatePodIdentityAssociation", times=2)
    aws.fault("throttle", "CreateMountTarget", times=2)
    aws.fault("throttle", "PutPublicAccessBlock")
    done = play("eks")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert aws.ask("faults") == []
    eks = aws.client("eks")
    groups = {n: eks.describe_nodegroup(clusterName="muster", nodegroupName=n)["nodegroup"] for n in ("system", "gpu")}
    assert {group["status"] for group in groups.values()} == {"ACTIVE"}
    assert groups["gpu"]["amiType"] == "AL2023_x86_64_NVIDIA"
    imaged = eks.describe_nodegroup(clusterName="muster", nodegroupName="imaged")["nodegroup"]
    assert (imaged["amiType"], imaged["releaseVersion"]) == ("CUSTOM", IMAGES["create_launch_template"])
    assert_nodes(aws, {"muster.ml/owner": "muster"}, size=100)
    addons = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"}
    assert set(eks.list_addons(clusterName="muster")["addons"]) == addons
    assert Path(play.settings["muster_kubeconfig"]).stat().st_mode & 0o777 == 0o600


def assert_nodes(aws: Simulator, tags: dict[str, str], size: int) -> None:
    """Every instance and volume carries the tags, disks are encrypted, and pods do not reach the metadata service."""
    ec2 = aws.client("ec2")
    chosen = [
        {"Name": "tag:eks:nodegroup-name", "Values": ["system"]},
        {"Name": "tag:eks:cluster-name", "Values": ["muster"]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    instances = [row for group in ec2.describe_instances(Filters=chosen)["Reservations"] for row in group["Instances"]]
    assert len(instances) == 2
    attached = [{"Name": "attachment.instance-id", "Values": [row["InstanceId"] for row in instances]}]
    volumes = ec2.describe_volumes(Filters=attached)["Volumes"]
    for row in (*instances, *volumes):
        assert tags.items() <= {tag["Key"]: tag["Value"] for tag in row.get("Tags", [])}.items()
    assert {(row["Size"], row["Encrypted"], row["VolumeType"]) for row in volumes} == {(size, True, "gp3")}
    rules = {(row["MetadataOptions"]["HttpTokens"], row["MetadataOptions"]["HttpPutResponseHopLimit"]) for row in instances}
    assert rules == {("required", 1)}


def test_again_nothing_is_changed(play: Play, aws: Simulator) -> None:
    aws.clear()
    done = play("eks")
    assert (done.returncode, recap(done)["changed"], aws.attempts()) == (0, 0, []), done.stdout[-3000:]


def read_in_a_pod(play: Play, how: str, account: str = "ml:elastic", bucket: str = "") -> tuple[str, str]:
    """(log, content) of the program that fetches the script in the pods of a service account, with what EKS gives them."""
    aws = play.aws
    ours = next(row["Name"] for row in aws.client("s3").list_buckets()["Buckets"] if row["Name"].startswith("muster-"))
    role = "arn:aws:iam::123456789012:role/muster-artifacts-read"
    environment = pod_environment(aws, play.api_server, play.folder, how, account, role)
    key = "train.py" if bucket else "elastic/train.py"
    done, to = fetch(f"s3://{bucket or ours}/{key}", play.folder / "bin", {**bare_environment(), **environment})
    content = to.read_text(encoding="utf-8") if to.exists() else ""
    to.unlink(missing_ok=True)
    return done.stdout, content


# Shows row 004.12.
def test_pods_of_the_service_account_read_the_bucket_and_no_others(play: Play) -> None:
    assert read_in_a_pod(play, "pod_identity")[1] == "print('epoch 0')\n"
    log, content = read_in_a_pod(play, "pod_identity", "ml:default")
    assert ("credentials of the ServiceAccount: the server answers 404" in log, content) == (True, "")
    log, content = read_in_a_pod(play, "pod_identity", bucket="theirs")
    assert ("403" in log, "AccessDenied" in log, content) == (True, True, "")


def test_the_aws_cli_takes_the_command_of_the_kubeconfig(play: Play, aws_cli: Cli) -> None:
    """Only AWS could judge the token."""
    user = yaml.safe_load(Path(play.settings["muster_kubeconfig"]).read_text(encoding="utf-8"))["users"][0]["user"]
    assert user["exec"]["command"] == "aws"
    credential = aws_cli(*user["exec"]["args"])
    assert credential["kind"] == "ExecCredential"
    assert credential["apiVersion"] == user["exec"]["apiVersion"]
    assert credential["status"]["token"].startswith("k8s-aws-v1.")


# Shows rows 004.1 and 004.3.
def test_doors_are_closed(aws: Simulator) -> None:
    ec2, iam, eks = aws.client("ec2"), aws.client("iam"), aws.client("eks")
    config = eks.describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]
    groups = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [config["vpcId"]]}])["SecurityGroups"]
    closed = next(g for g in groups if g["GroupName"] == "default")
    assert (closed["IpPermissions"], closed["IpPermissionsEgress"]) == ([], [])
    efs = next(g for g in groups if g["GroupName"] == "muster-efs")
    assert [(r["FromPort"], r["ToPort"], r["IpRanges"], [p["GroupId"] for p in r["UserIdGroupPairs"]])
            for r in efs["IpPermissions"]] == [(2049, 2049, [], [config["clusterSecurityGroupId"]])]  # fmt: skip
    assert efs["IpPermissionsEgress"] == []
    nodes = eks.describe_nodegroup(clusterName="muster", nodegroupName="system")["nodegroup"]
    assert "remoteAccess" not in nodes
    assert [rule for group in groups for rule in group["IpPermissions"] if rule.get("FromPort") == 22] == []
    subnets = ec2.describe_subnets(SubnetIds=nodes["subnets"])["Subnets"]
    assert [subnet["MapPublicIpOnLaunch"] for subnet in subnets] == [False] * len({subnet["AvailabilityZone"] for subnet in subnets})
    client = aws.client("efs")
    targets = [client.describe_mount_targets(FileSystemId=row["FileSystemId"])["MountTargets"]
               for row in client.describe_file_systems()["FileSystems"] if row.get("Name") == "muster"]  # fmt: skip
    assert [sorted(target["SubnetId"] for target in found) for found in targets] == [sorted(nodes["subnets"])]
    attached = iam.list_attached_role_policies(RoleName="muster-eks-node")["AttachedPolicies"]
    assert not [p["PolicyName"] for p in attached if "S3" in p["PolicyName"]]
    assert iam.list_role_policies(RoleName="muster-eks-node")["PolicyNames"] == []
    bucket = next(b["Name"] for b in aws.client("s3").list_buckets()["Buckets"] if b["Name"].startswith("muster-"))
    assert all(aws.client("s3").get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    allowed = iam.get_role_policy(RoleName="muster-artifacts-read", PolicyName="read")["PolicyDocument"]["Statement"]
    assert sorted(action for row in allowed for action in row["Action"]) == ["s3:GetObject", "s3:ListBucket"]


def ways_out(aws: Simulator) -> list[tuple[str, str]]:
    """The zone of each of our subnets, and where its way out is: the zone of a NAT gateway, or the internet itself."""
    ec2 = aws.client("ec2")
    ours = [{"Name": "tag:muster.ml/owner", "Values": ["muster"]}]
    tables = ec2.describe_route_tables(Filters=ours)["RouteTables"]
    ways = {
        row["SubnetId"]: next(r for r in table["Routes"] if r.get("DestinationCidrBlock") == "0.0.0.0/0")
        for table in tables
        for row in table["Associations"]
    }
    subnets = {row["SubnetId"]: row for row in ec2.describe_subnets(Filters=ours)["Subnets"]}
    assert (len(tables), ways.keys()) == (3, subnets.keys())
    state = [{"Name": "state", "Values": ["available"]}]
    gateways = {row["NatGatewayId"]: row["SubnetId"] for row in ec2.describe_nat_gateways(Filters=state)["NatGateways"]}
    places = {name: subnets[subnet]["AvailabilityZone"] for name, subnet in gateways.items()}
    zones = {name: subnet["AvailabilityZone"] for name, subnet in subnets.items()}
    return sorted((zones[name], places.get(way.get("NatGatewayId"), "internet")) for name, way in ways.items())


def test_every_private_subnet_has_the_way_out_of_its_zone(aws: Simulator) -> None:
    assert ways_out(aws) == [(f"{REGION}{zone}", way) for zone in "ab" for way in ("internet", f"{REGION}{zone}")]


def key_of_kms(aws: Simulator) -> tuple[str, str]:
    """ARN of a key, and of an alias of it."""
    kms = aws.client("kms")
    key = kms.create_key()["KeyMetadata"]
    kms.create_alias(AliasName="alias/muster", TargetKeyId=key["KeyId"])
    return str(key["Arn"]), f"{key['Arn'].partition(':key/')[0]}:alias/muster"


def assert_script(aws: Simulator, key: str) -> None:
    """The changed script is there, encrypted with the bucket's key, and whoever reads it may decrypt it."""
    s3 = aws.client("s3")
    bucket = next(row["Name"] for row in s3.list_buckets()["Buckets"] if row["Name"].startswith("muster-"))
    found = s3.get_object(Bucket=bucket, Key="elastic/train.py")
    assert (found["Body"].read(), found["ServerSideEncryption"], found["SSEKMSKeyId"]) == (b"print('epoch 1')\n", "aws:kms", key)
    policy = aws.client("iam").get_role_policy(RoleName="muster-artifacts-read", PolicyName="read")["PolicyDocument"]
    assert [row["Resource"] for row in policy["Statement"] if row["Action"] == ["kms:Decrypt"]] == [[key]]


@pytest.mark.prove
def test_what_changes_later_is_applied(play: Play, aws: Simulator) -> None:
    """Version, labels, taints, tags, sizes, images, keys, policies, NAT, throughput, a mount target less, and IRSA for Pod Identity."""
    eks, efs, ec2, iam = aws.client("eks"), aws.client("efs"), aws.client("ec2"), aws.client("iam")
    subnets = eks.describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]["subnetIds"]
    gpu = {**GPU, "scaling_config": {"min_size": 0, "max_size": 8}, "labels": {"pool": "big"}, "taints": []}
    shell = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    key, alias = key_of_kms(aws)
    Path(play.settings["s3_artifacts_uploads"][0]["src"]).write_text("print('epoch 1')\n", encoding="utf-8")
    play.settings |= {
        "eks_cluster_options": {"encryption_key_arn": alias},
        "eks_nodegroups_release_version": "latest",
        "s3_artifacts_encryption_key_arn": key,
        "muster_eks_version": "1.36",
        "eks_cluster_support_type": "EXTENDED",
        "eks_cluster_public_access_cidrs": ["203.0.113.0/24", "198.51.100.0/24"],
        "muster_aws_tags": {"team": "ml"},
        "muster_eks_identity": "irsa",
        "eks_nodegroups_groups": [SYSTEM, gpu, {**IMAGED, "launch_template": {"name": "theirs-image", "version": "2"}}],
        "eks_nodegroups_role_policies": [shell],
        "eks_nodegroups_disk_size": 150,
        "eks_cluster_access_entries": [VIEWER],
        "eks_network_nat": "single",
        "efs_filesystem_options": {"throughput_mode": "bursting"},
        "efs_filesystem_subnet_ids": subnets[:1],
    }
    aws.clear()
    done = play("eks")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    cluster = eks.describe_cluster(name="muster")["cluster"]
    group = eks.describe_nodegroup(clusterName="muster", nodegroupName="gpu")["nodegroup"]
    assert (cluster["version"], group["version"], group["launchTemplate"]["version"]) == ("1.36", "1.36", "2")
    assert_nodes(aws, {"muster.ml/owner": "muster", "team": "ml"}, size=150)
    writes = aws.writes()
    first = writes.index("eks:UpdateClusterVersion")
    assert first < min(writes.index(f"eks:{one}") for one in ("UpdateNodegroupVersion", "UpdateAddon"))
    assert group["releaseVersion"].startswith("1.36.")
    imaged = eks.describe_nodegroup(clusterName="muster", nodegroupName="imaged")["nodegroup"]
    assert (imaged["version"], imaged["releaseVersion"]) == ("1.36", IMAGES["create_launch_template_version"])
    assert sorted(cluster["resourcesVpcConfig"]["publicAccessCidrs"]) == ["198.51.100.0/24", "203.0.113.0/24"]
    proxy = eks.describe_addon(clusterName="muster", addonName="kube-proxy")["addon"]["addonVersion"]
    assert proxy.startswith("v1.36.")
    assert cluster["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert cluster["encryptionConfig"][0]["provider"]["keyArn"] == key
    assert_script(aws, key)
    assert cluster["tags"] == group["tags"] == {"muster.ml/owner": "muster", "team": "ml"}
    assert (group["scalingConfig"]["maxSize"], group["labels"], group["taints"]) == (8, {"pool": "big"}, [])
    found = eks.list_associated_access_policies(clusterName="muster", principalArn=VIEWER["principal_arn"])
    assert [row["policyArn"] for row in found["associatedAccessPolicies"]] == [VIEWER["policies"][0]["policy_arn"]]
    attached = iam.list_attached_role_policies(RoleName="muster-eks-node")["AttachedPolicies"]
    arns = [row["PolicyArn"] for row in attached]
    assert (shell in arns, AGENT in arns) == (True, False)
    system = efs.describe_file_systems(CreationToken="muster")["FileSystems"][0]
    targets = efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]
    assert (system["ThroughputMode"], [row["SubnetId"] for row in targets]) == ("bursting", subnets[:1])
    assert {way for _zone, way in ways_out(aws)} == {"internet", f"{REGION}a"}
    assert (len(holdings(aws)["NAT gateway"]), len(ec2.describe_addresses()["Addresses"])) == (1, 1)
    assert eks.list_pod_identity_associations(clusterName="muster")["associations"] == []
    issuer = cluster["identity"]["oidc"]["issuer"].removeprefix("https://")
    driver = ["kube-system:efs-csi-controller-sa", "kube-system:efs-csi-node-sa"]
    for role, who in (("artifacts-read", ["ml:elastic"]), ("efs-csi", driver)):
        trust = iam.get_role(RoleName=f"muster-{role}")["Role"]["AssumeRolePolicyDocument"]["Statement"]
        assert [row["Action"] for row in trust] == ["sts:AssumeRoleWithWebIdentity"]
        subject = trust[0]["Condition"]["StringEquals"][f"{issuer}:sub"]
        assert subject in ([f"system:serviceaccount:{one}" for one in who], f"system:serviceaccount:{who[0]}")


@pytest.mark.prove
def test_pods_read_the_encrypted_script_by_their_new_way_only(play: Play) -> None:
    assert read_in_a_pod(play, "irsa")[1] == "print('epoch 1')\n"
    for how, account in (("irsa", "ml:default"), ("pod_identity", "ml:elastic")):
        log, content = read_in_a_pod(play, how, account)
        assert ("credentials of the ServiceAccount: the server answers 40" in log, content) == (True, "")


# Shows row 004.4.
@pytest.mark.prove
def test_both_service_accounts_of_the_driver_become_its_role(play: Play, aws: Simulator) -> None:
    sts, role = aws.client("sts"), "arn:aws:iam::123456789012:role/muster-efs-csi"
    for account in ("kube-system:efs-csi-controller-sa", "kube-system:efs-csi-node-sa"):
        pod_environment(aws, play.api_server, play.folder, "irsa", account, role)
        token = (play.folder / "pod-token").read_text(encoding="utf-8")
        keys = sts.assume_role_with_web_identity(RoleArn=role, RoleSessionName="driver", WebIdentityToken=token)
        assert keys["Credentials"]["AccessKeyId"]


@pytest.mark.prove
def test_after_the_changes_nothing_is_changed(play: Play, aws: Simulator) -> None:
    aws.clear()
    again = play("eks")
    assert (again.returncode, recap(again)["changed"], aws.attempts()) == (0, 0, []), again.stdout[-3000:]


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["role", "add-on", "access entry"])
def test_what_is_not_ours_is_refused_and_left_alone(play: Play, aws: Simulator, kind: str) -> None:
    """One after the other loses its tag, as if somebody else had made it."""
    iam, eks = aws.client("iam"), aws.client("eks")
    role, tag = "muster-eks-node", {"muster.ml/owner": "muster"}
    addon = eks.describe_addon(clusterName="muster", addonName="coredns")["addon"]["addonArn"]
    entry = eks.describe_access_entry(clusterName="muster", principalArn=VIEWER["principal_arn"])["accessEntry"]
    arn, part, message = {
        "role": ("", "eks_nodegroups", f"There is an IAM role {role} that Muster did not create"),
        "add-on": (addon, "eks_nodegroups", "EKS add-on coredns of cluster muster exists and does not carry the tag"),
        "access entry": (entry["accessEntryArn"], "eks_cluster_configure", "another owner created it"),
    }[kind]
    if arn:
        eks.untag_resource(resourceArn=arn, tagKeys=list(tag))
    else:
        iam.untag_role(RoleName=role, TagKeys=list(tag))
    aws.clear()
    done = play("eks", "--tags", part)
    assert (recap(done)["failed"], recap(done)["changed"], aws.attempts()) == (1, 0, []), done.stdout[-3000:]
    assert message in " ".join(done.stdout.split())
    if arn:
        eks.tag_resource(resourceArn=arn, tags=tag)
    else:
        iam.tag_role(RoleName=role, Tags=[{"Key": key, "Value": value} for key, value in tag.items()])


@pytest.mark.prove
def test_a_kubeconfig_of_somebody_elses_is_refused_and_left_alone(play: Play, aws: Simulator, folder: Path) -> None:
    kubeconfig = folder / "theirs.kubeconfig"
    adopted = {
        "muster_eks_name": "theirs",
        "muster_kubeconfig": str(kubeconfig),
        "muster_eks_identity": "pod_identity",
        "eks_manage_cluster": False,
        "eks_nodegroups_groups": [{**SYSTEM, "name": "ours"}],
        "efs_filesystem_subnet_ids": [],
    }
    kubeconfig.write_text("somebody else's\n", encoding="utf-8")
    aws.clear()
    refused = play("eks", **adopted)
    assert (recap(refused)["failed"], aws.attempts()) == (1, [])
    assert "is not the kubeconfig that Muster writes for theirs" in " ".join(refused.stdout.split())
    assert kubeconfig.read_text(encoding="utf-8") == "somebody else's\n"


# Variables of hosts: those of a group in this file would lose against inventories/eks/group_vars/all.yml.
ADOPTED = """
muster_clusters:
  hosts:
    # eksctl leaves a provider of OpenID Connect, and no agent of Pod Identity.
    eksctl: &adopted
      ansible_connection: local
      ansible_python_interpreter: "{{ ansible_playbook_python }}"
      eks_manage_cluster: false
      efs_filesystem_subnet_ids: []
      muster_eks_name: "{{ inventory_hostname }}"
      muster_eks_identity: irsa
    terraform: {<<: *adopted, muster_eks_identity: pod_identity}
    auto: {<<: *adopted, muster_eks_identity: pod_identity, eks_manage_nodegroups: false}
"""


@pytest.mark.prove
def test_clusters_of_eksctl_terraform_and_auto_mode_are_used_and_left_as_they_were(
    play: Play, aws: Simulator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once, each a host. The version of the inventory is that of another cluster: nodes can only have that of their own."""
    hosts = folder / "adopted.yml"
    hosts.write_text(ADOPTED, encoding="utf-8")
    monkeypatch.setattr(play, "clusters", SHAPES)
    own = {key: value for key, value in play.settings.items() if key not in ("muster_kubeconfig", "muster_eks_identity", *OF_OURS)}
    monkeypatch.setattr(play, "settings", own)
    options = ("-i", str(hosts), "-e", f"muster_kubeconfig={folder}/{{{{ inventory_hostname }}}}.kubeconfig")
    there = holdings(aws)
    done = play("eks", *options, eks_nodegroups_groups=[{**SYSTEM, "name": "ours"}])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    now = holdings(aws)
    for kind, rows in there.items():
        assert {name: row for name, row in now[kind].items() if name in rows} == rows, kind
    assert now["node group"].keys() - there["node group"].keys() == {"eksctl/ours", "terraform/ours"}
    for kind in ("VPC", "cluster", "add-on", "OpenID Connect provider"):
        assert now[kind] == there[kind]
    assert len(now["mount target"]) - len(there["mount target"]) == 6
    aws.clear()
    again = play("eks", *options, eks_nodegroups_groups=[{**SYSTEM, "name": "ours"}])
    assert (again.returncode, aws.attempts()) == (0, []), again.stdout[-3000:]
    pod = {"metadata": {"name": "web", "namespace": "theirs"}, "spec": {"nodeName": "theirs"}}
    cluster = play.api_server.cluster
    cluster.add(node("theirs", **{"eks.amazonaws.com/nodegroup": "ours"}), {"apiVersion": "v1", "kind": "Pod", **pod})
    kept = play("eks_teardown", *options, "--limit", "eksctl", eks_nodegroups_groups=[])
    assert (recap(kept)["failed"], aws.attempts()) == (1, []), kept.stdout[-3000:]
    assert "A node group of EKS cluster eksctl stays, and nothing in the cloud was removed: it has what is not of this" in play.said()
    cluster.objects = {key: item for key, item in cluster.objects.items() if "theirs" not in key}
    gone = play("eks_teardown", *options, **DATA_TOO, eks_nodegroups_groups=[])
    assert gone.returncode == 0, gone.stdout[-3000:] + gone.stderr[-500:]
    assert holdings(aws) == there
    assert (folder / "eksctl.kubeconfig").exists()


def test_a_cluster_that_others_use_stays_unless_told(play: Play, aws: Simulator) -> None:
    """So does one that cannot be asked. A plan says the same."""
    cluster = play.api_server.cluster
    cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "diary", "namespace": "theirs"}})
    aws.clear()
    for options in (["--check"], []):
        done = play("eks_teardown", *options)
        assert (recap(done)["failed"], aws.attempts()) == (1, []), done.stdout[-3000:]
        assert "EKS cluster muster stays, and nothing in the cloud was removed: " in play.said()
        assert "it has what is not of this inventory: namespace theirs. " in play.said()
    told = play("eks_teardown", "--check", muster_delete_cluster=True)
    assert (told.returncode, recap(told)["changed"] > 9) == (0, True), told.stdout[-3000:]
    cluster.objects = {key: item for key, item in cluster.objects.items() if "theirs" not in key}
    play.api_server.token = "another"
    done = play("eks_teardown")
    play.api_server.token = TOKEN
    assert (recap(done)["failed"], aws.attempts()) == (1, []), done.stdout[-3000:]
    assert "What else is on EKS cluster muster is not known, and nothing in the cloud was removed: " in play.said()


@pytest.fixture(scope="module")
def interface(aws: Simulator) -> None:
    """As of a node that ended long ago: EC2 forgets instances after an hour."""
    config = aws.client("eks").describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]
    tags = [{"Key": "node.k8s.amazonaws.com/instance_id", "Value": "i-00000000000000000"}]
    aws.client("ec2").create_network_interface(
        SubnetId=config["subnetIds"][0],
        Groups=[config["clusterSecurityGroupId"]],
        TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}],
    )


@pytest.mark.prove
@pytest.mark.usefixtures("interface")
def test_a_teardown_is_killed_somewhere(play: Play, aws: Simulator) -> None:
    """The next one goes on."""
    aws.clear()
    assert play.killed("eks_teardown", DRAW.randrange(12))


@pytest.mark.usefixtures("interface")
def test_teardown_takes_what_is_ours_and_keeps_data(play: Play, aws: Simulator, before: dict[str, Any]) -> None:
    """Something in a subnet, the VPC and a security group lingers; each is tried again. Nodes go before what their pods have mounted."""
    for operation in ("DeleteSubnet", "DeleteSecurityGroup", "DetachInternetGateway", "DeleteVpc"):
        aws.fault("dependency", operation)
    done = play("eks_teardown")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert aws.ask("faults") == []
    writes = aws.writes()
    assert writes.index("eks:DeleteNodegroup") < writes.index("efs:DeleteMountTarget") < writes.index("eks:DeleteCluster")
    after = holdings(aws)
    left = {kind: after[kind].keys() - before[kind].keys() for kind in after if after[kind] != before[kind]}
    assert {kind: len(names) for kind, names in left.items()} == {"file system": 1, "bucket": 1, "log group": 1}
    assert "Left in the account: 3 resources" in done.stdout
    for kind, made in (("elasticfilesystem file-system", "Muster"), ("s3", "Muster"), ("logs log-group", "EKS, which never deletes them")):
        assert re.search(rf"    {kind} \S+ \(made by {made}\)", done.stdout), done.stdout[-1500:]
    assert not Path(play.settings["muster_kubeconfig"]).exists()


@pytest.mark.prove
def test_teardown_with_data_leaves_the_account_as_it_was(play: Play, aws: Simulator, before: dict[str, Any]) -> None:
    done = play("eks_teardown", **DATA_TOO)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert holdings(aws) == before
    assert "Left in the account: 1 resources" in done.stdout
    assert "    backup recovery-point " in done.stdout


@pytest.mark.prove
def test_where_nothing_is_left_teardown_does_nothing(play: Play, aws: Simulator) -> None:
    aws.clear()
    again = play("eks_teardown", **DATA_TOO)
    assert (again.returncode, recap(again)["changed"], aws.attempts()) == (0, 0, [])


def test_no_output_showed_a_secret(play: Play) -> None:
    assert len(play.outputs) >= 4
    for output in play.outputs:
        assert SECRET not in output
        assert TOKEN not in output
        assert "X-Amz-Signature" not in output


# What this life of an account does not need, and why it is in the policies all the same.
OTHERWISE = {
    "ec2:ModifyNetworkInterfaceAttribute": "the security group of the file system was deleted by hand, and is made again",
    "ec2:ReplaceRouteTableAssociation": "a subnet was given another route table by hand",
    "eks:DeleteAddon": "an add-on that failed is made again; teardown.yml deletes the one of the shared storage",
    "eks:DisassociateAccessPolicy": "an access entry loses a policy",
    "eks:UpdateAccessEntry": "an access entry gets other groups",
    "eks:UpdateClusterConfig": "deletion protection is taken away",
    "elasticfilesystem:ModifyMountTargetSecurityGroups": "as for network interfaces",
}


@pytest.mark.prove
@pytest.mark.parametrize("phase", ["check", "apply", "teardown"])
def test_every_statement_was_needed_and_its_lack_is_told(play: Play, aws: Simulator, phase: str) -> None:
    """All requests of this file's runs, judged again with one statement less."""
    asked = aws.needed()
    rows = [row for name in asked for row in asked[name] if phase in ("check", name)]  # every run reads what a plan reads, and more
    needed = [Need(row["action"], row["resource"], tuple(map(tuple, row["context"]))) for row in rows]
    policies = [policy for name in NAMES for policy in named(play.policies[phase], name)]
    if phase == "check":
        needed = [need for need in needed if allows(policies, need)]
    assert [need for need in needed if not allows(policies, need)] == []
    for statement in play.policies[phase][-1]["Statement"]:
        less = without(policies, statement["Sid"])
        lacks = [need for need in needed if not allows(less, need)]
        assert lacks, f"{statement['Sid']} was not needed"
        for need in lacks:
            said = (
                denied(Asked("eks", "X", REGION, {}), need).message
                if need.action.startswith("eks")
                else denied(Asked("ec2", "X", REGION, {}), need).message
            )
            told = explained(said, POLICIES)
            assert len(told) == 1
            assert f"statement {statement['Sid']})" in told[0]


@pytest.mark.prove
def test_no_policy_has_an_action_that_nothing_needed(play: Play, aws: Simulator) -> None:
    needed, idle = aws.needed(), set()
    for phase, policies in play.policies.items():
        rows = [row for name in needed if phase in ("check", name) for row in needed[name]]
        written = [one for statement in policies[-1]["Statement"] for one in statement["Action"]]
        idle |= {one for one in written if not any(fnmatchcase(row["action"], one) for row in rows)}
    assert idle == OTHERWISE.keys()


def test_a_policy_fits_into_a_managed_policy(play: Play) -> None:
    """IAM user guide, "IAM and AWS STS quotas": 6,144 characters, without white space."""
    for policies in play.policies.values():
        assert len(json.dumps(policies[-1], separators=(",", ":"))) < 6144
