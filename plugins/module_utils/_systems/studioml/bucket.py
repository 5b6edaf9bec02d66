# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bucket of an S3-compatible store, with errors by meaning. Google Cloud Storage is one with HMAC keys.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import typing as t
from collections.abc import Iterator

from ..._core.clock import LEAST_FOR_AN_ANSWER
from ..._core.errors import Failed, Forbidden, MusterError, NotFound, ServerError, Unauthorized, Unreachable
from .experiment import Storage

_PATIENCE = 10 * LEAST_FOR_AN_ANSWER
_MISSING = {"404", "NoSuchKey", "NotFound"}
_NO_BUCKET = "NoSuchBucket"
_BAD_LOGIN = {
    "AuthorizationHeaderMalformed": "does not take the signature of access_key",
    "InvalidAccessKeyId": "does not know access_key, or it is disabled",
    "InvalidSecurity": "does not take access_key",
    # versitygw
    "XAdminUserNotFound": "does not know access_key, or it is disabled",
    "SignatureDoesNotMatch": "does not take secret_key with this access_key",
}
_LOGIN_HINT = (
    "Check access_key and secret_key, and that the key is active. For Google Cloud Storage they are an HMAC key."
)


@dataclasses.dataclass(frozen=True)
class Found:
    """An object of a listing."""

    etag: str
    modified: dt.datetime


class Bucket(t.Protocol):
    """What the life of an experiment needs of a bucket."""

    name: str

    def look(self, folder: str) -> dict[str, Found]:
        """The objects below a folder, by their keys."""

    def get(self, key: str, target: t.IO[bytes]) -> bool:
        """Write an object to TARGET; False if there is none."""

    def put(self, key: str, content: t.IO[bytes]) -> None:
        """Store an object, or replace it."""

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""


class S3Bucket:
    """The real one. ``make``: a client of boto3's for S3."""

    def __init__(self, storage: Storage, make: t.Callable[[], t.Any]) -> None:
        self.name = storage.bucket
        self._storage = storage
        self._client = make()

    def look(self, folder: str) -> dict[str, Found]:
        found: dict[str, Found] = {}
        with self._errors(f"list {folder}"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=folder):
                for row in page.get("Contents") or []:
                    found[row["Key"]] = Found(row["ETag"], row["LastModified"])
        return found

    def get(self, key: str, target: t.IO[bytes]) -> bool:
        try:
            with self._errors(f"read {key}"):
                self._client.download_fileobj(self.name, key, target)
        except NotFound as error:
            if error.details.get("code") == _NO_BUCKET:
                raise
            return False
        target.seek(0)
        return True

    def put(self, key: str, content: t.IO[bytes]) -> None:
        with self._errors(f"write {key}"):
            self._client.upload_fileobj(content, self.name, key)

    def delete(self, key: str) -> None:
        with self._errors(f"delete {key}"):
            self._client.delete_object(Bucket=self.name, Key=key)

    @contextlib.contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Errors of boto3 are not chained: they may quote what they sent."""
        import boto3.exceptions
        import botocore.exceptions

        try:
            yield
        except botocore.exceptions.ClientError as error:
            raise self._refused(doing, error.response) from None
        except boto3.exceptions.S3UploadFailedError as error:
            cause = error.__context__
            raise self._refused(doing, getattr(cause, "response", {})) from None
        except botocore.exceptions.BotoCoreError as error:
            raise self._unreachable(type(error).__name__) from None

    def _unreachable(self, reason: str) -> MusterError:
        return Unreachable(
            f"The store at {self._storage.endpoint} gives no answer: {reason}.",
            "Check endpoint, and storage_ca_cert if it has TLS.",
        )

    def _refused(self, doing: str, response: t.Any) -> MusterError:
        error = response.get("Error") or {}
        code, said = str(error.get("Code", "")), str(error.get("Message", "")).rstrip(".")
        status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
        where = f"bucket {self.name} of {self._storage.endpoint}"
        details = {"code": code}
        if code == _NO_BUCKET:
            hint = "Create it first, or correct bucket or endpoint. Unlike StudioML's client, nothing here creates it."
            return NotFound(f"There is no {where}.", hint, details=details)
        if code in _MISSING:
            return NotFound(f"Cannot {doing} in {where}: it does not exist.", details=details)
        if code in _BAD_LOGIN:
            return Unauthorized(
                f"The store at {self._storage.endpoint} {_BAD_LOGIN[code]} ({code}).", _LOGIN_HINT, details=details
            )
        if status in (401, 403):
            hint = f"The key needs to list, read and write objects of the bucket. {_LOGIN_HINT}"
            return Forbidden(f"access_key may not {doing} in {where}: {said or code}.", hint, details=details)
        if status >= 500:
            return ServerError(
                f"The store failed to {doing} in {where}: {said or code} (status {status}).", details=details
            )
        return Failed(f"The store refuses to {doing} in {where}: {said or code} (status {status}).", details=details)


def connect(storage: Storage, ca_cert: str | None) -> S3Bucket:
    """A bucket; nothing is sent yet."""
    return S3Bucket(storage, lambda: _client(storage, ca_cert))


def _client(storage: Storage, ca_cert: str | None) -> t.Any:
    import boto3
    import botocore.config

    # Sums that botocore adds by itself since 1.36 are refused by Google Cloud Storage and others.
    config = botocore.config.Config(
        signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 3, "mode": "standard"},
        connect_timeout=_PATIENCE, request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )  # fmt: skip
    return boto3.session.Session().client(
        "s3", endpoint_url=storage.endpoint, aws_access_key_id=storage.access_key.reveal(),
        aws_secret_access_key=storage.secret_key.reveal(), region_name=storage.region, config=config, verify=ca_cert,
    )  # fmt: skip
