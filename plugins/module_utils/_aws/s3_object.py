# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in a bucket of S3 as values: the desired content, and the request that puts it there."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import typing as t

from .._cloud.errors import CallRefused
from .._cloud.plan import Body, Plan
from .api import DENIED, Api
from .plan import Step
from .resource import Immediate


@dataclasses.dataclass(frozen=True)
class S3Object(Immediate):
    """A small file. S3 encrypts it as the bucket says, and keeps the checksum that the request carries.

    The ETag is no checksum of what is encrypted with a key of KMS (S3 API, Object, ETag), so it is not compared.
    """

    LABEL = "S3 object s3://{bucket}/{name}"
    NAMED: t.ClassVar = {"Bucket": "bucket", "Key": "name", "ExpectedBucketOwner": "account"}

    bucket: str
    name: str
    account: str
    content: bytes = dataclasses.field(repr=False)

    @property
    def checksum(self) -> str:
        return base64.b64encode(hashlib.sha256(self.content).digest()).decode()

    def read(self, api: Api) -> Body | None:
        try:
            found = api.read(self.label, "s3", "head_object", **self.named, ChecksumMode="ENABLED")
        except CallRefused as refused:
            if refused.code not in DENIED:
                raise
            # The answer to a HEAD request has no message.
            lacks = "the caller lacks s3:GetObject or s3:ListBucket, or another account owns the bucket"
            raise CallRefused(f"{self.label} cannot be read: {lacks}", code=refused.code) from refused
        if found is None:
            return None
        kept = ("ChecksumSHA256", "ContentLength", "ServerSideEncryption", "SSEKMSKeyId", "VersionId")
        return {"Key": self.name, **{key: found[key] for key in kept if key in found}}

    def plan(self, live: Body | None) -> Plan:
        before = {"ChecksumSHA256": live.get("ChecksumSHA256", "unknown")} if live else {}
        if before.get("ChecksumSHA256") == self.checksum:
            return Plan()
        request = {**self.named, "Body": self.content, "ChecksumAlgorithm": "SHA256", "ChecksumSHA256": self.checksum}
        says = f"upload {len(self.content)} bytes"
        return Plan((Step("put_object", request, says, "s3"),), before, {"ChecksumSHA256": self.checksum})
