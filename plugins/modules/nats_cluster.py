#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nats_cluster
short_description: Run a NATS cluster on Kubernetes
description:
  - Creates, updates and deletes a cluster of NATS servers, as a StatefulSet or as a NatsCluster of nats-operator. Clients reach it at
    C(nats://<name>:4222).
  - PERSIA sends its ID features over NATS and needs a large O(max_payload). Its documents use 52428800. Above 8 MiB a server warns at its
    start. It works, but needs memory of O(max_payload) for every message in flight.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts
  - muster.ml.auth
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod.devices
  - muster.ml.pod
  - muster.ml.network_policy
options:
  name:
    description: Name of the cluster and of its client Service. At most 47 characters.
    type: str
    default: persia-nats-service
  namespace:
    description:
      - Namespace, which must exist. Defaults to the namespace of the kubeconfig's context.
      - With O(backend=operator) it must be one that nats-operator watches.
    type: str
  backend:
    description:
      - Kind of the workload. V(native) creates a StatefulSet with its own configuration, disruption budget and spread over nodes. It
        needs no operator. Its servers keep one connection for each pair, which needs nats-server 2.10 or later.
      - V(operator) creates a NatsCluster for nats-operator, which has been dormant since 2022. Servers that the operator leaves running
        with an older O(max_payload) or O(resources) are replaced one by one when O(wait=true) and O(wait_for=connected). It starts servers
        one after the other, with four connections for each pair, and warns before it makes more than 30 of them.
    type: str
    choices: [native, operator]
    default: native
  replicas:
    description: Number of servers.
    type: int
    default: 3
  image:
    description: Image of the server. With O(backend=operator) it needs a tag and must have C(/nats-server).
    type: str
    default: nats:2.14.2
  image_pull_policy:
    description: Pull policy of the image. Defaults to V(IfNotPresent). Only for O(backend=native).
  image_pull_secrets:
    description: Names of Secrets with registry credentials. Only for O(backend=native).
  max_payload:
    description: Largest message in bytes. Over 67108864 (64 MiB) the server would not start, so it is refused.
    type: int
    default: 1048576
  debug:
    description: Let the servers log at debug level.
    type: bool
    default: false
  resources:
    description:
      - C(requests) and C(limits) of a server, as in the Kubernetes API.
      - They go to C(spec.pod.resources) of a NatsCluster; at C(spec.resources), where PERSIA's documents put them, the operator ignores
        them.
  env:
    description: Environment variables of the servers.
  tolerations:
    description: Taints that the servers tolerate, as in the Kubernetes API.
  affinity:
    description: Affinity of the servers, as in the Kubernetes API. Only for O(backend=native).
  topology_spread_constraints:
    description: Topology spread constraints, as in the Kubernetes API, instead of the default. Only for O(backend=native).
  priority_class_name:
    description: PriorityClass of the servers. Only for O(backend=native).
  service_account_name:
    description: ServiceAccount of the servers. Only for O(backend=native).
  termination_grace_period_seconds:
    description: Seconds for a server to shut down. Only for O(backend=native).
  pod_security_context:
    description: Security context of the pods, instead of the restricted default. Only for O(backend=native).
  security_context:
    description: Security context of the container, instead of the restricted default. Only for O(backend=native).
  wait_for:
    description:
      - State to wait for, with O(wait=true) and O(state=present).
      - V(connected) means that each server has a route to every other one and uses O(max_payload). The servers are queried for that through
        the API server's pod proxy.
      - V(running) means that the servers' pods run. No server is queried, such as on simulated nodes or without the right to
        C(pods/proxy).
    type: str
    choices: [connected, running]
    default: connected
  overrides:
    description: Fields to merge into the StatefulSet or NatsCluster last, by the strategic merge rules of Kubernetes.
    type: dict
"""

EXAMPLES = r"""
- name: Run NATS for PERSIA
  muster.ml.nats_cluster:
    namespace: ml
    replicas: 3
    max_payload: 52428800
    resources:
      requests: {cpu: 500m, memory: 1Gi}
      limits: {memory: 1Gi}
    wait: true

- name: Run NATS with nats-operator
  muster.ml.nats_cluster:
    namespace: ml
    backend: operator
    max_payload: 52428800
    resources:
      requests: {cpu: 4, memory: 32Gi}
      limits: {cpu: 4, memory: 32Gi}
    wait: true
    wait_timeout: 600

- name: Remove the cluster
  muster.ml.nats_cluster:
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
  sample: [{kind: StatefulSet, name: persia-nats-service, namespace: ml, action: created}]
url:
  description: URL for clients.
  returned: when O(state=present)
  type: str
  sample: nats://persia-nats-service:4222
servers:
  description: State of each server, as the server reports it.
  returned: when O(state=present), O(wait=true) and O(wait_for=connected), outside check mode
  type: list
  elements: dict
  sample: [{pod: nats-0, version: 2.12.2, peers: 2, max_payload: 1048576}]
  contains:
    pod:
      description: Name of the server's pod.
      type: str
    version:
      description: Version of the server.
      type: str
    peers:
      description: Number of other servers that the server has a route to.
      type: int
    max_payload:
      description: Largest message in bytes.
      type: int
"""

from ansible_collections.muster.ml.plugins.module_utils._core.errors import MissingKind
from ansible_collections.muster.ml.plugins.module_utils._edge import servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.nats.manifests import NatsCluster, ServerView, advice, manifests

ARGUMENT_SPEC: Spec = {
    "name": {"type": "str", "default": "persia-nats-service"},
    **options_of(NatsCluster, "backend", "replicas", "max_payload", "debug"),
    **servers.OPTIONS,
    "image": {"type": "str", "default": "nats:2.14.2"},
    "wait_for": {"type": "str", "choices": ["connected", "running"], "default": "connected"},
}


class Life(servers.Life[NatsCluster]):
    """The life of NATS servers."""

    kind, build = NatsCluster, staticmethod(manifests)

    def desired(self, namespace: str) -> NatsCluster:
        return NatsCluster(**self.fields(namespace))

    def waits_for_objects(self) -> bool:
        """A NatsCluster has no status that shows whether its servers run."""
        return self.server.backend != "operator"

    def check(self) -> None:
        """Refuse backend operator without the operator."""
        if (known := advice(self.server)) is not None:
            self.ctx.warn(known)
        if self.server.backend != "operator" or self.ctx.check:
            return
        if self.ctx.cluster.resource("nats.io/v1alpha2", "NatsCluster") is None:
            raise MissingKind(
                "backend operator: this cluster does not serve NatsCluster (nats.io/v1alpha2).",
                hint="Install nats-operator (role muster.ml.nats_operator), or use backend: native.",
            )

    def unwanted(self) -> list[Ref]:
        server = self.server
        wants_none = server.backend != "operator" and server.replicas == 1
        budget = Ref("policy/v1", "PodDisruptionBudget", server.name, server.namespace)
        return [*super().unwanted(), *([budget] if wants_none else [])]

    def wait(self) -> Result:
        """Wait for the state in option wait_for."""
        wait = nats.replace_outdated if self.server.backend == "operator" else nats.wait
        if self.params["wait_for"] == "running":
            nats.wait_for_pods(self.ctx.cluster, self.server, **self.waiting)
            return {}
        views = wait(self.ctx.cluster, self.server, **self.waiting)
        return {"servers": [_row(view) for view in views]}

    def result(self) -> Result:
        return {"url": self.server.url, "servers": []}


def _row(view: ServerView) -> Result:
    varz = view.varz or {}
    return {"pod": view.pod, "version": varz.get("version"), "peers": view.peers, "max_payload": varz.get("max_payload")}


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
