# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""The HorizontalPodAutoscaler of a Triton server, on the time that requests wait in the queue."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._kube.replicas import AUTOSCALER
from ..._manifests.meta import Manifest, check_count, compact, refuse_unknown_keys

METRIC = "avg_time_queue_us"
"""The metric's name in NVIDIA's own chart for Triton; roles/prometheus_adapter has the rule that computes it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoscaling:
    """The options of an autoscaler. ``queue_time_us``: the target value of the metric, on average over the replicas."""

    max_replicas: int
    min_replicas: int = 1
    queue_time_us: int = 50_000
    metric: str = METRIC
    behavior: Mapping[str, t.Any] | None = None

    def __post_init__(self) -> None:
        if self.min_replicas < 1:
            raise InvalidInput(
                f"autoscaling.min_replicas: {self.min_replicas} is less than 1.",
                "Without a replica there is no queue to measure, so that nothing would ever start one again. "
                "To stop serving, leave out autoscaling and set replicas to 0.",
            )
        check_count(self.queue_time_us, "autoscaling.queue_time_us", minimum=1)
        if self.max_replicas < self.min_replicas:
            raise InvalidInput(f"autoscaling.max_replicas: {self.max_replicas} is less than min_replicas, {self.min_replicas}.")
        if not self.metric:
            raise InvalidInput("autoscaling.metric: it is empty.", f"The rule of role prometheus_adapter makes {METRIC}.")
        refuse_unknown_keys(self.behavior or {}, ("scaleUp", "scaleDown"), "autoscaling.behavior")

    @property
    def bounds(self) -> tuple[int, int]:
        """minReplicas and maxReplicas."""
        return self.min_replicas, self.max_replicas


def autoscaler(metadata: Manifest, deployment: tuple[str, str], wanted: Autoscaling) -> Manifest:
    """The autoscaler of the DEPLOYMENT (apiVersion and kind) of the same name."""
    target = {"type": "AverageValue", "averageValue": str(wanted.queue_time_us)}
    spec = {
        "scaleTargetRef": {"apiVersion": deployment[0], "kind": deployment[1], "name": metadata["name"]},
        "minReplicas": wanted.min_replicas,
        "maxReplicas": wanted.max_replicas,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": wanted.metric}, "target": target}}],
        "behavior": dict(wanted.behavior or {}),
    }
    return {"apiVersion": AUTOSCALER[0], "kind": AUTOSCALER[1], "metadata": metadata, "spec": compact(spec)}
