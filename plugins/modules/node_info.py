# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: List the nodes of a cluster and their resources
description:
  - Returns the nodes of a cluster with their state and allocatable resources.
  - Can wait until each of them offers an extended resource such as C(nvidia.com/gpu), and lists those that do not.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  label_selectors:
    description:
      - Label selectors of the nodes. A node is returned if at least one matches. All nodes by default.
      - A selector is V(key), V(!key), V(key=value) or V(key!=value), several of them joined by commas.
    type: list
    elements: str
    default: []
  resource_name:
    description: Extended resource that each of the nodes must offer.
    type: str
  min_nodes:
    description: Minimum number of nodes that match.
    type: int
    default: 0
  plugin:
    description:
      - Pods that make the nodes offer O(resource_name), such as those of a device plugin. What the one on a node says is part of
        RV(pending_reason) while the node does not offer it.
    type: dict
    suboptions:
      namespace:
        description: Namespace of the pods.
        type: str
        required: true
      label_selector:
        description: Label selector of the pods.
        type: str
        required: true
  wait:
    description: Wait until every node offers O(resource_name) and O(min_nodes) is reached, and fail if that does not happen.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: List the nodes of the cluster
  muster.ml.node_info:
  register: nodes

- name: Wait until every GPU node reports its GPUs
  muster.ml.node_info:
    label_selectors: [cloud.google.com/gke-accelerator]
    resource_name: nvidia.com/gpu
    min_nodes: 8
    plugin: {namespace: kube-system, label_selector: app.kubernetes.io/component=gpu-drivers}
    wait: true
    wait_timeout: 900
"""

RETURN = r"""
server_version:
  description: Version of the API server.
  returned: always
  type: str
  sample: v1.36.3
nodes:
  description: Nodes, sorted by name.
  returned: always
  type: list
  elements: dict
  sample: [{name: muster-1, ready: true, reason: '', schedulable: true, simulated: false, version: v1.36.3,
    labels: {kubernetes.io/hostname: muster-1}, allocatable: {cpu: '2', memory: 7854332Ki, pods: '110'}}]
  contains:
    name:
      description: Name of the node.
      type: str
    ready:
      description: True if the node is ready.
      type: bool
    reason:
      description: Reason why the node is not ready.
      type: str
    schedulable:
      description: True if new pods may be scheduled on the node.
      type: bool
    simulated:
      description: True if it is a simulated node of the local cluster, on which no container runs.
      type: bool
    version:
      description: Version of the kubelet.
      type: str
    labels:
      description: Labels of the node.
      type: dict
    allocatable:
      description: Resources that pods can request on the node.
      type: dict
lacking:
  description: Names of the nodes that do not offer O(resource_name).
  returned: always
  type: list
  elements: str
  sample: [muster-2]
pending_reason:
  description: Missing nodes and resources. Empty if there are none.
  returned: always
  type: str
  sample: "1 of 2 nodes report no allocatable nvidia.com/gpu: gpu-1."
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube import nodes

PLUGIN: Spec = {"namespace": {"type": "str", "required": True}, "label_selector": {"type": "str", "required": True}}
ARGUMENT_SPEC: Spec = {
    "label_selectors": {"type": "list", "elements": "str", "default": []},
    "resource_name": {"type": "str"},
    "min_nodes": {"type": "int", "default": 0},
    "plugin": {"type": "dict", "options": PLUGIN},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 120},
}


def execute(ctx: Context) -> Result:
    """List the nodes, and wait for their resources if requested."""
    params = ctx.params
    query = nodes.NodeQuery(
        selectors=params["label_selectors"],
        resource=params["resource_name"],
        min_nodes=params["min_nodes"],
        plugin=nodes.Plugin(**params["plugin"]) if params["plugin"] else None,
    )
    if params["wait"]:
        found = nodes.wait(ctx.cluster, query, timeout=params["wait_timeout"], progress=ctx.progress)
    else:
        found, _version = nodes.read(ctx.cluster, query)
    return {
        "changed": False,
        "server_version": ctx.cluster.version(),
        "nodes": sorted((nodes.describe(node) for node in found.found), key=lambda node: str(node["name"])),
        "lacking": found.lacking,
        "pending_reason": found.pending_reason or "",
    }


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
