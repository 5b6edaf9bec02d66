# SPDX-License-Identifier: GPL-3.0-or-later
"""A bucket of Google Cloud Storage as a folder of pods on GKE, by its CSI driver for Cloud Storage FUSE. No I/O.

"Access Cloud Storage buckets with the Cloud Storage FUSE CSI driver" (GKE): the annotation has a webhook add the container that mounts.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.pods import RESTRICTED_POD

DRIVER = "gcsfuse.csi.storage.gke.io"
ANNOTATION = "gke-gcsfuse/volumes"
_VOLUME = "bucket"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
# Folders need no object of their own (implicit directories). A checkpoint is written beside its place and renamed when it is whole,
# which Cloud Storage FUSE refuses without a limit, because it renames one object after the other.
_OPTIONS = ("implicit-dirs", "rename-dir-limit=200000")


def mounted(
    bucket: str, mount_path: str, options: Sequence[str] = (), pod_security_context: Mapping[str, t.Any] | None = None
) -> dict[str, t.Any]:
    """Return the volumes, mounts and annotations by which pods mount the bucket. Files belong to the user of the pods."""
    if not _NAME.fullmatch(bucket):
        hint = "Give the name alone, without gs:// and folders."
        raise InvalidInput(f"{bucket!r} cannot be the name of a bucket", hint)
    if not mount_path.startswith("/"):
        raise InvalidInput(f"The path {mount_path!r} for bucket {bucket} does not begin with '/'")
    context = pod_security_context or RESTRICTED_POD
    owner = [f"{word}={context[key]}" for word, key in (("uid", "runAsUser"), ("gid", "runAsGroup")) if context.get(key)]
    attributes = {"bucketName": bucket, "mountOptions": ",".join((*_OPTIONS, *owner, *options))}
    return {
        "volumes": [{"name": _VOLUME, "csi": {"driver": DRIVER, "volumeAttributes": attributes}}],
        "volume_mounts": [{"name": _VOLUME, "mountPath": mount_path}],
        "pod_annotations": {ANNOTATION: "true"},
    }
