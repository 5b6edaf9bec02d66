# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters as others leave them: eksctl, the Terraform module terraform-aws-modules/eks, and EKS Auto Mode.

Written down from their documentation, not recorded from clusters: eksctl's user guide ("Addons": since 0.184 the network add-ons are
EKS add-ons; "Launch template support"; "Manage IAM users and roles": API_AND_CONFIG_MAP); README and variables.tf of the module, version
20 (access entries beside the config map, a key for Secrets, a launch template for each group, add-ons self-managed unless asked for);
EKS user guide, "Create an EKS Auto Mode cluster" (three capabilities, no add-ons, node pools in place of groups).
"""

import json
from dataclasses import dataclass, field
from typing import Any

from .client import REGION, Account

Body = dict[str, Any]
NAMES = ("eksctl", "terraform", "auto")


@dataclass
class Maker:
    """Makes one shape with boto3, in a VPC of its own."""

    aws: Account
    name: str
    cidr: int
    subnets: list[str] = field(default_factory=list)

    def role(self, who: str, policy: str) -> str:
        iam, name = self.aws.client("iam"), f"{self.name}.{who}"
        trust = {"Effect": "Allow", "Principal": {"Service": f"{who}.amazonaws.com"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
        return str(arn)

    def network(self, tags: dict[str, str]) -> None:
        ec2 = self.aws.client("ec2")
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        vpc = ec2.create_vpc(CidrBlock=f"10.{self.cidr}.0.0/16")["Vpc"]["VpcId"]
        for number, zone in enumerate("ab"):
            subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.{self.cidr}.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")
            self.subnets.append(subnet["Subnet"]["SubnetId"])
        if rows:
            ec2.create_tags(Resources=[vpc, *self.subnets], Tags=rows)

    def cluster(self, **more: Any) -> None:
        eks = self.aws.client("eks")
        config = {"subnetIds": self.subnets, **more.pop("resourcesVpcConfig", {})}
        role = self.role("eks", "AmazonEKSClusterPolicy")
        eks.create_cluster(name=self.name, version="1.34", roleArn=role, resourcesVpcConfig=config, **more)
        while eks.describe_cluster(name=self.name)["cluster"]["status"] != "ACTIVE":
            """The simulator goes on with each look."""

    def nodes(self, group: str, tags: dict[str, str]) -> None:
        """With a launch template of their maker's."""
        ec2 = self.aws.client("ec2")
        specs = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
        made = ec2.create_launch_template(
            LaunchTemplateName=f"{self.name}-nodegroup-{group}",
            LaunchTemplateData={"MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}, "TagSpecifications": specs},
        )["LaunchTemplate"]["LaunchTemplateId"]
        self.aws.client("eks").create_nodegroup(
            clusterName=self.name, nodegroupName=group, nodeRole=self.role("ec2", "AmazonEKSWorkerNodePolicy"), subnets=self.subnets,
            launchTemplate={"id": made, "version": "1"}, tags=tags,
            # EKS takes no label of k8s.io, which eksctl has among its tags only.
            labels={key: value for key, value in tags.items() if "k8s.io/" not in key},
            scalingConfig={"minSize": 1, "maxSize": 2, "desiredSize": 1},
        )  # fmt: skip

    def addons(self, *names: str) -> None:
        for name in names:
            self.aws.client("eks").create_addon(clusterName=self.name, addonName=name, resolveConflicts="OVERWRITE")


def eksctl(aws: Account) -> None:
    maker = Maker(aws, "eksctl", 91)
    tags = {
        "alpha.eksctl.io/cluster-name": "eksctl",
        "alpha.eksctl.io/eksctl-version": "0.210.0",
        "eksctl.cluster.k8s.io/v1alpha1/cluster-name": "eksctl",
    }
    maker.network(tags)
    maker.cluster(tags=tags, accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"}, bootstrapSelfManagedAddons=False)
    maker.addons("vpc-cni", "kube-proxy")
    maker.nodes("ng-1", tags)
    maker.addons("coredns", "metrics-server")
    issuer = aws.client("eks").describe_cluster(name="eksctl")["cluster"]["identity"]["oidc"]["issuer"]
    aws.client("iam").create_open_id_connect_provider(Url=issuer, ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40])


def terraform(aws: Account) -> None:
    """With self-managed network add-ons, and one of EKS's."""
    maker = Maker(aws, "terraform", 92)
    tags = {"Terraform": "true", "terraform-aws-modules": "eks"}
    maker.network(tags)
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    maker.cluster(
        tags=tags,
        accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"},
        encryptionConfig=[{"resources": ["secrets"], "provider": {"keyArn": key}}],
        resourcesVpcConfig={"endpointPrivateAccess": True, "endpointPublicAccess": True, "publicAccessCidrs": ["203.0.113.0/24"]},
        logging={"clusterLogging": [{"types": ["api", "audit", "authenticator"], "enabled": True}]},
    )
    maker.nodes("default-20260901000000000000000001", tags)
    maker.addons("eks-pod-identity-agent")
    entry = maker.role("deployer", "ReadOnlyAccess")
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    eks = aws.client("eks")
    eks.create_access_entry(clusterName="terraform", principalArn=entry, tags=tags)
    eks.associate_access_policy(clusterName="terraform", principalArn=entry, policyArn=policy, accessScope={"type": "cluster"})


def auto(aws: Account) -> None:
    maker = Maker(aws, "auto", 93)
    maker.network({})
    maker.cluster(
        accessConfig={"authenticationMode": "API"},
        bootstrapSelfManagedAddons=False,
        computeConfig={
            "enabled": True,
            "nodePools": ["general-purpose", "system"],
            "nodeRoleArn": maker.role("ec2", "AmazonEKSWorkerNodeMinimalPolicy"),
        },
        kubernetesNetworkConfig={"elasticLoadBalancing": {"enabled": True}},
        storageConfig={"blockStorage": {"enabled": True}},
    )


def make_all(aws: Account) -> None:
    for shape in (eksctl, terraform, auto):
        shape(aws)
