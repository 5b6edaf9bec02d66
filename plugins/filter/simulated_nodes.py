# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter simulated_nodes."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._local.simulated_nodes import simulated_nodes as build

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


def simulated_nodes(groups: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    try:
        return build(groups)
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"simulated_nodes": simulated_nodes}
