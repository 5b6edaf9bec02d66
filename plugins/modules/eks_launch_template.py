# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_launch_template
short_description: Manage launch templates of EKS node groups
description:
  - Creates, updates and deletes the launch template of a managed node group. It gives the instances their disk, their tags and the rules
    of their metadata service, none of which a node group has itself.
  - Instances, their volumes and network interfaces get O(tags). EKS passes on none of a node group's tags.
  - Disks are encrypted, and the metadata service requires tokens (IMDSv2).
  - Every change is a new version of the template. A node group takes it up by O(muster.ml.eks_nodegroup#module:launch_template.version),
    which replaces its nodes.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
options:
  name:
    description: Name of the launch template.
    type: str
    required: true
  device_name:
    description: Device of the disk. V(/dev/xvda) is the root disk of Amazon Linux, V(/dev/xvdb) the data disk of Bottlerocket.
    type: str
    default: /dev/xvda
  disk_size:
    description: Size of the disk in GiB.
    type: int
    default: 100
  disk_type:
    description: Volume type of the disk.
    type: str
    default: gp3
  disk_kms_key_id:
    description: KMS key that encrypts the disk. Defaults to the key of EBS in the account.
    type: str
"""

EXAMPLES = r"""
- name: Create the launch template of the GPU nodes
  muster.ml.eks_launch_template:
    region: us-west-2
    name: training-gpu
    disk_size: 200
    tags:
      team: ml
  register: template

- name: Create the node group with it
  muster.ml.eks_nodegroup:
    region: us-west-2
    cluster_name: training
    name: gpu
    node_role: arn:aws:iam::123456789012:role/training-node
    subnets: [subnet-0a, subnet-0b]
    launch_template:
      name: training-gpu
      version: "{{ template.launch_template.latest_version_number }}"
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Launch template training-gpu was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["ec2:create_launch_template (create)"]
launch_template:
  description: Launch template as EC2 describes it, with the C(launch_template_data) of its newest version, in snake_case.
  returned: success
  type: dict
  sample: {launch_template_id: lt-0123456789abcdef0, launch_template_name: training-gpu, latest_version_number: 1}
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.launch_template import LaunchTemplate
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of

ARGUMENT_SPEC = spec_of(LaunchTemplate)
execute = converger(LaunchTemplate, "launch_template")


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
