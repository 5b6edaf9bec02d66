# SPDX-License-Identifier: GPL-3.0-or-later
"""An AWS account in memory, as boto3's clients show it, in which a run can be killed at any request.

It knows what matters for losing and taking things: names, tags, ids, states that take a while, and which requests are refused.
``tests/simulators/aws`` judges requests against AWS's own description; this does not.
"""

# ruff: noqa: N803  # arguments have AWS's names

from __future__ import annotations

import itertools
import types
import typing as t

from ansible_collections.muster.ml.tests.unit.fakes.copies import copied

Body = dict[str, t.Any]
ACCOUNT = "123456789012"
READS = ("describe_", "list_", "get_", "head_")
# Ids and times: no two of them are alike.
MADE_BY_AWS = {
    "arn", "nodegroupArn", "addonArn", "accessEntryArn", "associationArn", "associationId", "createdAt", "FileSystemId", "FileSystemArn",
    "AccessPointId", "AccessPointArn", "MountTargetId", "CreateDate", "_waits",
}  # fmt: skip


class Refusal(Exception):
    def __init__(self, code: str, message: str = "no") -> None:
        super().__init__(message)
        self.response = {"Error": {"Code": code, "Message": message}}


class Killed(BaseException):
    """The end of a run, at once."""


def _part_of_bucket(
    field: str, missing: str = "", *, within: str = "", part: str = ""
) -> tuple[t.Callable[..., Body], t.Callable[..., None]]:
    """What gets and puts a FIELD of answers, which requests have WITHIN another one. The code MISSING is the answer where there is none."""
    part = part or field

    def get(account: Account, Bucket: str, ExpectedBucketOwner: str) -> Body:
        found = account._bucket(Bucket, ExpectedBucketOwner).get(part)
        if missing and not found:
            raise Refusal(missing)
        return {field: found or ""}

    def put(account: Account, Bucket: str, ExpectedBucketOwner: str, **request: t.Any) -> None:
        account._bucket(Bucket, ExpectedBucketOwner)[part] = request[within][field] if within else request[field]

    return get, put


