# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter eks_costs."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.costs import items, told

DOCUMENTATION = r"""
name: eks_costs
short_description: List what an EKS cluster costs by the hour
version_added: 0.1.0
author: Muster contributors (!UNKNOWN)
description:
  - Returns what will run, and about what it costs by the hour, as lines of text. Prices are list prices of a few regions, written down
    once; for other regions there are quantities only.
positional: _input, region, disk_size, nat_gateways, support_type
options:
  _input:
    description: Node groups, as in C(eks_nodegroups_groups).
    type: list
    elements: dict
    required: true
  region:
    description: Region of AWS.
    type: str
    required: true
  disk_size:
    description: Size of the nodes' disks in GiB, where a group has no C(disk_size).
    type: int
    required: true
  nat_gateways:
    description: Number of NAT gateways.
    type: int
    default: 0
  support_type:
    description: Support policy of the control plane. Empty if the cluster has another owner.
    type: str
    choices: ["", STANDARD, EXTENDED]
    default: ""
"""

EXAMPLES = r"""
- name: Show what the cluster costs
  ansible.builtin.debug:
    msg: "{{ eks_nodegroups_groups | muster.ml.eks_costs('us-west-2', 100, nat_gateways=1, support_type='STANDARD') }}"
"""

RETURN = r"""
_value:
  description: Lines of text.
  type: list
  elements: str
"""


def eks_costs(
    nodegroups: t.Iterable[dict[str, t.Any]], region: str, disk_size: int, nat_gateways: int = 0, support_type: str = ""
) -> list[str]:
    given: dict[str, t.Any] = {
        "support_type": support_type or None,
        "nat_gateways": int(nat_gateways),
        "disk_size": int(disk_size),
    }
    return told(region, items(region, nodegroups=list(nodegroups), **given))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"eks_costs": eks_costs}
