# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules for AWS have in common. Twin of module_utils/_edge/aws.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description: Whether it is to exist.
    type: str
    choices: [present, absent]
    default: present
  only_tagged:
    description:
      - Tags by which what is yours is told from what is not.
      - With O(state=absent) what does not carry all of them is kept, and a warning names it; with O(state=present) it is refused.
      - What is made carries them from its first moment, and O(purge_tags) never takes them away.
    type: dict
  adopt:
    description:
      - Whether what exists and has no owner, that is carries none of the tags in O(only_tagged), is taken over instead of refused.
      - What carries such a tag with another value belongs to somebody else, and is refused in any case.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details:
      - Only reads. RV(ignore:actions) lists every request that would be sent.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - A second run sends no request that changes anything.
  action:
    support: none
  action_group:
    description: Use C(group/muster.ml.aws) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.aws
notes:
  - Tested against a simulated account, see C(docs/platforms/eks.md). Not run against AWS itself.
"""

    WAITS = r"""
options:
  wait:
    description:
      - Whether to wait until the last change is over. Changes before it are always waited for, because AWS takes one at a time.
    type: bool
    default: true
"""
