# SPDX-License-Identifier: GPL-3.0-or-later

"""Option alerts of servers, of trainings and of servers of models; the same as in module_utils/_edge/groups.py and replicas.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  alerts:
    description:
      - Thresholds of alerts, which are a C(PrometheusRule), or C(Rules) of Google's managed Prometheus, where the cluster serves the kind.
        Without it there are none, and V({}) has the defaults.
    type: dict
    suboptions:
      after:
        description: Time that a fault must last, as in Prometheus.
        type: str
        default: 5m
      free_ratio:
        description: Share of a claim below which it is nearly full.
        type: float
        default: 0.1
"""

    TRAININGS = r"""
options:
  alerts:
    description:
      - Thresholds of alerts, which are a C(PrometheusRule), or C(Rules) of Google's managed Prometheus, where the cluster serves the kind.
        Without it there are none, and V({}) has the defaults.
    type: dict
    suboptions:
      after:
        description: Time that a fault must last, as in Prometheus.
        type: str
        default: 5m
      free_ratio:
        description: Share of a claim below which it is nearly full.
        type: float
        default: 0.1
      waiting:
        description: Time that pods may wait for room, or in a queue.
        type: str
        default: 1h
      idle:
        description: Time that pods may run and use no processor.
        type: str
        default: 30m
"""

    REQUESTS = r"""
options:
  alerts:
    description:
      - Thresholds of alerts, which are a C(PrometheusRule), or C(Rules) of Google's managed Prometheus, where the cluster serves the kind.
        Without it there are none, and V({}) has the defaults. O(monitoring=none) makes none either.
    type: dict
    suboptions:
      after:
        description: Time that a fault must last, as in Prometheus.
        type: str
        default: 5m
      free_ratio:
        description: Share of a claim below which it is nearly full.
        type: float
        default: 0.1
      queue_time_ms:
        description: Mean milliseconds of a request in the queue, of one model.
        type: float
        default: 100.0
      failure_ratio:
        description: Share of the requests for one model that fail.
        type: float
        default: 0.01
"""
