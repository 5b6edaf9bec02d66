# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""The autoscaler of a Triton server, on the time that requests wait in the queue."""

from __future__ import annotations

import dataclasses

from ..._manifests import autoscaling

METRIC = "avg_time_queue_us"
"""The metric's name in NVIDIA's own chart for Triton; roles/prometheus_adapter has the rule that computes it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoscaling(autoscaling.Autoscaling):
    """The options of an autoscaler. ``queue_time_us``: the target value of the metric, on average over the replicas."""

    target = "queue_time_us"

    queue_time_us: int = 50_000
    metric: str = METRIC
