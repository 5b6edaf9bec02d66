# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_nodegroup
short_description: Manage EKS managed node groups
description:
  - Creates, updates and deletes managed node groups of an Amazon EKS cluster.
  - Unlike C(community.aws.eks_nodegroup) it supports every AMI type (AL2023 with NVIDIA drivers, too) and updates existing node
    groups, namely their version, image, labels, taints, scaling, update policy, repair and tags.
  - A node group in status C(CREATE_FAILED) never had a working node. It is deleted and created again.
  - A change that EKS does not support is refused before any request is sent.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
  - muster.ml.aws.waits
  - muster.ml.aws.cluster
options:
  name:
    description: Name of the node group.
    type: str
    required: true
    aliases: [nodegroup_name]
  node_role:
    description: IAM role of the nodes. Required to create a node group. Cannot be changed.
    type: str
  subnets:
    description: Subnets of the nodes. Required to create a node group. Cannot be changed.
    type: list
    elements: str
  version:
    description:
      - Kubernetes version of the nodes, at most that of the cluster. Defaults to that of the cluster for a new node group.
      - Not for nodes with the image of their launch template, which decides.
    type: str
  release_version:
    description:
      - Release of the image, such as V(1.35.0-20261101). Defaults to the newest for a new node group, and is then kept.
      - V(latest) is the newest one whenever the module runs, which replaces the nodes if it is another one. It is read from AWS's public
        parameters, which have the images of Amazon Linux 2023 only.
      - Not for nodes with the image of their launch template.
    type: str
  ami_type:
    description:
      - Type of the image, such as V(AL2023_x86_64_NVIDIA). Cannot be changed.
      - V(CUSTOM) is the image of the launch template. A new version of the template with another one replaces the nodes.
    type: str
  instance_types:
    description: Instance types of the nodes, several for O(capacity_type=SPOT). Cannot be changed.
    type: list
    elements: str
  capacity_type:
    description: Purchase option of the nodes. Cannot be changed.
    type: str
    choices: [ON_DEMAND, SPOT, CAPACITY_BLOCK]
  disk_size:
    description: Size of the root disk in GiB. Cannot be changed.
    type: int
  launch_template:
    description: Launch template of the nodes. Only its version can be changed later.
    type: dict
    suboptions:
      id:
        description: Id of the launch template. Mutually exclusive with O(launch_template.name).
        type: str
      name:
        description: Name of the launch template.
        type: str
      version:
        description: Version of the launch template, a number, or V($Latest) or V($Default) for the one that has it when the module runs.
        type: str
  scaling_config:
    description: Number of nodes.
    type: dict
    suboptions:
      min_size:
        description: Minimum number of nodes.
        type: int
        required: true
      max_size:
        description: Maximum number of nodes.
        type: int
        required: true
      desired_size:
        description:
          - Current number of nodes. Omit it if an autoscaler sets it. Then it starts with O(scaling_config.min_size) and is changed only
            if it is out of bounds.
        type: int
  update_config:
    description: Number of nodes that may be unavailable during an upgrade.
    type: dict
    suboptions:
      max_unavailable:
        description: Number of nodes, as a count.
        type: int
      max_unavailable_percentage:
        description: Number of nodes, as a percentage.
        type: int
  node_repair_enabled:
    description: Let EKS replace unhealthy nodes.
    type: bool
  labels:
    description: Labels of the nodes. Labels that are not listed are removed.
    type: dict
  taints:
    description: Taints of the nodes. Taints that are not listed are removed.
    type: list
    elements: dict
    suboptions:
      key:
        description: Key of the taint.
        type: str
        required: true
      value:
        description: Value of the taint.
        type: str
        default: ""
      effect:
        description: Effect of the taint.
        type: str
        choices: [NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE]
        required: true
  wait_timeout:
    default: 3600
"""

EXAMPLES = r"""
- name: Create spot nodes with GPUs, reserved for pods that request GPUs
  muster.ml.eks_nodegroup:
    region: us-west-2
    cluster_name: training
    name: gpu
    node_role: arn:aws:iam::123456789012:role/training-node
    subnets: [subnet-0a, subnet-0b]
    ami_type: AL2023_x86_64_NVIDIA
    instance_types: [g5.2xlarge, g6.2xlarge]
    capacity_type: SPOT
    scaling_config: {min_size: 0, max_size: 8}
    taints:
      - {key: nvidia.com/gpu, value: present, effect: NO_SCHEDULE}

- name: Scale the node group
  muster.ml.eks_nodegroup:
    region: us-west-2
    cluster_name: training
    name: gpu
    scaling_config: {min_size: 2, max_size: 16}
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EKS node group cpu of cluster training was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["eks:update_nodegroup_config (scalingConfig, taints)"]
nodegroup:
  description: Node group as EKS describes it, in snake_case.
  returned: success
  type: dict
  sample: {nodegroup_name: cpu, status: ACTIVE, scaling_config: {min_size: 1, max_size: 4, desired_size: 2}}
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_nodegroup import EksNodegroup, look_up
from ansible_collections.muster.ml.plugins.module_utils._cloud.texts import texts
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import NUMBER, TAINTS, group, text

EITHER = {"mutually_exclusive": [("id", "name")], "required_one_of": [("id", "name")]}
SIZE: dict[str, t.Any] = {"type": "int", "required": True}
UNAVAILABLE = ("max_unavailable", "max_unavailable_percentage")
ARGUMENT_SPEC = spec_of(
    EksNodegroup, "template_image", wait=3600, name=text(required=True, aliases=["nodegroup_name"]),
    launch_template={**group(id=text(), name=text(), version=text()), **EITHER},
    scaling_config=group(min_size=SIZE, max_size=SIZE, desired_size=NUMBER),
    update_config={
        **group(max_unavailable=NUMBER, max_unavailable_percentage=NUMBER),
        "mutually_exclusive": [UNAVAILABLE],
        "required_one_of": [UNAVAILABLE],
    },
    taints=TAINTS,
)  # fmt: skip
NESTED = ("launch_template", "scaling_config", "update_config")


def check(api: Api, params: dict[str, t.Any]) -> str:
    """Look up what the launch template says, and make text of the labels' values."""
    if params["labels"] is not None:
        params["labels"] = texts("labels", params["labels"], lambda value: str(value).lower())
    return look_up(api, params)


execute = converger(EksNodegroup, "nodegroup", nested=NESTED, check=check)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
