# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: efs_mount_targets
short_description: List one EFS mount target for each availability zone
author: Muster contributors (!UNKNOWN)
description:
  - Returns one mount target for each availability zone, because EFS takes no second one. It is in the zone's subnet with the lowest id.
positional: _input, security_groups
options:
  _input:
    description: Subnets, each with C(id) and C(availability_zone), as M(amazon.aws.ec2_vpc_subnet_info) returns them.
    type: list
    elements: dict
    required: true
  security_groups:
    description: Security groups of each mount target.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Create a file system with a mount target in each zone
  muster.ml.efs_file_system:
    name: training
    mount_targets: "{{ found.subnets | muster.ml.efs_mount_targets(['sg-0123456789abcdef0']) }}"
"""

RETURN = r"""
_value:
  description: Mount targets, each with C(subnet_id) and C(security_groups), in the order of the zones.
  type: list
  elements: dict
  sample: [{subnet_id: subnet-0123456789abcdef0, security_groups: [sg-0123456789abcdef0]}]
"""


def efs_mount_targets(subnets: t.Iterable[t.Mapping[str, t.Any]], security_groups: t.Sequence[str]) -> list[dict[str, t.Any]]:
    first: dict[str, str] = {}
    for subnet in sorted(subnets, key=lambda one: (one["availability_zone"], one["id"])):
        first.setdefault(subnet["availability_zone"], subnet["id"])
    return [{"subnet_id": subnet, "security_groups": list(security_groups)} for subnet in first.values()]


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"efs_mount_targets": efs_mount_targets}
