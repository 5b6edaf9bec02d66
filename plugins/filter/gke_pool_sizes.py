# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: gke_pool_sizes
short_description: Add up the sizes of the node pools of a GKE cluster
author: Muster contributors (!UNKNOWN)
description:
  - Returns how many nodes pools as C(gke_node_pools_pools) has them have together, at least and at most.
  - Sizes are for each zone, except C(total_min_node_count) and C(total_max_node_count), which are for all zones together.
  - At most includes the nodes that an upgrade adds for a while.
  - Names the pools on which every pod may run, those of GKE itself among them. A pool with taints, GPUs or TPUs is none of them.
positional: _input, zones
options:
  _input:
    description: Node pools, each with the options of M(muster.ml.gke_node_pool).
    type: list
    elements: dict
    required: true
  zones:
    description: Number of zones of a pool that does not say C(node_locations).
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Show how large the cluster can become
  ansible.builtin.debug:
    msg: "{{ gke_node_pools_pools | muster.ml.gke_pool_sizes(3) }}"
"""

RETURN = r"""
_value:
  description: The numbers C(least) and C(most), and the names C(general).
  type: dict
  sample: {least: 3, most: 13, general: [cpu]}
"""

Pool = t.Mapping[str, t.Any]


def gke_pool_sizes(pools: t.Iterable[Pool], zones: int) -> dict[str, t.Any]:
    rows = list(pools)
    found = [_sizes(pool, len(pool.get("node_locations") or ()) or zones) for pool in rows]
    return {
        "least": sum(least for least, _most in found),
        "most": sum(most for _least, most in found),
        "general": [pool["name"] for pool in rows if _is_general(pool.get("config") or {})],
    }


def _is_general(config: Pool) -> bool:
    """Machines with TPUs are called ct5lp-hightpu-4t, ct6e-standard-8t, tpu7x-standard-4t; GKE gives them a taint."""
    is_tpu = str(config.get("machine_type", "")).startswith(("ct", "tpu"))
    return not (config.get("taints") or config.get("accelerators") or is_tpu)


def _sizes(pool: Pool, zones: int) -> tuple[int, int]:
    scaling = pool.get("autoscaling") or {}
    surge = int((pool.get("upgrade_settings") or {}).get("max_surge", 1))
    if not scaling.get("enabled", bool(scaling)):
        size = int(pool.get("node_count", pool.get("initial_node_count", 1))) * zones
        return size, size + surge
    least = scaling.get("total_min_node_count", int(scaling.get("min_node_count", 0)) * zones)
    most = scaling.get("total_max_node_count", int(scaling.get("max_node_count", 0)) * zones)
    return int(least), int(most) + surge


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gke_pool_sizes": gke_pool_sizes}
