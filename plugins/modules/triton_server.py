#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: triton_server
short_description: Run Triton Inference Server on Kubernetes
description:
  - Creates, updates and deletes replicas of Triton Inference Server, as a Deployment with a Service, a PodDisruptionBudget, a
    ServiceAccount without a token, and a NetworkPolicy. Clients reach it at C(<name>:8000) (HTTP), C(<name>:8001) (gRPC) and
    C(<name>:8002) (metrics).
  - An update replaces one pod after the other. A pod ends only after another one got ready, leaves the Service first
    (O(drain_timeout)), and then finishes its requests (O(exit_timeout)).
  - A pod gets ready when it has loaded the models of its start. If one of them cannot be loaded, it does not get ready, and the pods of
    before go on serving.
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
    description: Name of the Deployment and of its Service.
    type: str
    default: triton
  image:
    description:
      - Image of the server, with a version or digest.
      - Its entrypoint is called with C(tritonserver) and its arguments.
    type: str
    default: nvcr.io/nvidia/tritonserver:26.07-py3
  autoscaling:
    description:
      - Leave the number of pods to a HorizontalPodAutoscaler, which starts and ends some by the time that requests wait in the queue.
        It needs the API C(custom.metrics.k8s.io), such as that of P(muster.ml.prometheus_adapter#role). There is a metric once there is
        a model, which is not waited for.
      - The change from O(replicas) to this and back starts and ends no pod that both want.
      - A second HorizontalPodAutoscaler for the Deployment is refused.
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
      queue_time_us:
        description:
          - Microseconds that O(autoscaling.metric) is to be, on average over the pods. The number of pods is changed in proportion, once
            it differs by a tenth.
        type: int
        default: 50000
      metric:
        description:
          - Name of the metric of a pod. The rules of P(muster.ml.prometheus_adapter#role) make V(avg_time_queue_us), the mean time in the
            queue of its slowest model.
          - Another adapter may call it differently.
        type: str
        default: avg_time_queue_us
      behavior:
        description:
          - C(scaleUp) and C(scaleDown), as in the Kubernetes API. By default pods end only after 5 minutes in which fewer were enough.
        type: dict
  model_repository:
    description:
      - Folder of the models, as V(s3://BUCKET/FOLDER), V(s3://http://HOST:PORT/BUCKET/FOLDER), V(gs://BUCKET/FOLDER), or the path of a
        folder of O(storage). Required with O(state=present).
    type: str
  storage:
    description:
      - Volume with the models, which the server mounts read-only. The claim is kept with O(state=absent) unless O(delete_data=true).
  credentials_secret:
    description:
      - Secret of the namespace with the keys C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY) for an C(s3://) repository, such as
        that of M(muster.ml.object_store).
      - Pods read it when they start.
    type: str
  model_control_mode:
    description:
      - V(none) loads every model at the start. V(poll) also reads the repository again and again, and follows its changes. When a bucket
        does not answer, it unloads its models until that does (seen with 2.51.0), so that V(explicit) is better there.
      - V(explicit) loads those of O(load_models), and others when a client asks for them.
    type: str
    choices: [none, poll, explicit]
    default: none
  load_models:
    description: Models to load at the start with O(model_control_mode=explicit). V(*) means all.
    type: list
    elements: str
    default: []
  repository_poll_interval:
    description: Seconds between two reads of the repository, with O(model_control_mode=poll).
    type: int
    default: 15
  strict_readiness:
    description:
      - Take a pod out of the Service while one version of one of its models has failed or is being unloaded, although it serves the others.
      - With V(false) a pod stays in the Service once its models were loaded.
    type: bool
    default: false
  args:
    description:
      - More flags of C(tritonserver), each as V(--NAME=VALUE), or with its value as the next one.
      - Those that the module sets itself are refused.
    type: list
    elements: raw
  shm_size:
    description:
      - Size of C(/dev/shm), through which the Python backend hands over tensors. It counts against the container's memory.
    type: str
    default: 1Gi
  startup_timeout:
    description: Seconds for loading the models of the start. After that the pod is started again.
    type: int
    default: 600
  drain_timeout:
    description: Seconds that a pod still accepts requests after it was taken out of the Service, because clients learn of it late.
    type: int
    default: 10
  exit_timeout:
    description: Seconds for the requests that are in flight after that.
    type: int
    default: 30
  resources:
    description:
      - C(requests) and C(limits) of a pod, as in the Kubernetes API. With C(nvidia.com/gpu) it runs on GPUs and reports their metrics.
  topology_spread_constraints:
    description: Topology spread constraints, as in the Kubernetes API. By default pods spread over zones and nodes as far as possible.
  service_account_name:
    description: ServiceAccount of the pods, instead of one that the module creates. They get no token either way.
  termination_grace_period_seconds:
    description: Seconds for a pod to end. Defaults to 10 more than O(drain_timeout) and O(exit_timeout) together.
seealso:
  - module: muster.ml.inference_check
"""

EXAMPLES = r"""
- name: Run Triton on GPUs with the models of a bucket, as a service account of Google Cloud
  muster.ml.triton_server:
    namespace: ml
    replicas: 2
    model_repository: gs://example-models/production
    service_account_annotations:
      iam.gke.io/gcp-service-account: triton@example-project.iam.gserviceaccount.com
    resources:
      limits: {nvidia.com/gpu: 1, memory: 16Gi}
    wait: true
    wait_timeout: 1800

- name: Run Triton on as many GPUs as the queue needs
  muster.ml.triton_server:
    namespace: ml
    model_repository: gs://example-models/production
    autoscaling:
      min_replicas: 2
      max_replicas: 8
      queue_time_us: 20000
      behavior: {scaleDown: {stabilizationWindowSeconds: 900}}
    resources:
      limits: {nvidia.com/gpu: 1}
    wait: true
    wait_timeout: 1800

- name: Run Triton on CPUs with the models of a volume
  muster.ml.triton_server:
    namespace: ml
    model_repository: /workspace/shared/models
    storage: {claim_name: training}
    wait: true

- name: Remove the server
  muster.ml.triton_server:
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
  sample: [{kind: Deployment, name: triton, namespace: ml, action: created}]
endpoints:
  description: Addresses for clients in the cluster.
  returned: when O(state=present)
  type: dict
  contains:
    http:
      description: Address of the HTTP API.
      type: str
    grpc:
      description: Address of the gRPC API.
      type: str
    metrics:
      description: Address of the metrics, which are at C(/metrics).
      type: str
  sample: {http: "triton.ml.svc:8000", grpc: "triton.ml.svc:8001", metrics: "triton.ml.svc:8002"}
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import replicas, servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import fields_of, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import failing
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.repository import Repository
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import Autoscaling, TritonServer, manifests

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **options_of(Repository),
    **replicas.options(TritonServer, Autoscaling),
    "name": {"type": "str", "default": "triton"},
    "image": {"type": "str", "default": "nvcr.io/nvidia/tritonserver:26.07-py3"},
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("model_repository",))]}


class Life(replicas.Life[TritonServer]):
    """The life of Triton's replicas."""

    kind, scaling, build = TritonServer, Autoscaling, staticmethod(manifests)

    def desired(self, namespace: str) -> TritonServer:
        params = self.params
        repository = {**fields_of(Repository, params), "storage": Storage.from_params(params["storage"])}
        return TritonServer(**{**self.fields(namespace), "repository": Repository(**repository)})

    def apply(self) -> Report:
        for text in self.server.repository.warnings:
            self.ctx.warn(text)
        return super().apply()

    def explained(self) -> str:
        return failing.explained(self.ctx.cluster, self.server)

    def result(self) -> dict[str, t.Any]:
        return {"endpoints": self.server.endpoints}


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
