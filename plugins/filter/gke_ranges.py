# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: gke_ranges
short_description: Divide an address range among the pods, services and nodes of a GKE cluster
author: Muster contributors (!UNKNOWN)
description:
  - Computes from the number of nodes how many addresses a VPC-native cluster needs, and takes its three ranges from one.
  - A node gets a block of at least twice as many addresses as it may have pods, a power of two, which is C(/24) for 110 pods. Google
    keeps four addresses of the subnet of the nodes for itself.
  - Every range is rounded up to a power of two. The largest one comes first.
  - A range that is too small is refused. The message names the smallest one that is large enough.
seealso:
  - name: GKE, configure maximum Pods per node
    description: The size of the block.
    link: https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr
positional: _input, nodes
options:
  _input:
    description: Address range that pods, services and nodes are taken from.
    type: str
    required: true
  nodes:
    description: Largest number of nodes, those that an upgrade adds for a while included.
    type: int
    required: true
  max_pods_per_node:
    description: Largest number of pods on a node, from 8 to 256.
    type: int
    default: 110
  services:
    description: Number of addresses for Services.
    type: int
    default: 4096
  others:
    description: Number of addresses in the subnet of the nodes for other machines and for load balancers.
    type: int
    default: 16
"""

EXAMPLES = r"""
- name: Show the ranges of a cluster
  ansible.builtin.debug:
    msg: "{{ ('10.40.0.0/16' | muster.ml.gke_ranges(100)).arithmetic }}"
"""

RETURN = r"""
_value:
  description: The ranges C(pods), C(services) and C(nodes), and C(arithmetic), the computation in one line.
  type: dict
  sample: {pods: 10.40.0.0/17, services: 10.40.128.0/20, nodes: 10.40.144.0/25, arithmetic: "pods 10.40.0.0/17 (100 nodes x 256 ...)"}
"""

RESERVED = 4
FEWEST_PODS = 8
MOST_PODS = 256
SMALLEST_RANGE = 16  # /28


def gke_ranges(cidr: str, nodes: int, max_pods_per_node: int = 110, services: int = 4096, others: int = 16) -> dict[str, str]:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise AnsibleFilterError(f"{cidr!r} is no range of IPv4 addresses: {error}. Write it as 10.40.0.0/16.") from error
    if not FEWEST_PODS <= max_pods_per_node <= MOST_PODS:
        raise AnsibleFilterError(f"GKE allows {FEWEST_PODS} to {MOST_PODS} pods on a node, not {max_pods_per_node}.")
    if min(nodes, services) < 1 or others < 0:
        raise AnsibleFilterError(f"A cluster of {nodes} nodes with {services} Services cannot be.")
    block = _power(2 * max_pods_per_node)
    sizes = {"pods": _power(nodes * block), "services": _power(max(services, SMALLEST_RANGE)), "nodes": _power(nodes + RESERVED + others)}
    terms = {
        "pods": f"{nodes} nodes x {block} ({max_pods_per_node} pods a node)",
        "services": f"{services} Services",
        "nodes": f"{nodes} nodes + {others} others + {RESERVED} of Google",
    }
    smallest = 32 - (_power(sum(sizes.values())).bit_length() - 1)
    if network.prefixlen > smallest:
        sums = ", ".join(f"{terms[name]} -> {size}" for name, size in sizes.items())
        raise AnsibleFilterError(
            f"{cidr} has {network.num_addresses} addresses, and {sum(sizes.values())} are needed: {sums}. "
            f"The smallest range that fits is a /{smallest}, such as {network.supernet(new_prefix=smallest)}."
        )
    ranges = _carved(network, sizes)
    parts = ", ".join(f"{name} {ranges[name]} ({terms[name]})" for name in sizes)
    return {**ranges, "arithmetic": f"{parts}, of {cidr}; a /{smallest} is the smallest that fits"}


def _power(number: int) -> int:
    """The power of two that is as large, or the next one."""
    return 1 << (number - 1).bit_length()


def _carved(network: ipaddress.IPv4Network, sizes: t.Mapping[str, int]) -> dict[str, str]:
    """One behind the other, the largest first: each then begins at a multiple of its size."""
    place = int(network.network_address)
    ranges: dict[str, str] = {}
    for name, size in sorted(sizes.items(), key=lambda row: -row[1]):
        ranges[name] = str(ipaddress.IPv4Network((place, 32 - (size.bit_length() - 1))))
        place += size
    return ranges


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gke_ranges": gke_ranges}
