#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: triton_server
short_description: Run Triton Inference Server on Kubernetes
version_added: 0.1.0
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
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod
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
  replicas:
    description: Number of pods. With O(autoscaling) it is not used.
    type: int
    default: 1
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
  service_account_annotations:
    description:
      - Annotations of the ServiceAccount, by which a cloud knows the pods, such as C(iam.gke.io/gcp-service-account) of Workload Identity
        or C(eks.amazonaws.com/role-arn) of IRSA.
    type: dict
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
    description: More flags of C(tritonserver), each as V(--NAME=VALUE). Those that the module sets itself are refused.
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
  overrides:
    description: Fields to merge into the Deployment last, by the strategic merge rules of Kubernetes.
    type: dict
  monitoring:
    description:
      - Kind of object that has the metrics collected, every 15 seconds. V(auto) creates the one that the cluster serves, if any.
    type: str
    choices: [auto, PodMonitoring, ServiceMonitor, none]
    default: auto
  alerts:
    description:
      - Thresholds of alerts, which are rules beside the object of O(monitoring), C(Rules) of Google's managed Prometheus or a
        C(PrometheusRule). Without it there are none, and without an object of O(monitoring) neither.
      - They are C(TritonQueueTime), C(TritonFailures), C(TritonModelNotReady), for a replica that lacks a model which others have, and
        C(TritonDown).
    type: dict
    suboptions:
      queue_time_ms:
        description: Mean milliseconds of a request in the queue, of one model.
        type: float
        default: 100.0
      failure_ratio:
        description: Share of the requests for one model that fail.
        type: float
        default: 0.01
      after:
        description: Time that it must last, as in Prometheus.
        type: str
        default: 5m
  delete_data:
    description: Delete the claim of O(storage) that the module created, too, with O(state=absent).
    type: bool
    default: false
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
      returned: always
    grpc:
      description: Address of the gRPC API.
      type: str
      returned: always
    metrics:
      description: Address of the metrics, which are at C(/metrics).
      type: str
      returned: always
  sample: {http: "triton.ml.svc:8000", grpc: "triton.ml.svc:8001", metrics: "triton.ml.svc:8002"}
