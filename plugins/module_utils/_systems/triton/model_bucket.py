# SPDX-License-Identifier: GPL-3.0-or-later
"""A model in an S3-compatible bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ..._core import s3
from ..._core.errors import NotFound, Unreachable
from ..._core.sensitive import Sensitive
from ..._kube import forward
from ..._kube.cluster import Cluster
from ..._kube.objects import Ref, selector_of
from ..._kube.secret_text import needed_text
from .bucket import Bucket, service_of
from .model_config import FILE
from .model_objects import SUM, BucketStore
from .repository import KEYS

_REGION = "us-east-1"


class S3Objects(s3.Bucket):
    """The objects of an S3 bucket."""

    login = "Check the keys in credentials_secret."

    def sums(self, prefix: str) -> dict[str, str]:
        """Read the sums object by object, because a listing has no metadata."""
        keys = [row["Key"] for row in self.listed(prefix, "list the model")]
        return {key: "" if key.endswith("/") or key == prefix + FILE else self._sum(key, prefix) for key in keys}

    def text(self, key: str, doing: str) -> str:
        with self.errors(doing):
            content = self._client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return str(content, "utf-8", "replace")

    def upload(self, path: Path, key: str, sha256: str, doing: str) -> None:
        with self.errors(doing):
            self._client.upload_file(str(path), self.name, key, ExtraArgs={"Metadata": {SUM: sha256}})

    def write(self, key: str, text: str, doing: str) -> None:
        with self.errors(doing):
            self._client.put_object(Bucket=self.name, Key=key, Body=text.encode())

    def delete(self, key: str, doing: str) -> None:
        with self.errors(doing):
            self._client.delete_object(Bucket=self.name, Key=key)

    def _sum(self, key: str, prefix: str) -> str:
        with self.errors(f"read {key.removeprefix(prefix)}"):
            found = self._client.head_object(Bucket=self.name, Key=key)
        return str((found.get("Metadata") or {}).get(SUM, ""))


@contextlib.contextmanager
def opened(cluster: Cluster, bucket: Bucket, model: str, secret: str | None, namespace: str) -> Iterator[BucketStore]:
    """The model in BUCKET. A store in the cluster is reached by a forwarded port. Without SECRET the keys are those of this machine."""
    keys = _keys(cluster, Ref("v1", "Secret", secret, namespace)) if secret else (None, None)
    inside = service_of(bucket)
    with contextlib.ExitStack() as stack:
        way = stack.enter_context(_forwarded(cluster, *inside)) if inside else None
        endpoint = f"http://{way.address}" if way else bucket.endpoint
        region = _REGION if endpoint else None
        client = s3.client(endpoint, *keys, region=region, direct=way is not None)
        yield BucketStore(S3Objects(client, bucket.name, bucket.endpoint, way), bucket.prefix, model)


def _keys(cluster: Cluster, ref: Ref) -> tuple[Sensitive, ...]:
    found = cluster.get(ref)
    if found is None:
        raise NotFound(f"{ref}, which has the keys of the store, does not exist.", "Correct credentials_secret.", ref=ref)
    return tuple(needed_text(found, key, " and ".join(KEYS)) for key in KEYS)


def _forwarded(cluster: Cluster, ref: Ref, port: str | None) -> contextlib.AbstractContextManager[forward.Forward]:
    """A local port that leads to a pod of a Service."""
    service = cluster.get(ref)
    if service is None:
        raise NotFound(f"{ref}, which leads to the store of the models, does not exist.", "Correct model_repository.", ref=ref)
    spec = service["spec"]
    pods = cluster.list("v1", "Pod", ref.namespace, selector_of(spec.get("selector") or {}))
    entries = [one for one in spec["ports"] if str(one["port"]) == (port or "80")]
    if not pods or not entries:
        what = "has no pods" if entries else f"has no port {port or 80}"
        raise Unreachable(f"{ref}, which leads to the store of the models, {what}.", ref=ref)
    pod = next((one for one in pods if not one["metadata"].get("deletionTimestamp")), pods[0])
    target = entries[0].get("targetPort", entries[0]["port"])
    named = {row.get("name"): row["containerPort"] for each in pod["spec"]["containers"] for row in each.get("ports") or []}
    number = int(target) if str(target).isdecimal() else named.get(target, entries[0]["port"])
    return forward.forwarded(cluster, Ref("v1", "Pod", pod["metadata"]["name"], ref.namespace), number, "The store of the models must run.")
