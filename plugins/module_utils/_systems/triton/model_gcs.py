# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in a bucket of Google Cloud Storage."""

from __future__ import annotations

import contextlib
import re
import typing as t
from collections.abc import Iterator
from pathlib import Path

from ..._core.errors import InvalidInput, NotFound
from ..._gcp import objects
from .bucket import prefix_of
from .model_objects import SUM, BucketStore

SCHEME = "gs://"
_PLACE = re.compile(r"gs://([^/\s:]+)(?:/(\S*))?")


def place_of(place: str) -> tuple[str, str]:
    """The bucket in option model_repository, and its folder, with a slash at its end, or empty."""
    match = _PLACE.fullmatch(place)
    if not match:
        raise InvalidInput(f"model_repository: '{place}' is not a bucket.", "It is gs://BUCKET/FOLDER.")
    return match[1], prefix_of(match[2])


class GcsObjects:
    """The objects of a bucket. CLIENT is that of google-cloud-storage, which verifies uploads by CRC32C and splits large ones."""

    def __init__(self, client: t.Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket
        self._kept = objects.retries()

    def sums(self, prefix: str) -> dict[str, str]:
        with self._errors("list the model"):
            fields = "items(name,metadata),nextPageToken"
            rows = self._client.list_blobs(self._bucket, prefix=prefix, fields=fields, retry=self._kept)
            return {row.name: (row.metadata or {}).get(SUM, "") for row in rows}

    def text(self, key: str, doing: str) -> str:
        with self._errors(doing):
            return str(self._blob(key).download_as_bytes(retry=self._kept), "utf-8", "replace")

    def upload(self, path: Path, key: str, sha256: str, doing: str) -> None:
        blob = self._blob(key)
        blob.metadata = {SUM: sha256}
        with self._errors(doing):
            blob.upload_from_filename(str(path), content_type="application/octet-stream", retry=self._kept)

    def write(self, key: str, text: str, doing: str) -> None:
        with self._errors(doing):
            self._blob(key).upload_from_string(text.encode(), content_type="text/plain", retry=self._kept)

    def delete(self, key: str, doing: str) -> None:
        with contextlib.suppress(NotFound), self._errors(doing):
            self._blob(key).delete(retry=self._kept)

    def _blob(self, key: str) -> t.Any:
        return self._client.bucket(self._bucket).blob(key)

    def _errors(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return objects.errors(doing, self._bucket)


@contextlib.contextmanager
def opened(place: str, model: str, credentials: t.Any) -> Iterator[BucketStore]:
    """The model in the bucket at PLACE."""
    bucket, prefix = place_of(place)
    with objects.client(credentials) as client:
        yield BucketStore(GcsObjects(client, bucket), prefix, model)
