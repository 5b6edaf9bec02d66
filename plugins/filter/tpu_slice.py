# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp.tpu_slices import tpu_slice as find

DOCUMENTATION = r"""
name: tpu_slice
short_description: Report the machines, nodes and pods that a slice of TPUs has
author: Muster contributors (!UNKNOWN)
description:
  - Returns for a type and a topology how many chips and machines the slice has, which machine type, labels and placement its nodes have,
    and what each pod requests.
  - Knows v4, v5e, v5p, v6e and tpu7x. Shapes of v5e and v6e are of a fixed list, from C(1x1) to C(16x16). Those of the others are
    C(2x2x1), C(2x2x2), C(2x2x4), C(2x4x4), and every C(AxBxC) of multiples of 4 with A <= B <= C, of at most 4096 (v4), 6144 (v5p) and 9216
    (tpu7x) chips.
  - A combination that does not exist is refused. The message names the nearest ones that do.
  - Says nothing about where Google has such machines, nor whether there are any left.
seealso:
  - name: GKE, Plan TPUs in GKE
    description: The table of topologies and machine types.
    link: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
  - name: Cloud TPU, TPU v5p
    description: Shapes of v5p; v4, v5e and v6e have a page each beside it.
    link: https://cloud.google.com/tpu/docs/v5p
positional: _input, topology
options:
  _input:
    description:
      - Type of the TPUs, V(v4), V(v5e) (V(v5litepod)), V(v5p), V(v6e) or V(tpu7x), or the value of the label
        C(cloud.google.com/gke-tpu-accelerator).
      - Also the name of a slice, such as V(v5litepod-16). Its number counts chips of v5e and v6e, and TensorCores, two of each chip, of v4,
        v5p and tpu7x.
    type: str
    required: true
  topology:
    description:
      - Sides of the grid, such as V(2x4). Needed unless the type has a number, of which the shape most like a cube is taken.
    type: str
  machine_type:
    description:
      - Type of the machines. Only C(2x4) has a choice, two machines with 4 chips or a single one with 8, which Google made for serving.
        Defaults to those with 4.
    type: str
"""

EXAMPLES = r"""
- name: Show what a slice of 8 chips needs
  ansible.builtin.debug:
    msg: "{{ 'v5e' | muster.ml.tpu_slice('2x4') }}"

- name: Show how many machines v4-64 has
  ansible.builtin.debug:
    msg: "{{ ('v4-64' | muster.ml.tpu_slice).hosts }}"

- name: Show a single machine with 8 chips
  ansible.builtin.debug:
    msg: "{{ 'v6e' | muster.ml.tpu_slice('2x4', machine_type='ct6e-standard-8t') }}"
"""

RETURN = r"""
_value:
  description:
    - C(type), C(accelerator_type) (the name of the slice outside GKE), C(topology), C(chips), C(chips_per_host), C(hosts), C(multi_host)
      and C(machine_type).
    - C(node_selector), the labels of its nodes, and C(resources), what each pod requests and is limited to. A pod takes all chips of its
      node.
    - C(placement_policy) and C(autoscaling), as M(muster.ml.gke_node_pool) takes them. A slice of one machine has no placement policy.
      That of several machines of tpu7x also needs C(policy_name), of a workload policy.
  type: dict
  sample:
    type: v5e
    accelerator_type: v5litepod-8
    topology: 2x4
    chips: 8
    chips_per_host: 4
    hosts: 2
    multi_host: true
    machine_type: ct5lp-hightpu-4t
    node_selector:
      cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice
      cloud.google.com/gke-tpu-topology: 2x4
    resources: {google.com/tpu: 4}
    placement_policy: {type: COMPACT, tpu_topology: 2x4}
    autoscaling: {enabled: true, min_node_count: 0, max_node_count: 2, location_policy: ANY}
"""


def tpu_slice(kind: str, topology: str | None = None, machine_type: str | None = None) -> dict[str, t.Any]:
    try:
        return find(kind, topology, machine_type).described()
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"tpu_slice": tpu_slice}
