# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.tpu.bucket import mounted

DOCUMENTATION = r"""
name: gcs_mount
short_description: Report what pods on GKE need to see a bucket as a folder
author: Muster contributors (!UNKNOWN)
description:
  - Returns volume, mount and annotation for GKE's CSI driver of Cloud Storage FUSE. The cluster needs that add-on
    (O(muster.ml.gke_cluster#module:addons.gcs_fuse_csi_driver)), and the pods a service account that may read and write the bucket.
  - Folders can be renamed, without which no checkpoint could be written.
  - Files belong to the user and group that the pods run as.
positional: _input, mount_path
options:
  _input:
    description: Name of the bucket.
    type: str
    required: true
  mount_path:
    description: Path of the bucket in the pods.
    type: str
    required: true
  options:
    description: More options of Cloud Storage FUSE, such as V(only-dir=team).
    type: list
    elements: str
    default: []
  pod_security_context:
    description: Security context of the pods, as in Kubernetes. Defaults to that of the modules, user and group 1000.
    type: dict
"""

EXAMPLES = r"""
- name: Show what a pod needs for the bucket lm
  ansible.builtin.debug:
    msg: "{{ 'lm' | muster.ml.gcs_mount('/workspace/shared') }}"
"""

RETURN = r"""
_value:
  description: C(volumes), C(volume_mounts) and C(pod_annotations), as options of M(muster.ml.jobset).
  type: dict
  sample:
    volumes:
      - name: bucket
        csi:
          driver: gcsfuse.csi.storage.gke.io
          volumeAttributes: {bucketName: lm, mountOptions: "implicit-dirs,rename-dir-limit=200000,uid=1000,gid=1000"}
    volume_mounts:
      - {name: bucket, mountPath: /workspace/shared}
    pod_annotations: {gke-gcsfuse/volumes: "true"}
"""


def gcs_mount(
    bucket: str, mount_path: str, options: t.Sequence[str] = (), pod_security_context: t.Mapping[str, t.Any] | None = None
) -> dict[str, t.Any]:
    try:
        return mounted(bucket, mount_path, options, pod_security_context)
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gcs_mount": gcs_mount}
