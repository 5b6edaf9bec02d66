# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ec2_removal
short_description: Remove parts of an EC2 network that may still be in use
description:
  - Deletes a VPC, subnet, internet gateway, security group or network interface. An internet gateway is detached first.
  - As long as something uses it, EC2 refuses the deletion with C(DependencyViolation), for minutes after the user was deleted itself. The
    module waits for that. The modules of C(amazon.aws) fail.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - muster.ml.attributes
  - muster.ml.aws.support
options:
  id:
    description: Id of the VPC, subnet, internet gateway, security group or network interface. One that does not exist is no error.
    type: str
    required: true
  only_tagged:
    description: Tags that identify resources of this owner. A resource without all of these tags is kept, and a warning names it.
    type: dict
  wait_timeout:
    description: Seconds to wait until nothing uses it.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Delete a subnet as soon as the last network interface in it is gone
  muster.ml.ec2_removal:
    region: us-west-2
    id: subnet-0123456789abcdef0
    only_tagged:
      muster.ml/owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept. A warning says the same.
  returned: when it was kept
  type: str
  sample: "VPC vpc-0123456789abcdef0 was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["ec2:delete_vpc (delete)"]
resource:
  description: Resource as EC2 describes it after the task, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {vpc_id: vpc-0123456789abcdef0, state: available}
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.ec2 import NetworkPart
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import Spec, aws_main, converger

ARGUMENT_SPEC: Spec = {
    "id": {"type": "str", "required": True},
    "only_tagged": {"type": "dict"},
    "wait_timeout": {"type": "int", "default": 600},
}
execute = converger(NetworkPart, "resource", only_removes=True)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
