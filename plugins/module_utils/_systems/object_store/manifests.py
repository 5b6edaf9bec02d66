# SPDX-License-Identifier: GPL-3.0-or-later
"""An S3-compatible store in the cluster: versitygw, one pod that keeps objects as files of its claim.

Read in the code of versitygw 1.8.0 and in its Dockerfile:

- The image is Alpine with ``/usr/local/bin/versitygw`` (earlier ones had it in ``/app``). Its entrypoint is a shell script.
- Tags of the image are those of the repository, with a ``v`` (.github/workflows/docker.yml).
- Content types and other attributes of objects are extended attributes of their files (backend/meta/xattr.go), which NFS and others do
  not have. With ``--sidecar`` they are files of another folder (sidecar.go), which must not begin with the name of the folder of buckets
  (backend/posix/posix.go, New).
- ``--health PATH`` answers 200 without a login (s3api/server.go). No bucket can be called ``_``.
- A folder below that of the buckets is a bucket. So it is not the root of the volume, where ``lost+found`` is.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._kube.objects import ANNOTATION_GENERATED
from ..._manifests import servers
from ..._manifests.meta import STATEFULSET_NAME_MAX, Manifest, check_name, pinned_tag, quantity
from ..._manifests.pods import PodSettings

PORT = 7070
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
"""Keys of the Secret, with the names of the variables that clients of S3 read."""

_DATA = "/data"
_HEALTH = "/_/health"
_START = f"""set -eu
umask 007
mkdir -p {_DATA}/buckets {_DATA}/attributes
exec /usr/local/bin/versitygw --port :{PORT} --region {REGION} --health {_HEALTH} --quiet \\
  posix --sidecar {_DATA}/attributes {_DATA}/buckets
"""
_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9][a-z0-9.-]*[a-z0-9]")
_RESERVED = ("xn--", "sthree-", "amzn-s3-demo-"), ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
"""Prefixes and suffixes that AWS reserves for itself."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectStore(servers.Server):
    """One pod with one claim."""

    module, title, app = "object_store", "Object store", "object-store"

    storage_size: str = "20Gi"

    @property
    def login(self) -> str:
        """The name of the Secret with the two keys."""
        return f"{self.name}-login"

    @property
    def pod_name(self) -> str:
        """The name of the pod."""
        return f"{self.name}-0"

    @property
    def endpoint(self) -> str:
        """The address for clients in the cluster."""
        return f"http://{self.name}.{self.namespace}.svc:{PORT}"


def manifests(store: ObjectStore) -> list[Manifest]:
    """The objects of STORE, without its Secret."""
    check_name(store.name, "name", limit=STATEFULSET_NAME_MAX, service=True)
    quantity(store.storage_size, "storage_size")
    pinned_tag(store.pod.image, "Give it a version, such as ghcr.io/versity/versitygw:v1.8.0, or a digest.")
    env = [_from_secret(store, "ROOT_ACCESS_KEY", ACCESS_KEY), _from_secret(store, "ROOT_SECRET_KEY", SECRET_KEY)]
    # Connections by port-forwarding come from inside of the pod, so no NetworkPolicy applies to them. A second pod would write to the same
    # files, without coordination.
    return [*servers.around(store, servers.Ports(clients={"s3": PORT})), servers.stateful_set(store, _settings(store), "versitygw", env)]


def check_buckets(names: Sequence[str]) -> list[str]:
    """Return the names, each once. Refuse names that the store would refuse in the middle of the run, or AWS later."""
    for name in names:
        why = _bad_name(name)
        if why:
            raise InvalidInput(
                f"buckets: '{name}' {why}.",
                "Names of buckets have 3 to 63 lower-case letters, digits, '-' and '.', and begin and end with a letter or digit.",
            )
    return list(dict.fromkeys(names))


def _bad_name(name: str) -> str:
    begins, ends = _RESERVED
    if not _BUCKET.fullmatch(name):
        return "is not a name of a bucket"
    if ".." in name:
        return "has two dots in a row"
    if name.startswith(begins) or name.endswith(ends):
        return "begins or ends as the names that AWS keeps for itself"
    try:
        ipaddress.IPv4Address(name)
    except ValueError:
        return ""
    return "is an IP address"


def login_secret(store: ObjectStore, data: Mapping[str, str]) -> Manifest:
    """The Secret with the login. DATA: base64."""
    metadata = {**store.metadata(store.login), "annotations": {ANNOTATION_GENERATED: "login"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": dict(data)}


def _settings(store: ObjectStore) -> PodSettings:
    pod = servers.secured(store.pod)
    probe = {"httpGet": {"path": _HEALTH, "port": PORT}, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}
    return dataclasses.replace(
        pod,
        command=("/bin/sh", "-c", _START),
        ports=({"name": "s3", "container_port": PORT},),
        volumes=(*pod.volumes, {"name": "tmp", "emptyDir": {}}),
        volume_mounts=({"name": "data", "mountPath": _DATA}, {"name": "tmp", "mountPath": "/tmp"}),  # noqa: S108
        readiness_probe=probe,
    )


def _from_secret(store: ObjectStore, variable: str, key: str) -> Manifest:
    return {"name": variable, "value_from": {"secretKeyRef": {"name": store.login, "key": key}}}
