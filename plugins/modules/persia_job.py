#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: persia_job
short_description: A PERSIA training
version_added: 0.1.0
description:
  - Trains a model with PERSIA, from its groups, its two configuration files and the user's scripts.
  - Everything is checked before anything is made. Keys of the configuration that PERSIA does not know are refused, because PERSIA itself
    ignores them silently; so are a slot without C(dim), a quantity such as C(12 GB), and options that the chosen backend cannot express.
  - A training that has ended stays as it is when the task runs again. Its Jobs are the record of it, so nothing removes them after a time.
    O(restart=true) trains again, O(recreate=true) trains again where options have changed.
  - The names of the groups default to those of PERSIA's document for Google Cloud (trainer, data-compose, middleware, emb-server);
    commands and environment are those of today's persia-launcher.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.apply
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.network_policy
options:
  name:
    description: Name of the training; every object's name begins with it. Name and group together have at most 52 characters.
    type: str
    required: true
  namespace:
    description: Namespace, which must exist. Without it that of the kubeconfig's context.
    type: str
  backend:
    description:
      - V(native) makes StatefulSets for embedding servers and workers, and Indexed Jobs for data loaders and trainers. Lost pods come
        back; where one was replaced, the parts that are left begin again together and the trainers resume from their checkpoint. Needs
        Kubernetes 1.31 or newer.
      - V(operator) makes a PersiaJob for PERSIA's own operator, which makes bare pods once and never repairs them.
    type: str
    choices: [native, operator]
    default: native
  image:
    description: Image of all groups that do not name their own.
    type: str
  image_pull_policy:
    description: When the node fetches the image. Without it V(IfNotPresent).
    type: str
    choices: [Always, IfNotPresent, Never]
  image_pull_secrets:
    description: Names of Secrets with registry credentials.
    type: list
    elements: str
  nn_worker:
    description: The trainers. Needed with O(state=present). At least one replica.
    type: dict
    suboptions:
      nproc_per_node:
        description: Processes in each pod.
        type: int
        default: 1
      entry:
        description: Python file to run, a name among O(files) or a path in the pods.
        type: str
        required: true
      <<: &group
        replicas:
          description: Number of pods.
          type: int
          required: true
        group_name:
          description:
            - Name of the group, which follows that of the training in the names of its objects.
            - Without it trainer, data-compose, middleware or emb-server.
          type: str
        image:
          description: Image of this group.
          type: str
        image_pull_policy:
          description: When the node fetches the image.
          type: str
          choices: [Always, IfNotPresent, Never]
        image_pull_secrets:
          description: Names of Secrets with registry credentials.
          type: list
          elements: str
        env:
          description: Environment variables of this group, after those of the whole training.
          type: list
          elements: dict
          suboptions: &env
            name:
              description: Name of the variable.
              type: str
              required: true
            value:
              description: Its value.
              type: str
            value_from:
              description: Where its value comes from, as in the Kubernetes API.
              type: dict
        resources:
          description: C(requests) and C(limits) as in the Kubernetes API. Extended resources need both to be equal; one of them is enough.
          type: dict
        node_selector:
          description: Labels that a node must have. Only O(backend=native), like all options about placement and security.
          type: dict
        tolerations:
          description: Taints that the pods tolerate, as in the Kubernetes API.
          type: list
          elements: dict
        affinity:
          description: As in the Kubernetes API.
          type: dict
        topology_spread_constraints:
          description: As in the Kubernetes API. Without a C(labelSelector) a constraint is about this group's own pods.
          type: list
          elements: dict
        priority_class_name:
          description: PriorityClass of the pods.
          type: str
        service_account_name:
          description: ServiceAccount of the pods. Without it they get no token for the API server.
          type: str
        termination_grace_period_seconds:
          description: Seconds that a pod has to save its state when it is stopped.
          type: int
        pod_security_context:
          description: Security context of the pods, instead of the restricted default with user 1000. V({}) for none.
          type: dict
        security_context:
          description: Security context of the container, instead of the restricted default. V({}) for none.
          type: dict
        volume_mounts:
          description: Mounts of this group, besides those of the whole training, as in the Kubernetes API.
          type: list
          elements: dict
        shm_size:
          description: Size of C(/dev/shm).
          type: str
        init_containers:
          description: Containers that run first, as in the Kubernetes API.
          type: list
          elements: dict
        pod_disruption_budget:
          description: How many pods of a StatefulSet group a node drain may take at a time.
          type: dict
          suboptions:
            min_available:
              description: Number or percentage of pods that must stay.
              type: str
            max_unavailable:
              description: Number or percentage of pods that may go.
              type: str
        overrides:
          description: Merged into the group's StatefulSet or Job last, by the strategic merge rules of Kubernetes.
          type: dict
  dataloader:
    description: The data loaders. May be left out where the trainers read their data themselves.
    type: dict
    suboptions:
      entry:
        description: Python file to run, a name among O(files) or a path in the pods.
        type: str
        required: true
      <<: *group
  embedding_worker:
    description: The embedding workers. Needed with O(state=present). At least one replica.
    type: dict
    suboptions: *group
  embedding_parameter_server:
    description: The embedding parameter servers. Needed with O(state=present). At least one replica.
    type: dict
    suboptions: *group
  global_config:
    description:
      - PERSIA's global configuration, checked key by key.
      - The C(metrics_config) follows O(metrics) and O(name) where it is not given.
    type: dict
  global_config_path:
    description: Path of the file in the pods, instead of O(global_config).
    type: str
  embedding_config:
    description: PERSIA's embedding configuration, checked key by key.
    type: dict
  embedding_config_path:
    description: Path of the file in the pods, instead of O(embedding_config).
    type: str
  files:
    description: Text files for all pods, by name; a ConfigMap of at most 1 MiB. Larger ones belong on the shared storage.
    type: dict
    default: {}
  files_path:
    description: Where O(files) are mounted, read-only.
    type: str
    default: /workspace/scripts
  nats_url:
    description: Where the NATS servers are.
    type: str
    default: nats://persia-nats-service:4222
  log_level:
    description: Log level of PERSIA's processes.
    type: str
    choices: [trace, debug, info, warn, error]
    default: info
  env:
    description: Environment variables of all groups.
    type: list
    elements: dict
    suboptions: *env
  volumes:
    description: Volumes of all pods, as in the Kubernetes API.
    type: list
    elements: dict
  volume_mounts:
    description: Where all groups mount them, as in the Kubernetes API. Unknown keys such as C(read_only) are refused.
    type: list
    elements: dict
  node_selector:
    description: Labels that a node must have, for groups that do not say.
    type: dict
  tolerations:
    description: Taints that are tolerated, for groups that do not say.
    type: list
    elements: dict
  priority_class_name:
    description: PriorityClass, for groups that do not say.
    type: str
  service_account_name:
    description: ServiceAccount, for groups that do not say.
    type: str
  pod_security_context:
    description: Security context of the pods, for groups that do not say.
    type: dict
  security_context:
    description: Security context of the containers, for groups that do not say.
    type: dict
  metrics:
    description: The gateway that PERSIA's processes push their metrics to, Service C(<name>-metrics-gateway-service).
    type: dict
    suboptions:
      enabled:
        description: Whether there is one.
        type: bool
        default: true
      image:
        description: Its image. With O(backend=operator) it is the operator's, C(prom/pushgateway:latest).
        type: str
        default: prom/pushgateway:v1.11.1
      resources:
        description: C(requests) and C(limits).
        type: dict
  storage:
    description: A volume that all groups mount at the same path, for data and checkpoints.
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
  completion:
    description:
      - Whether the training ends. V(false) makes data loaders and trainers StatefulSets too, which are started again whenever they end.
      - Only O(backend=native).
    type: bool
    default: true
  backoff_limit:
    description:
      - How many pods of a Job may fail before the training has failed. Pods that were evicted, and trainers that end because another
        part was replaced, do not count. Only O(backend=native).
    type: int
    default: 6
  active_deadline_seconds:
    description: Seconds after which trainers and data loaders are stopped and the training has failed. Only O(backend=native).
    type: int
  peer_timeout_seconds:
    description: Seconds that a pod waits at its start for the pods of the other groups to have an address. Only O(backend=native).
    type: int
    default: 600
  clean_pod_policy:
    description:
      - What happens to pods that still run when the training is over (seen by the task that waits for it, or by the next one).
      - V(Running) ends embedding servers, embedding workers and the metrics gateway, which hold memory for nobody. V(None) leaves them.
    type: str
    choices: [Running, None]
    default: Running
  restart:
    description: Train again, whatever the state. The storage stays, so what resumes from a checkpoint does so.
    type: bool
    default: false
  wait:
    description:
      - V(completed) waits until the training has ended well, V(running) until all pods run, V(none) not at all.
      - With O(state=absent), V(none) does not wait until everything is gone.
    type: str
    choices: [completed, running, none]
    default: running
  wait_timeout:
    description: Seconds after which waiting fails. The error says which rank is not where it should be, and why.
    type: int
    default: 600
  delete_data:
    description: With O(state=absent), delete the claim of O(storage) too, if this module made it.
    type: bool
    default: false
  remove_finalizer:
    description:
      - Where a PersiaJob has to be deleted and PERSIA's operator does not take its finalizer away, do its work; pods and Services that
        it made are deleted too.
    type: bool
    default: false
