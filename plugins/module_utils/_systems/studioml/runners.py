# SPDX-License-Identifier: GPL-3.0-or-later
"""Runners in the cluster: wait until they are healthy, until they are drained, or until old ones are gone."""

from __future__ import annotations

import dataclasses
import typing as t

from ..._core.brief import listed
from ..._core.errors import MusterError, NotFound
from ..._core.pool import PARALLEL, OnProgress, run_all_or_raise
from ..._kube.cluster import Cluster
from ..._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of, selector_of
from ..._kube.queued import why_queued
from ..._kube.servers import pods_of, watch
from ..._training.status import rank_of
from .key_secrets import has_public_key
from .runner import DRAINED, METRICS_PORT, Runner
from .runner_metrics import RunnerView, view

T = t.TypeVar("T")

_TIMEOUT = 5.0
_LINES = 200
"""The lines of the log that are read. An idle runner writes one every half minute."""


def deployment_of(runner: Runner) -> Ref:
    """The Deployment of a runner."""
    return Ref("apps/v1", "Deployment", runner.name, runner.namespace)


def check_secrets(cluster: Cluster, runner: Runner) -> list[str]:
    """Warnings about the Secrets with public keys, which must exist: no pod could start without them."""
    warnings = []
    for name, content in ((runner.signing_secret, "signing_public_keys"), (runner.response_secret, "response_public_keys")):
        ref = Ref("v1", "Secret", name, runner.namespace)
        found = cluster.get(ref)
        if found is None:
            raise NotFound(
                f"{ref} does not exist, and the runner mounts it.",
                f"Module training_secret makes it with content: {content}, without a key, too.",
                ref=ref,
            )
        if name == runner.signing_secret and not has_public_key(found):
            warnings.append(f"{ref} has no public key yet, so the runner refuses every request. public_keys of training_secret adds them.")
    return warnings


def is_ours(cluster: Cluster, runner: Runner, owner: str) -> bool:
    """Whether this owner has a Deployment."""
    live = cluster.get(deployment_of(runner))
    return live is not None and labels_of(live).get(LABEL_OWNER) == owner


def is_drained(cluster: Cluster, runner: Runner) -> bool:
    """Whether the runners are not to take work."""
    live = cluster.get(Ref("v1", "ConfigMap", runner.name, runner.namespace))
    return ((live or {}).get("data") or {}).get("STATE") == DRAINED


def is_disruptive(cluster: Cluster, runner: Runner, is_changed: t.Callable[[int], bool]) -> bool:
    """Whether pods would be stopped. ``is_changed``: whether the Deployment differs, with the present number of pods."""
    live = cluster.get(deployment_of(runner))
    if live is None:
        return False
    replicas = int(live["spec"].get("replicas", 1))
    return replicas > runner.replicas or is_changed(replicas)


def wait_healthy(cluster: Cluster, runner: Runner, *, timeout: float, on_progress: OnProgress) -> list[RunnerView]:
    """Wait until each runner has listed the broker's queues. One that finds none is healthy."""

    first: dict[str, float] = {}

    def observe(bounded: Cluster) -> tuple[list[RunnerView], str | None]:
        views = [_recovered(one, first) for one in _views(bounded, runner, pods_of(bounded, runner))]
        missing = [f"{one.pod}: {one.trouble}" for one in views if one.trouble]
        if len(views) != runner.replicas:
            missing.insert(0, f"{len(views)} of {runner.replicas} runners have a pod")
        return views, listed(missing)

    return watch(cluster, runner, observe, goal="is not healthy", timeout=timeout, progress=on_progress)


def _recovered(one: RunnerView, first: dict[str, float]) -> RunnerView:
    """Return the view without its trouble if the pod has polled since it was first seen: the problem in the log is then over."""
    since = first.setdefault(one.pod, one.checked)
    return dataclasses.replace(one, trouble="") if one.checked > since else one


def wait_drained(cluster: Cluster, runner: Runner, before: t.Mapping[str, float], *, timeout: float, on_progress: OnProgress) -> None:
    """Wait until no runner takes or runs an experiment. ``before``: the number of skipped polls of each before."""

    def observe(bounded: Cluster) -> tuple[None, str | None]:
        return None, listed([why for one in _views(bounded, runner, _running(pods_of(bounded, runner))) if (why := _busy(one, before))])

    hint = (
        "Nothing was stopped. The runners take no new experiments until this task succeeds: run it again to go on waiting. "
        "drain: false stops them, and their experiments are run again from the start."
    )
    goal = "still runs experiments"
    watch(cluster, runner, observe, goal=goal, timeout=timeout, progress=on_progress, hint=hint)


def _busy(one: RunnerView, before: t.Mapping[str, float]) -> str:
    if one.experiments:
        return f"{one.pod}: runs {', '.join(one.experiments)}"
    if one.ignored > before.get(one.pod, 0.0):
        return ""
    return f"{one.pod}: {'has not noticed yet that it is to drain' if one.answered else one.trouble}"


def ignored(cluster: Cluster, runner: Runner) -> dict[str, float]:
    """Return the number of polls that each pod has skipped so far because it was drained."""
    return {one.pod: one.ignored for one in _views(cluster, runner, _running(pods_of(cluster, runner)))}


def wait_replaced(cluster: Cluster, runner: Runner, *, timeout: float, on_progress: OnProgress) -> None:
    """Wait until no pod of an earlier Deployment is left."""

    def observe(bounded: Cluster) -> tuple[None, str | None]:
        live = bounded.get(deployment_of(runner)) or {"metadata": {}}
        pods = bounded.list("v1", "Pod", runner.namespace, selector_of(runner.labels))
        leaving = [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")]
        return None, listed([*_old(live), *(f"{pod}: is being deleted" for pod in leaving)])

    watch(cluster, runner, observe, goal="still has old pods", timeout=timeout, progress=on_progress)


def _old(live: Manifest) -> list[str]:
    status, spec = live.get("status") or {}, live.get("spec") or {}
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        return ["the change of the Deployment was not noticed yet"]
    number = int(status.get("replicas") or 0)
    old = max(number - int(status.get("updatedReplicas") or 0), number - int(spec.get("replicas") or 0))
    return [f"{old} old pods are still there"] if old > 0 else []


def _running(pods: list[Manifest]) -> list[Manifest]:
    """Return the pods in which an experiment may run: one that cannot start has none."""
    ranks = [(pod, rank_of(pod)) for pod in pods]
    return [pod for pod, rank in ranks if rank.phase == "Running" and not rank.stuck]


def _views(cluster: Cluster, runner: Runner, pods: list[Manifest]) -> list[RunnerView]:
    return run_all_or_raise(lambda pod: _view(cluster, runner, pod), pods, parallel=PARALLEL)


def _view(cluster: Cluster, runner: Runner, pod: Manifest) -> RunnerView:
    name, rank = pod["metadata"]["name"], rank_of(pod)
    if rank.phase != "Running" or rank.reason:
        return RunnerView(name, trouble=why_queued(cluster, pod) or rank.reason or rank.phase, answered=False)
    try:
        status, metrics = cluster.proxy_get(runner.namespace, name, METRICS_PORT, "/metrics", timeout=_TIMEOUT)
        if status != 200:
            return RunnerView(name, trouble=f"its metrics answer {status}", answered=False)
        return view(name, metrics, cluster.logs(runner.namespace, name, tail_lines=_LINES))
    except MusterError as error:
        return RunnerView(name, trouble=error.message, answered=False)
