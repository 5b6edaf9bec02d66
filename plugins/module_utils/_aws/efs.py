# SPDX-License-Identifier: GPL-3.0-or-later
"""EFS file systems, with their mount targets, and access points as values."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from .._cloud.plan import GONE, Body, Comparison, Plan, State, creation_plan, printable_request, same_members, without_none
from .._core.errors import InvalidInput
from .api import Api
from .plan import EFS_TAGS, Step, tag_dict, tag_list
from .resource import Resource, status_state

STATE = "LifeCycleState"
READY = ("available",)
BROKEN = ("error",)


Transition = t.Literal[
    "NEVER", "AFTER_1_DAY", "AFTER_7_DAYS", "AFTER_14_DAYS", "AFTER_30_DAYS", "AFTER_60_DAYS", "AFTER_90_DAYS", "AFTER_180_DAYS",
    "AFTER_270_DAYS", "AFTER_365_DAYS",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class EfsFileSystem(Resource):
    """A file system, found by its creation token, which is its name here: EFS allows one per token."""

    BUSY = (
        "is still in use",
        "Remove mount targets that were added meanwhile, and its replication; or run again later: EFS may still see those that have gone",
    )
    LABEL = "EFS file system {name}"
    IDENTITY = ("FileSystemArn", "FileSystemId")
    TAGGING, STATUS = EFS_TAGS, STATE

    name: str
    throughput_mode: t.Literal["bursting", "elastic"] | None = None
    encrypted: bool = True
    backup: bool | None = None
    transition_to_ia: Transition | None = None
    mount_targets: list[Body] | None = None
    delete_data: bool = False

    @property
    def desired_tags(self) -> dict[str, str] | None:
        """The tags, with Name for the console; it is kept when other tags are purged."""
        return None if self.tags is None else {"Name": self.name, **self.tags}

    def read(self, api: Api) -> Body | None:
        found = api.read(self.label, "efs", "describe_file_systems", CreationToken=self.name)
        rows = (found or {}).get("FileSystems", [])
        if not rows:
            return None
        live, named = rows[0], {"FileSystemId": rows[0]["FileSystemId"]}
        targets = api.pages(self.label, "efs", "describe_mount_targets", "MountTargets", **named)
        backup = api.read(self.label, "efs", "describe_backup_policy", **named) or {}
        lifecycle = api.read(self.label, "efs", "describe_lifecycle_configuration", **named) or {}
        return {
            **live,
            "MountTargets": [{**target, "SecurityGroups": self._groups(api, target)} for target in targets],
            "BackupPolicy": backup.get("BackupPolicy", {"Status": "DISABLED"}),
            "LifecyclePolicies": lifecycle.get("LifecyclePolicies", []),
        }

    def _groups(self, api: Api, target: Body) -> list[str]:
        """The security groups of a mount target; none during its deletion, which begins with its interface (hashicorp/terraform#12677)."""
        if target[STATE] == "deleting":
            return []
        request = {"MountTargetId": target["MountTargetId"]}
        found = api.read(self.label, "efs", "describe_mount_target_security_groups", **request)
        return sorted((found or {}).get("SecurityGroups", []))

    def state(self, live: Body | None) -> State:
        """The state of the file system or mount target that is least ready."""
        if live is None:
            return GONE
        states = [status_state(live, READY, BROKEN, STATE)]
        for target in live["MountTargets"]:
            state = status_state(target, READY, BROKEN, STATE)
            states.append(dataclasses.replace(state, seen=f"{state.seen}: mount target in {target['SubnetId']}"))
        return next((s for s in states if s.failure), None) or next((s for s in states if not s.stable), states[0])

    def advice(self, codes: t.Collection[str]) -> str | None:  # noqa: ARG002
        return "EFS does not mend what is in error: delete the mount target and run again; a file system is restored from its backup"

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # every file system counts as full
        """Every file system holds data: EFS knows its size only hours later (EFS API, FileSystemSize), so none can be known to be empty."""
        size = live.get("SizeInBytes", {}).get("Value", 0)
        return f"holds files, {size} bytes when EFS last measured"

    def plan(self, live: Body | None) -> Plan:
        if live is None or self.going(live):
            return self._creation()
        self.refuse_change(
            "Create another file system and copy the data (AWS DataSync)", encrypted=(live.get("Encrypted", False), self.encrypted)
        )
        named = {"FileSystemId": live["FileSystemId"]}
        compare = Comparison()
        steps = self.tag_steps(compare, live, ResourceId=live["FileSystemId"])
        steps += [*self._throughput(compare, live, named), *self._policies(compare, live, named)]
        return compare.plan([*steps, *self._targets(compare, live, named)])

    def _creation(self) -> Plan:
        """Later steps need the ID of the new file system, so they are planned against the one that EFS would create."""
        create = Step("create_file_system", self._create_request(), "create", "efs", "stable")
        named = {"FileSystemId": self.name}
        new: Body = {**named, "MountTargets": [], "BackupPolicy": {"Status": "DISABLED"}, "LifecyclePolicies": []}
        compare = Comparison()
        later = (*self._policies(compare, new, named), *self._targets(compare, new, named))
        return Plan((create,), {}, {**printable_request(create.request), **compare.after}, later)

    def deletions(self, live: Body) -> list[Step]:
        """Delete the mount targets first, because EFS deletes no file system that has any."""
        targets = [self._remove(target) for target in live["MountTargets"]]
        request = {"FileSystemId": live["FileSystemId"]}
        return [*targets, Step("delete_file_system", request, "delete, with its data", "efs", "gone")]

    def _create_request(self) -> Body:
        return without_none(
            {
                "CreationToken": self.name,
                "ThroughputMode": self.throughput_mode,
                "Encrypted": self.encrypted,
                "Tags": tag_list(self.desired_tags or {"Name": self.name}),
            }
        )

    def _throughput(self, compare: Comparison, live: Body, named: Body) -> list[Step]:
        if not compare.differs("throughput_mode", live.get("ThroughputMode", "bursting"), self.throughput_mode):
            return []
        return [Step("update_file_system", {**named, "ThroughputMode": self.throughput_mode}, "throughput", "efs", "stable")]

    def _policies(self, compare: Comparison, live: Body, named: Body) -> list[Step]:
        steps = []
        backup = live["BackupPolicy"]["Status"] in ("ENABLED", "ENABLING")
        if compare.differs("backup", backup, self.backup):
            request = {**named, "BackupPolicy": {"Status": "ENABLED" if self.backup else "DISABLED"}}
            steps.append(Step("put_backup_policy", request, f"backup {'on' if self.backup else 'off'}", "efs"))
        found = (rule["TransitionToIA"] for rule in live["LifecyclePolicies"] if "TransitionToIA" in rule)
        if compare.differs("transition_to_ia", next(found, "NEVER"), self.transition_to_ia):
            others = [rule for rule in live["LifecyclePolicies"] if "TransitionToIA" not in rule]
            ours = [] if self.transition_to_ia == "NEVER" else [{"TransitionToIA": self.transition_to_ia}]
            request = {**named, "LifecyclePolicies": [*ours, *others]}
            steps.append(Step("put_lifecycle_configuration", request, "lifecycle", "efs"))
        return steps

    @staticmethod
    def _remove(target: Body) -> Step:
        says = f"delete mount target in {target['SubnetId']}"
        return Step("delete_mount_target", {"MountTargetId": target["MountTargetId"]}, says, "efs", "stable")

    def _targets(self, compare: Comparison, live: Body, named: Body) -> list[Step]:
        """One mount target per subnet; those in subnets that are no longer named are deleted."""
        if self.mount_targets is None:
            return []
        current = {target["SubnetId"]: target for target in live["MountTargets"]}
        desired = {target["subnet_id"]: target.get("security_groups") for target in self.mount_targets}
        steps = [self._remove(target) for subnet, target in current.items() if subnet not in desired]
        for subnet, groups in desired.items():
            if subnet not in current:
                request = without_none({**named, "SubnetId": subnet, "SecurityGroups": groups})
                steps.append(Step("create_mount_target", request, f"mount target in {subnet}", "efs", "stable"))
            elif same_members(current[subnet]["SecurityGroups"], groups) is not None:
                request = {"MountTargetId": current[subnet]["MountTargetId"], "SecurityGroups": groups}
                says = f"security groups of the mount target in {subnet}"
                steps.append(Step("modify_mount_target_security_groups", request, says, "efs"))
        if steps:
            before = {subnet: target["SecurityGroups"] for subnet, target in current.items()}
            compare.differs("mount_targets", before, desired)
        return steps


@dataclasses.dataclass(frozen=True)
class EfsAccessPoint(Resource):
    """An access point, found by its tag Name within a file system, because EFS chooses its ID."""

    LABEL = "EFS access point {name} of {file_system_id}"
    IDENTITY = ("AccessPointArn", "AccessPointId")
    TAGGING, STATUS = EFS_TAGS, STATE

    file_system_id: str
    name: str
    posix_user: Body | None = None
    root_directory: Body | None = None

    def read(self, api: Api) -> Body | None:
        rows = api.pages(self.label, "efs", "describe_access_points", "AccessPoints", FileSystemId=self.file_system_id)
        named = [row for row in rows if tag_dict(row.get("Tags")).get("Name") == self.name and row[STATE] != "deleted"]
        if len(named) > 1:
            ids = ", ".join(row["AccessPointId"] for row in named)
            raise InvalidInput(f"{self.label}: {ids} all have this name", hint="Rename or delete all but one of them")
        return t.cast(Body, named[0]) if named else None

    def state(self, live: Body | None) -> State:
        return status_state(live, READY, BROKEN, STATE)

    @property
    def _tags(self) -> dict[str, str]:
        """The tags with the name, by which it is found again; a different Name in ``tags`` would lose it."""
        tags = {"Name": self.name, **(self.tags or {})}
        if tags["Name"] != self.name:
            raise InvalidInput(
                f"{self.label}: the tag Name is {tags['Name']}, but an access point is found by it",
                hint="Leave the tag out, or set it to the name",
            )
        return tags

    @property
    def desired_tags(self) -> dict[str, str] | None:
        return None if self.tags is None else self._tags

    def plan(self, live: Body | None) -> Plan:
        if live is None or self.going(live):
            return creation_plan(Step("create_access_point", self._create_request(), "create", "efs", "stable"))
        self.refuse_change(
            "Give the new access point another name, or delete this one first (its files stay)",
            posix_user=(live.get("PosixUser"), self.posix_user),
            root_directory=(live.get("RootDirectory"), self.root_directory),
        )
        compare = Comparison()
        return compare.plan(self.tag_steps(compare, live, ResourceId=live["AccessPointId"]))

    def deletions(self, live: Body) -> list[Step]:
        return [Step("delete_access_point", {"AccessPointId": live["AccessPointId"]}, "delete; its files stay", "efs", "gone")]

    def _create_request(self) -> Body:
        return without_none(
            {
                # Sent twice for any reason, it still creates only one. At most 64 characters, and valid for one file system.
                "ClientToken": hashlib.sha256(f"{self.file_system_id}/{self.name}".encode()).hexdigest(),
                "FileSystemId": self.file_system_id,
                "PosixUser": self.posix_user,
                "RootDirectory": self.root_directory,
                "Tags": tag_list(self._tags),
            }
        )