class Account:
    """Things by kind and name. ``kill_at`` counts requests that change something; ``answered`` is whether it was done before the end."""

    def __init__(self, partition: str = "aws") -> None:
        self.partition = partition
        self.things: dict[tuple[str, ...], Body] = {}
        self.writes: list[tuple[str, Body]] = []
        self.kill_at: int | None = None
        self.done_before_the_end = False
        self.denied: set[str] = set()
        self.errors: list[Body] = []
        self.before: dict[str, t.Callable[[], None]] = {}  # what somebody else does just before a request
        self.ignores_tags = False
        self._ids = itertools.count(1)

    def client(self, service: str) -> Client:
        return Client(self, service)

    def call(self, service: str, operation: str, request: Body) -> Body:
        if theirs := self.before.pop(operation, None):
            theirs()
        if operation in self.denied:
            raise Refusal("AccessDenied", "not authorized")
        if operation.startswith(READS):
            return copied(getattr(self, f"{service}_{operation}")(**request) or {})
        last = self.kill_at == len(self.writes)
        if last and not self.done_before_the_end:
            raise Killed
        answer = getattr(self, f"{service}_{operation}")(**copied(request)) or {}
        self.writes.append((operation, request))
        if last:
            raise Killed
        return copied(t.cast(Body, answer))

    def snapshot(self) -> dict[tuple[str, ...], Body]:
        """What there is, without what differs between two that are alike."""
        return {
            key: {name: value for name, value in thing.items() if name not in MADE_BY_AWS} for key, thing in copied(self.things).items()
        }

    # Helpers

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self._ids):04d}"

    def arn(self, service: str, rest: str) -> str:
        return f"arn:{self.partition}:{service}:eu-west-1:{ACCOUNT}:{rest}"

    def find(self, *key: str, missing: str = "ResourceNotFoundException") -> Body:
        if key not in self.things:
            raise Refusal(missing)
        return self.things[key]

    def make(self, key: tuple[str, ...], body: Body, exists: str = "ResourceInUseException") -> Body:
        if key in self.things:
            raise Refusal(exists, "already exists")
        self.things[key] = body
        return body

    def look(self, key: tuple[str, ...], state: str, missing: str = "ResourceNotFoundException") -> Body:
        """Whoever looks sees time pass: the first look shows what is under way, the second its end."""
        thing = self.find(*key, missing=missing)
        seen = copied(thing)
        thing["_waits"] = thing.get("_waits", 0) - 1
        if thing["_waits"] < 0:
            if thing[state].lower() == "deleting":
                del self.things[key]
            elif thing[state].lower() in ("creating", "updating"):
                thing[state] = "available" if state == "LifeCycleState" else "ACTIVE"
        return seen

    def by_arn(self, arn: str) -> Body:
        return next(thing for thing in self.things.values() if any(v == arn for k, v in thing.items() if k.lower().endswith(("arn", "id"))))

    def sts_get_caller_identity(self) -> Body:
        return {"Account": ACCOUNT, "Arn": f"arn:{self.partition}:sts::{ACCOUNT}:assumed-role/ops/me"}

    # EKS

    def _eks_create(self, key: tuple[str, ...], arn: str, body: Body) -> Body:
        unique = self.new_id("u")
        made = {**body, arn: self.arn("eks", "/".join((*key, unique) if key[0] != "cluster" else key)), "createdAt": unique}
        return self.make(key, {"tags": {}, **made})

    def eks_create_cluster(self, name: str, **body: t.Any) -> Body:
        config = {"endpointPublicAccess": True, "endpointPrivateAccess": False, "securityGroupIds": [], "publicAccessCidrs": ["0.0.0.0/0"],
                  **body.pop("resourcesVpcConfig")}  # fmt: skip
        access = {"authenticationMode": "CONFIG_MAP", **body.pop("accessConfig", {})}
        made = {"name": name, "version": "1.34", **body, "resourcesVpcConfig": config, "accessConfig": access, "status": "CREATING"}
        return {"cluster": self._eks_create(("cluster", name), "arn", made)}

    def eks_describe_cluster(self, name: str) -> Body:
        return {"cluster": self.look(("cluster", name), "status")}

    def _update(self, thing: Body) -> Body:
        thing.update(status="UPDATING", _waits=0)
        return {"update": {"id": self.new_id("update")}}

    def eks_update_cluster_config(self, name: str, **change: t.Any) -> Body:
        thing = self.find("cluster", name)
        thing["resourcesVpcConfig"].update(change.pop("resourcesVpcConfig", {}))
        thing.update(change)
        return self._update(thing)

    def eks_update_cluster_version(self, name: str, version: str) -> Body:
        self.find("cluster", name)["version"] = version
        return self._update(self.find("cluster", name))

    def eks_describe_update(self, **_request: t.Any) -> Body:
        return {"update": {"status": "Successful"}}

    def eks_delete_cluster(self, name: str) -> Body:
        thing = self.find("cluster", name)
        if thing.get("deletionProtection"):
            raise Refusal("InvalidRequestException", "protected")
        thing.update(status="DELETING", _waits=1)
        return {}

    def eks_create_nodegroup(self, clusterName: str, nodegroupName: str, **body: t.Any) -> Body:
        made = {"version": "1.34", **body, "status": "CREATING"}
        return self._eks_create(("nodegroup", clusterName, nodegroupName), "nodegroupArn", made)

    def eks_describe_nodegroup(self, clusterName: str, nodegroupName: str) -> Body:
        return {"nodegroup": self.look(("nodegroup", clusterName, nodegroupName), "status")}

    def eks_update_nodegroup_version(self, clusterName: str, nodegroupName: str, **change: t.Any) -> Body:
        thing = self.find("nodegroup", clusterName, nodegroupName)
        thing.update(change)
        return self._update(thing)

    def eks_update_nodegroup_config(self, clusterName: str, nodegroupName: str, **change: t.Any) -> Body:
        thing = self.find("nodegroup", clusterName, nodegroupName)
        labels = change.pop("labels", {})
        thing.setdefault("labels", {}).update(labels.get("addOrUpdateLabels", {}))
        if taints := change.pop("taints", None):
            thing["taints"] = taints.get("addOrUpdateTaints", [])
        thing.update(change)
        return self._update(thing)

    def eks_delete_nodegroup(self, clusterName: str, nodegroupName: str) -> Body:
        self.find("nodegroup", clusterName, nodegroupName).update(status="DELETING", _waits=1)
        return {}

    def eks_create_addon(self, clusterName: str, addonName: str, **body: t.Any) -> Body:
        rows = body.pop("podIdentityAssociations", None) or []
        body["podIdentityAssociations"] = [self.arn("eks", f"podidentityassociation/{number}") for number, _row in enumerate(rows)]
        made = {"addonVersion": "v1", **body, "status": "CREATING"}
        return self._eks_create(("addon", clusterName, addonName), "addonArn", made)

    def eks_describe_addon(self, clusterName: str, addonName: str) -> Body:
        return {"addon": self.look(("addon", clusterName, addonName), "status")}

    def eks_update_addon(self, clusterName: str, addonName: str, **change: t.Any) -> Body:
        thing = self.find("addon", clusterName, addonName)
        thing.update(change)
        return self._update(thing)

    def eks_delete_addon(self, clusterName: str, addonName: str) -> Body:
        self.find("addon", clusterName, addonName).update(status="DELETING", _waits=1)
        return {}

    def eks_create_access_entry(self, clusterName: str, principalArn: str, **body: t.Any) -> Body:
        made = {"type": "STANDARD", **body, "principal": principalArn, "policies": {}}
        return self._eks_create(("access entry", clusterName, principalArn), "accessEntryArn", made)

    def eks_describe_access_entry(self, clusterName: str, principalArn: str) -> Body:
        return {"accessEntry": self.find("access entry", clusterName, principalArn)}

    def eks_update_access_entry(self, clusterName: str, principalArn: str, **change: t.Any) -> Body:
        self.find("access entry", clusterName, principalArn).update(change)
        return {}

    def eks_list_associated_access_policies(self, clusterName: str, principalArn: str) -> Body:
        rows = self.find("access entry", clusterName, principalArn)["policies"]
        return {"associatedAccessPolicies": [{"policyArn": arn, "accessScope": scope} for arn, scope in rows.items()]}

    def eks_associate_access_policy(self, clusterName: str, principalArn: str, policyArn: str, accessScope: Body) -> Body:
        self.find("access entry", clusterName, principalArn)["policies"][policyArn] = accessScope
        return {}

    def eks_disassociate_access_policy(self, clusterName: str, principalArn: str, policyArn: str) -> Body:
        del self.find("access entry", clusterName, principalArn)["policies"][policyArn]
        return {}

    def eks_delete_access_entry(self, clusterName: str, principalArn: str) -> Body:
        self.find("access entry", clusterName, principalArn)
        del self.things["access entry", clusterName, principalArn]
        return {}

    def eks_create_pod_identity_association(self, clusterName: str, namespace: str, serviceAccount: str, **body: t.Any) -> Body:
        made = {**body, "associationId": self.new_id("a"), "namespace": namespace, "serviceAccount": serviceAccount}
        return self._eks_create(("association", clusterName, f"{namespace}/{serviceAccount}"), "associationArn", made)

    def eks_list_pod_identity_associations(self, clusterName: str, namespace: str, serviceAccount: str) -> Body:
        found = self.things.get(("association", clusterName, f"{namespace}/{serviceAccount}"))
        return {"associations": [found] if found else []}

    def _association(self, identity: str) -> tuple[str, ...]:
        return next(key for key, thing in self.things.items() if thing.get("associationId") == identity)

    def eks_describe_pod_identity_association(self, clusterName: str, associationId: str) -> Body:
        return {"association": self.things[self._association(associationId)]}

    def eks_update_pod_identity_association(self, clusterName: str, associationId: str, **change: t.Any) -> Body:
        self.things[self._association(associationId)].update(change)
        return {}

    def eks_delete_pod_identity_association(self, clusterName: str, associationId: str) -> Body:
        del self.things[self._association(associationId)]
        return {}

    def eks_tag_resource(self, resourceArn: str, tags: dict[str, str]) -> Body:
        self.by_arn(resourceArn)["tags"].update(tags)
        return {}

    def eks_untag_resource(self, resourceArn: str, tagKeys: list[str]) -> Body:
        for key in tagKeys:
            self.by_arn(resourceArn)["tags"].pop(key)
        return {}

    # EFS

    def efs_create_file_system(self, CreationToken: str, Encrypted: bool, Tags: list[Body], **body: t.Any) -> Body:
        made = {"PerformanceMode": "generalPurpose", "ThroughputMode": "bursting", **body, "Encrypted": Encrypted,
                "CreationToken": CreationToken,
                "Tags": Tags, "LifeCycleState": "creating", "FileSystemId": (identity := self.new_id("fs")), "backup": "DISABLED",
                "FileSystemArn": self.arn("elasticfilesystem", f"file-system/{identity}"), "SizeInBytes": {"Value": 6144}}  # fmt: skip
        return self.make(("file system", CreationToken), made, "FileSystemAlreadyExists")

    def efs_describe_file_systems(self, CreationToken: str) -> Body:
        key = ("file system", CreationToken)
        return {"FileSystems": [self.look(key, "LifeCycleState")] if key in self.things else []}

    def _file_system(self, identity: str) -> Body:
        for key, thing in self.things.items():
            if key[0] == "file system" and thing["FileSystemId"] == identity:
                return thing
        raise Refusal("FileSystemNotFound")

    def efs_describe_backup_policy(self, FileSystemId: str) -> Body:
        return {"BackupPolicy": {"Status": self._file_system(FileSystemId)["backup"]}}

    def efs_put_backup_policy(self, FileSystemId: str, BackupPolicy: Body) -> Body:
        self._file_system(FileSystemId)["backup"] = BackupPolicy["Status"]
        return {}

    def efs_update_file_system(self, FileSystemId: str, **change: t.Any) -> Body:
        self._file_system(FileSystemId).update(change)
        return {}

    def efs_describe_lifecycle_configuration(self, FileSystemId: str) -> Body:
        return {"LifecyclePolicies": self._file_system(FileSystemId).get("lifecycle", [])}

    def efs_put_lifecycle_configuration(self, FileSystemId: str, LifecyclePolicies: list[Body]) -> Body:
        self._file_system(FileSystemId)["lifecycle"] = LifecyclePolicies
        return {}

    def _targets(self, identity: str) -> dict[tuple[str, ...], Body]:
        return {key: thing for key, thing in self.things.items() if key[0] == "mount target" and thing["FileSystemId"] == identity}

    def efs_create_mount_target(self, FileSystemId: str, SubnetId: str, SecurityGroups: list[str]) -> Body:
        token = self._file_system(FileSystemId)["CreationToken"]
        made = {"MountTargetId": self.new_id("mt"), "FileSystemId": FileSystemId, "SubnetId": SubnetId, "groups": SecurityGroups,
                "LifeCycleState": "creating"}  # fmt: skip
        return self.make(("mount target", token, SubnetId), made, "MountTargetConflict")

    def efs_describe_mount_targets(self, FileSystemId: str) -> Body:
        return {"MountTargets": [self.look(key, "LifeCycleState") for key in self._targets(FileSystemId)]}

    def _target(self, identity: str) -> Body:
        return next(thing for thing in self.things.values() if thing.get("MountTargetId") == identity)

    def efs_describe_mount_target_security_groups(self, MountTargetId: str) -> Body:
        found = [thing["groups"] for thing in self.things.values() if thing.get("MountTargetId") == MountTargetId]
        return {"SecurityGroups": found[0] if found else []}

    def efs_delete_mount_target(self, MountTargetId: str) -> Body:
        self._target(MountTargetId).update(LifeCycleState="deleting", _waits=0)
        return {}

    def efs_delete_file_system(self, FileSystemId: str) -> Body:
        if self._targets(FileSystemId):
            raise Refusal("FileSystemInUse")
        self._file_system(FileSystemId).update(LifeCycleState="deleting", _waits=1)
        return {}

    def efs_create_access_point(self, ClientToken: str, FileSystemId: str, Tags: list[Body], **body: t.Any) -> Body:
        identity = self.new_id("fsap")
        made = {**body, "FileSystemId": FileSystemId, "ClientToken": ClientToken, "Tags": Tags, "AccessPointId": identity,
                "AccessPointArn": self.arn("elasticfilesystem", f"access-point/{identity}"), "LifeCycleState": "creating"}  # fmt: skip
        return self.make(
            ("access point", ClientToken, *(tag["Value"] for tag in Tags if tag["Key"] == "Name")), made, "AccessPointAlreadyExists"
        )

    def efs_describe_access_points(self, FileSystemId: str) -> Body:
        keys = [key for key, thing in self.things.items() if key[0] == "access point" and thing["FileSystemId"] == FileSystemId]
        return {"AccessPoints": [self.look(key, "LifeCycleState") for key in keys]}

    def efs_delete_access_point(self, AccessPointId: str) -> Body:
        next(thing for thing in self.things.values() if thing.get("AccessPointId") == AccessPointId).update(LifeCycleState="deleting")
        return {}

    def efs_tag_resource(self, ResourceId: str, Tags: list[Body]) -> Body:
        self._retag(self.by_arn(ResourceId), put=Tags)
        return {}

    def efs_untag_resource(self, ResourceId: str, TagKeys: list[str]) -> Body:
        self._retag(self.by_arn(ResourceId), remove=TagKeys)
        return {}

    @staticmethod
    def _retag(thing: Body, put: t.Iterable[Body] = (), remove: t.Collection[str] = ()) -> None:
        tags = {tag["Key"]: tag["Value"] for tag in [*thing["Tags"], *put]}
        thing["Tags"] = [{"Key": key, "Value": value} for key, value in sorted(tags.items()) if key not in remove]

    # IAM

    def _provider(self, arn: str) -> Body:
        return self.find("provider", arn, missing="NoSuchEntity")

    def iam_create_open_id_connect_provider(self, Url: str, ClientIDList: list[str], Tags: list[Body]) -> Body:
        arn = f"arn:{self.partition}:iam::{ACCOUNT}:oidc-provider/{Url.removeprefix('https://')}"
        made = {"Url": Url, "ClientIDList": list(ClientIDList), "ThumbprintList": ["made"], "Tags": Tags, "CreateDate": self.new_id("u")}
        self.make(("provider", arn), made, "EntityAlreadyExists")
        return {"OpenIDConnectProviderArn": arn}

    def iam_list_open_id_connect_providers(self) -> Body:
        return {"OpenIDConnectProviderList": [{"Arn": key[1]} for key in self.things if key[0] == "provider"]}

    def iam_get_open_id_connect_provider(self, OpenIDConnectProviderArn: str) -> Body:
        return self._provider(OpenIDConnectProviderArn)

    def iam_add_client_id_to_open_id_connect_provider(self, OpenIDConnectProviderArn: str, ClientID: str) -> Body:
        clients = self._provider(OpenIDConnectProviderArn)["ClientIDList"]
        clients[:] = sorted({*clients, ClientID})
        return {}

    def iam_remove_client_id_from_open_id_connect_provider(self, OpenIDConnectProviderArn: str, ClientID: str) -> Body:
        clients = self._provider(OpenIDConnectProviderArn)["ClientIDList"]
        clients[:] = sorted({*clients} - {ClientID})
        return {}

    def iam_update_open_id_connect_provider_thumbprint(self, OpenIDConnectProviderArn: str, ThumbprintList: list[str]) -> Body:
        self._provider(OpenIDConnectProviderArn)["ThumbprintList"] = ThumbprintList
        return {}

    def iam_tag_open_id_connect_provider(self, OpenIDConnectProviderArn: str, Tags: list[Body]) -> Body:
        self._retag(self._provider(OpenIDConnectProviderArn), put=Tags)
        return {}

    def iam_untag_open_id_connect_provider(self, OpenIDConnectProviderArn: str, TagKeys: list[str]) -> Body:
        self._retag(self._provider(OpenIDConnectProviderArn), remove=TagKeys)
        return {}

    def iam_delete_open_id_connect_provider(self, OpenIDConnectProviderArn: str) -> Body:
        self._provider(OpenIDConnectProviderArn)
        del self.things["provider", OpenIDConnectProviderArn]
        return {}

    # S3

    def _bucket(self, name: str, owner: str = ACCOUNT, missing: str = "NoSuchBucket") -> Body:
        found = self.find("bucket", name, missing=missing)
        if found["owner"] != owner:
            raise Refusal("403" if missing == "404" else "AccessDenied")
        return found

    def s3_create_bucket(self, Bucket: str, CreateBucketConfiguration: Body | None = None) -> Body:
        tags = [] if self.ignores_tags else (CreateBucketConfiguration or {}).get("Tags", [])
        return self.make(("bucket", Bucket), {"owner": ACCOUNT, "tags": tags, "objects": []}, "BucketAlreadyOwnedByYou")

    def s3_head_bucket(self, Bucket: str, ExpectedBucketOwner: str) -> Body:
        self._bucket(Bucket, ExpectedBucketOwner, missing="404")
        return {}

    s3_get_bucket_tagging, s3_put_bucket_tagging = _part_of_bucket("TagSet", "NoSuchTagSet", within="Tagging", part="tags")
    s3_get_bucket_encryption, s3_put_bucket_encryption = _part_of_bucket(
        "ServerSideEncryptionConfiguration", "ServerSideEncryptionConfigurationNotFoundError"
    )
    s3_get_bucket_policy, s3_put_bucket_policy = _part_of_bucket("Policy", "NoSuchBucketPolicy", part="policy")
    s3_get_public_access_block, s3_put_public_access_block = _part_of_bucket(
        "PublicAccessBlockConfiguration", "NoSuchPublicAccessBlockConfiguration"
    )
    s3_get_bucket_versioning, s3_put_bucket_versioning = _part_of_bucket("Status", within="VersioningConfiguration")

    def s3_list_object_versions(self, Bucket: str, ExpectedBucketOwner: str, MaxKeys: int = 0) -> Body:
        rows = [{"Key": key, "VersionId": version} for key, version in self._bucket(Bucket, ExpectedBucketOwner)["objects"]]
        return {"Versions": rows[:MaxKeys] if MaxKeys else rows}

    def s3_delete_objects(self, Bucket: str, ExpectedBucketOwner: str, Delete: Body) -> Body:
        found, kept = self._bucket(Bucket, ExpectedBucketOwner), {row["Key"] for row in self.errors}
        assert len(Delete["Objects"]) <= 1000
        gone = {(row["Key"], row["VersionId"]) for row in Delete["Objects"] if row["Key"] not in kept}
        found["objects"] = [row for row in found["objects"] if row not in gone]
        return {"Errors": self.errors} if self.errors else {}

    def s3_delete_bucket(self, Bucket: str, ExpectedBucketOwner: str) -> None:
        if self._bucket(Bucket, ExpectedBucketOwner)["objects"]:
            raise Refusal("BucketNotEmpty")
        del self.things["bucket", Bucket]


