#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: elastic_job
short_description: Run an elastic PyTorch job
description:
  - Runs torchrun in pods that may be added, removed and lost while the job trains. Creates an Indexed Job, a TrainJob of
    Kubeflow Trainer or a PyTorchJob of training-operator, and its headless Service.
  - The same task with another O(replicas) scales the job. It waits until the rendezvous reports the new number of pods and training
    steps continue. If that takes longer than O(world_timeout), the old number is restored. The highest indexes are removed first.
  - A pod that is stopped leaves the rendezvous at once, so that the others continue and none of their restarts is used up. Its script
    gets SIGTERM and has O(termination_grace_period_seconds) to save a checkpoint. So have those of pods that stay, at each
    change.
  - A finished job is not changed when the task runs again. O(restart=true) trains again.
  - The image needs C(python3) with torch 1.13 or newer. Steps are reported if the script prints lines
    C(muster.ml/elastic {"event"':' "step", "time"':' ..., "world_size"':' ..., "epoch"':' ..., "step"':' ...}).
  - A queue (O(queue_name)) admits O(replicas) pods or none, even if O(min_replicas) are fewer. With O(backend=native) more pods wait for
    their quota while the others train, and fewer give it back; with V(pytorchjob) Kueue stops all pods for a change, which then wait.
  - Needs Kubernetes 1.33 or newer with O(backend=native).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts.trainings
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.life
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod.program
  - muster.ml.pod.devices
  - muster.ml.pod
  - muster.ml.network_policy
  - muster.ml.queue
  - muster.ml.storage
