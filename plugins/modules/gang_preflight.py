# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gang_preflight
short_description: Report whether all pods of a training fit on a cluster at once
version_added: 0.1.0
description:
  - Reads nodes, their pods, quotas and limits, and says whether all pods of some groups can run at the same time, before any is created.
    If not, it says why in numbers, and which size would fit.
  - Counts what the scheduler counts. That is requests and LimitRange defaults, init containers and sidecars, pod overhead, extended
    resources, ephemeral storage, the number of pods of a node, ports of the node, taints, node selector and node affinity, affinity and
    anti-affinity to other pods, topology spread, where volumes can be reached, ResourceQuota and LimitRange.
  - C(fits) is false only where nothing makes room by itself. It is null where the pods would fit with the room of pods that are being
    deleted, or of lower priority than theirs (preemption), with nodes that are not ready, or with nodes that may be added. These show
    by a pod of an autoscaler, its status, node pools of Karpenter, or nodes of other clouds than AWS, whose autoscalers are not seen from
    inside. With O(node_templates), only those may be added.
  - C(fits) is true only where the pods fit whatever the scheduler prefers. It places one pod after the other and never moves one. Groups of
    different pods may so take each other's room although there is enough for all, which is not judged.
  - What may not be read, or is not understood, is not judged, and is listed in C(not_judged). It is never an error.
  - Of pods that wait in a queue of Kueue C(fits) is never true, because Kueue decides when they begin. It is false where the queue does not
    exist, or its ClusterQueue never has as much quota, with all that its cohort may lend. What others use of it now does not count. Where
    Kueue's configuration changes what pods count as (C(resources.transformations)), that is not known here.
  - Not judged are other schedulers, scheduling gates, dynamic resource allocation, pods of kinds other than Pod,
    ReplicaSet, Deployment, StatefulSet, Job, JobSet, PyTorchJob and PersiaJob, affinity to another group, anti-affinity among groups by
    other labels than the host name, more than one required topology spread, claims of mode ReadWriteOnce of several groups, and volumes
    that a StorageClass could make in a zone without room.
  - Not counted are how many volumes a node can attach, and whether a cloud has the machines that an autoscaler asks for.
  - Of pods that do not fit, the API server is asked by a dry run what its admission plugins and webhooks make of them, such as the
    tolerations of C(ExtendedResourceToleration). Without the right to create pods, they count as they are in the template.
  - Pods that share a claim of mode ReadWriteOnce must fit on one node if the driver of the claim attaches its volumes. The scheduler does
    not know that. It places such pods on several nodes, where they wait for ever.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  namespace:
    description: Namespace of the pods. Defaults to the namespace of the kubeconfig's context.
    type: str
  groups:
    description: Groups of equal pods that must run at once.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the group, for the answer.
        type: str
        required: true
      replicas:
        description: Number of pods.
        type: int
        required: true
      template:
        description: Template of the pods, as in the Kubernetes API, with C(metadata.labels) and C(spec).
        type: dict
        required: true
  definition:
    description:
      - Objects that make pods, such as a StatefulSet, a Job or a JobSet, and claims that are made with them. Other objects are passed over.
      - They are added to O(groups).
    type: list
    elements: dict
    default: []
  leaving:
    description:
      - Label selector of pods in the namespace that will have gone before, such as those of a training that is started again. Their room
        and quota count as free.
      - It is V(key), V(!key), V(key=value) or V(key!=value), several of them joined by commas.
    type: str
    default: ""
  node_templates:
    description:
      - Nodes that an autoscaler can add. Pools that have no node now are unknown to the API server.
      - What DaemonSets of the cluster take of such a node is subtracted.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the pool.
        type: str
        required: true
      count:
        description: Number of nodes that can still be added.
        type: int
        required: true
      allocatable:
        description:
          - Resources that pods can request on such a node, without those of pods that the node itself starts, such as kube-proxy on GKE.
          - C(pods) defaults to 110.
        type: dict
        required: true
      labels:
        description: Labels of the nodes, with those that Kubernetes gives them and pods select, such as C(kubernetes.io/arch).
        type: dict
        default: {}
      taints:
        description: Taints of the nodes, as in the Kubernetes API.
        type: list
        elements: dict
        default: []
seealso:
  - module: muster.ml.node_info
"""

EXAMPLES = r"""
- name: Check whether eight trainers with a GPU each fit
  muster.ml.gang_preflight:
    namespace: ml
    groups:
      - name: trainer
        replicas: 8
        template:
          spec:
            containers:
              - name: trainer
                image: registry.example.com/trainer:1
                resources: {limits: {nvidia.com/gpu: 1, cpu: 8, memory: 32Gi}}
            tolerations:
              - {key: nvidia.com/gpu, operator: Exists}
  register: asked

- name: Stop before anything is created
  ansible.builtin.assert:
    that: asked.fits is not false
    fail_msg: "{{ asked.message }}"

- name: Check a slice of TPUs whose pool has no node yet
  muster.ml.gang_preflight:
    namespace: ml
    definition: "{{ objects_of_the_training }}"
    node_templates:
      - name: tpu
        count: "{{ slice.hosts }}"
        labels: "{{ slice.node_selector }}"
        taints: [{key: google.com/tpu, value: present, effect: NoSchedule}]
        allocatable: {cpu: 110, memory: 180Gi, google.com/tpu: 4}
  vars:
    slice: "{{ 'v5e' | muster.ml.tpu_slice('2x4') }}"
"""

RETURN = r"""
fits:
  description: True or false, and null where it is not judged.
  returned: always
  type: bool
message:
  description: The answer in a few sentences.
  returned: always
  type: str
  sample: >-
    Not all pods fit at once. 3 of 8 pods of group trainer fit, each with 1 nvidia.com/gpu, 8 cpu, 32Gi memory: 3 nodes with room for 1,
    2 nodes with too little free: 0 nvidia.com/gpu. This fits: trainer with 3.
reasons:
  description: Reasons why the pods do not fit.
  returned: always
  type: list
  elements: str
not_judged:
  description: Parts that are not judged. With any of them, C(fits) is not true.
  returned: always
  type: list
  elements: str
groups:
  description: Groups, each with its number of pods, and how many of them would fit without the other groups and without quotas.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the group.
      type: str
      returned: always
    replicas:
      description: Number of pods.
      type: int
      returned: always
    fitting:
      description: Number of pods that fit, null where nodes cannot be read.
      type: int
      returned: always
nearest:
  description:
    - Sizes that fit, if the pods do not. Each is a group with the largest number of pods that fits while the other groups stay as they are.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the group.
      type: str
      returned: always
    replicas:
      description: Number of pods.
      type: int
      returned: always
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._gang.places import Template
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "namespace": {"type": "str"},
    "groups": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "replicas": {"type": "int", "required": True},
            "template": {"type": "dict", "required": True},
        },
    },
    "definition": {"type": "list", "elements": "dict", "default": []},
    "leaving": {"type": "str", "default": ""},
    "node_templates": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "count": {"type": "int", "required": True},
            "allocatable": {"type": "dict", "required": True},
            "labels": {"type": "dict", "default": {}},
            "taints": {"type": "list", "elements": "dict", "default": []},
        },
    },
}

CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read and judge; nothing is written."""
    params = ctx.params
    asked = gang(
        params["definition"],
        params["namespace"] or ctx.cluster.namespace,
        rows=params["groups"],
        leaving=params["leaving"],
        templates=[Template.from_params(row) for row in params["node_templates"]],
    )
    return {"changed": False, **preflight(ctx.cluster, asked).result()}


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
