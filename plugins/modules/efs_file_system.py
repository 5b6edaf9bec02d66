# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efs_file_system
short_description: Manage EFS file systems
description:
  - Creates, updates and deletes Amazon EFS file systems with their mount targets, backup and lifecycle policy.
  - Unlike C(community.aws.efs) it supports check mode, elastic throughput and backup, and uses no deprecated API calls.
  - A file system is identified by its creation token, which is O(name).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
  - muster.ml.aws.waits
options:
  name:
    description: Name of the file system, its creation token and its tag C(Name).
    type: str
    required: true
  encrypted:
    description: Encrypt the file system. Cannot be changed.
    type: bool
    default: true
  throughput_mode:
    description: Throughput mode.
    type: str
    choices: [bursting, elastic]
  backup:
    description: Back up the file system every day with AWS Backup.
    type: bool
  transition_to_ia:
    description: Days without access after which files move to the Infrequent Access storage class.
    type: str
    choices:
      - NEVER
      - AFTER_1_DAY
      - AFTER_7_DAYS
      - AFTER_14_DAYS
      - AFTER_30_DAYS
      - AFTER_60_DAYS
      - AFTER_90_DAYS
      - AFTER_180_DAYS
      - AFTER_270_DAYS
      - AFTER_365_DAYS
  mount_targets:
    description: Mount targets, one per availability zone. Mount targets that are not listed are deleted.
    type: list
    elements: dict
    suboptions:
      subnet_id:
        description: Subnet of the mount target.
        type: str
        required: true
      security_groups:
        description: Security groups of the mount target. They must admit TCP 2049 from the nodes.
        type: list
        elements: str
  delete_data:
    description:
      - Delete the file system with its files, with O(state=absent). Otherwise it is kept, even if it seems empty, because EFS reports
        its size only hours later.
    type: bool
    default: false
  wait_timeout:
    default: 900
"""

EXAMPLES = r"""
- name: Create shared storage for the nodes
  muster.ml.efs_file_system:
    region: us-west-2
    name: training
    throughput_mode: elastic
    backup: true
    mount_targets:
      - {subnet_id: subnet-0a, security_groups: [sg-0efs]}
      - {subnet_id: subnet-0b, security_groups: [sg-0efs]}
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EFS file system training was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["efs:create_file_system (create)"]
file_system:
  description: File system as EFS describes it, in snake_case, with its mount targets.
  returned: success
  type: dict
  contains:
    file_system_id:
      description: Id of the file system.
      type: str
      sample: fs-0123456789abcdef0
    mount_targets:
      description: Mount targets of the file system.
      type: list
      elements: dict
      sample: [{mount_target_id: fsmt-0123456789abcdef0, subnet_id: subnet-0123456789abcdef0, life_cycle_state: available}]
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.efs import EfsFileSystem
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import STRINGS, rows, text

ARGUMENT_SPEC = spec_of(EfsFileSystem, wait=900, mount_targets=rows(subnet_id=text(required=True), security_groups=STRINGS))
execute = converger(EfsFileSystem, "file_system")


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
