#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: triton_model
short_description: Manage a model of a Triton server
description:
  - Uploads the files that the repository lacks, compared by their SHA-256, brings the wanted versions to every replica, one replica after
    the other, and waits until each serves exactly these.
  - The configuration is checked before anything is sent, by Triton's own definition of it. In the repository its version policy is always
    C(specific), and it is written last. So what is uploaded is not served until every replica took it, and what a server refuses never is.
  - If a replica refuses a version, those that were served are served on, the replicas and the repository get again what they had, and the
    task fails with the reason that the server gave.
  - Files of versions that are served never change. What is new needs another number.
  - The server must run with C(explicit) or C(poll) as its O(muster.ml.triton_server#module:model_control_mode). With C(none), without a
    server, or with one of 0 replicas, only the repository is written.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod
  - muster.ml.storage
options:
  name:
    description: Name of the server, as in M(muster.ml.triton_server).
    type: str
    default: triton
  state:
    description:
      - V(absent) unloads the model. Its files stay unless O(delete_data=true).
      - Where a server that starts would load the model again, V(absent) needs O(delete_data=true).
    type: str
    choices: [present, absent]
    default: present
  model:
    description: Name of the model, which is that of its folder in the repository.
    type: str
    required: true
  src:
    description:
      - Folder of the model on the machine that runs the module, with a folder for each version, which may be empty, as that of an ensemble
        is, and C(config.pbtxt), which may be left out, or incomplete, where the server completes it. Hidden files are left out.
      - Without it O(versions) chooses among those of the repository.
    type: path
  versions:
    description:
      - Versions to serve, of O(src) or of the repository, such as an earlier one to go back to. By default those that the version policy in
        O(src) chooses among its own.
    type: list
    elements: int
    default: []
  purge_versions:
    description: Delete versions from the repository that are neither in O(src) nor in O(versions).
    type: bool
    default: false
  model_repository:
    description:
      - Folder of the models, as the server has it. It is V(s3://BUCKET/FOLDER), V(s3://http://HOST:PORT/BUCKET/FOLDER),
        V(gs://BUCKET/FOLDER), or a path of a folder of O(storage). A store in the cluster, C(NAME.NAMESPACE.svc), is reached by a
        forwarded port.
      - A V(gs://) repository needs the permissions C(storage.objects.list), C(storage.objects.get), C(storage.objects.create) and
        C(storage.objects.delete) on its bucket, as C(roles/storage.objectUser) has them. An object that is replaced is deleted.
    type: str
    required: true
  storage:
    description:
      - Volume of the models. A pod writes to it, made when there is something to write. What it wrote is noted in a ConfigMap.
      - The claim must exist. O(storage.size) and the other options of a new claim are for M(muster.ml.triton_server), and not used here.
  credentials_secret:
    description:
      - Secret of the namespace with the keys C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY) for an C(s3://) repository. Without it boto3
        finds those of the machine that runs the module.
    type: str
  auth_kind:
    description:
      - Kind of the credentials for a V(gs://) repository, as in the modules of C(google.cloud). The credentials themselves are those of the
        environment, C(GCP_ACCESS_TOKEN), C(GCP_SERVICE_ACCOUNT_FILE), C(GCP_SERVICE_ACCOUNT_CONTENTS) or C(GCP_SERVICE_ACCOUNT_EMAIL),
        or the application default credentials.
      - Defaults to C(GCP_AUTH_KIND) of the environment, else V(accesstoken) if it has C(GCP_ACCESS_TOKEN), else V(application).
    type: str
    choices: [application, accesstoken, serviceaccount, machineaccount]
  image:
    description: Image of the pod that writes to a volume, with C(python3), 3.9 or newer.
    type: str
    default: docker.io/library/python:3.12-slim-bookworm
  delete_data:
    description: Delete the files of the model, too, with O(state=absent).
    type: bool
    default: false
  wait_timeout:
    description: Seconds until every replica serves the versions.
    type: int
    default: 600
requirements:
  - tritonclient >= 2.53.0
  - protobuf >= 5.26.1
  - boto3 >= 1.41.0, for s3:// repositories
  - botocore >= 1.41.0, for s3:// repositories
  - google-auth >= 2.26.1, for gs:// repositories
  - google-cloud-storage >= 3.0.0, for gs:// repositories
  - requests >= 2.31.0, for gs:// repositories
seealso:
  - module: muster.ml.triton_server
  - module: muster.ml.inference_check
"""

EXAMPLES = r"""
- name: Upload a model to a store in the cluster, and have its newest version served
  muster.ml.triton_model:
    namespace: ml
    model: add
    src: models/add
    model_repository: s3://http://store.ml.svc:7070/models
    credentials_secret: store-login

- name: Upload a model to a bucket of Google Cloud Storage, and have version 2 served
  muster.ml.triton_model:
    namespace: ml
    model: add
    src: models/add
    versions: [2]
    model_repository: gs://example-models/production

- name: Replace the version by an earlier one
  muster.ml.triton_model:
    namespace: ml
    model: add
    versions: [1]
    model_repository: s3://http://store.ml.svc:7070/models
    credentials_secret: store-login

- name: Remove the model with its files from a volume
  muster.ml.triton_model:
    namespace: ml
    model: add
    state: absent
    delete_data: true
    model_repository: /workspace/shared/models
    storage: {claim_name: training}
"""

RETURN = r"""
objects:
  description: The ConfigMap that notes what is on a volume, with what was done to it. Empty for buckets.
  returned: success
  type: list
  elements: dict
  sample: [{kind: ConfigMap, name: triton-models, namespace: ml, action: updated}]
uploaded:
  description: Files that were uploaded, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [2/model.py]
deleted:
  description: Files that were deleted, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: []
versions:
  description: Versions that are served, or would be in check mode.
  returned: success
  type: list
  elements: int
  sample: [2]
replicas:
  description: Versions that each replica serves. In check mode those of now.
  returned: success
  type: dict
  sample: {triton-6b7c8d9e0f-x2v9k: [2]}
"""

import contextlib
import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.brief import as_diff
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, NotFound
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import STATE
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import DNS_LABEL_MAX, check_count, check_name, owner_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import bucket, model_bucket, model_gcs, model_volume
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.model import Outcome, Store, Wanted, absent, planned, present
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.model_rollout import Rollout
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.model_source import Source, check_model, read_source
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.repository import Repository, checked_repository

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "default": "triton"},
    "namespace": {"type": "str"},
    "model": {"type": "str", "required": True},
    "src": {"type": "path"},
    "versions": {"type": "list", "elements": "int", "default": []},
    "purge_versions": {"type": "bool", "default": False},
    "model_repository": {"type": "str", "required": True},
    **groups.STORAGE,
    "credentials_secret": {"type": "str", "no_log": False},  # its name
    "auth_kind": {"type": "str", "choices": ["application", "accesstoken", "serviceaccount", "machineaccount"]},
    **groups.POD,
    "image": {"type": "str", "default": "docker.io/library/python:3.12-slim-bookworm"},
    "delete_data": {"type": "bool", "default": False},
    **STATE,
    "wait_timeout": {"type": "int", "default": 600},
}


def source_of(params: dict[str, t.Any]) -> Source | None:
    """The folder in option src, read and checked with the other options."""
    check_model(params["model"])
    check_name(params["name"], "name", limit=DNS_LABEL_MAX, service=True)
    for version in params["versions"]:
        check_count(version, "versions", minimum=1)
    storage = Storage.from_params(params["storage"])
    keys = ("model_repository", "credentials_secret")
    checked_repository(Repository(storage=storage, **{key: params[key] for key in keys}))
    if not storage and not _on_google(params):
        bucket.bucket_of(params["model_repository"])
    if params["state"] == "absent":
        return None
    if not params["src"] and not params["versions"]:
        raise InvalidInput("Give src, the folder of the model, or versions, to choose among those of the repository.")
    return read_source(Path(params["src"]), params["model"]) if params["src"] else None


def _on_google(params: dict[str, t.Any]) -> bool:
    return str(params["model_repository"]).startswith(model_gcs.SCHEME)


def opened(ctx: Context, namespace: str, owner: str) -> contextlib.AbstractContextManager[Store]:
    """The model's folder in the repository."""
    params = ctx.params
    storage = Storage.from_params(params["storage"])
    if _on_google(params):
        # This imports Google's libraries, which other repositories do not need.
        from ansible_collections.muster.ml.plugins.module_utils._edge import gcp

        credentials = gcp.credentials_of(params["auth_kind"])
        return model_gcs.opened(params["model_repository"], params["model"], credentials)
    if storage is None:
        place = bucket.bucket_of(params["model_repository"])
        return model_bucket.opened(ctx.cluster, place, params["model"], params["credentials_secret"], namespace)
    volume = model_volume.Volume(
        server=params["name"],
        model=params["model"],
        namespace=namespace,
        folder=params["model_repository"].rstrip("/"),
        storage=storage,
        pod=PodSettings.from_params(params),
        timeout=params["wait_timeout"],
    )
    return model_volume.opened(ctx.cluster, volume, owner)


def execute(ctx: Context) -> dict[str, t.Any]:
    """Upload and serve, or remove the model."""
    params = ctx.params
    source = source_of(params)  # before any request
    for warning in source.warnings if source else ():
        ctx.warn(warning)
    namespace = ctx.namespace
    how = {"timeout": params["wait_timeout"], "progress": ctx.progress, "warn": ctx.warn, "clock": ctx.clock}
    rollout = Rollout(ctx.cluster, params["name"], namespace, params["model"], **how)
    owner = owner_of("triton_server", namespace, params["name"])  # the record is deleted with the server
    wanted = Wanted(params["model"], source, params["versions"], purge=params["purge_versions"])
    try:
        with opened(ctx, namespace, owner) as store:
            if params["state"] == "absent":
                return _result(ctx, absent(store, rollout, wanted, delete_data=params["delete_data"], check=ctx.check))
            return _result(ctx, present(store, rollout, wanted, check=ctx.check))
    except NotFound:
        if not ctx.check or source is None:
            raise
        # An earlier task of the same run may create its store.
        return _result(ctx, planned(wanted))


def _result(ctx: Context, found: Outcome) -> dict[str, t.Any]:
    lists = {"uploaded": found.uploaded, "deleted": found.deleted, "versions": found.versions, "replicas": found.replicas}
    result = ctx.result(found.report, **lists)
    result["changed"] = bool(result["changed"] or found.changed)
    if ctx.diff and found.changed:
        header = f"model {ctx.params['model']} in {ctx.params['model_repository']}"
        named = found.difference or as_diff([f"versions {found.versions} in every replica"])
        result["diff"] += [{"before_header": header, "after_header": header, **named}]
    return result


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