seealso:
  - module: muster.ml.nats_cluster
  - module: muster.ml.job_info
  - module: muster.ml.job_logs
"""

EXAMPLES = r"""
- name: Train
  muster.ml.persia_job:
    name: adult
    namespace: ml
    image: registry.example.com/persia-cuda:0.1.dev251
    files:
      train.py: "{{ lookup('ansible.builtin.file', 'train.py') }}"
      data_loader.py: "{{ lookup('ansible.builtin.file', 'data_loader.py') }}"
    global_config:
      common_config:
        checkpointing_config: {num_workers: 4}
      embedding_parameter_server_config: {capacity: 1000000}
    embedding_config:
      slots_config:
        age: {dim: 8}
        occupation: {dim: 8}
    storage: {claim_name: adult, size: 10Gi}
    nn_worker:
      replicas: 8
      nproc_per_node: 8
      entry: train.py
      resources: {limits: {cpu: 80, memory: 600Gi, nvidia.com/gpu: 8}}
    dataloader: {replicas: 240, entry: data_loader.py, resources: {limits: {cpu: 1, memory: 12Gi}}}
    embedding_worker: {replicas: 100, resources: {limits: {cpu: 28, memory: 100Gi}}}
    embedding_parameter_server: {replicas: 120, resources: {limits: {cpu: 80, memory: 2500Gi}}}
    active_deadline_seconds: 86400
    wait: completed
    wait_timeout: 86400

