#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vllm_server
short_description: Run a language model with vLLM on Kubernetes
description:
  - Creates, updates and deletes replicas of vLLM, as a Deployment, or with O(hosts) as a LeaderWorkerSet, with a Service, a
    PodDisruptionBudget, a ServiceAccount without a token, and a NetworkPolicy. Clients reach OpenAI's API at C(http://<name>:8000/v1),
    and metrics at C(http://<name>:8000/metrics).
  - An update replaces one pod after the other. A pod ends only after another one has loaded the model, leaves the Service first
    (O(drain_timeout)), and then finishes its answers (O(exit_timeout)).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts.requests
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod.devices
  - muster.ml.pod
  - muster.ml.replicas
  - muster.ml.queue.servers
  - muster.ml.storage
  - muster.ml.network_policy
options:
  name:
    description: Name of the Deployment or LeaderWorkerSet, and of its Service.
    type: str
    default: llm
  image:
    description: Image of the server, with a version or digest. It has the program C(vllm) on its path.
    type: str
    default: vllm/vllm-openai:v0.32.0
  model:
    description:
      - Model, as V(OWNER/NAME) of the Hugging Face hub, or the path of its folder in O(storage). Required with O(state=present).
      - Without O(storage) every pod fetches it from the hub when it starts; with it one fetches it for all.
    type: str
  revision:
    description: Branch, tag or commit of a model of the hub. Without it a later start may get other weights.
    type: str
  served_model_name:
    description: Name of the model in requests. Defaults to O(model).
    type: str
  storage:
    description:
      - Volume with the folder of the model, which pods mount read-only, or for what they fetch from the hub. The claim is kept with
        O(state=absent) unless O(delete_data=true).
  hosts:
    description:
      - Number of pods that hold the model together, for one that no host has enough GPUs for. With more than one each replica is a group
        of a LeaderWorkerSet, which needs the controller of P(muster.ml.lws#role). Its first pod answers, and all are replaced when one
        has ended.
      - A change from one host to several, or back, replaces the replicas by those of the other kind, which have to be ready first where
        O(wait=true).
    type: int
    default: 1
  tensor_parallel_size:
    description:
      - Number of GPUs that hold each layer together. With O(pipeline_parallel_size) times as many for all layers, each host has its share
        of them, which is C(nvidia.com/gpu) in O(resources).
    type: int
    default: 1
  pipeline_parallel_size:
    description: Number of parts with some of the layers each. Defaults to O(hosts).
    type: int
  max_model_len:
    description: Most tokens of a prompt with its answer. By default what the model was made for.
    type: int
  dtype:
    description: Type of weights and activations, such as V(bfloat16) or V(float32). V(auto) takes that of the model.
    type: str
    default: auto
  gpu_memory_utilization:
    description: Share of a GPU's memory that the server takes, above 0 and at most 1. By default the server's own.
    type: float
  args:
    description:
      - More flags of C(vllm serve), each as V(--NAME) or V(--NAME=VALUE), or with its value as the next one.
      - Those that the module sets itself are refused.
    type: list
    elements: raw
  api_key_secret:
    description:
      - Secret of the namespace with the key C(VLLM_API_KEY), which clients have to send. Without it there is no login.
      - Pods read it when they start. It protects what is below C(/v1), not metrics.
    type: str
  hub_token_secret:
    description: Secret of the namespace with the key C(HF_TOKEN), for models of the hub that need a login.
    type: str
  autoscaling:
    description:
      - Leave the number of pods to a HorizontalPodAutoscaler, which starts and ends some by the requests that wait. It needs the API
        C(custom.metrics.k8s.io), such as that of P(muster.ml.prometheus_adapter#role).
      - The change from O(replicas) to this and back starts and ends no pod that both want.
    type: dict
    suboptions:
      min_replicas:
        description: Fewest pods, 1 or more.
        type: int
        default: 1
      max_replicas:
        description: Most pods.
        type: int
        required: true
      requests_waiting:
        description: Number of requests that O(autoscaling.metric) is to be, on average over the pods.
        type: int
        default: 4
      metric:
        description: Name of the metric of a pod. The rules of P(muster.ml.prometheus_adapter#role) make V(vllm_num_requests_waiting).
        type: str
        default: vllm_num_requests_waiting
      behavior:
        description: C(scaleUp) and C(scaleDown), as in the Kubernetes API.
        type: dict
  shm_size:
    description: Size of C(/dev/shm), through which the GPUs of a pod exchange tensors. It counts against the container's memory.
    type: str
    default: 1Gi
  startup_timeout:
    description: Seconds for fetching and loading the model. After that the pod is started again.
    type: int
    default: 1800
  drain_timeout:
    description:
      - Seconds that a pod still accepts requests after it was taken out of the Service, because clients learn of it late. Requests that
        come later fail, as vLLM refuses them with status 500 while it ends.
    type: int
    default: 30
  exit_timeout:
    description: Seconds for the answers that are in flight when a pod ends. Those that last longer are cut.
    type: int
    default: 120
  termination_grace_period_seconds:
    description: Seconds for a pod to end. Defaults to 40 more than O(drain_timeout) and O(exit_timeout) together.
  service_account_name:
    description: ServiceAccount of the pods, instead of one that the module creates. They get no token either way.
seealso:
  - module: muster.ml.inference_check
"""

EXAMPLES = r"""
- name: Run a model of the hub on two GPUs a replica, for clients that have the key
  muster.ml.vllm_server:
    namespace: ml
    replicas: 2
    model: example/chat-70b
    revision: 0123456789abcdef0123456789abcdef01234567
    served_model_name: chat
    tensor_parallel_size: 2
    storage: {claim_name: models, size: 200Gi}
    api_key_secret: llm-key
    hub_token_secret: hub-token
    resources:
      limits: {nvidia.com/gpu: 2, memory: 64Gi}
    wait: true
    wait_timeout: 3600

- name: Run a model that needs the eight GPUs of each of two hosts
  muster.ml.vllm_server:
    namespace: ml
    model: example/chat-400b
    hosts: 2
    tensor_parallel_size: 8
    storage: {claim_name: models, size: 900Gi}
    resources:
      limits: {nvidia.com/gpu: 8, memory: 800Gi}
    wait: true
    wait_timeout: 7200

- name: Run a model that is in a claim, by as many replicas as the requests need
  muster.ml.vllm_server:
    namespace: ml
    model: /workspace/shared/chat
    storage: {claim_name: models}
    autoscaling: {max_replicas: 4}
    resources:
      limits: {nvidia.com/gpu: 1}
    wait: true
    wait_timeout: 3600

- name: Remove the server
  muster.ml.vllm_server:
    namespace: ml
    state: absent
    wait: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Deployment, name: llm, namespace: ml, action: created}]
endpoint:
  description: Base URL of OpenAI's API for clients in the cluster.
  returned: when O(state=present)
  type: str
  sample: http://llm.ml.svc:8000/v1
served_model_name:
  description: Name of the model in requests.
  returned: when O(state=present)
  type: str
  sample: chat
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import replicas, servers
from ansible_collections.muster.ml.plugins.module_utils._edge.run import module_main
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.server import Autoscaling, VllmServer, manifests

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **replicas.options(VllmServer, Autoscaling),
    "name": {"type": "str", "default": "llm"},
    "image": {"type": "str", "default": "vllm/vllm-openai:v0.32.0"},
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("model",))]}


class Life(replicas.Life[VllmServer]):
    """The life of vLLM's replicas."""

    kind, scaling, build = VllmServer, Autoscaling, staticmethod(manifests)

    def desired(self, namespace: str) -> VllmServer:
        return VllmServer(**{**self.fields(namespace), "storage": Storage.from_params(self.params["storage"])})

    def result(self) -> dict[str, t.Any]:
        return {"endpoint": self.server.endpoint, "served_model_name": self.server.served}


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
