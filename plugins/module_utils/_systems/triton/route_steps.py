# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the weights of a route in steps, and roll back if the servers that get more requests exceed the limits.

The servers are judged by their own statistics, which count each request of each replica. Requests that failed before they reached a model
are missing there, so a replica that is not ready is a failure, too.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Mapping, Sequence

from ..._core.clock import Clock, Deadline
from ..._core.errors import Failed, InvalidInput, MusterError, Unreachable, WaitTimeout
from ..._core.pool import Progress
from ..._core.waiting import fixed_interval, wait_for
from ..._kube.cluster import Cluster
from ..._manifests.meta import DEPLOYMENT
from .replicas import reached, ready_pods
from .route import Weights, between, shares

_PAUSE = 2.0
_ANSWERS_S = 30.0
Write = Callable[[Weights, "Weights | None"], None]
"""Writes weights, with those to roll back to, and waits until they are in effect."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """The steps of a change of weights, and its limits. ``steps``: percent of the change; ``interval``: seconds of each."""

    steps: Sequence[int] = ()
    interval: int = 60
    min_requests: int = 20
    max_failure_ratio: float = 0.01
    max_latency_ms: float | None = None

    def __post_init__(self) -> None:
        if list(self.steps) != sorted({*self.steps}) or any(not 0 < step < 100 for step in self.steps):
            raise InvalidInput(f"steps: {list(self.steps)} are not ascending percentages above 0 and below 100.")
        for name in ("interval", "min_requests"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name}: {getattr(self, name)} is less than 1.")
        if not 0 <= self.max_failure_ratio < 1:
            raise InvalidInput(f"max_failure_ratio: {self.max_failure_ratio} is not 0 or more and below 1.")


@dataclasses.dataclass(frozen=True)
class Counts:
    """The requests of replicas: succeeded ones, their nanoseconds, and failed ones."""

    good: int = 0
    nanoseconds: int = 0
    failed: int = 0

    def since(self, before: Counts) -> Counts:
        """Return the difference to an earlier count; a replica that has restarted counts from 0."""
        if self.good < before.good or self.failed < before.failed:
            return self
        return Counts(self.good - before.good, self.nanoseconds - before.nanoseconds, self.failed - before.failed)

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.good + other.good, self.nanoseconds + other.nanoseconds, self.failed + other.failed)


def counts_of(answer: Mapping[str, t.Any]) -> Counts:
    """The statistics of all models of one replica."""
    total = Counts()
    for model in answer.get("model_stats") or ():
        stats = model.get("inference_stats") or {}
        good, failed = stats.get("success") or {}, stats.get("fail") or {}
        total += Counts(int(good.get("count", 0)), int(good.get("ns", 0)), int(failed.get("count", 0)))
    return total


def wrong(name: str, seen: Counts, limits: Limits) -> str:
    """The reason why a server exceeds the limits; empty if it does not, or if there were too few requests."""
    asked = seen.good + seen.failed
    if asked < limits.min_requests:
        return ""
    if seen.failed > limits.max_failure_ratio * asked:
        return f"{seen.failed} of {asked} requests to {name} failed, and max_failure_ratio is {limits.max_failure_ratio:g}"
    mean = seen.nanoseconds / seen.good / 1e6
    if limits.max_latency_ms is not None and mean > limits.max_latency_ms:
        return f"{name} took {mean:.1f} ms in the mean, and max_latency_ms is {limits.max_latency_ms:g}"
    return ""


class Steps:
    """The change of a route from the weights BEFORE to the weights AFTER."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        limits: Limits,
        before: Weights,
        after: Weights,
        *,
        timeout: float,
        progress: t.Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._cluster, self._namespace, self._limits = cluster, namespace, limits
        self._timeout, self._progress, self._clock = timeout, progress, clock
        self._before, self._after = before, after
        old, new = shares(before), shares(after)
        self._growing = [name for name, share in new.items() if share > old.get(name, 0)]

    def walk(self, live: Weights, write: Write) -> None:
        """Take each step that the weights of LIVE have not reached; if one exceeds the limits, restore the former weights and raise."""
        ahead = [step for step in self._limits.steps if not self._is_behind(step, live)]
        self._counts()  # a server that cannot be judged fails before anything changes
        try:
            for step in ahead:
                write(between(self._before, self._after, step), self._before)
                self._judge(step)
        except MusterError as error:
            write(self._before, None)
            error.message += f" The weights are again {', '.join(f'{name}: {weight}' for name, weight in self._before.items())}."
            raise

    def _is_behind(self, step: int, live: Weights) -> bool:
        """Whether an interrupted run had passed the step."""
        then, now = shares(between(self._before, self._after, step)), shares(live)
        return all(then[name] < now.get(name, 0) - 0.001 for name in self._growing)

    def _counts(self) -> dict[str, dict[str, Counts]]:
        """Read server -> replica -> its counts."""
        found: dict[str, dict[str, Counts]] = {}
        for name in self._growing:
            found[name] = {}
            for pod in ready_pods(self._cluster, name, self._namespace):
                with reached(self._cluster, pod, timeout=_ANSWERS_S) as client:
                    found[name][pod.name] = counts_of(client.read("/v2/models/stats"))
        return found

    def _counts_if_ready(self) -> dict[str, dict[str, Counts]]:
        """Read the counts, and raise Failed, which ends a wait, for a server without replicas."""
        try:
            return self._counts()
        except Unreachable as error:
            if error.ref is None or (error.ref.api_version, error.ref.kind) != DEPLOYMENT:
                raise
            raise Failed(error.message, error.hint, ref=error.ref) from error

    def _judge(self, step: int) -> None:
        """Watch one step until its time is over and enough requests came."""
        limits, began, before = self._limits, self._clock.monotonic(), self._counts()

        def observe() -> tuple[None, str | None]:
            few = []
            for name, replicas in self._counts_if_ready().items():
                lost = [pod for pod in before[name] if pod not in replicas]
                if lost:
                    raise Failed(f"{lost[0]} of {name} is not ready any more.")
                seen = sum((now.since(before[name].get(pod, Counts())) for pod, now in replicas.items()), start=Counts())
                if why := wrong(name, seen, limits):
                    raise Failed(f"At {step} % of the way {why}.")
                if (asked := seen.good + seen.failed) < limits.min_requests:
                    few.append(f"{asked} of {limits.min_requests} requests to {name}")
            left = limits.interval - (self._clock.monotonic() - began)
            waits = few or ([f"{left:.0f} s left"] if left > 0 else [])
            return None, f"{step} %: {', '.join(waits)}" if waits else None

        try:
            wait_for(
                observe,
                goal=f"At {step} % of the way the servers that get more requests cannot be judged",
                deadline=Deadline(limits.interval + self._timeout, self._clock),
                pause=fixed_interval(min(_PAUSE, limits.interval / 4), self._clock),
                progress=Progress(self._progress, self._clock),
            )
        except WaitTimeout as error:
            error.hint = "Too few requests: send some, or lower min_requests."
            raise
