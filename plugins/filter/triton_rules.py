# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import RequestAlerts
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import alerts_of

DOCUMENTATION = r"""
name: triton_rules
short_description: List the alerts of a Triton server as rules of Prometheus
author: Muster contributors (!UNKNOWN)
description:
  - Returns the groups of rules that M(muster.ml.triton_server) creates where the cluster serves C(PrometheusRule) or C(Rules), for a
    Prometheus that reads them from files, such as that of P(muster.ml.prometheus#role).
positional: _input, namespace, name
options:
  _input:
    description: Thresholds, as O(muster.ml.triton_server#module:alerts).
    type: dict
    required: true
  namespace:
    description: Namespace of the server.
    type: str
    required: true
  name:
    description: Name of the server.
    type: str
    default: triton
"""

EXAMPLES = r"""
- name: Run a Prometheus that raises the alerts of a server
  ansible.builtin.include_role:
    name: muster.ml.prometheus
  vars:
    prometheus_rule_groups: "{{ {'queue_time_ms': 50} | muster.ml.triton_rules('ml') }}"
"""

RETURN = r"""
_value:
  description: Groups of rules.
  type: list
  elements: dict
  sample: [{name: muster-triton, rules: [{alert: TritonDown, for: 5m, labels: {severity: critical}}]}]
"""


def triton_rules(alerts: t.Mapping[str, t.Any], namespace: str, name: str = "triton") -> list[dict[str, t.Any]]:
    try:
        return [{"name": f"muster-{name}", "rules": alerts_of(name, namespace, RequestAlerts(**alerts))}]
    except (InvalidInput, TypeError) as error:
        raise AnsibleFilterError(f"triton_rules: {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"triton_rules": triton_rules}
