#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: elastic_job
short_description: A PyTorch training whose workers come and go
version_added: 0.2.0
description:
  - Trains with torchrun in pods that may be added, removed and lost while it trains. Makes an Indexed Job, or a PyTorchJob of
    training-operator, and its headless Service.
  - The same task with another O(replicas) scales the job. It waits until the rendezvous itself reports the new number of pods and steps
    go on, and goes back to the old number where that does not happen within O(world_timeout). The highest indexes go first.
  - A pod that is asked to end leaves the rendezvous at once, so the others go on without it and without losing one of their restarts.
    Its script gets SIGTERM, and has O(termination_grace_period_seconds) to save a checkpoint.
  - A job that has ended stays as it is when the task runs again. O(restart=true) trains again.
  - The image needs C(python3) with torch 1.13 or newer. A script that prints lines
    C(muster.ml/elastic {"event"':' "step", "time"':' ..., "world_size"':' ..., "epoch"':' ..., "step"':' ...}) has its steps reported.
  - Needs Kubernetes 1.33 or newer with O(backend=native).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.apply
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod
  - muster.ml.network_policy
options:
  name:
    description: Name of the job, of its Service, and the beginning of its pods' names.
    type: str
    required: true
  namespace:
    description: Namespace, which must exist. Without it that of the kubeconfig's context.
    type: str
  backend:
    description:
      - V(native) makes an Indexed Job.
      - V(pytorchjob) makes a PyTorchJob for Kubeflow's training-operator 1.x, whose pods are called O(name)-worker-I. They run the same
        launcher, so scaling, world and steps are the same. Lost pods are made again without being counted, so O(backoff_limit) is
        refused. When the job has ended before its pods, for O(active_deadline_seconds) or because the script failed in one of them, the
        others end by themselves.
    type: str
    choices: [native, pytorchjob]
    default: native
  replicas:
    description: Number of pods. May change while the job runs. Needed with O(state=present).
    type: int
  min_replicas:
    description: With how many pods it trains at least. Without it O(replicas), and the job is not elastic downwards.
    type: int
  max_replicas:
    description: With how many pods it trains at most. Without it O(replicas).
    type: int
  nproc_per_node:
    description: Processes in each pod, a number or V(auto), V(cpu) or V(gpu).
    type: str
    default: "1"
  script:
    description:
      - The Python file to run, a name among O(files), an absolute path in the pods, or C(s3://...) or C(gs://...). Needed with
        O(state=present).
      - One in a bucket is fetched by an init container with the pod's own credentials (O(service_account_name)). For that the image
        needs C(aws) or boto3, or C(gcloud), C(gsutil) or google-cloud-storage.
    type: str
  args:
    description: Arguments of the script.
    type: list
    elements: str
  files:
    description: Text files for all pods, by name; a ConfigMap of at most 1 MiB.
    type: dict
    default: {}
  files_path:
    description: Where O(files) are mounted, read-only.
    type: str
    default: /workspace/scripts
  rdzv_backend:
    description:
      - V(c10d) lets the pods meet at pod 0, by its stable name. While that pod is lost, the others wait for it to come back.
      - V(etcd-v2) lets them meet at an etcd of at most version 3.5 with its v2 API on, at O(rdzv_endpoint). No pod is special then.
    type: str
    choices: [c10d, etcd-v2]
    default: c10d
  rdzv_endpoint:
    description: HOST:PORT of etcd. Only O(rdzv_backend=etcd-v2).
    type: str
  rdzv_conf:
    description: More of torchrun's C(--rdzv-conf), such as C(protocol) and C(ca_cert) of an etcd with TLS.
    type: dict
    default: {}
  join_timeout:
    description: Seconds for O(min_replicas) pods to meet.
    type: int
    default: 600
  last_call_timeout:
    description: Seconds that the pods wait for more once O(min_replicas) have met, at each change.
    type: int
    default: 30
  keep_alive_interval:
    description: Seconds between two heartbeats of a pod.
    type: int
    default: 5
  keep_alive_max_attempt:
    description: After how many missing heartbeats a pod is lost.
    type: int
    default: 3
  monitor_interval:
    description:
      - Seconds between two looks of each agent at its processes and at the rendezvous. How fast a change is seen; with hundreds of pods
        a few seconds keep the rendezvous from being busy with answers.
    type: float
    default: 0.5
  max_restarts:
    description: How often the script may fail in a pod before the job has failed. Changes of membership do not count.
    type: int
    default: 3
  warm_start:
    description:
      - While the pods meet, the processes of the next round start and import torch already, which saves some seconds at each change.
      - V(false) for a script that has to set something up before torch is imported.
    type: bool
    default: true
  volumes:
    description: Volumes of the pods, as in the Kubernetes API.
    type: list
    elements: dict
  volume_mounts:
    description: Mounts of the volumes, as in the Kubernetes API.
    type: list
    elements: dict
  shm_size:
    description: Size of C(/dev/shm).
    type: str
  init_containers:
    description: Containers that run first, as in the Kubernetes API.
    type: list
    elements: dict
  storage:
    description: A volume that all pods mount at the same path, for checkpoints; MUSTER_RUN_DIR is the folder of the job's name on it.
    type: dict
    suboptions:
      claim_name:
        description: Name of the PersistentVolumeClaim.
        type: str
        required: true
      mount_path:
        description: Where it is mounted.
        type: str
        default: /workspace/shared
      size:
        description: With it the claim is made, without it the claim must exist.
        type: str
      storage_class_name:
        description: StorageClass of a claim that is made. Without it the cluster's default.
        type: str
      access_modes:
        description: Access modes of a claim that is made.
        type: list
        elements: str
        default: [ReadWriteMany]
  backoff_limit:
    description:
      - How many pods may fail before the job has failed. Pods that were evicted or asked to end do not count. Only O(backend=native).
      - Kubernetes waits 10 seconds before it makes the pod of an index again, twice as long after each loss of that index. It keeps a lost
        pod until then, so delete a job that trains before its namespace, or the namespace waits for it.
    type: int
    default: 6
  ttl_seconds_after_finished:
    description: Seconds after which Kubernetes removes the ended Job and its pods. The task then trains again, from the last checkpoint.
    type: int
  active_deadline_seconds:
    description:
      - Seconds after which the job is stopped and has failed. With O(backend=pytorchjob) a pod is stopped so many seconds after its own
        start.
    type: int
  overrides:
    description: Merged into the Job or PyTorchJob last, by the strategic merge rules of Kubernetes.
    type: dict
  restart:
    description: Train again, whatever the state. The storage stays, so what resumes from a checkpoint does so.
    type: bool
    default: false
  world_timeout:
    description: Seconds for the world to form again after O(replicas) has changed, before the change is taken back.
    type: int
    default: 300
  wait:
    description:
      - V(completed) waits until the job has ended well, V(running) until all pods have met, V(none) not at all, not even after a change
        of O(replicas).
      - With O(state=absent), V(none) does not wait until everything is gone.
    type: str
    choices: [completed, running, none]
    default: running
  wait_timeout:
    description: Seconds after which waiting fails, with what was last seen.
    type: int
    default: 600
  delete_data:
    description: With O(state=absent), delete the claim of O(storage) too, if this module made it.
    type: bool
    default: false
seealso:
  - module: muster.ml.job_info
  - module: muster.ml.job_logs
"""

EXAMPLES = r"""
- name: Train with two workers; run it again with replicas 3 to add one while it trains
  muster.ml.elastic_job:
    name: digits
    namespace: ml
    image: example/torch:2.6
    replicas: 2
    min_replicas: 1
    max_replicas: 8
    files:
      train.py: "{{ lookup('ansible.builtin.file', 'train.py') }}"
    script: train.py
    args: [--epochs, "20"]
    storage: {claim_name: digits, size: 10Gi}
    shm_size: 8Gi
    resources: {limits: {nvidia.com/gpu: 1}}

- name: Remove it, its checkpoints too
  muster.ml.elastic_job:
    name: digits
    namespace: ml
    state: absent
    delete_data: true
"""

RETURN = r"""
objects:
  description: What was done to each object.
  returned: success
  type: list
  elements: dict
  sample:
    - kind: Job
      name: digits
      namespace: ml
      action: created
state:
  description: State of the job, as M(muster.ml.job_info) tells it.
  returned: when O(state=present)
  type: str
  sample: Running
reason:
  description: Why it is in that state, empty where all is well.
  returned: when O(state=present)
  type: str
world:
  description: What the pods say, namely C(nodes), C(round) and C(world_size) of the rendezvous, C(epoch), C(step) and C(accuracy).
  returned: when O(state=present)
  type: dict
  sample: {nodes: 3, world_size: 3, round: 2, epoch: 7, step: 181, accuracy: 0.95, reason: ""}
groups:
  description: The pods, as M(muster.ml.job_info) tells them.
  returned: when O(state=present)
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import training
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.manifests import from_params

_STORAGE: dict[str, dict[str, t.Any]] = {
    "claim_name": {"type": "str", "required": True},
    "mount_path": {"type": "str", "default": "/workspace/shared"},
    "size": {"type": "str"},
    "storage_class_name": {"type": "str"},
    "access_modes": {"type": "list", "elements": "str", "default": ["ReadWriteMany"]},
}
_RENDEZVOUS: dict[str, dict[str, t.Any]] = {
    "rdzv_backend": {"type": "str", "choices": ["c10d", "etcd-v2"], "default": "c10d"},
    "rdzv_endpoint": {"type": "str"},
    "rdzv_conf": {"type": "dict", "default": {}},
    "join_timeout": {"type": "int", "default": 600},
    "last_call_timeout": {"type": "int", "default": 30},
    "keep_alive_interval": {"type": "int", "default": 5},
    "keep_alive_max_attempt": {"type": "int", "default": 3},
    "monitor_interval": {"type": "float", "default": 0.5},
    "max_restarts": {"type": "int", "default": 3},
    "warm_start": {"type": "bool", "default": True},
}

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "backend": {"type": "str", "choices": ["native", "pytorchjob"], "default": "native"},
    "replicas": {"type": "int"},
    "min_replicas": {"type": "int"},
    "max_replicas": {"type": "int"},
    "nproc_per_node": {"type": "str", "default": "1"},
    "script": {"type": "str"},
    "args": {"type": "list", "elements": "str"},
    "files": {"type": "dict", "default": {}},
    "files_path": {"type": "str", "default": "/workspace/scripts"},
    **_RENDEZVOUS,
    **groups.POD,
    "volumes": {"type": "list", "elements": "dict"},
    "volume_mounts": {"type": "list", "elements": "dict"},
    "shm_size": {"type": "str"},
    "init_containers": {"type": "list", "elements": "dict"},
    "storage": {"type": "dict", "options": _STORAGE},
    "backoff_limit": {"type": "int", "default": 6},
    "ttl_seconds_after_finished": {"type": "int"},
    "active_deadline_seconds": {"type": "int"},
    "overrides": {"type": "dict"},
    **groups.NETWORK,
    "restart": {"type": "bool", "default": False},
    "world_timeout": {"type": "int", "default": 300},
    "wait": {"type": "str", "choices": ["completed", "running", "none"], "default": "running"},
    "wait_timeout": {"type": "int", "default": 600},
    "delete_data": {"type": "bool", "default": False},
    **STATE,
    **APPLY,
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("replicas", "script", "image"))]}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Train, scale, or remove."""
    params = ctx.params
    if params["state"] == "absent":
        return ctx.result(training.absent(ctx, groups.namespace_of(ctx), params["name"]))
    # Bad input is told before anybody asks the cluster.
    from_params({**params, "namespace": params["namespace"] or "default"})
    job = from_params({**params, "namespace": groups.namespace_of(ctx)})
    report, status, world = training.present(ctx, job)
    return ctx.result(report, **status.result(), world=world.result())


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
