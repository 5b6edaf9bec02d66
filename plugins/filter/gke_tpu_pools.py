# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp.tpu_slices import node_pools

DOCUMENTATION = r"""
name: gke_tpu_pools
short_description: Add machines, placement and size to node pools that are slices of TPUs
author: Muster contributors (!UNKNOWN)
description:
  - Returns node pools as M(muster.ml.gke_node_pool) takes them. Of a pool with C(tpu), that is replaced by the machine type, the placement
    and the size of the slice. Other pools stay as they are.
  - A pool of several machines is one slice, all of whose machines come and go together. Without C(node_count) and C(autoscaling) it begins
    with none, and has all of them as soon as pods ask for them.
  - C(config.machine_type) chooses between the machines that a slice may have.
  - Role P(muster.ml.gke_node_pools#role) applies it to its pools.
positional: _input, zones
options:
  _input:
    description:
      - Node pools, each with the options of M(muster.ml.gke_node_pool), and optionally C(tpu) with C(type) and C(topology) as
        P(muster.ml.tpu_slice#filter) takes them.
      - With C(tpu.slices), a number, it stands for so many pools, whose names end in C(-0), C(-1) and so on.
    type: list
    elements: dict
    required: true
  zones:
    description: Number of zones of a pool that does not say C(node_locations). A slice of several machines needs a single one.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Show the node pool of a slice of 8 chips
  ansible.builtin.debug:
    msg: "{{ pools | muster.ml.gke_tpu_pools(3) }}"
  vars:
    pools:
      - name: tpu
        tpu: {type: v5e, topology: 2x4}
        node_locations: [us-central1-a]
"""

RETURN = r"""
_value:
  description: Node pools.
  type: list
  elements: dict
  sample:
    - name: tpu
      config: {machine_type: ct5lp-hightpu-4t}
      placement_policy: {type: COMPACT, tpu_topology: 2x4}
      autoscaling: {enabled: true, min_node_count: 0, max_node_count: 2, location_policy: ANY}
      node_locations: [us-central1-a]
"""


def gke_tpu_pools(pools: t.Iterable[t.Mapping[str, t.Any]], zones: int) -> list[dict[str, t.Any]]:
    try:
        return node_pools(pools, int(zones))
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gke_tpu_pools": gke_tpu_pools}
