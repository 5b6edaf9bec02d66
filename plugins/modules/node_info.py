# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Nodes of a cluster and what they offer
version_added: 0.1.0
description:
  - Returns the nodes of a cluster with their state and what pods can be given on them.
  - Can wait until each of them offers an extended resource such as C(nvidia.com/gpu), and names those which do not.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  label_selectors:
    description:
      - Only nodes that at least one of these selectors fits. Without any, all nodes.
      - A selector is V(key), V(!key), V(key=value) or V(key!=value), several of them joined by commas.
    type: list
    elements: str
    default: []
  resource:
    description: Extended resource that each of the nodes should offer.
    type: str
  minimum_nodes:
    description: At least so many nodes should fit.
    type: int
    default: 0
  wait:
    description: Wait until every node offers O(resource) and O(minimum_nodes) is reached, and fail if that does not happen.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Nodes of the cluster
  muster.ml.node_info:
  register: nodes

- name: Every GPU node reports its GPUs
  muster.ml.node_info:
    label_selectors: [cloud.google.com/gke-accelerator]
    resource: nvidia.com/gpu
    minimum_nodes: 8
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
  description: The nodes, by name.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the node.
      type: str
      returned: always
    ready:
      description: Whether the node is ready.
      type: bool
      returned: always
    reason:
      description: Why it is not ready.
      type: str
      returned: always
    schedulable:
      description: Whether new pods may be put on it.
      type: bool
      returned: always
    simulated:
      description: Whether it is a simulated node of the local cluster, on which nothing really runs.
      type: bool
      returned: always
    version:
      description: Version of its kubelet.
      type: str
      returned: always
    labels:
      description: Its labels.
      type: dict
      returned: always
    allocatable:
      description: What pods can be given on it.
      type: dict
      returned: always
lacking:
  description: Names of the nodes that do not offer O(resource).
  returned: always
  type: list
  elements: str
complaint:
  description: What is missing, empty where nothing is.
  returned: always
  type: str
  sample: "1 of 2 nodes report no allocatable nvidia.com/gpu: gpu-1."
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube import nodes

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "label_selectors": {"type": "list", "elements": "str", "default": []},
    "resource": {"type": "str"},
    "minimum_nodes": {"type": "int", "default": 0},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 120},
}

CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read the nodes, waiting for what they should offer where that is wanted."""
    params = ctx.params
    query = nodes.NodeQuery(
        selectors=params["label_selectors"], resource=params["resource"], minimum_nodes=params["minimum_nodes"]
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
        "complaint": found.complaint or "",
    }


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