- name: Remove it, its checkpoints too
  muster.ml.persia_job:
    name: adult
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
      name: adult-trainer
      namespace: ml
      action: created
state:
  description: State of the training, as M(muster.ml.job_info) tells it.
  returned: when O(state=present)
  type: str
  sample: Succeeded
reason:
  description: Why it is in that state, empty where all is well.
  returned: when O(state=present)
  type: str
groups:
  description: The groups and their ranks, as M(muster.ml.job_info) tells them.
  returned: when O(state=present)
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import training
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.spec import from_params

_GROUP: dict[str, dict[str, t.Any]] = {
    "replicas": {"type": "int", "required": True},
    "group_name": {"type": "str"},
    **groups.POD,
    "volume_mounts": {"type": "list", "elements": "dict"},
    "shm_size": {"type": "str"},
    "init_containers": {"type": "list", "elements": "dict"},
    "pod_disruption_budget": {"type": "dict", "options": groups.BUDGET},
    "overrides": {"type": "dict"},
}
_ENTRY: dict[str, dict[str, t.Any]] = {"entry": {"type": "str", "required": True}}
_TRAINER: dict[str, dict[str, t.Any]] = {"nproc_per_node": {"type": "int", "default": 1}, **_ENTRY, **_GROUP}
_METRICS: dict[str, dict[str, t.Any]] = {
    "enabled": {"type": "bool", "default": True},
    "image": {"type": "str", "default": "prom/pushgateway:v1.11.1"},
    "resources": {"type": "dict"},
}
_STORAGE: dict[str, dict[str, t.Any]] = {
    "claim_name": {"type": "str", "required": True},
    "mount_path": {"type": "str", "default": "/workspace/shared"},
    "size": {"type": "str"},
    "storage_class_name": {"type": "str"},
    "access_modes": {"type": "list", "elements": "str", "default": ["ReadWriteMany"]},
}
# Those of a group's placement that make sense for all groups alike.
_COMMON = ("node_selector", "tolerations", "priority_class_name", "service_account_name")
_SECURITY = ("pod_security_context", "security_context")

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "backend": {"type": "str", "choices": ["native", "operator"], "default": "native"},
    **groups.IMAGE,
    "nn_worker": {"type": "dict", "options": _TRAINER},
    "dataloader": {"type": "dict", "options": {**_ENTRY, **_GROUP}},
    "embedding_worker": {"type": "dict", "options": _GROUP},
    "embedding_parameter_server": {"type": "dict", "options": _GROUP},
    "global_config": {"type": "dict"},
    "global_config_path": {"type": "str"},
    "embedding_config": {"type": "dict"},
    "embedding_config_path": {"type": "str"},
    "files": {"type": "dict", "default": {}},
    "files_path": {"type": "str", "default": "/workspace/scripts"},
    "nats_url": {"type": "str", "default": "nats://persia-nats-service:4222"},
    "log_level": {"type": "str", "choices": ["trace", "debug", "info", "warn", "error"], "default": "info"},
    "env": {"type": "list", "elements": "dict", "options": groups.ENV},
    "volumes": {"type": "list", "elements": "dict"},
    "volume_mounts": {"type": "list", "elements": "dict"},
    **{name: groups.PLACEMENT[name] for name in (*_COMMON, *_SECURITY)},
    "metrics": {"type": "dict", "options": _METRICS},
    "storage": {"type": "dict", "options": _STORAGE},
    **groups.NETWORK,
    "completion": {"type": "bool", "default": True},
    "backoff_limit": {"type": "int", "default": 6},
    "active_deadline_seconds": {"type": "int"},
    "peer_timeout_seconds": {"type": "int", "default": 600},
    "clean_pod_policy": {"type": "str", "choices": ["Running", "None"], "default": "Running"},
    "restart": {"type": "bool", "default": False},
    "wait": {"type": "str", "choices": ["completed", "running", "none"], "default": "running"},
    "wait_timeout": {"type": "int", "default": 600},
    "delete_data": {"type": "bool", "default": False},
    "remove_finalizer": {"type": "bool", "default": False},
    **STATE,
    **APPLY,
}

CONSTRAINTS: dict[str, t.Any] = {
    "required_if": [("state", "present", ("nn_worker", "embedding_worker", "embedding_parameter_server"))],
    "mutually_exclusive": [
        ("global_config", "global_config_path"),
        ("embedding_config", "embedding_config_path"),
    ],
}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Train, or remove the training."""
    params = ctx.params
    if params["state"] == "absent":
        return ctx.result(training.absent(ctx, groups.namespace_of(ctx), params["name"]))
    # Bad input is told before anybody asks the cluster.
    from_params({**params, "namespace": params["namespace"] or "default"})
    job = from_params({**params, "namespace": groups.namespace_of(ctx)})
    report, status = training.present(ctx, job)
    return ctx.result(report, **status.result())


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
