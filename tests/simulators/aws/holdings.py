# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that an account has, kind by kind, as boto3 lists it: what a teardown has to leave as it was before.

python -m simulators.aws.holdings http://127.0.0.1:4566
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .client import Account

Body = dict[str, Any]
# Counters of AWS's own, and what moto counts on.
RESTLESS = ("AvailableIpAddressCount", "ResponseMetadata", "RoleLastUsed", "SizeInBytes", "modifiedAt", "storedBytes")

# kind: (operation, key of its list, key of the id)
EC2 = {
    "VPC": ("describe_vpcs", "Vpcs", "VpcId"),
    "subnet": ("describe_subnets", "Subnets", "SubnetId"),
    "internet gateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "NAT gateway": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "address": ("describe_addresses", "Addresses", "AllocationId"),
    "route table": ("describe_route_tables", "RouteTables", "RouteTableId"),
    "security group": ("describe_security_groups", "SecurityGroups", "GroupId"),
    "network interface": ("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    "launch template": ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "instance": ("describe_instances", "Reservations", "ReservationId"),
    "volume": ("describe_volumes", "Volumes", "VolumeId"),
    "VPC endpoint": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
}


def holdings(aws: Account) -> dict[str, dict[str, Any]]:
    """Kind of resource: {id: its description}."""
    ec2 = aws.client("ec2")
    found = {kind: _rows(getattr(ec2, call)()[key], name) for kind, (call, key, name) in EC2.items()}
    found["instance"] = {i: r for i, r in found["instance"].items() if r["Instances"][0]["State"]["Name"] != "terminated"}
    # One that failed goes by itself within an hour (VPC user guide, "Troubleshoot NAT gateways").
    ended = ("deleted", "deleting", "failed")
    found["NAT gateway"] = {i: g for i, g in found["NAT gateway"].items() if g["State"] not in ended}
    logs = aws.client("logs").describe_log_groups()["logGroups"]
    found["log group"] = _rows(logs, "logGroupName")
    return found | _iam(aws.client("iam")) | _eks(aws.client("eks")) | _storage(aws.client("efs"), aws.client("s3"))


def _rows(rows: Iterable[Body], name: str) -> dict[str, Any]:
    return {row[name]: _still(row) for row in rows}


def _still(value: Any) -> Any:
    """Without what moves by itself."""
    if isinstance(value, dict):
        return {key: _still(item) for key, item in value.items() if key not in RESTLESS}
    return [_still(item) for item in value] if isinstance(value, list) else value


def _iam(iam: Any) -> dict[str, dict[str, Any]]:
    providers = iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]
    return {
        "role": {row["RoleName"]: _role(iam, row) for row in iam.list_roles()["Roles"]},
        "policy": _rows(iam.list_policies(Scope="Local")["Policies"], "Arn"),
        "instance profile": _rows(iam.list_instance_profiles()["InstanceProfiles"], "InstanceProfileName"),
        "OpenID Connect provider": _rows(providers, "Arn"),
    }


def _role(iam: Any, row: Body) -> Body:
    attached = iam.list_attached_role_policies(RoleName=row["RoleName"])["AttachedPolicies"]
    return {**_still(row), "attached": attached, "tags": iam.list_role_tags(RoleName=row["RoleName"])["Tags"]}


def _eks(eks: Any) -> dict[str, dict[str, Any]]:
    names = eks.list_clusters()["clusters"]

    def parts(listing: str, key: str, describe: str, parameter: str, one: str) -> dict[str, Any]:
        read: Callable[..., Body] = getattr(eks, describe)
        return {
            f"{cluster}/{name}": _still(read(clusterName=cluster, **{parameter: name})[one])
            for cluster in names
            for name in getattr(eks, listing)(clusterName=cluster)[key]
        }

    identities = [row for name in names for row in eks.list_pod_identity_associations(clusterName=name)["associations"]]
    return {
        "cluster": {name: _still(eks.describe_cluster(name=name)["cluster"]) for name in names},
        "node group": parts("list_nodegroups", "nodegroups", "describe_nodegroup", "nodegroupName", "nodegroup"),
        "add-on": parts("list_addons", "addons", "describe_addon", "addonName", "addon"),
        "pod identity": _rows(identities, "associationId"),
    }


def _storage(efs: Any, s3: Any) -> dict[str, dict[str, Any]]:
    systems = _rows(efs.describe_file_systems()["FileSystems"], "FileSystemId")
    targets = [row for name in systems for row in efs.describe_mount_targets(FileSystemId=name)["MountTargets"]]
    points = [row for name in systems for row in efs.describe_access_points(FileSystemId=name)["AccessPoints"]]
    buckets = [row["Name"] for row in s3.list_buckets()["Buckets"]]
    objects = {name: s3.list_objects_v2(Bucket=name).get("Contents", []) for name in buckets}
    return {
        "file system": systems,
        "mount target": _rows(targets, "MountTargetId"),
        "access point": _rows(points, "AccessPointId"),
        "bucket": {name: [(row["Key"], row["ETag"]) for row in objects[name]] for name in buckets},
    }


if __name__ == "__main__":
    print(json.dumps(holdings(Account(sys.argv[1])), default=str))
