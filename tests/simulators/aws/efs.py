# SPDX-License-Identifier: GPL-3.0-or-later
"""EFS: file systems, mount targets and access points with their states, and what hangs on what.

moto has EFS, but without states, backup policies, updates and the errors of deleting what is not there. Rules are those
of the documentation in botocore 1.44.5 (data/efs/2015-02-01/service-2.json) unless another source stands beside one.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .api import Asked, Refused
from .eks import nodegroups
from .journal import JOURNAL
from .state import ACCOUNT, SETTINGS, Body, Item, Table, now, number, plug, subnets, unplug

__all__ = ["SETTINGS", "answer"]
STATE = "LifeCycleState"


@dataclass
class Account:
    region: str
    systems: Table = field(default_factory=Table)
    targets: Table = field(default_factory=Table)
    points: Table = field(default_factory=Table)
    backups: list[Body] = field(default_factory=list)

    def arn(self, kind: str, name: str) -> str:
        return f"arn:aws:elasticfilesystem:{self.region}:{ACCOUNT}:{kind}/{name}"

    def system(self, name: str) -> Item:
        found = self.systems.get(name)
        if not found:
            raise Refused("FileSystemNotFound", f"File system '{name}' does not exist.", 404)
        return found

    def available(self, name: str) -> Item:
        found = self.system(name)
        if found.status != "available":
            raise Refused("IncorrectFileSystemLifeCycleState", f"File system '{name}' is {found.status}.", 409)
        return found


REGIONS: dict[str, Account] = {}


def answer(asked: Asked) -> Body:
    handler = OPERATIONS.get(asked.operation)
    if handler is None:
        raise Refused("NotSimulated", f"{asked.operation} is not simulated", 501)
    return handler(REGIONS.setdefault(asked.region, Account(asked.region)), asked.params)


def _tags(rows: Iterable[Body] | None) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows or []}


def _show(item: Item) -> Body:
    body = {k: copy.deepcopy(v) for k, v in item.body.items() if not k.startswith("_")}
    if "_tags" in item.body:
        tags = item.body["_tags"]
        body["Tags"] = [{"Key": k, "Value": v} for k, v in tags.items()]
        if "Name" in tags:
            body["Name"] = tags["Name"]
    return body


def create_system(account: Account, params: Body) -> Body:
    token = params["CreationToken"]
    for item in account.systems.items.values():
        if item.body["CreationToken"] == token:
            name = item.body["FileSystemId"]
            raise Refused("FileSystemAlreadyExists", f"File system '{name}' already exists with creation token '{token}'", 409)
    name = f"fs-{number()}"
    mode = params.get("ThroughputMode", "bursting")
    if (mode == "provisioned") != ("ProvisionedThroughputInMibps" in params):
        raise Refused("BadRequest", "Provisioned throughput goes with the throughput mode provisioned and with no other")
    item = Item(
        {
            "OwnerId": ACCOUNT,
            "CreationToken": token,
            "FileSystemId": name,
            "FileSystemArn": account.arn("file-system", name),
            "CreationTime": now(),
            "NumberOfMountTargets": 0,
            "SizeInBytes": {"Value": 6144},
            "PerformanceMode": params.get("PerformanceMode", "generalPurpose"),
            "Encrypted": params.get("Encrypted", False),
            "ThroughputMode": mode,
            **{k: params[k] for k in ("KmsKeyId", "ProvisionedThroughputInMibps") if k in params},
            "_tags": _tags(params.get("Tags")),
            "_backup": "ENABLED" if params.get("Backup") else "DISABLED",
            "_lifecycle": [],
        },
        status_key=STATE,
    )
    account.systems.items[name] = item
    item.start("creating", "available")
    return _show(item)


def describe_systems(account: Account, params: Body) -> Body:
    if name := params.get("FileSystemId"):
        account.system(name).look()
        found = [account.system(name)]
    else:
        for item in list(account.systems.items.values()):
            item.look()
        found = list(account.systems.items.values())
    token = params.get("CreationToken")
    if JOURNAL.fault("stale", "DescribeFileSystems"):
        return {"FileSystems": []}
    return {"FileSystems": [_show(i) for i in found if token in (None, i.body["CreationToken"])]}


def update_system(account: Account, params: Body) -> Body:
    item = account.available(params["FileSystemId"])
    given = {k: params[k] for k in ("ThroughputMode", "ProvisionedThroughputInMibps") if k in params}
    item.start("updating", "available", lambda: item.body.update(given))
    return _show(item)


def tagged(region: str) -> Iterator[tuple[str, dict[str, str]]]:
    """ARN and tags of everything that has tags."""
    account = REGIONS.get(region, Account(region))
    for table, key in ((account.systems, "FileSystemArn"), (account.points, "AccessPointArn")):
        yield from ((item.body[key], item.body["_tags"]) for item in table.items.values())
    yield from ((point["RecoveryPointArn"], point["Tags"]) for point in account.backups)


def _keep_backup(account: Account, item: Item) -> None:
    """Recovery points outlive their file system, with its tags (EFS user guide, "Backing up EFS file systems"; AWS Backup developer
    guide, "Copy tags onto backups"). On AWS there is one of each night, here one of the last."""
    if item.body["_backup"] == "ENABLED":
        arn = f"arn:aws:backup:{account.region}:{ACCOUNT}:recovery-point:{number()}"
        account.backups.append({"RecoveryPointArn": arn, "Tags": dict(item.body["_tags"])})


def delete_system(account: Account, params: Body) -> Body:
    item = account.system(params["FileSystemId"])
    if item.body["NumberOfMountTargets"]:
        raise Refused("FileSystemInUse", f"File system '{params['FileSystemId']}' has mount targets", 409)
    points = [n for n, p in account.points.items.items() if p.body["FileSystemId"] == params["FileSystemId"]]
    _keep_backup(account, item)

    def over() -> None:
        for name in points:  # access points go with their file system (user guide, "Deleting an Amazon EFS file system")
            account.points.items.pop(name, None)

    account.systems.remove_later(params["FileSystemId"], over)
    return {}


def create_target(account: Account, params: Body) -> Body:
    system = account.available(params["FileSystemId"])
    subnet = subnets(account.region, [params["SubnetId"]])[0]
    mine = _targets_of(account, params["FileSystemId"])
    if any(t.body["AvailabilityZoneName"] == subnet.availability_zone for t in mine):
        raise Refused("MountTargetConflict", "mount target already exists in this AZ", 409)
    if any(t.body["VpcId"] != subnet.vpc_id for t in mine):
        raise Refused("MountTargetConflict", "requested subnet is not in the VPC of the other mount targets", 409)
    name = f"fsmt-{number()}"
    groups = params.get("SecurityGroups", [])
    interface = plug(account.region, subnet, groups, f"EFS mount target for {params['FileSystemId']} ({name})")
    item = Item(
        {
            "OwnerId": ACCOUNT,
            "MountTargetId": name,
            "FileSystemId": params["FileSystemId"],
            "SubnetId": subnet.id,
            "IpAddress": params.get("IpAddress", "10.0.0.10"),
            "NetworkInterfaceId": interface,
            "AvailabilityZoneName": subnet.availability_zone,
            "VpcId": subnet.vpc_id,
            "_groups": groups,
        },
        status_key=STATE,
    )
    account.targets.items[name] = item
    system.body["NumberOfMountTargets"] += 1
    # LifeCycleState of botocore has both ends.
    item.start("creating", "error" if JOURNAL.fault("create_failed", "CreateMountTarget") else "available")
    return _show(item)


def _targets_of(account: Account, system: str) -> list[Item]:
    return [t for t in account.targets.items.values() if t.body["FileSystemId"] == system]


def _target(account: Account, name: str) -> Item:
    found = account.targets.get(name)
    if not found:
        raise Refused("MountTargetNotFound", f"Mount target '{name}' does not exist.", 404)
    return found


def describe_targets(account: Account, params: Body) -> Body:
    account.system(params["FileSystemId"])
    for item in _targets_of(account, params["FileSystemId"]):
        item.look()
    return {"MountTargets": [_show(item) for item in _targets_of(account, params["FileSystemId"])]}


def delete_target(account: Account, params: Body) -> Body:
    item = _target(account, params["MountTargetId"])

    def over() -> None:
        unplug(account.region, [item.body["NetworkInterfaceId"]])
        system = account.system(item.body["FileSystemId"])
        system.body["NumberOfMountTargets"] -= 1
        if not system.body["NumberOfMountTargets"]:
            nodegroups.hang(account.region, item.body["VpcId"])

    account.targets.remove_later(params["MountTargetId"], over)
    return {}


def _with_interface(account: Account, name: str) -> Item:
    """The network interface goes before the mount target does (status and message: github.com/hashicorp/terraform/issues/12677)."""
    item = _target(account, name)
    if item.status == "deleting":
        raise Refused("IncorrectMountTargetState", f"Mount target does not have a network interface: {name}", 409)
    return item


def target_groups(account: Account, params: Body) -> Body:
    return {"SecurityGroups": list(_with_interface(account, params["MountTargetId"]).body["_groups"])}


def change_target_groups(account: Account, params: Body) -> Body:
    _with_interface(account, params["MountTargetId"]).body["_groups"] = params.get("SecurityGroups", [])
    return {}


def create_point(account: Account, params: Body) -> Body:
    account.available(params["FileSystemId"])
    name = f"fsap-{number()}"
    item = Item(
        {
            "ClientToken": params["ClientToken"],
            "AccessPointId": name,
            "AccessPointArn": account.arn("access-point", name),
            "FileSystemId": params["FileSystemId"],
            "OwnerId": ACCOUNT,
            **{k: params[k] for k in ("PosixUser",) if k in params},
            "RootDirectory": params.get("RootDirectory", {"Path": "/"}),
            "_tags": _tags(params.get("Tags")),
        },
        status_key=STATE,
    )
    account.points.items[name] = item
    item.start("creating", "available")
    return _show(item)


def _point(account: Account, name: str) -> Item:
    found = account.points.get(name)
    if not found:
        raise Refused("AccessPointNotFound", f"Access Point '{name}' does not exist.", 404)
    return found


def describe_points(account: Account, params: Body) -> Body:
    account.system(params["FileSystemId"])
    for item in list(account.points.items.values()):
        item.look()
    mine = [p for p in account.points.items.values() if p.body["FileSystemId"] == params["FileSystemId"]]
    return {"AccessPoints": [_show(item) for item in mine]}


def delete_point(account: Account, params: Body) -> Body:
    _point(account, params["AccessPointId"])
    account.points.remove_later(params["AccessPointId"])
    return {}


def describe_backup(account: Account, params: Body) -> Body:
    return {"BackupPolicy": {"Status": account.system(params["FileSystemId"]).body["_backup"]}}


def put_backup(account: Account, params: Body) -> Body:
    account.system(params["FileSystemId"]).body["_backup"] = params["BackupPolicy"]["Status"]
    return describe_backup(account, params)


def describe_lifecycle(account: Account, params: Body) -> Body:
    return {"LifecyclePolicies": account.system(params["FileSystemId"]).body["_lifecycle"]}


def put_lifecycle(account: Account, params: Body) -> Body:
    account.system(params["FileSystemId"]).body["_lifecycle"] = params["LifecyclePolicies"]
    return describe_lifecycle(account, params)


def _tagged(account: Account, resource: str) -> dict[str, str]:
    name = resource.rsplit("/", 1)[-1]
    item = _point(account, name) if name.startswith("fsap-") else account.system(name)
    tags: dict[str, str] = item.body["_tags"]
    return tags


def tag(account: Account, params: Body) -> Body:
    _tagged(account, params["ResourceId"]).update(_tags(params["Tags"]))
    return {}


def untag(account: Account, params: Body) -> Body:
    tags = _tagged(account, params["ResourceId"])
    for key in params["TagKeys"]:
        tags.pop(key, None)
    return {}


OPERATIONS: dict[str, Callable[[Account, Body], Any]] = {
    "CreateFileSystem": create_system,
    "DescribeFileSystems": describe_systems,
    "UpdateFileSystem": update_system,
    "DeleteFileSystem": delete_system,
    "CreateMountTarget": create_target,
    "DescribeMountTargets": describe_targets,
    "DeleteMountTarget": delete_target,
    "DescribeMountTargetSecurityGroups": target_groups,
    "ModifyMountTargetSecurityGroups": change_target_groups,
    "CreateAccessPoint": create_point,
    "DescribeAccessPoints": describe_points,
    "DeleteAccessPoint": delete_point,
    "DescribeBackupPolicy": describe_backup,
    "PutBackupPolicy": put_backup,
    "DescribeLifecycleConfiguration": describe_lifecycle,
    "PutLifecycleConfiguration": put_lifecycle,
    "TagResource": tag,
    "UntagResource": untag,
}
