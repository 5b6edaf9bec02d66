# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: gke_gpu_flavour
short_description: Read from node pools how GPU drivers get onto the nodes of a GKE cluster
author: Muster contributors (!UNKNOWN)
description:
  - Returns the value of C(gpu_drivers_flavour) that fits node pools as C(gke_node_pools_pools) has them.
  - V(none) without GPUs, and V(managed) where GKE installs the driver. A pool whose accelerators have C(gpu_driver_version)
    V(INSTALLATION_DISABLED) gets it from the installer for its image, V(gke_ubuntu) or V(gke_cos).
  - Two pools of that sort with different images are refused, because one DaemonSet cannot serve both.
positional: _input
options:
  _input:
    description: Node pools, each with the options of M(muster.ml.gke_node_pool).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how drivers get onto the nodes
  ansible.builtin.debug:
    msg: "{{ gke_node_pools_pools | muster.ml.gke_gpu_flavour }}"
"""

RETURN = r"""
_value:
  description: V(none), V(managed), V(gke_cos) or V(gke_ubuntu).
  type: str
  sample: gke_cos
"""

Pool = t.Mapping[str, t.Any]


def gke_gpu_flavour(pools: t.Iterable[Pool]) -> str:
    with_gpus = {pool["name"]: pool["config"] for pool in pools if (pool.get("config") or {}).get("accelerators")}
    if not with_gpus:
        return "none"
    left = {
        name: "gke_ubuntu" if str(config.get("image_type", "")).upper().startswith("UBUNTU") else "gke_cos"
        for name, config in with_gpus.items()
        if any(row.get("gpu_driver_version") == "INSTALLATION_DISABLED" for row in config["accelerators"])
    }
    flavours = set(left.values())
    if len(flavours) > 1:
        raise AnsibleFilterError(
            "Node pools whose GPU drivers GKE does not install need one image, and "
            + ", ".join(f"{name} needs {flavour}" for name, flavour in sorted(left.items()))
            + ". Give one of them gpu_driver_version: DEFAULT."
        )
    return flavours.pop() if flavours else "managed"


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"gke_gpu_flavour": gke_gpu_flavour}
