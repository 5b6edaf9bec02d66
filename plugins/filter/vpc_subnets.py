# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: vpc_subnets
short_description: Divide the address range of a VPC into subnets
author: Muster contributors (!UNKNOWN)
description:
  - Divides an address range among availability zones, with a large private subnet for pods and a small public subnet in each.
  - The subnets of a zone do not depend on the number of zones, up to eight, so that zones can be added later.
  - A zone that has subnets already keeps their ranges, and no range of another zone is used, because a subnet cannot move to another zone.
positional: _input, zones, existing
options:
  _input:
    description: Address range of the VPC, from C(/16) to C(/20).
    type: str
    required: true
  zones:
    description: Availability zones, two to eight.
    type: list
    elements: str
    required: true
  existing:
    description: Subnets that exist, each with C(availability_zone) and C(cidr_block).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show the subnets
  ansible.builtin.debug:
    msg: "{{ '10.40.0.0/16' | muster.ml.vpc_subnets(['us-west-2a', 'us-west-2b']) }}"
"""

RETURN = r"""
_value:
  description: Subnets, each with C(zone), C(cidr) and C(public).
  type: list
  elements: dict
  sample: [{zone: us-west-2a, cidr: 10.40.128.0/23, public: true}, {zone: us-west-2a, cidr: 10.40.0.0/20, public: false}]
"""

LARGEST = 16
SMALLEST = 20
MOST_ZONES = 8


def vpc_subnets(cidr: str, zones: list[str], existing: t.Sequence[t.Mapping[str, t.Any]] = ()) -> list[dict[str, t.Any]]:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise AnsibleFilterError(f"{cidr!r} is no range of IPv4 addresses: {error}. Write it as 10.40.0.0/16.") from error
    if not LARGEST <= network.prefixlen <= SMALLEST:
        raise AnsibleFilterError(f"{cidr} has to be between /{LARGEST} (the largest VPC) and /{SMALLEST}.")
    if not 2 <= len(zones) <= MOST_ZONES or len(set(zones)) < len(zones):
        raise AnsibleFilterError(f"EKS needs 2 to {MOST_ZONES} different availability zones, not {zones}.")
    # The range has sixteen parts. The first eight are private subnets, the ninth holds eight public ones, the rest is free.
    parts = list(network.subnets(prefixlen_diff=4))
    public = list(parts[MOST_ZONES].subnets(prefixlen_diff=3))
    places = _places(zones, [{str(parts[n]), str(public[n])} for n in range(MOST_ZONES)], existing)
    rows = [{"zone": zone, "cidr": str(public[n]), "public": True} for zone, n in places.items()]
    return rows + [{"zone": zone, "cidr": str(parts[n]), "public": False} for zone, n in places.items()]


def _places(zones: list[str], ranges: list[set[str]], existing: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, int]:
    """The place of each zone: that of its subnets, or one where no other zone has any."""
    taken = [{row["availability_zone"] for row in existing if row["cidr_block"] in pair} for pair in ranges]
    kept = {zone: place for place, owners in enumerate(taken) for zone in owners if owners == {zone}}
    free = iter([place for place, owners in enumerate(taken) if not owners])
    try:
        return {zone: kept[zone] if zone in kept else next(free) for zone in zones}
    except StopIteration:
        raise AnsibleFilterError(
            f"There is no place left for subnets in {', '.join(zones)}: other zones have {sum(map(bool, taken))} of {MOST_ZONES}."
        ) from None  # Ansible adds the text of a cause, and this one has none


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"vpc_subnets": vpc_subnets}
