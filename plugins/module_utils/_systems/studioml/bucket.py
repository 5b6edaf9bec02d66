# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bucket of an S3-compatible store, with errors by meaning. Google Cloud Storage is one with HMAC keys."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import typing as t

from ..._core import s3
from ..._core.errors import Failed, Forbidden, MusterError, NotFound, ServerError, Unauthorized, Unreachable
from .experiment import Storage

if t.TYPE_CHECKING:
    from ..._kube.forward import Forward

_MISSING = {"404", "NoSuchKey", "NotFound"}
_NO_BUCKET = "NoSuchBucket"
_LOGIN_HINT = "Check access_key and secret_key, and that the key is active. For Google Cloud Storage they are an HMAC key."


@dataclasses.dataclass(frozen=True)
class Found:
    """An object of a listing."""

    etag: str
    modified: dt.datetime


class Bucket(t.Protocol):
    """The operations on a bucket that the life of an experiment needs."""

    name: str

    def look(self, folder: str) -> dict[str, Found]:
        """List the objects below a folder, by their keys."""

    def get(self, key: str, target: t.IO[bytes]) -> bool:
        """Write an object to TARGET; False if there is none."""

    def put(self, key: str, content: t.IO[bytes]) -> None:
        """Store an object, or replace it."""

    def delete(self, key: str) -> None:
        """Delete an object, if it is there."""


class S3Bucket:
    """A bucket by boto3. ``make`` creates its S3 client; ``way`` is the forwarded port to the store, if there is one."""

    def __init__(self, storage: Storage, make: t.Callable[[], t.Any], way: Forward | None = None) -> None:
        self.name = storage.bucket
        self._storage = storage
        self._client = make()
        self._way = way

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

    def _errors(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return s3.errors(functools.partial(self._refused, doing), self._unreachable)

    def _unreachable(self, reason: str) -> MusterError:
        trouble = self._way.trouble if self._way else None
        return trouble or Unreachable(
            f"The store at {self._storage.endpoint} gives no answer: {reason}.", "Check endpoint, and storage_ca_cert if it has TLS."
        )

    def _refused(self, doing: str, response: t.Any) -> MusterError:
        code, said, status = s3.code_of(response)
        where = f"bucket {self.name} of {self._storage.endpoint}"
        details = {"code": code}
        if code == _NO_BUCKET:
            hint = "Create it first, or correct bucket or endpoint. Unlike StudioML's client, nothing here creates it."
            return NotFound(f"There is no {where}.", hint, details=details)
        if code in _MISSING:
            return NotFound(f"Cannot {doing} in {where}: it does not exist.", details=details)
        if code in s3.BAD_LOGIN:
            return Unauthorized(f"The store at {self._storage.endpoint} {s3.BAD_LOGIN[code]} ({code}).", _LOGIN_HINT, details=details)
        if status in (401, 403):
            hint = f"The key needs to list, read and write objects of the bucket. {_LOGIN_HINT}"
            return Forbidden(f"access_key may not {doing} in {where}: {said or code}.", hint, details=details)
        if status >= 500:
            return ServerError(f"The store failed to {doing} in {where}: {said or code} (status {status}).", details=details)
        return Failed(f"The store refuses to {doing} in {where}: {said or code} (status {status}).", details=details)


def connect(storage: Storage, ca_cert: str | None, way: Forward | None = None) -> S3Bucket:
    """Return a bucket; no request is sent yet. With WAY, connect to that forwarded port; STORAGE has the address for other clients."""
    endpoint = f"http://{way.address}" if way else storage.endpoint
    keys = storage.access_key, storage.secret_key
    make = functools.partial(s3.client, endpoint, *keys, region=storage.region, ca_cert=ca_cert, direct=way is not None)
    return S3Bucket(storage, make, way)
