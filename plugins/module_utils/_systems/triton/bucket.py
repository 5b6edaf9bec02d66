# SPDX-License-Identifier: GPL-3.0-or-later
"""An S3-compatible bucket with models, as option model_repository names it."""

from __future__ import annotations

import dataclasses
import re

from ..._core.errors import InvalidInput
from ..._kube.objects import Ref

_PLACE = re.compile(r"s3://(?:(https?://[^/\s]+)/|([^/\s:]+:\d+)/)?([^/\s:]+)(?:/(\S*))?")
_INSIDE = re.compile(r"http://([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?(?::(\d+))?")


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A bucket. ``endpoint``: URL of a store; None for AWS. ``prefix``: the repository's folder, with a slash at its end, or empty."""

    endpoint: str | None
    name: str
    prefix: str


def prefix_of(folder: str | None) -> str:
    """The key prefix of a folder: with a slash at its end, or empty for the whole bucket."""
    found = (folder or "").strip("/")
    return f"{found}/" if found else ""


def bucket_of(place: str) -> Bucket:
    """The bucket in option model_repository."""
    match = _PLACE.fullmatch(place)
    if not match:
        raise InvalidInput(
            f"model_repository: '{place}' is not a bucket.",
            "It is s3://BUCKET/FOLDER, s3://http://HOST:PORT/BUCKET/FOLDER or gs://BUCKET/FOLDER.",
        )
    url, host, name, folder = match.groups()
    return Bucket(url or (f"http://{host}" if host else None), name, prefix_of(folder))


def service_of(bucket: Bucket) -> tuple[Ref, str | None] | None:
    """The Service of a store in the cluster, and its port; None for a store elsewhere."""
    inside = _INSIDE.fullmatch(bucket.endpoint or "")
    return (Ref("v1", "Service", inside[1], inside[2]), inside[3]) if inside else None
