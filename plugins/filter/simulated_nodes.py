# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter simulated_nodes."""

from __future__ import annotations

import json
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._local.simulation import CAPACITY_ANNOTATION, TAINTS_ANNOTATION

DOCUMENTATION = r"""
name: simulated_nodes
short_description: Create Node objects that kwok simulates
version_added: 0.1.0
author: Muster contributors (!UNKNOWN)
description:
  - Returns Node objects for groups of simulated nodes. Each has the label C(type=kwok) and the taint
    C(kwok.x-k8s.io/node=fake:NoSchedule), so that only pods that tolerate it are scheduled there.
positional: _input
options:
  _input:
    description: Groups of nodes, each with C(name_prefix), C(count) and optionally C(labels), C(capacity) and C(taints).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Add ten simulated nodes with GPUs
  muster.ml.apply:
    owner: apply.simulated
    definition: "{{ groups_of_nodes | muster.ml.simulated_nodes }}"
  vars:
    groups_of_nodes:
      - name_prefix: gpu
        count: 10
        capacity: {cpu: "96", memory: 600Gi, pods: "110", nvidia.com/gpu: "8"}
"""

RETURN = r"""
_value:
  description: Node objects.
  type: list
  elements: dict
"""

TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}
ALLOWED = {"name_prefix", "count", "labels", "capacity", "taints"}


def simulated_nodes(groups: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    prefixes = [group.get("name_prefix") for group in groups]
    if len(set(prefixes)) < len(prefixes):
        raise AnsibleFilterError(f"Groups of simulated nodes need different name_prefix values; got {prefixes}.")
    return [_node(group, number) for group in groups for number in range(_count(group))]


def _count(group: dict[str, t.Any]) -> int:
    unknown = sorted(set(group) - ALLOWED)
    if unknown or not group.get("name_prefix"):
        raise AnsibleFilterError(
            f"A group of simulated nodes needs name_prefix and count, and may have labels, capacity and taints; got {sorted(group)}."
        )
    count = int(group.get("count", -1))
    if count < 0:
        raise AnsibleFilterError(
            f"Simulated nodes {group['name_prefix']!r} need a count of 0 or more, not {group.get('count')}."
        )
    return count


def _node(group: dict[str, t.Any], number: int) -> dict[str, t.Any]:
    name = f"{group['name_prefix']}-{number}"
    capacity = {key: str(value) for key, value in {**CAPACITY, **group.get("capacity", {})}.items()}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, **group.get("labels", {}), "type": "kwok"},
            "annotations": {
                CAPACITY_ANNOTATION: json.dumps(capacity, sort_keys=True),
                TAINTS_ANNOTATION: json.dumps([TAINT, *group.get("taints", [])], sort_keys=True),
            },
        },
    }


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"simulated_nodes": simulated_nodes}
