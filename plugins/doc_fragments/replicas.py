# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules whose replicas serve models; the same as COMMON in module_utils/_edge/replicas.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  replicas:
    description: Number of pods. With O(autoscaling) it is not used.
    type: int
    default: 1
  service_account_annotations:
    description:
      - Annotations of the ServiceAccount, by which a cloud knows the pods, such as C(iam.gke.io/gcp-service-account) of Workload Identity
        or C(eks.amazonaws.com/role-arn) of IRSA.
    type: dict
  overrides:
    description: Fields to merge into the Deployment (or LeaderWorkerSet) last, by the strategic merge rules of Kubernetes.
    type: dict
  monitoring:
    description:
      - Kind of object that has the metrics collected, every 15 seconds. V(auto) creates the one that the cluster serves, if any.
    type: str
    choices: [auto, PodMonitoring, ServiceMonitor, none]
    default: auto
  delete_data:
    description: Delete the claim of O(storage) that the module created, too, with O(state=absent).
    type: bool
    default: false
"""