"""

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge import groups, servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import fields_of, with_defaults
from ansible_collections.muster.ml.plugins.module_utils._edge.run import module_main
from ansible_collections.muster.ml.plugins.module_utils._kube import replicas
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, group_of, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.ready import exists
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_unwanted
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Change, Report
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import Manifest
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import MONITORS, RULES
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import failing
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.autoscaling import Autoscaling
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import Alerts
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.repository import MODES, Repository
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import DEPLOYMENT, TritonServer, manifests

WORDS: dict[str, t.Any] = {"type": "list", "elements": "str", "default": []}
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "default": "triton"},
    "model_repository": {"type": "str"},
    **groups.STORAGE,
    "credentials_secret": {"type": "str", "no_log": False},  # its name
    "service_account_annotations": {"type": "dict"},
    "model_control_mode": {"type": "str", "choices": list(MODES), "default": "none"},
    "load_models": WORDS,
    **with_defaults(Repository, repository_poll_interval="int"),
    **with_defaults(TritonServer, replicas="int", strict_readiness="bool", shm_size="str"),
    **with_defaults(TritonServer, startup_timeout="int", drain_timeout="int", exit_timeout="int"),
    "autoscaling": {
        "type": "dict",
        "options": {
            **with_defaults(Autoscaling, min_replicas="int", queue_time_us="int", metric="str"),
            "max_replicas": {"type": "int", "required": True},
            "behavior": {"type": "dict"},
        },
    },
    "args": groups.WORDS,
    **servers.OPTIONS,
    "image": {"type": "str", "default": "nvcr.io/nvidia/tritonserver:26.07-py3"},
    **groups.MONITORING,
    "alerts": {"type": "dict", "options": with_defaults(Alerts, queue_time_ms="float", failure_ratio="float", after="str")},
    "delete_data": {"type": "bool", "default": False},
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("model_repository",))]}

# A server without a model has no metric, and models may be uploaded only when the server runs.
_WITHOUT_MODELS = {(group_of(replicas.AUTOSCALER[0]), replicas.AUTOSCALER[1]): exists}


class Life(servers.Life[TritonServer]):
    """The life of Triton's replicas."""

    kind = TritonServer

    def desired(self, namespace: str) -> TritonServer:
        params = self.params
        repository = {**fields_of(Repository, params), "storage": Storage.from_params(params["storage"])}
        # The flags are the server's own, beside those that the module gives it.
        of_pod = {key: value for key, value in params.items() if key not in ("args", "shm_size")}
        return TritonServer(
            **{
                **self.fields(namespace),
                "pod": PodSettings.from_params(of_pod),
                "repository": Repository(**repository),
                "alerts": Alerts(**params["alerts"]) if params["alerts"] else None,
                "autoscaling": Autoscaling(**params["autoscaling"]) if params["autoscaling"] else None,
                "replicas": None if params["autoscaling"] else params["replicas"],
            }
        )

    def manifests(self) -> list[Manifest]:
        return manifests(self.server)

    def waits_for_objects(self) -> bool:
        return True

    def apply(self) -> Report:
        """Apply, and leave the number of replicas to the autoscaler, if there is one."""
        desired = self.desired(self.ctx.namespace)
        self.server = dataclasses.replace(desired, monitor=groups.monitor_kind(self.ctx))
        for text in self.server.repository.warnings:
            self.ctx.warn(text)
        scaled, gone, overwrite = self._scaled()
        wait = self.params["wait"]
        try:
            report = groups.apply_group(self.ctx, manifests(scaled), self.owner, wait=wait, overwrite=overwrite, predicates=_WITHOUT_MODELS)
        except WaitTimeout as exc:
            exc.message += failing.explained(self.ctx.cluster, self.server)
            raise
        if scaled.autoscaling and scaled.replicas is not None:
            report.changes = [_as_handed_over(change) for change in report.changes]
        return report.merge(gone)

    def _scaled(self) -> tuple[TritonServer, Report, dict[Ref, t.Collection[str]] | None]:
        """Give the number of replicas to the autoscaler, or take it back.

        Returns the server to apply, what was done, and which fields may be overwritten.
        """
        cluster, server, check = self.ctx.cluster, self.server, self.ctx.check
        ref = Ref(*DEPLOYMENT, server.name, server.namespace)
        if server.autoscaling:
            replicas.check_only_autoscaler(cluster, ref, self.owner)
            number = replicas.hand_over(cluster, ref, self.owner, server.autoscaling.bounds, check=check)
            # A dry run cannot transfer the field first, and would show the API server's default.
            return dataclasses.replace(server, replicas=number if check else None), Report(), None
        # Deleted before the number is changed, because the autoscaler would change it again.
        autoscaler = Ref(*replicas.AUTOSCALER, server.name, server.namespace)
        gone = delete_unwanted(cluster, [autoscaler], self.owner, check=check)
        left = replicas.is_left_over(cluster, ref, self.owner)
        return server, gone, {ref: [replicas.FIELD]} if left else None

    def unwanted(self) -> list[Ref]:
        """The objects for metrics, and the ServiceAccount, of earlier options; pods with the account are gone if the module has waited."""
        server, made = self.server, {ref_of(one) for one in self.manifests()}
        kinds = [(version, name) for kind, version in MONITORS.items() for name in (kind, RULES[kind])]
        refs = [Ref(version, kind, server.name, server.namespace) for version, kind in kinds]
        refs.append(Ref("v1", "ServiceAccount", server.name, server.namespace))
        return [*super().unwanted(), *(ref for ref in refs if ref not in made)]

    def result(self) -> dict[str, t.Any]:
        return {"endpoints": self.server.endpoints}


def _as_handed_over(change: Change) -> Change:
    """Report the Deployment as updated if a dry run could not transfer its replicas to the autoscaler: only the field manager changes."""
    if (change.ref.api_version, change.ref.kind) != DEPLOYMENT or change.action != "unchanged":
        return change
    return dataclasses.replace(change, action="updated", reason="its replicas are left to the autoscaler")


execute = servers.executor(Life)


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