options:
  name:
    description: Name of the job and its Service, and prefix of its pods' names.
    type: str
    required: true
  backend:
    description:
      - Kind of the workload. V(native) creates an Indexed Job.
      - V(pytorchjob) creates a PyTorchJob for Kubeflow's training-operator 1.x, whose pods are named O(name)-worker-I. They run the same
        launcher, so scaling, world and steps are the same. Lost pods are recreated without being counted, so O(backoff_limit) is
        refused. If the job ends before its pods, because of O(active_deadline_seconds) or a failed script, the remaining pods end by
        themselves. That operator is legacy.
      - V(trainjob) creates a TrainJob for Kubeflow Trainer 2 with a TrainingRuntime of its own, whose pods are named O(name)-node-0-I. Its
        size is fixed, so O(min_replicas) and O(max_replicas) must be equal. Pods are replaced as with V(native).
    type: str
    choices: [native, pytorchjob, trainjob]
    default: native
  replicas:
    description: Number of pods. Can be changed while the job runs. Required with O(state=present).
    type: int
  min_replicas:
    description: Minimum number of pods to train with. Defaults to O(replicas).
    type: int
  max_replicas:
    description: Maximum number of pods to train with. Defaults to O(replicas).
    type: int
  nproc_per_node:
    description: Number of processes in each pod, a number or V(auto), V(cpu) or V(gpu).
    type: str
    default: "1"
  script:
    description:
      - Python file, or folder or ZIP archive with C(__main__.py), to run, as a name among O(files), an absolute path in the pods, or a URL
        C(s3://...) or C(gs://...). Required with O(state=present).
      - A URL is fetched by an init container with the credentials of O(service_account_name) (IRSA, Pod Identity, Workload Identity)
        or of O(script_credentials_secret); without them it must be public. The image needs no client for it, but Python 3.9.
    type: str
  script_sha256:
    description:
      - SHA-256 of O(script) in its bucket, 64 hexadecimal digits. With another content the job fails before the pods meet. Without it
        whoever may write to the bucket decides what the pods run.
    type: str
  script_endpoint_url:
    description: Endpoint of the store of O(script) if it is not the cloud's own, such as V(https://minio.example:9000).
    type: str
  script_credentials_secret:
    description:
      - Secret in the namespace of the job whose keys become environment variables of the init container, and of no other, such as
        C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY).
    type: str
  args:
    description: Arguments of the script. Flags of torchrun are options, and refused here.
    type: list
    elements: raw
  rdzv_backend:
    description:
      - Rendezvous backend. V(c10d) runs in pod 0 and is found by its stable name. While that pod is lost, the others wait for it.
      - V(etcd-v2) is an etcd of at most version 3.5 with its v2 API enabled, at O(rdzv_endpoint). No pod is special then.
    type: str
    choices: [c10d, etcd-v2]
    default: c10d
  rdzv_endpoint:
    description: Address of etcd as HOST:PORT, without a protocol. Only for O(rdzv_backend=etcd-v2).
    type: str
  etcd:
    description:
      - Cluster of M(muster.ml.etcd_cluster) in the namespace of the job, instead of O(rdzv_endpoint). Only for O(rdzv_backend=etcd-v2).
      - The pods mount its client certificate, and O(rdzv_conf) is set to use it.
    type: dict
    suboptions:
      name:
        description: Name of the etcd cluster.
        type: str
        required: true
      tls:
        description: Connect to etcd with TLS and the client certificate.
        type: bool
        default: true
  dataset:
    description:
      - Data set of M(muster.ml.dataset). The pods mount its claim, read-only unless it is the claim of O(storage).
      - E(MUSTER_DATA_DIR) is its folder.
    type: dict
    suboptions:
      claim_name:
        description: PersistentVolumeClaim of the data set.
        type: str
        required: true
      path:
        description: Folder of the data set on the claim.
        type: str
        required: true
      mount_path:
        description: Mount path of the claim.
        type: str
        default: /workspace/data
  rdzv_conf:
    description: Additional settings for torchrun's C(--rdzv-conf), such as C(protocol) and C(ca_cert) of an etcd with TLS.
    type: dict
    default: {}
  join_timeout:
    description: Seconds for O(min_replicas) pods to join the rendezvous.
    type: int
    default: 600
  last_call_timeout:
    description: Seconds to wait for further pods after O(min_replicas) have joined, at each rendezvous.
    type: int
    default: 30
  keep_alive_interval:
    description: Seconds between two heartbeats of a pod.
    type: int
    default: 5
  keep_alive_max_attempt:
    description: Number of missing heartbeats after which a pod counts as lost.
    type: int
    default: 3
  monitor_interval:
    description:
      - Seconds between two checks of each agent on its processes and the rendezvous. Smaller values detect changes faster. With hundreds
        of pods a few seconds keep the load on the rendezvous low.
    type: float
    default: 0.5
  max_restarts:
    description: Number of restarts of the script in a pod before the job fails. Changes of membership do not count.
    type: int
    default: 3
  warm_start:
    description:
      - Start the processes of the next round, which import torch, while the pods still join. It saves some seconds at each change.
      - Use V(false) for a script that must run code before torch is imported.
    type: bool
    default: true
  backoff_limit:
    description:
      - Number of failed pods after which the job fails. Pods that were evicted or stopped do not count. Only for O(backend=native).
      - Kubernetes waits 10 seconds before it recreates the pod of an index, and twice as long after each further loss. It keeps a lost pod
        until then. Delete a running job before its namespace, or the deletion of the namespace waits for it.
    type: int
    default: 6
  unreachable_toleration_seconds:
    description:
      - Seconds after which Kubernetes evicts a pod from a node that is not ready or does not answer. Kubernetes' own default is 300.
        O(tolerations) of these two taints replace it.
      - Without an answer of the node the evicted pod is not replaced, because it may still run and write to O(storage), until its node
        answers, is deleted, or has the taint C(node.kubernetes.io/out-of-service).
    type: int
    default: 30
  ttl_seconds_after_finished:
    description: Seconds after which Kubernetes removes the finished Job and its pods. The task then trains again, from the last checkpoint.
    type: int
  active_deadline_seconds:
    description:
      - Seconds after which the job is stopped and fails. With O(backend=pytorchjob) they count from the start of each pod.
    type: int
  overrides:
    description: Fields to merge into the Job, PyTorchJob or TrainJob last, by the strategic merge rules of Kubernetes.
    type: dict
  world_timeout:
    description: Seconds for the rendezvous to complete after a change of O(replicas), before the old number is restored.
    type: int
    default: 300
  wait:
    description: Wait for the state O(wait_for), after a change of O(replicas) for the pods, and with O(state=absent) for the deletion.
    type: bool
    default: true
  wait_for:
    description:
      - State to wait for. V(completed) is the successful end, V(running) is a rendezvous of all pods, V(step) is a step that the script
        reports after that and after the task began.
    type: str
    choices: [completed, step, running]
    default: running
