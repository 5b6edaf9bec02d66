# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gang_preflight
short_description: Report whether all pods of a training fit on a cluster at once
description:
  - Reads nodes, their pods and quotas, and says whether all pods of some groups can run at the same time, before any is created. If not,
    it says why in numbers, and which size would fit.
  - Counts for each group and node how many times its requests go into what is free. That is CPU, memory, devices and other extended
    resources, storage of the node and the number of its pods. A node counts if its taints are tolerated and its labels match node
    selector and required node affinity.
  - What admission makes of the pods, such as defaults of a LimitRange, the overhead of a RuntimeClass, a priority or tolerations, the
    API server tells by a dry run. Without its answer taints keep out no pod.
  - C(fits) is false only where nothing makes room by itself. Pods that are being deleted, or of lower priority (preemption), count as
    gone, and nodes that are not ready as ready. Where nodes may be added, only quotas are judged. That shows by a pod of an
    autoscaler, its status, node pools of Karpenter, or nodes of other clouds than AWS, whose autoscalers are not seen from inside.
  - C(fits) is true only where the pods fit in whatever order and onto whichever nodes the scheduler places them.
  - Everything else that decides on nodes is not judged, and is listed in C(not_judged). These are affinity and anti-affinity to
    pods, required topology spread, volumes, ports of the node, other schedulers, scheduling gates, dynamic resource allocation, exclusive
    placement of a JobSet, scopes of a ResourceQuota, and what may not be read. It is never an error.
  - Of pods that wait in a queue of Kueue C(fits) is never true, because Kueue decides when they begin. It is false where the queue does not
    exist, or they need more than the nominal quota of its ClusterQueue, which is in no cohort. What others use of it now does not count.
    Where Kueue's configuration changes what pods count as (C(resources.transformations)), that is not known here.
  - Not counted is whether a cloud has the machines that an autoscaler asks for.
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
      - Objects that make pods, added to O(groups). These are Pod, ReplicaSet, Deployment, StatefulSet, Job, LeaderWorkerSet, and
        the kinds of the collection's trainings. Other objects of Kubernetes are passed over, pods of other kinds not judged.
      - A mapping, a list of mappings, or YAML text, as in M(muster.ml.apply).
    type: raw
  leaving:
    description:
      - Label selector of pods in the namespace that will have gone before, such as those of a training that is started again. Their room
        and quota count as free.
      - It is V(key), V(!key), V(key=value) or V(key!=value), several of them joined by commas.
    type: str
    default: ""
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
"""

RETURN = r"""
fits:
  description: True or false, and null where it is not judged.
  returned: always
  type: bool
  sample: false
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
  sample: ["3 of 8 pods of group trainer fit, each with 1 nvidia.com/gpu, 8 cpu, 32Gi memory"]
not_judged:
  description: Parts that are not judged. With any of them, C(fits) is not true.
  returned: always
  type: list
  elements: str
  sample: []
groups:
  description: Groups, each with its number of pods, and how many of them would fit without the other groups and without quotas.
  returned: always
  type: list
  elements: dict
  sample: [{name: trainer, replicas: 8, fitting: 3}]
  contains:
    name:
      description: Name of the group.
      type: str
    replicas:
      description: Number of pods.
      type: int
    fitting:
      description: Number of pods that fit, null where nodes cannot be read.
      type: int
nearest:
  description:
    - Sizes that fit, if the pods do not. Each is a group with the largest number of pods that fits while the other groups stay as they are.
  returned: always
  type: list
  elements: dict
  sample: [{name: trainer, replicas: 3}]
  contains:
    name:
      description: Name of the group.
      type: str
    replicas:
      description: Number of pods.
      type: int
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight
from ansible_collections.muster.ml.plugins.module_utils._kube import source
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import flatten
from ansible_collections.muster.ml.plugins.module_utils._kube.validate import check_objects

ARGUMENT_SPEC: Spec = {
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
    "definition": {"type": "raw"},
    "leaving": {"type": "str", "default": ""},
}


def execute(ctx: Context) -> Result:
    """Run the preflight; read-only."""
    params = ctx.params
    objects = flatten(source.from_definition(params["definition"] or []))
    check_objects(objects)
    asked = gang(
        objects,
        params["namespace"] or ctx.cluster.namespace,
        rows=params["groups"],
        kinds={kind: made for one in KINDS.values() for backend in one.backends for kind, made in backend.pod_sets.items()},
        leaving=params["leaving"],
    )
    return {"changed": False, **preflight(ctx.cluster, asked).result()}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
