# SPDX-License-Identifier: GPL-3.0-or-later
"""A bucket of an S3-compatible store, with errors by meaning. Google Cloud Storage is one with HMAC keys."""

from __future__ import annotations

import dataclasses
import datetime as dt
import typing as t

from ..._core import s3
from ..._core.errors import NotFound
from .experiment import Storage

if t.TYPE_CHECKING:
    from ..._kube.forward import Forward


@dataclasses.dataclass(frozen=True)
class Found:
    """An object of a listing."""

    etag: str
    modified: dt.datetime


class S3Bucket(s3.Bucket):
    """A bucket by boto3."""

    login = "Check access_key and secret_key, and that the key is active. For Google Cloud Storage they are an HMAC key."

    def look(self, folder: str) -> dict[str, Found]:
        """List the objects below a folder, by their keys."""
        return {row["Key"]: Found(row["ETag"], row["LastModified"]) for row in self.listed(folder, f"list {folder}")}

    def get(self, key: str, target: t.IO[bytes]) -> bool:
        """Write an object to TARGET; False if there is none."""
        try:
            with self.errors(f"read {key}"):
                self._client.download_fileobj(self.name, key, target)
        except NotFound as error:
            if error.details.get("code") == s3.NO_BUCKET:
                raise
            return False
        target.seek(0)
        return True

    def put(self, key: str, content: t.IO[bytes]) -> None:
        with self.errors(f"write {key}"):
            self._client.upload_fileobj(content, self.name, key)

    def delete(self, key: str) -> None:
        with self.errors(f"delete {key}"):
            self._client.delete_object(Bucket=self.name, Key=key)


def connect(storage: Storage, ca_cert: str | None, way: Forward | None = None) -> S3Bucket:
    """Return a bucket; no request is sent yet. With WAY, connect to that forwarded port; STORAGE has the address for other clients."""
    endpoint = f"http://{way.address}" if way else storage.endpoint
    keys = storage.access_key, storage.secret_key
    client = s3.client(endpoint, *keys, region=storage.region, ca_cert=ca_cert, direct=way is not None)
    return S3Bucket(client, storage.bucket, storage.endpoint, way)
