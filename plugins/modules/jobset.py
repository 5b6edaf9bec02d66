#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: jobset
short_description: Run a training on slices of hosts as a JobSet
description:
  - Creates a JobSet with one Job for each slice and one pod for each host of it, such as slices of TPUs, whose pods start, succeed, fail
    and restart together.
  - All pods are equal. A JobSet with several replicated jobs, such as a leader and workers, is created by M(muster.ml.apply).
  - The pods get E(MUSTER_SLICES), E(MUSTER_HOSTS), E(MUSTER_SLICE), E(JOB_COMPLETION_INDEX) (the number of the pod in its slice),
    E(MUSTER_COORDINATOR) (host and port of the first pod of the first slice), E(MUSTER_RESTARTS), and with O(storage)
    E(MUSTER_RUN_DIR), a folder for checkpoints.
  - A pod that fails restarts all pods, at most O(max_restarts) times. A pod that was evicted, preempted or lost with its node restarts
    them, too, and is not counted.
  - A finished training is not changed when the task runs again. O(restart=true) trains again.
  - Needs the controller of JobSet 0.12, see P(muster.ml.jobset#role).
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
    description: Name of the JobSet and its Service, and prefix of its pods' names.
    type: str
    required: true
  tpu:
    description:
      - Slices of TPUs on GKE. It gives O(hosts), and adds labels to O(node_selector) and the chips of a machine to O(resources).
      - A combination that Google does not have is refused, with the nearest right ones.
    type: dict
    suboptions:
      type:
        description: Type of the TPUs, such as V(v5e), or name of the slice, such as V(v5litepod-16).
        type: str
        required: true
      topology:
        description: Topology of a slice, such as V(4x4). Required unless O(tpu.type) names a slice.
        type: str
      machine_type:
        description: Machine type, where a topology has several.
        type: str
  slices:
    description: Number of slices, each of which is a Job. Several slices of TPUs need several hosts each.
    type: int
    default: 1
  hosts:
    description: Number of pods of each slice. Required with O(state=present) unless O(tpu) is given.
    type: int
  exclusive_topology:
    description:
      - Node label by which each slice has its nodes for itself. All pods of a slice go to nodes with one value of the label, and those of
        two slices of the same priority never to the same value. An empty text places them freely.
      - Defaults to V(cloud.google.com/gke-nodepool) for O(tpu) with several hosts.
    type: str
  command:
    description: Command of the container, instead of the image's entrypoint.
    type: list
    elements: raw
  args:
    description: Arguments of the command.
    type: list
    elements: raw
  coordinator_port:
    description: Port of E(MUSTER_COORDINATOR).
    type: int
    default: 8476
  success_operator:
    description: Slices that must succeed, V(All) of them, or V(Any), which stops the others.
    type: str
    choices: [All, Any]
    default: All
  max_restarts:
    description: Number of restarts after which a failed pod fails the training.
    type: int
    default: 3
  restart_strategy:
    description:
      - Order in which the pods are created again. With V(BlockingRecreate) no pod starts before all of the last attempt are gone, so that
        none meets one of those. With V(Recreate) each slice starts as soon as its own are gone.
    type: str
    choices: [BlockingRecreate, Recreate]
    default: BlockingRecreate
  suspend:
    description:
      - V(true) deletes the pods and keeps the JobSet, V(false) creates them again. Can be changed while it runs. With V(true) the task
        waits only until the pods are gone.
      - With O(queue_name) Kueue decides, so that it cannot be given.
    type: bool
  ttl_seconds_after_finished:
    description: Seconds after which the finished JobSet is removed with its pods. The task then trains again, from the last checkpoint.
    type: int
  pod_annotations:
    description: Annotations of the pods, such as V(gke-gcsfuse/volumes), with which GKE mounts buckets.
    type: dict
    default: {}
  overrides:
    description: Fields to merge into the JobSet last, by the strategic merge rules of Kubernetes.
    type: dict
seealso:
  - name: JobSet
    description: The documentation of JobSet.
    link: https://jobset.sigs.k8s.io/
"""

EXAMPLES = r"""
- name: Train on two slices of TPU v5e, with four machines each
  muster.ml.jobset:
    name: lm
    namespace: ml
    image: example/jax:0.10
    tpu: {type: v5e, topology: 4x4}
    slices: 2
    command: [python3, train.py]
    storage: {claim_name: lm}

- name: Train on eight pods without TPUs
  muster.ml.jobset:
    name: digits
    namespace: ml
    image: example/jax:0.10
    slices: 2
    hosts: 4
    files: "{{ lookup('muster.ml.files', 'train.py') }}"
    command: [python3, /workspace/scripts/train.py]
    wait_for: completed

- name: Train when the queue has room for all pods
  muster.ml.jobset:
    name: digits
    namespace: ml
    image: example/jax:0.10
    slices: 2
    hosts: 4
    command: [python3, train.py]
    resources:
      requests: {cpu: "1", memory: 1Gi}
    queue_name: training
    queue_priority_class: urgent

- name: Remove the training
  muster.ml.jobset:
    name: digits
    namespace: ml
    state: absent
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: JobSet, name: lm, namespace: ml, action: created}]
state:
  description: State of the training, as in M(muster.ml.job_info).
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
summary:
  description: Key figures of the training. C(pods) is the number of running pods.
  returned: when O(state=present)
  type: dict
  sample: {ok: true, state: Running, pods: 8, job: ml/lm, backend: "", slices: 2, restarts: 0}
table:
  description: State of the training as lines of text.
  returned: when O(state=present)
  type: list
  elements: str
  sample: ["JobSet ml/lm: Running, 2 slices of 4 hosts, 0 restarts", "slice-0: 4", "slice-1: 4"]
groups:
  description: Slices with their pods, as in M(muster.ml.job_info).
  returned: when O(state=present)
  type: list
  elements: dict
  sample: [{name: slice-0, role: worker, kind: Job, desired: 4, running: 4, state: Running}]
"""

from ansible_collections.muster.ml.plugins.module_utils._edge import groups, trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.spec import JobSet
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.training import KIND, desired

_TPU: Spec = {
    "type": {"type": "str", "required": True},
    "topology": {"type": "str"},
    "machine_type": {"type": "str"},
}

ARGUMENT_SPEC: Spec = {
    **options_of(JobSet),
    "tpu": {"type": "dict", "options": _TPU},
    "command": groups.WORDS,
    "args": groups.WORDS,
    **groups.PROGRAM_POD,
    **trainings.OPTIONS,
}

CONSTRAINTS = {
    "required_if": [("state", "present", ("image",)), ("state", "present", ("tpu", "hosts"), True)],
    "mutually_exclusive": [("suspend", "queue_name")],
}


execute = trainings.executor(KIND, desired)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
