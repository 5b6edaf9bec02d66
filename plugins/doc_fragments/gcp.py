# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the modules for Google Cloud share; the same as module_utils/_edge/gcp.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description: State of the resource.
    type: str
    choices: [present, absent]
    default: present
"""

    OWNER = r"""
options:
  owner:
    description:
      - Name of the owner, which marks the resource as C(muster-owner). The mark is a label where the API has labels, and otherwise stands
        at the end of the description.
      - At most 63 lowercase letters, digits, hyphens and underscores. Many resources are once in a project for all regions, so the roles
        name the region, too, such as V(muster--us-central1).
      - A resource without this mark is not changed. With O(state=absent) it is kept, and a warning names it. With
        O(state=present) the task fails.
      - Without this option the name alone decides.
    type: str
  adopt:
    description:
      - Take over an existing resource that has no owner, instead of failing.
      - A resource with the mark of another owner is never taken over.
    type: bool
    default: false
"""

    WAITS = r"""
options:
  wait:
    description:
      - Wait until the last change has finished. The module always waits for changes before it.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait for all changes together.
    type: int
"""

    # Also for modules without those options.
    SUPPORT = r"""
options: {}
requirements:
  - google-auth >= 2.26.1
  - requests >= 2.31.0
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
    description: Use C(group/muster.ml.gcp) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.gcp
notes:
  - Tested against a simulated project. Not run against Google Cloud itself.
"""

    LABELS = r"""
options:
  labels:
    description: Labels. They are all that it has, besides the mark of its owner. Without this option they stay as they are.
    type: dict
"""