"""

EXAMPLES = r"""
- name: Train with two workers (run it again with replicas 3 to add one)
  muster.ml.elastic_job:
    name: digits
    namespace: ml
    image: example/torch:2.6
    replicas: 2
    min_replicas: 1
    max_replicas: 8
    files: "{{ lookup('muster.ml.files', 'train.py') }}"
    script: train.py
    args: [--epochs, "20"]
    storage: {claim_name: digits, size: 10Gi}
    shm_size: 8Gi
    resources: {limits: {nvidia.com/gpu: 1}}

- name: Remove the job and its checkpoints
  muster.ml.elastic_job:
    name: digits
    namespace: ml
    state: absent
    delete_data: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Job, name: digits, namespace: ml, action: created}]
state:
  description: State of the job, as in M(muster.ml.job_info).
  returned: when O(state=present)
  type: str
  sample: Running
reason:
  description: Reason for the state. Empty when nothing is wrong.
  returned: when O(state=present)
  type: str
  sample: ""
plan:
  description: Fingerprint of options and workloads, for O(planned). Valid in one run of C(ansible-playbook).
  returned: in check mode, if the training has succeeded and nothing is to be changed
  type: str
  sample: 6bb1d0a2e8c4
world:
  description: Progress in the pods' logs, with C(nodes), C(round) and C(world_size) of the rendezvous, C(epoch), C(step), C(accuracy).
    With O(backend=trainjob) also in C(status.trainerStatus), with C(percent) and metrics of these names.
  returned: when O(state=present)
  type: dict
  sample: {nodes: 3, world_size: 3, round: 2, epoch: 7, step: 181, accuracy: 0.95, percent: null, reason: ""}
summary:
  description: Key figures of state and progress. C(backend) is that of the rendezvous, C(rounds) the number of rendezvous.
  returned: when O(state=present)
  type: dict
  sample: {ok: true, state: Succeeded, job: ml/digits, pods: 0, backend: c10d, nodes: 3, world_size: 3, rounds: 2, epochs: 8,
           steps: 192, accuracy: 0.95}
table:
  description: State and progress as lines of text.
  returned: when O(state=present)
  type: list
  elements: str
  sample: ["Elastic PyTorch ml/digits: Succeeded, accuracy 0.95 on held-out data"]
groups:
  description: Pods of the job, as in M(muster.ml.job_info).
  returned: when O(state=present)
  type: list
  elements: dict
  sample: [{name: worker, role: worker, kind: StatefulSet, desired: 3, running: 3, state: Running}]
"""

from ansible_collections.muster.ml.plugins.module_utils._edge import groups, trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import ElasticJob
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.training import KIND, desired

_ETCD: Spec = {"name": {"type": "str", "required": True}, "tls": {"type": "bool", "default": True}}
_DATASET: Spec = {
    "claim_name": {"type": "str", "required": True},
    "path": {"type": "str", "required": True},
    "mount_path": {"type": "str", "default": "/workspace/data"},
}

ARGUMENT_SPEC: Spec = {
    **options_of(ElasticJob),
    "args": groups.WORDS,
    "etcd": {"type": "dict", "options": _ETCD},
    **groups.PROGRAM_POD,
    "dataset": {"type": "dict", "options": _DATASET},
    "world_timeout": {"type": "int", "default": 300},
    **trainings.OPTIONS,
    "wait_for": {"type": "str", "choices": ["completed", "step", "running"], "default": "running"},
}

CONSTRAINTS = {
    "required_if": [("state", "present", ("replicas", "script", "image")), ("rdzv_backend", "etcd-v2", ("rdzv_endpoint", "etcd"), True)],
    "mutually_exclusive": [("etcd", "rdzv_endpoint")],
}


execute = trainings.executor(KIND, desired)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
