# SPDX-License-Identifier: GPL-3.0-or-later
"""Private buckets of S3 as values: the desired state, and the requests that lead to it."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .._cloud import plan as cloud
from .._cloud.errors import CallRefused
from .._cloud.plan import Body, Comparison, Plan, printable_request
from .._core.errors import Failed, InvalidInput
from .api import DENIED, Api
from .plan import Step, changed_tags, tag_dict, tag_list
from .resource import Immediate

CLOSED = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
# In this region S3 gives buckets no LocationConstraint.
FIRST_REGION = "us-east-1"
# The answer to a HEAD request has no message: so S3 answers for a bucket of another account (S3 API, HeadBucket).
_NOT_OURS = "another account owns it (names of buckets are unique in all of AWS), or the caller lacks s3:ListBucket on it"
BATCH = 1000  # most objects that one request can delete


@dataclasses.dataclass(frozen=True)
class S3Bucket(Immediate):
    """A bucket for the account only: public access blocked, encrypted, nothing over plain HTTP.

    S3 has no ID that differs between a bucket and a later one of its name, and its ARN contains no account. So every request names the
    account that must own the bucket.
    """

    LABEL = "S3 bucket {name}"
    IDENTITY = ("Name",)
    NAMED: t.ClassVar = {"Bucket": "name", "ExpectedBucketOwner": "account"}

    name: str
    region: str
    account: str
    partition: str
    versioning: bool | None = None
    encryption_key_arn: str | None = None
    delete_data: bool = False

    @property
    def _encryption(self) -> Body:
        if self.encryption_key_arn:
            return {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": self.encryption_key_arn}
        return {"SSEAlgorithm": "AES256"}

    @property
    def _policy(self) -> Body:
        arn = f"arn:{self.partition}:s3:::{self.name}"
        statement = {
            "Sid": "OnlyOverTls",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [arn, f"{arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        return {"Version": "2012-10-17", "Statement": [statement]}

    def read(self, api: Api) -> Body | None:
        try:
            head = api.read(self.label, "s3", "head_bucket", **self.named)
            if head is None:
                return None
            # Ownership first: a bucket of another owner is not read any further.
            tags = tag_dict((api.read(self.label, "s3", "get_bucket_tagging", **self.named) or {}).get("TagSet"))
        except CallRefused as refused:
            if refused.code in DENIED:
                why = _NOT_OURS if refused.code == "403" else "its owner and tags could not be read"
                return {"Name": self.name, "tags": {}, "_unknown": f"{why} ({refused})"}
            raise

        def ask(operation: str) -> Body:
            return api.read(self.label, "s3", operation, **self.named) or {}

        rules = ask("get_bucket_encryption").get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
        policy = ask("get_bucket_policy").get("Policy")
        return {
            "Name": self.name,
            "BucketRegion": head.get("BucketRegion", self.region),
            "PublicAccessBlock": ask("get_public_access_block").get("PublicAccessBlockConfiguration", {}),
            "Encryption": rules[0].get("ApplyServerSideEncryptionByDefault", {}) if rules else {},
            "Versioning": ask("get_bucket_versioning").get("Status") == "Enabled",
            "Policy": json.loads(policy) if policy else {},
            "tags": tags,
            "_objects": self._objects(api) if self.delete_data else [],
        }

    def _objects(self, api: Api) -> list[Body]:
        """Every version of every object, and every delete marker."""
        rows: list[Body] = []
        for key in ("Versions", "DeleteMarkers"):
            rows += api.pages(self.label, "s3", "list_object_versions", key, **self.named)
        return [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # a bucket does not say how much it holds
        found = api.read(self.label, "s3", "list_object_versions", **self.named, MaxKeys=1) or {}
        rows = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
        return f"holds objects ({rows[0]['Key']})" if rows else ""

    def examine(self, step: cloud.CloudStep, answer: Body) -> None:
        """S3 calls the deletion of many objects a success when it deleted none of them (S3 API, DeleteObjects)."""
        if step.operation != "delete_objects" or not answer.get("Errors"):
            return
        first, count = answer["Errors"][0], len(answer["Errors"])
        said = f"{first.get('Code', '')}: {first.get('Message', '')}".rstrip(".: ")
        locked = first.get("Code") == "AccessDenied"  # of an object lock as well: "Access Denied because object protected by object lock."
        raise Failed(
            f"{self.label}: {count} of {len(step.request['Delete']['Objects'])} objects were not deleted, first {first.get('Key')}: {said}",
            hint="Run again when an object lock has run out and the caller has s3:DeleteObjectVersion; locks are never bypassed"
            if locked
            else "Run again",
            details={"code": first.get("Code", "")},
        )

    def hint(self, refused: CallRefused) -> str:
        more = ": run again" if self.delete_data else "; objects go only with delete_data: true"
        return {
            "BucketAlreadyExists": "The name belongs to another account; names of buckets are unique in all of AWS",
            "BucketNotEmpty": f"Something was put into it a moment ago{more}",
        }.get(refused.code, "")

    def used_by(self, live: Body) -> str:
        """A bucket of another region: names are unique in all of them, and botocore follows S3 to the region that has it."""
        region = live.get("BucketRegion", self.region)
        return f"is in the region {region}, not in {self.region}" if region != self.region else ""

    def plan(self, live: Body | None) -> Plan:
        if live is not None and (elsewhere := self.used_by(live)):
            raise InvalidInput(
                f"{self.label} {elsewhere}, and is left as it is", hint=f"Choose another name, or run with region: {live['BucketRegion']}"
            )
        if live is not None:
            return self._changes(live)
        create = Step("create_bucket", self._create_request(), "create", "s3")
        new: Body = {"PublicAccessBlock": {}, "Encryption": {}, "Versioning": False, "Policy": {}, "tags": self.tags or {}}
        changes = self._changes(new)
        return Plan((create, *changes.steps), {}, {**printable_request(create.request), **changes.after})

    def deletions(self, live: Body) -> list[Step]:
        objects = live["_objects"]
        batches = [objects[start : start + BATCH] for start in range(0, len(objects), BATCH)]
        empty = [
            Step("delete_objects", {**self.named, "Delete": {"Objects": batch, "Quiet": True}},
                 f"delete {len(batch)} objects", "s3")
            for batch in batches
        ]  # fmt: skip
        return [*empty, Step("delete_bucket", self.named, "delete", "s3")]

    def _create_request(self) -> Body:
        """Create with the tags: after an interruption the next run must find its own bucket."""
        place = {} if self.region == FIRST_REGION else {"LocationConstraint": self.region}
        configuration = {**place, **({"Tags": tag_list(self.tags)} if self.tags else {})}
        return {"Bucket": self.name, **({"CreateBucketConfiguration": configuration} if configuration else {})}

    def _changes(self, live: Body) -> Plan:
        compare = Comparison()
        steps: list[Step] = []

        def step(operation: str, says: str, **request: t.Any) -> None:
            steps.append(Step(operation, {**self.named, **request}, says, "s3"))

        put, gone = changed_tags(compare, live["tags"], self.tags, purge=self.purge_tags)
        if put or gone:
            # The request replaces all tags, including those that AWS set itself.
            everything = {key: value for key, value in {**live["tags"], **put}.items() if key not in gone}
            step("put_bucket_tagging", "tags", Tagging={"TagSet": tag_list(everything)})
        if compare.differs("public_access_block", live["PublicAccessBlock"], CLOSED):
            step("put_public_access_block", "block public access", PublicAccessBlockConfiguration=CLOSED)
        if compare.differs("encryption", live["Encryption"], self._encryption):
            rules = [{"ApplyServerSideEncryptionByDefault": self._encryption, "BucketKeyEnabled": True}]
            step("put_bucket_encryption", "encryption", ServerSideEncryptionConfiguration={"Rules": rules})
        if compare.differs("versioning", live["Versioning"], self.versioning):
            status = "Enabled" if self.versioning else "Suspended"
            step("put_bucket_versioning", f"versioning {status}", VersioningConfiguration={"Status": status})
        if compare.differs("policy", live["Policy"], self._policy):
            self._refuse_foreign_policy(live)
            step("put_bucket_policy", "only over TLS", Policy=json.dumps(self._policy))
        return compare.plan(steps)

    def _refuse_foreign_policy(self, live: Body) -> None:
        others = [row.get("Sid", "(no Sid)") for row in live["Policy"].get("Statement", [])]
        if [name for name in others if name != "OnlyOverTls"]:
            raise InvalidInput(
                f"{self.label} has a policy of its own ({', '.join(others)}), which would be lost",
                hint="Remove it, or give access by policies of roles, which this module leaves alone",
            )
