#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: persia_job
short_description: Run a PERSIA training
description:
  - Creates, restarts and deletes a PERSIA training, from its groups, its two configuration files and the user's scripts.
  - All options are validated before any object is created. Keys of the configuration that PERSIA does not know are refused, because PERSIA
    itself ignores them silently. So are a slot without C(dim), a quantity such as C(12 GB), and options that the backend does not support.
  - A finished training is not changed when the task runs again. Its Jobs are its record, so they are not removed after a time.
    O(restart=true) trains again, O(recreate=true) trains again if options have changed.
  - The names of the groups default to those of PERSIA's document for Google Cloud (trainer, data-compose, middleware, emb-server).
    Commands and environment are those of the current persia-launcher.
  - A queue (O(queue_name)) admits all pods or none, servers and metrics gateway included, as one group of pods. A lost pod comes back
    without waiting again. The task that sees the end gives the quota back. Pods that Kueue stops count towards O(backoff_limit), and the
    time in the queue towards O(active_deadline_seconds). Not with O(backend=operator).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts.trainings
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.life
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.network_policy
  - muster.ml.queue
  - muster.ml.storage
  - muster.ml.pod.pull
options:
  name:
    description: Name of the training, and prefix of its objects' names. Name and group together have at most 52 characters.
    type: str
    required: true
  backend:
    description:
      - Kind of the workloads. V(native) creates StatefulSets for embedding servers and workers, and Indexed Jobs for data loaders and
        trainers. Lost pods are recreated. When a pod was replaced, the remaining parts restart together and the trainers resume from
        their checkpoint. Needs Kubernetes 1.31 or newer.
      - V(operator) creates a PersiaJob for PERSIA's own operator, which creates bare pods once and never repairs them.
    type: str
    choices: [native, operator]
    default: native
  image:
    description: Image of all groups without an image of their own.
    type: str
  nn_worker:
    description: Trainers. Required with O(state=present). At least one replica.
    type: dict
    suboptions:
      nproc_per_node:
        description: Number of processes in each pod.
        type: str
        default: "1"
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
            - Name of the group, which follows the name of the training in the names of its objects.
            - Defaults to trainer, data-compose, middleware or emb-server.
          type: str
        image:
          description: Image of this group.
          type: str
        image_pull_policy:
          description: Pull policy of this group's image.
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
              description: Value of the variable.
              type: raw
            value_from:
              description: Source of the value, as in the Kubernetes API.
              type: dict
        resources:
          description: C(requests) and C(limits) as in the Kubernetes API. Extended resources need both to be equal; one of them is enough.
          type: dict
        resource_claims:
          description:
            - Devices that each pod claims by dynamic resource allocation (DRA). It needs a driver for them, and Kubernetes 1.34 or newer.
              Each claim has one of C(device_class_name), C(resource_claim_template_name) and C(resource_claim_name).
            - The container of the program has the devices of all claims, or of those that C(claims) of C(resources) names.
          type: list
          elements: dict
          suboptions:
            name:
              description: Name of the claim in the pod.
              type: str
              required: true
            resource_claim_name:
              description: ResourceClaim that all pods share.
              type: str
            resource_claim_template_name:
              description: ResourceClaimTemplate of a claim for each pod.
              type: str
            device_class_name:
              description: DeviceClass of a claim for each pod, of which a ResourceClaimTemplate is created.
              type: str
            count:
              description: Number of devices of C(device_class_name). Defaults to 1.
              type: int
            selectors:
              description:
                - Expressions in CEL that such a device must all satisfy, such as
                  V(device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200').
              type: list
              elements: str
        node_selector:
          description: Labels that a node must have. Only for O(backend=native), like all options about placement and security.
          type: dict
        tolerations:
          description: Taints that the pods tolerate, as in the Kubernetes API.
          type: list
          elements: dict
        affinity:
          description: Affinity of the pods, as in the Kubernetes API.
          type: dict
        topology_spread_constraints:
          description: Topology spread constraints, as in the Kubernetes API. C(labelSelector) defaults to this group's pods.
          type: list
          elements: dict
        priority_class_name:
          description: PriorityClass of the pods.
          type: str
        service_account_name:
          description: ServiceAccount of the pods. Without it they get no token for the API server.
          type: str
        termination_grace_period_seconds:
          description: Seconds for a pod to save its state when it is stopped.
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
          description: PodDisruptionBudget of a StatefulSet group, which limits node drains.
          type: dict
          suboptions:
            min_available:
              description: Number or percentage of pods that must stay.
              type: str
            max_unavailable:
              description: Number or percentage of pods that may be evicted.
              type: str
        overrides:
          description: Fields to merge into the group's StatefulSet or Job last, by the strategic merge rules of Kubernetes.
          type: dict
  dataloader:
    description: Data loaders. Optional if the trainers read their data themselves.
    type: dict
    suboptions:
      entry:
        description: Python file to run, a name among O(files) or a path in the pods.
        type: str
        required: true
      <<: *group
  embedding_worker:
    description: Embedding workers. Required with O(state=present). At least one replica.
    type: dict
    suboptions: *group
  embedding_parameter_server:
    description: Embedding parameter servers. Required with O(state=present). At least one replica.
    type: dict
    suboptions: *group
  global_config:
    description:
      - Global configuration of PERSIA, whose keys are validated.
      - The C(metrics_config) defaults to O(metrics) and O(name).
    type: dict
  global_config_path:
    description: Path of the file in the pods, instead of O(global_config).
    type: str
  embedding_config:
    description: Embedding configuration of PERSIA, whose keys are validated.
    type: dict
  embedding_config_path:
    description: Path of the file in the pods, instead of O(embedding_config).
    type: str
  nats_url:
    description:
      - URL of the NATS servers.
      - Trainings at the same servers would get each other's batches and embeddings, so the task fails while pods of another one in the
        namespace use them.
    type: str
    default: nats://persia-nats-service:4222
  launch_script:
    description:
      - A launch script of your own instead of C(persia-launcher), a name among O(files) or a path in the pods. Only for
        O(backend=native).
      - It is called with the word of the group in PERSIA's document (C(trainer), C(datacompose), C(middleware) or C(embserver)) by the
        interpreter of its first line. The image needs Python 3.7 or newer, and nothing of PERSIA.
      - It gets E(REPLICA_INDEX), E(REPLICA_SIZE), E(PERSIA_GLOBAL_CONFIG), E(PERSIA_EMBEDDING_CONFIG), E(PERSIA_NATS_URL),
        E(PERSIA_METRICS_GATEWAY_ADDR) and E(PERSIA_PORT) (servers); trainers also E(NODE_RANK), E(NPROC_PER_NODE), E(WORLD_SIZE),
        E(MASTER_ADDR) and E(PERSIA_NN_WORKER_ENTRY), data loaders E(PERSIA_DATALOADER_ENTRY).
    type: str
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
    description: Mounts of O(volumes) in all groups, as in the Kubernetes API. Unknown keys such as C(read_only) are refused.
    type: list
    elements: dict
  node_selector:
    description: Labels that a node must have, for groups without their own.
    type: dict
  tolerations:
    description: Taints that the pods tolerate, for groups without their own.
    type: list
    elements: dict
  priority_class_name:
    description: PriorityClass of the pods, for groups without their own.
    type: str
  service_account_name:
    description: ServiceAccount of the pods, for groups without their own.
    type: str
  pod_security_context:
    description: Security context of the pods, for groups without their own.
    type: dict
  security_context:
    description: Security context of the containers, for groups without their own.
    type: dict
  metrics:
    description: Push gateway for the metrics of PERSIA's processes, Service C(<name>-metrics-gateway-service).
    type: dict
    suboptions:
      enabled:
        description: Run a push gateway.
        type: bool
        default: true
      image:
        description: Image of the push gateway. With O(backend=operator) the operator uses C(prom/pushgateway:latest).
        type: str
        default: prom/pushgateway:v1.11.1
      resources:
        description: C(requests) and C(limits) of the push gateway.
        type: dict
      address:
        description:
          - Address (C(HOST:PORT)) of a push gateway that exists already. None is created, and nothing of it is changed or deleted.
          - If it is a Service of this cluster, that must have a pod that is ready. Whether another address answers only the pods can tell.
        type: str
  completion:
    description:
      - Run data loaders and trainers as Jobs, which end. V(false) runs them as StatefulSets, which restart whenever they end.
      - Only for O(backend=native).
    type: bool
    default: true
  backoff_limit:
    description:
      - Number of failed pods of a Job after which the training fails. Pods that were evicted, and trainers that restart because another
        part was replaced, do not count. Only for O(backend=native).
    type: int
    default: 6
  active_deadline_seconds:
    description: Seconds after which trainers and data loaders are stopped and the training fails. Only for O(backend=native).
    type: int
  peer_timeout:
    description: Seconds that a pod waits at its start for the addresses of the other groups' pods. Only for O(backend=native).
    type: int
    default: 600
  results_pattern:
    description:
      - Regular expression with named groups, searched in the logs of the trainers after the training has succeeded, such as
        V(epoch=(?P<epoch>[0-9]+\) loss=(?P<loss>[0-9.]+\)). The matches are in RV(found), RV(summary) and RV(table).
      - A match with the optional group C(epoch) is an epoch, a match without it is the final result.
    type: str
  remove_finalizer:
    description:
      - Delete the pods and Services of a PersiaJob and remove its finalizer, if the PersiaJob is to be deleted and PERSIA's operator does
        not do it.
    type: bool
    default: false
seealso:
  - module: muster.ml.nats_cluster
"""

EXAMPLES = r"""
- name: Train a model
  muster.ml.persia_job:
    name: adult
    namespace: ml
    image: registry.example.com/persia-cuda:0.1.dev251
    files: "{{ lookup('muster.ml.files', 'train.py', 'data_loader.py') }}"
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
    wait_for: completed
    wait_timeout: 86400

- name: Remove the training and its checkpoints
  muster.ml.persia_job:
    name: adult
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
  sample: [{kind: Job, name: adult-trainer, namespace: ml, action: created}]
state:
  description: State of the training, as in M(muster.ml.job_info).
  returned: when O(state=present)
  type: str
  sample: Succeeded
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
found:
  description: Named groups of each match of O(results_pattern).
  returned: when O(results_pattern) is given and the training has succeeded
  type: list
  elements: dict
  sample: [{"epoch": "1", "loss": "0.5510", "auc": "0.7282"}]
metrics:
  description:
    - Metrics that the push gateway had of this training when it ended, asked by the first trainer. The number of C(processes) that
      pushed since the training began, and the mean of each of their metrics; or the C(error).
    - With O(backend=native) and O(results_pattern), unless metrics are off or the configuration is O(global_config_path).
  returned: when the training has succeeded and its trainer asked
  type: dict
  sample: {processes: 3, staleness: 0.0, index_miss_ratio: 0.0, lookup_rpc_time_cost_sec: 0.000512}
summary:
  description:
    - Key figures of the training. After success also the last match of O(results_pattern).
    - RV(summary.ok) is V(true) if nothing has failed. With O(results_pattern) a finished training must also have a match.
  returned: when O(state=present)
  type: dict
  sample: {ok: true, state: Succeeded, job: ml/adult, pods: 0, backend: native, loss: 0.551, auc: 0.7282, epochs: 1}
  contains:
    ok:
      description: True if nothing has failed.
      type: bool
table:
  description: Results as lines of text, one for each epoch. While it trains, one line for each group with its running pods.
  returned: when O(state=present)
  type: list
  elements: str
  sample: ["     epoch      loss       auc", "         1    0.5510    0.7282"]
groups:
  description: Groups and their ranks, as in M(muster.ml.job_info).
  returned: when O(state=present)
  type: list
  elements: dict
  sample: [{name: trainer, role: nn_worker, kind: Job, desired: 1, running: 1, state: Running}]
"""

from ansible_collections.muster.ml.plugins.module_utils._edge import groups, trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.spec import Metrics, PersiaJob
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.training import KIND, desired

_GROUP: Spec = {
    "replicas": {"type": "int", "required": True},
    "group_name": {"type": "str"},
    **groups.POD,
    **groups.DEVICES,
    "volume_mounts": {"type": "list", "elements": "dict"},
    "shm_size": {"type": "str"},
    "init_containers": {"type": "list", "elements": "dict"},
    "pod_disruption_budget": {"type": "dict", "options": groups.BUDGET},
    "overrides": {"type": "dict"},
}
_ENTRY: Spec = {"entry": {"type": "str", "required": True}}
_TRAINER: Spec = {"nproc_per_node": groups.PROCESSES, **_ENTRY, **_GROUP}
# The options of a group's placement that may be the same for all groups.
_IMAGE = ("image", "image_pull_policy", "image_pull_secrets")
_COMMON = ("node_selector", "tolerations", "priority_class_name", "service_account_name", "pod_security_context", "security_context")

ARGUMENT_SPEC: Spec = {
    **options_of(PersiaJob, hidden=("groups",)),
    "nn_worker": {"type": "dict", "options": _TRAINER},
    "dataloader": {"type": "dict", "options": {**_ENTRY, **_GROUP}},
    "embedding_worker": {"type": "dict", "options": _GROUP},
    "embedding_parameter_server": {"type": "dict", "options": _GROUP},
    "volumes": {"type": "list", "elements": "dict"},
    "volume_mounts": {"type": "list", "elements": "dict"},
    **{name: groups.POD[name] for name in (*_IMAGE, "env", *_COMMON)},
    "metrics": {"type": "dict", "options": options_of(Metrics)},
    "results_pattern": {"type": "str"},
    "remove_finalizer": {"type": "bool", "default": False},
    **trainings.OPTIONS,
}

CONSTRAINTS = {
    "required_if": [
        ("state", "present", ("nn_worker", "embedding_worker", "embedding_parameter_server")),
        *(("state", "present", (name, f"{name}_path"), True) for name in ("global_config", "embedding_config")),
    ],
    "mutually_exclusive": [("global_config", "global_config_path"), ("embedding_config", "embedding_config_path")],
}


execute = trainings.executor(KIND, desired)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
