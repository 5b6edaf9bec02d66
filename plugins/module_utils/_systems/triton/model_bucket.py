# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A model's folder in an S3-compatible bucket. What a file has in it is kept with the object, as metadata.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..._core import s3
from ..._core.errors import (
    Failed,
    Forbidden,
    InvalidInput,
    MusterError,
    NotFound,
    ServerError,
    Unauthorized,
    Unreachable,
)
from ..._core.sensitive import Sensitive
from ..._kube import forward
from ..._kube.objects import Ref, selector_of
from ..._kube.report import Report
from ..._kube.secret_text import needed_text
from .model_config import FILE
from .model_plan import Stored
from .repository import KEYS

if t.TYPE_CHECKING:
    from ..._kube.cluster import Cluster

_PLACE = re.compile(r"s3://(?:(https?://[^/\s]+)/|([^/\s:]+:\d+)/)?([^/\s:]+)(?:/(\S*))?")
_INSIDE = re.compile(r"http://([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?(?::(\d+))?")
_REGION = "us-east-1"
_SUM = "sha256"
_MISSING = ("404", "NoSuchKey", "NotFound")


@dataclasses.dataclass(frozen=True)
class Bucket:
    """``endpoint``: of a store that is not AWS; None for AWS. ``prefix``: the repository's folder, with a slash at its end, or empty."""

    endpoint: str | None
    name: str
    prefix: str


def bucket_of(place: str) -> Bucket:
    """The bucket in option model_repository."""
    if place.startswith("gs://"):
        raise InvalidInput(
            f"model_repository: nothing is uploaded to {place}, Google Cloud Storage, by this module.",
            "Upload with gcloud storage rsync, and let the server poll the bucket.",
        )
    match = _PLACE.fullmatch(place)
    if not match:
        raise InvalidInput(
            f"model_repository: '{place}' is not a bucket.",
            "It is s3://BUCKET/FOLDER or s3://http://HOST:PORT/BUCKET/FOLDER.",
        )
    url, host, name, folder = match.groups()
    prefix = (folder or "").strip("/")
    return Bucket(url or (f"http://{host}" if host else None), name, f"{prefix}/" if prefix else "")


