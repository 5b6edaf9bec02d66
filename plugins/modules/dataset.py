#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dataset
short_description: Fetch a data set to a PersistentVolumeClaim
description:
  - Downloads a file or archive to a PersistentVolumeClaim in a Job, verifies its checksum and unpacks it.
  - A marker file beside the data prevents a second download. An interrupted download resumes where it stopped, in the next pod, too.
  - Size and free space are checked before the download. No member of an archive can be written outside of the folder.
  - The marker lists the files of the data set. Files that it does not list are never replaced or removed.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod
  - muster.ml.storage.claim
options:
  name:
    description: Name of the data set. At most 50 characters.
    type: str
    required: true
  url:
    description: URL of the file, with V(https://), V(http://), V(s3://) or V(gs://).
    type: str
  endpoint_url:
    description:
      - Server for V(s3://) and V(gs://) URLs, if it is not the cloud's own, such as C(https://minio.example:9000).
      - With V(s3://), C(https://storage.googleapis.com) and an HMAC key of Google in O(credentials_secret), a bucket of Google is read.
    type: str
  url_secret:
    description: Secret with the URL, for signed URLs.
    type: dict
    suboptions:
      name:
        description: Name of the Secret.
        type: str
        required: true
      key:
        description: Key of the Secret that holds the URL.
        type: str
        default: url
  sha256:
    description: SHA-256 of the file. Required with O(state=present).
    type: str
  size_bytes:
    description: Size of the file in bytes. A file of another size is refused before the download.
    type: int
  path:
    description:
      - Folder of the claim for the data. Defaults to O(name). It must not lie in the folder of another data set, nor contain one.
      - Other files in it, such as checkpoints, stay when the data set is updated. An update that would replace one of them is refused.
    type: str
  unpack:
    description: Archive format of the file. V(auto) derives it from the URL, V(none) does not unpack.
    type: str
    choices: [auto, none, tar, zip]
    default: auto
  claim_name:
    description: PersistentVolumeClaim for the data. Required with O(state=present).
    type: str
  storage_size:
    description: Size of the claim to create. If omitted, the claim must exist.
    type: str
  credentials_secret:
    description:
      - Secret whose keys become environment variables of the pod, such as C(AWS_ACCESS_KEY_ID).
      - The key C(AUTHORIZATION) is sent as that header with V(https://) and V(gs://), and to no server that redirects elsewhere.
      - Defaults to the credentials of O(service_account_name) (IRSA, Pod Identity, Workload Identity). If it has none, the object must be
        public. The role of the node is never used.
    type: str
  image:
    description: Image with C(python3), 3.9 or newer.
    type: str
    default: docker.io/library/python:3.12-slim-bookworm
  service_account_name:
    description: ServiceAccount of the pod, for Workload Identity, IRSA or Pod Identity.
  backoff_limit:
    description: Number of failed pods after which the Job fails. A wrong checksum fails it at once.
    type: int
    default: 6
  active_deadline_seconds:
    description: Seconds after which the Job is stopped and fails.
    type: int
  retry:
    description: Delete a failed Job and start it again. Otherwise a failed Job stays, and the task fails with its error.
    type: bool
    default: false
  delete_data:
    description: Delete the claim with all data on it, too, with O(state=absent), if this module created it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Fetch tiny-imagenet to the claim of the training
  muster.ml.dataset:
    namespace: ml
    name: tiny-imagenet
    url: https://cs231n.stanford.edu/tiny-imagenet-200.zip
    sha256: "{{ tiny_imagenet_sha256 }}"
    claim_name: efs-claim
    wait: true
    wait_timeout: 3600
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Job, name: tiny-imagenet-0f3a5a6b7c, namespace: ml, action: created}]
path:
  description: Folder of the claim that holds the data.
  returned: when O(state=present)
  type: str
  sample: tiny-imagenet
message:
  description: Last message of the pod that fetched the data set.
  returned: when O(state=present) and O(wait=true), outside check mode, while the pod exists
  type: str
  sample: 110000 files from 248100043 bytes
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, REMOVAL, STATE, WAIT, fields_of, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ref_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import owner_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.dataset import fetching
from ansible_collections.muster.ml.plugins.module_utils._systems.dataset.manifests import Dataset, manifests

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **options_of(Dataset),
    "name": {"type": "str", "required": True},
    "url_secret": {
        "type": "dict",
        "no_log": False,  # names, not secrets
        "options": {"name": {"type": "str", "required": True}, "key": {"type": "str", "default": "url", "no_log": False}},
    },
    **groups.POD,
    "image": {"type": "str", "default": "docker.io/library/python:3.12-slim-bookworm"},
    "retry": {"type": "bool", "default": False},
    "delete_data": {"type": "bool", "default": False},
    **REMOVAL,
    **STATE,
    **APPLY,
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {
    "mutually_exclusive": [("url", "url_secret")],
    "required_if": [("state", "present", ("sha256", "claim_name")), ("state", "present", ("url", "url_secret"), True)],
}


def desired(params: dict[str, t.Any], namespace: str) -> Dataset:
    """The data set that the options describe."""
    return Dataset(**{**fields_of(Dataset, params), "namespace": namespace, "pod": PodSettings.from_params(params)})


def execute(ctx: Context) -> dict[str, t.Any]:
    """Fetch the data set, or remove its Job and ConfigMap."""
    params = ctx.params
    namespace = ctx.namespace
    owner = owner_of("dataset", namespace, params["name"])
    if params["state"] == "absent":
        return ctx.result(groups.delete_group(ctx, namespace, owner))
    data = desired(params, namespace)
    objects = manifests(data)
    job = ref_of(objects[-1])
    live = ctx.cluster.get(job)
    if live is None:
        # Its name has a hash of the claim and the folder. So one that exists was compared with its neighbours when it was created.
        fetching.check_neighbours(ctx.cluster, data)
    elif params["retry"]:
        fetching.delete_failed(ctx.cluster, live, owner, check=ctx.check)
    report = groups.apply_group(ctx, objects, owner, wait=False, prune=True)
    if not params["wait"] or ctx.check:
        return ctx.result(report, path=data.folder)
    message = fetching.wait(ctx.cluster, data, job.name, timeout=params["wait_timeout"], progress=ctx.progress)
    return ctx.result(report, path=data.folder, message=message)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