class Names(dict[str, str]):
    """The same name for each operation."""

    def __missing__(self, operation: str) -> str:
        return operation


def meta_of(*tokens: str) -> types.SimpleNamespace:
    """What boto3's clients have as ``meta``: operations, each with the parameters by which AWS knows a request again."""
    operation = types.SimpleNamespace(idempotent_members=tokens)
    return types.SimpleNamespace(
        region_name="eu-west-1",
        method_to_api_mapping=Names(),
        service_model=types.SimpleNamespace(operation_model=lambda _name: operation),
    )


class Client:
    """boto3's face: an attribute for each operation, and pages."""

    meta = meta_of()

    def __init__(self, account: Account, service: str) -> None:
        self._account, self._service = account, service

    def __getattr__(self, operation: str) -> t.Callable[..., Body]:
        return lambda **request: self._account.call(self._service, operation, request)

    def can_paginate(self, operation: str) -> bool:
        return operation != "list_open_id_connect_providers"

    def get_paginator(self, operation: str) -> Pages:
        return Pages(getattr(self, operation))


class Pages:
    """Two items a page: who forgets the second page loses something."""

    def __init__(self, call: t.Callable[..., Body]) -> None:
        self._call = call

    def paginate(self, **request: t.Any) -> t.Iterator[Body]:
        for key, rows in self._call(**request).items():
            for start in range(0, max(len(rows), 1), 2):
                yield {key: rows[start : start + 2]}