class BucketStore:
    """One model in a bucket. CLIENT is boto3's; WAY the forwarded port that it uses, if it does."""

    def __init__(self, client: t.Any, bucket: Bucket, model: str, way: forward.Forward | None = None) -> None:
        self._client, self._bucket, self._way = client, bucket, way
        self._prefix = f"{bucket.prefix}{model}/"

    def read(self) -> Stored:
        """The files by the SHA-256 with which they were uploaded. Of one that something else uploaded it is not known."""
        with self._errors("list the model"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket.name, Prefix=self._prefix
            )
            keys = [row["Key"] for page in pages for row in page.get("Contents") or []]
        names = [key.removeprefix(self._prefix) for key in keys if not key.endswith("/")]
        return Stored(
            {name: self._sum(name) for name in names if name != FILE}, self._config() if FILE in names else None
        )

    def verify(self) -> Stored:
        """The same: nothing is noted elsewhere."""
        return self.read()

    def note(self, stored: Stored, *, check: bool) -> Report:
        """Nothing is noted elsewhere."""
        del stored, check
        return Report()

    def put(self, folder: Path, files: Mapping[str, str]) -> None:
        """Upload files of FOLDER."""
        for name, sha256 in files.items():
            with self._errors(f"write {name}"):
                self._client.upload_file(
                    str(folder / name), self._bucket.name, self._prefix + name, ExtraArgs={"Metadata": {_SUM: sha256}}
                )

    def put_config(self, text: str) -> None:
        """Replace the configuration."""
        with self._errors(f"write {FILE}"):
            self._client.put_object(Bucket=self._bucket.name, Key=self._prefix + FILE, Body=text.encode())

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            with self._errors(f"delete {name}"):
                self._client.delete_object(Bucket=self._bucket.name, Key=self._prefix + name)

    def _sum(self, name: str) -> str:
        with self._errors(f"read {name}"):
            found = self._client.head_object(Bucket=self._bucket.name, Key=self._prefix + name)
        return str((found.get("Metadata") or {}).get(_SUM, ""))

    def _config(self) -> str:
        with self._errors(f"read {FILE}"):
            return str(
                self._client.get_object(Bucket=self._bucket.name, Key=self._prefix + FILE)["Body"].read(),
                "utf-8",
                "replace",
            )

    def _errors(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return s3.errors(functools.partial(self._refused, doing), self._unreachable)

    def _unreachable(self, reason: str) -> MusterError:
        trouble = self._way.trouble if self._way else None
        return trouble or Unreachable(f"The store of the models gives no answer: {reason}.", "Check model_repository.")

    def _refused(self, doing: str, answer: Mapping[str, t.Any]) -> MusterError:
        code, said, status = s3.code_of(answer)
        where = f"bucket {self._bucket.name}" + (f" of {self._bucket.endpoint}" if self._bucket.endpoint else "")
        if code == "NoSuchBucket" or (code in _MISSING and doing.startswith("list")):
            return NotFound(f"There is no {where}.", "Create it first, such as with module object_store or s3_bucket.")
        if code in s3.BAD_LOGIN:
            return Unauthorized(f"The store {s3.BAD_LOGIN[code]} ({code}).", "Check the keys in credentials_secret.")
        if status in (401, 403):
            return Forbidden(f"It is not allowed to {doing} in {where}: {said or code}.")
        kind = ServerError if status >= 500 else Failed
        return kind(f"The store refuses to {doing} in {where}: {said or code} (status {status}).")


@contextlib.contextmanager
def opened(cluster: Cluster, bucket: Bucket, model: str, secret: str | None, namespace: str) -> Iterator[BucketStore]:
    """The model in BUCKET. A store in the cluster is reached by a forwarded port. Without SECRET the keys are those of this machine."""
    keys = _keys(cluster, Ref("v1", "Secret", secret, namespace)) if secret else (None, None)
    inside = _INSIDE.fullmatch(bucket.endpoint or "")
    with contextlib.ExitStack() as stack:
        way = stack.enter_context(_forwarded(cluster, *inside.groups())) if inside else None
        endpoint = f"http://{way.address}" if way else bucket.endpoint
        region = _REGION if endpoint else None
        client = s3.client(endpoint, *keys, region=region, direct=way is not None)
        yield BucketStore(client, bucket, model, way)


def _keys(cluster: Cluster, ref: Ref) -> tuple[Sensitive, ...]:
    found = cluster.get(ref)
    if found is None:
        raise NotFound(
            f"{ref}, which has the keys of the store, does not exist.", "Correct credentials_secret.", ref=ref
        )
    return tuple(needed_text(found, key, " and ".join(KEYS)) for key in KEYS)


def _forwarded(
    cluster: Cluster, name: str, namespace: str, port: str | None
) -> contextlib.AbstractContextManager[forward.Forward]:
    """A local port that leads to a pod of a Service."""
    ref = Ref("v1", "Service", name, namespace)
    service = cluster.get(ref)
    if service is None:
        raise NotFound(
            f"{ref}, which leads to the store of the models, does not exist.", "Correct model_repository.", ref=ref
        )
    spec = service["spec"]
    pods = cluster.list("v1", "Pod", namespace, selector_of(spec.get("selector") or {}))
    entries = [one for one in spec["ports"] if str(one["port"]) == (port or "80")]
    if not pods or not entries:
        what = "has no pods" if entries else f"has no port {port or 80}"
        raise Unreachable(f"{ref}, which leads to the store of the models, {what}.", ref=ref)
    pod = next((one for one in pods if not one["metadata"].get("deletionTimestamp")), pods[0])
    target = entries[0].get("targetPort", entries[0]["port"])
    named = {
        row.get("name"): row["containerPort"] for each in pod["spec"]["containers"] for row in each.get("ports") or []
    }
    number = int(target) if str(target).isdigit() else named.get(target, entries[0]["port"])
    return forward.forwarded(
        cluster, Ref("v1", "Pod", pod["metadata"]["name"], namespace), number, "The store of the models must run."
    )
