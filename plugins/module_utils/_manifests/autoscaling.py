# SPDX-License-Identifier: GPL-3.0-or-later
"""The HorizontalPodAutoscaler of replicas, on a metric of their pods."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from .._core.errors import InvalidInput
from .meta import Manifest, check_count, compact, refuse_unknown_keys

AUTOSCALER = "autoscaling/v2", "HorizontalPodAutoscaler"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoscaling:
    """The options of an autoscaler. A subclass has the field TARGET, what the metric is to be on average over the replicas."""

    target: t.ClassVar[str]

    max_replicas: int
    min_replicas: int = 1
    metric: str = ""
    behavior: Mapping[str, t.Any] | None = None

    def __post_init__(self) -> None:
        if self.min_replicas < 1:
            raise InvalidInput(
                f"autoscaling.min_replicas: {self.min_replicas} is less than 1.",
                "Without a replica there is no queue to measure, so that nothing would ever start one again. "
                "To stop serving, leave out autoscaling and set replicas to 0.",
            )
        check_count(self.average, f"autoscaling.{self.target}", minimum=1)
        if self.max_replicas < self.min_replicas:
            raise InvalidInput(f"autoscaling.max_replicas: {self.max_replicas} is less than min_replicas, {self.min_replicas}.")
        if not self.metric:
            raise InvalidInput("autoscaling.metric: it is empty.", f"The rule of role prometheus_adapter makes {type(self).metric}.")
        refuse_unknown_keys(self.behavior or {}, ("scaleUp", "scaleDown"), "autoscaling.behavior")

    @property
    def average(self) -> int:
        """The value of the metric that is aimed at."""
        return int(getattr(self, self.target))

    @property
    def bounds(self) -> tuple[int, int]:
        """minReplicas and maxReplicas."""
        return self.min_replicas, self.max_replicas


def autoscaler(metadata: Manifest, deployment: tuple[str, str], wanted: Autoscaling) -> Manifest:
    """The autoscaler of the DEPLOYMENT (apiVersion and kind) of the same name."""
    target = {"type": "AverageValue", "averageValue": str(wanted.average)}
    spec = {
        "scaleTargetRef": {"apiVersion": deployment[0], "kind": deployment[1], "name": metadata["name"]},
        "minReplicas": wanted.min_replicas,
        "maxReplicas": wanted.max_replicas,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": wanted.metric}, "target": target}}],
        "behavior": dict(wanted.behavior or {}),
    }
    return {"apiVersion": AUTOSCALER[0], "kind": AUTOSCALER[1], "metadata": metadata, "spec": compact(spec)}
