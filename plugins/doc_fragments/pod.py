# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of all modules that create pods; the same as POD in module_utils/_edge/groups.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  image:
    description: Image of the pods. Required with O(state=present).
    type: str
  image_pull_policy:
    description: Pull policy of the image. Defaults to V(IfNotPresent).
    type: str
    choices: [Always, IfNotPresent, Never]
  image_pull_secrets:
    description: Names of Secrets with registry credentials.
    type: list
    elements: str
  env:
    description: Environment variables of the pods.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the variable.
        type: str
        required: true
      value:
        description: Value of the variable.
        type: raw
      value_from:
        description: Source of the value, as in the Kubernetes API, such as C(secretKeyRef).
        type: dict
  resources:
    description:
      - C(requests) and C(limits) as in the Kubernetes API. A quantity such as C(12 GB) is refused.
      - Extended resources such as C(nvidia.com/gpu) need both to be equal; one of them is enough.
    type: dict
  node_selector:
    description: Labels that a node must have.
    type: dict
  tolerations:
    description: Taints that the pods tolerate, as in the Kubernetes API.
    type: list
    elements: dict
  affinity:
    description: Affinity of the pods, as in the Kubernetes API.
    type: dict
  topology_spread_constraints:
    description: Topology spread constraints, as in the Kubernetes API. C(labelSelector) defaults to the module's own pods.
    type: list
    elements: dict
  priority_class_name:
    description: PriorityClass of the pods.
    type: str
  service_account_name:
    description: ServiceAccount of the pods. Without it they get no token for the API server.
    type: str
  termination_grace_period_seconds:
    description: Seconds for a pod to end when it is stopped, such as to save its state.
    type: int
  pod_security_context:
    description: Security context of the pods, instead of the restricted default with user 1000. V({}) for none.
    type: dict
  security_context:
    description: Security context of the container, instead of the restricted default. V({}) for none.
    type: dict
"""

    # Of modules that run servers in a StatefulSet with claims. Listed before the fragment pod, whose words are those of a training.
    SERVER = r"""
options:
  namespace:
    description: Namespace, which must exist. Defaults to the namespace of the kubeconfig's context.
    type: str
  storage_class_name:
    description: StorageClass of the claims. Defaults to the cluster's default StorageClass.
    type: str
  resources:
    description: C(requests) and C(limits) of a pod, as in the Kubernetes API.
    type: dict
  topology_spread_constraints:
    description: Topology spread constraints of the pods, as in the Kubernetes API.
    type: list
    elements: dict
  service_account_name:
    description: ServiceAccount of the pods.
    type: str
  termination_grace_period_seconds:
    description: Seconds for a pod to shut down.
    type: int
  pod_security_context:
    description: Security context of the pods, instead of the restricted default.
    type: dict
  security_context:
    description: Security context of the containers, instead of the restricted default.
    type: dict
  overrides:
    description: Fields to merge into the StatefulSet last, by the strategic merge rules of Kubernetes.
    type: dict
"""

    PROGRAM = r"""
options:
  volumes:
    description: Volumes of the pods, as in the Kubernetes API.
    type: list
    elements: dict
  volume_mounts:
    description: Mounts of O(volumes), as in the Kubernetes API. Unknown keys are refused.
    type: list
    elements: dict
  shm_size:
    description: Size of C(/dev/shm), 64 MiB by default. It counts against the container's memory.
    type: str
  init_containers:
    description: Containers that run first, as in the Kubernetes API.
    type: list
    elements: dict
"""

    DEVICES = r"""
options:
  resource_claims:
    description:
      - Devices that each pod claims by dynamic resource allocation (DRA). It needs a driver for them, and Kubernetes 1.34 or newer.
        Each claim has one of C(device_class_name), C(resource_claim_template_name) and C(resource_claim_name).
      - The container of the program has the devices of all claims, or of those that C(claims) of O(resources) names.
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
        description: Number of devices of O(resource_claims[].device_class_name). Defaults to 1.
        type: int
      selectors:
        description:
          - Expressions in CEL that such a device must all satisfy, such as
            V(device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200').
        type: list
        elements: str
"""

    PULL = r"""
options:
  image_pull_policy:
    description: Pull policy of the image. Defaults to V(IfNotPresent).
    type: str
    choices: [Always, IfNotPresent, Never]
  image_pull_secrets:
    description: Names of Secrets with registry credentials.
    type: list
    elements: str
"""
