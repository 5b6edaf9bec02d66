# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules for AWS share; the same as module_utils/_edge/aws.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description: State of the resource.
    type: str
    choices: [present, absent]
    default: present
  only_tagged:
    description:
      - Tags that identify resources of this owner.
      - A resource without all of these tags is not changed. With O(state=absent) it is kept, and a warning names it. With
        O(state=present) the task fails.
      - A new resource has them from its creation, and O(purge_tags) never removes them.
    type: dict
  adopt:
    description:
      - Take over an existing resource that has no owner, instead of failing.
      - A resource that has a tag in O(only_tagged) with another value belongs to another owner. It is never taken over.
    type: bool
    default: false
"""

    WAITS = r"""
options:
  wait:
    description:
      - Wait until the last change has finished. The module always waits for changes before it, because AWS accepts one at a time.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for all changes together.
    type: int
"""

    # Also for modules without those options.
    SUPPORT = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - Only reads. RV(ignore:actions) lists all requests that would be sent.
  diff_mode:
    support: full
    details:
      - Shows the fields that change, and of a resource that is created the whole request.
  idempotent:
    support: full
    details:
      - A second run sends no request that changes anything.
  action:
    support: full
  action_group:
    description: Use C(group/muster.ml.aws) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.aws
requirements:
  - boto3 >= 1.41.0
  - botocore >= 1.41.0
notes:
  - Tested against a simulated account, see C(docs/platforms/eks.md). Not run against AWS itself.
"""

    CLUSTER = r"""
options:
  cluster_name:
    description: Name of the cluster.
    type: str
    required: true
"""
