# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efs_access_point
short_description: Manage access points of EFS file systems
description:
  - Creates, updates and deletes access points of Amazon EFS file systems. An access point has its own root directory and POSIX user.
  - An access point is identified by its tag C(Name). Deleting it does not delete files.
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
  file_system_id:
    description: Id of the file system.
    type: str
    required: true
  name:
    description: Name of the access point.
    type: str
    required: true
  posix_user:
    description: POSIX user for all access through the access point. Cannot be changed.
    type: dict
    suboptions:
      uid:
        description: User id.
        type: int
        required: true
      gid:
        description: Group id.
        type: int
        required: true
      secondary_gids:
        description: Further group ids.
        type: list
        elements: int
  root_directory:
    description: Directory that clients see as the root. Cannot be changed.
    type: dict
    suboptions:
      path:
        description: Path of the directory in the file system.
        type: str
        default: /
      creation_info:
        description: Owner and permissions with which EFS creates the directory if it does not exist.
        type: dict
        suboptions:
          owner_uid:
            description: User id of the owner.
            type: int
            required: true
          owner_gid:
            description: Group id of the owner.
            type: int
            required: true
          permissions:
            description: Permissions as an octal number in quotes.
            type: str
            required: true
  wait_timeout:
    description: Seconds to wait until the access point is available.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Create an access point for data sets
  muster.ml.efs_access_point:
    region: us-west-2
    file_system_id: fs-0123456789abcdef0
    name: datasets
    posix_user: {uid: 1000, gid: 1000}
    root_directory:
      path: /datasets
      creation_info: {owner_uid: 1000, owner_gid: 1000, permissions: "0755"}
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "EFS access point training of fs-0123456789abcdef0 was kept: it does not have the mark of this owner (muster.ml/owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["efs:create_access_point (create)"]
access_point:
  description: Access point as EFS describes it, in snake_case.
  returned: success
  type: dict
  contains:
    access_point_id:
      description: Id of the access point, for a volume handle C(fs-id::fsap-id).
      type: str
      sample: fsap-0123456789abcdef0
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.efs import EfsAccessPoint
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import Option, group, text

ID: Option = {"type": "int", "required": True}
CREATION_INFO = group(owner_uid=ID, owner_gid=ID, permissions=text(required=True))
ARGUMENT_SPEC = spec_of(
    EfsAccessPoint, wait=300, posix_user=group(uid=ID, gid=ID, secondary_gids={"type": "list", "elements": "int"}),
    root_directory=group(path=text(default="/"), creation_info=CREATION_INFO),
)  # fmt: skip
execute = converger(EfsAccessPoint, "access_point", nested=["posix_user", "root_directory"], capitals=True)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
