#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_statefulset
short_description: Run one replica group of a training as a StatefulSet
description:
  - Creates, updates and deletes a StatefulSet whose pods start all at once, a headless Service that gives each of them a DNS name before
    it is ready, and optionally a PodDisruptionBudget.
  - Pod C(<name>-<i>) is rank C(i) for as long as the group exists, whatever node it runs on. It reads its rank from E(REPLICA_INDEX)
    and the size of the group from E(REPLICA_SIZE). E(NPROC_PER_NODE), E(WORLD_SIZE) (O(replicas) x O(nproc_per_node)), E(MASTER_ADDR)
    (pod 0) and E(MASTER_PORT) are set as well; a variable of the same name in O(env) wins.
  - A StatefulSet restarts every rank that ends, even after success. Use this module for groups that run until they are removed. For a
    training that ends use M(muster.ml.persia_job), whose trainers are a Job.
  - In a queue (O(queue_name)) all ranks begin or none, and Kueue refuses any other change of O(replicas) than to and from 0.
  - By default the pods meet the C(restricted) Pod Security profile and run as user 1000.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts.trainings
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod.program
  - muster.ml.pod.devices
  - muster.ml.pod
  - muster.ml.queue
options:
  name:
    description: Name of the group, its StatefulSet and its Service. At most 52 characters.
    type: str
    required: true
  replicas:
    description: Number of ranks. Required with O(state=present).
    type: int
  nproc_per_node:
    description: Number of processes in each pod.
    type: str
    default: "1"
  master_port:
    description: Port of rank 0, for E(MASTER_PORT).
    type: int
    default: 29500
  command:
    description: Command, instead of the image's entrypoint.
    type: list
    elements: raw
  args:
    description: Arguments of the command. C($(REPLICA_INDEX)) and other variables of the pod are expanded.
    type: list
    elements: raw
  ports:
    description: Ports of the container, and of the headless Service.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the port.
        type: str
        required: true
      container_port:
        description: Number of the port.
        type: int
        required: true
      protocol:
        description: Protocol of the port.
        type: str
        choices: [TCP, UDP, SCTP]
        default: TCP
  pod_disruption_budget:
    description: PodDisruptionBudget of the group, which limits node drains.
    type: dict
    suboptions:
      min_available:
        description: Number or percentage of ranks that must stay.
        type: str
      max_unavailable:
        description: Number or percentage of ranks that may be evicted.
        type: str
  labels:
    description: Additional labels of objects and pods.
    type: dict
    default: {}
  pod_annotations:
    description: Annotations of the pods.
    type: dict
    default: {}
  overrides:
    description:
      - Fields to merge into the StatefulSet last, by the strategic merge rules of Kubernetes.
      - Null deletes a field. C($patch) is supported.
    type: dict
seealso:
  - module: muster.ml.job_info
  - module: muster.ml.job_logs
  - module: muster.ml.job_stacks
"""

EXAMPLES = r"""
- name: Run eight trainers with eight GPUs each
  muster.ml.training_statefulset:
    name: trainer
    namespace: ml
    replicas: 8
    nproc_per_node: 8
    image: registry.example.com/persia-cuda:0.1.dev251
    command: [/workspace/launch.sh, trainer]
    resources:
      limits:
        memory: 600Gi
        cpu: 80
        nvidia.com/gpu: 8
    shm_size: 64Gi
    tolerations:
      - key: nvidia.com/gpu
        operator: Exists
        effect: NoSchedule
    env:
      - name: HUB_TOKEN
        value_from:
          secretKeyRef:
            name: hub
            key: token
    pod_disruption_budget:
      max_unavailable: 0
    wait: true
    wait_timeout: 900

- name: Remove the trainers
  muster.ml.training_statefulset:
    name: trainer
    namespace: ml
    state: absent
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: StatefulSet, name: trainer, namespace: ml, action: created}]
world_size:
  description: Number of processes in the whole group.
  returned: when O(state=present)
  type: int
  sample: 64
master_addr:
  description: DNS name of rank 0.
  returned: when O(state=present)
  type: str
  sample: trainer-0.trainer.ml.svc
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE, WAIT, fields_of, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.trainings import alert_rules
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_unwanted
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import number, owner_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.training_statefulset import TrainingStatefulSet, manifests

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **options_of(TrainingStatefulSet, hidden=("pod_labels", "selector", "container", "inject_rendezvous")),
    "name": {"type": "str", "required": True},
    "nproc_per_node": groups.PROCESSES,
    **groups.PROGRAM_POD,
    "command": groups.WORDS,
    "args": groups.WORDS,
    "ports": {"type": "list", "elements": "dict", "options": groups.PORT},
    "pod_disruption_budget": {"type": "dict", "options": groups.BUDGET},
    **groups.TRAINING_ALERTS,
    **STATE,
    **APPLY,
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("replicas", "image"))]}


def desired(params: dict[str, t.Any], namespace: str) -> TrainingStatefulSet:
    """The group that the options describe."""
    given = {**fields_of(TrainingStatefulSet, params), "namespace": namespace, "pod": PodSettings.from_params(params)}
    return TrainingStatefulSet(**{**given, "nproc_per_node": number(params["nproc_per_node"])})


def execute(ctx: Context) -> dict[str, t.Any]:
    """Create, update or delete the group."""
    params = ctx.params
    namespace = ctx.namespace
    owner = owner_of("training_statefulset", namespace, params["name"])
    if params["state"] == "absent":
        return ctx.result(groups.delete_group(ctx, namespace, owner))
    group = desired(params, namespace)
    objects = manifests(group)
    rules, gone = alert_rules(ctx, group.name, objects)
    report = groups.apply_group(ctx, [*objects, *rules], owner, wait=params["wait"])
    budget = Ref("policy/v1", "PodDisruptionBudget", group.name, group.namespace)
    unwanted = [*gone, *([budget] if group.pod_disruption_budget is None else [])]
    report.merge(delete_unwanted(ctx.cluster, unwanted, owner, check=ctx.check))
    return ctx.result(report, world_size=group.world_size, master_addr=group.master_addr)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
