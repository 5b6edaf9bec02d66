# SPDX-License-Identifier: GPL-3.0-or-later
"""Query the NATS servers through the API server's pod proxy; what the doctor says of their routes."""

from __future__ import annotations

import json
import typing as t

from ..._core.brief import listed
from ..._core.clock import Deadline
from ..._core.conditions import condition
from ..._core.errors import MusterError, Unreachable
from ..._core.metrics import Figures, named, samples_of_json
from ..._core.pool import PARALLEL, run_all_or_raise
from ..._doctor.findings import Finding
from ..._doctor.reading import Snapshot
from ..._kube.cluster import Cluster
from ..._kube.objects import STATEFUL_SET, Manifest, Ref, group_kind, labels_of, ref_of
from ..._kube.servers import pods_of, watch
from ..._manifests.pods import PodSettings
from ..._training.status import rank_of
from .manifests import CLUSTER_PORT, MONITOR_PORT, NatsCluster, ServerView, advice, is_stale, missing, problems

T = t.TypeVar("T")
Observe: t.TypeAlias = "t.Callable[[Cluster], tuple[T, str | None]]"
_TIMEOUT, _SETTLED = 5.0, 30.0
"""Seconds for an answer; and that a server has been ready for, in which the others connect to it."""
FIGURES = Figures(
    prefix="nats_",
    paths={"/varz": lambda text: samples_of_json(text, "nats_")},
    counts={name: named(f"nats_{name}") for name in ("connections", "in_msgs", "out_msgs", "slow_consumers")},
)
OPERATOR_HINT = (
    "Is nats-operator running and watching this namespace? After the loss of a pod, nats-operator 0.8.3 may wait forever; "
    "then restart it: delete its pod."
)


def views(cluster: Cluster, servers: list[Manifest]) -> list[ServerView]:
    """Query the reports of all servers in parallel."""
    return run_all_or_raise(lambda pod: _view(cluster, pod), servers, parallel=PARALLEL)


def _view(cluster: Cluster, pod: Manifest) -> ServerView:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    pending_reason = _pending_reason(pod)
    if pending_reason:
        return ServerView(name, None, pending_reason)
    try:
        status, body = cluster.proxy_get(namespace, name, MONITOR_PORT, "/varz", timeout=_TIMEOUT)
    except Unreachable:
        # The API server listed the pods a moment ago, so it is the server that does not respond.
        return ServerView(name, None, "does not answer /varz")
    except MusterError as exc:
        return ServerView(name, None, exc.message)
    if status != 200:
        return ServerView(name, None, f"/varz answers {status}: {body.strip()[:200]}")
    try:
        return ServerView(name, json.loads(body))
    except ValueError:
        return ServerView(name, None, f"/varz answers no JSON: {body.strip()[:80]}")


def _pending_reason(pod: Manifest) -> str | None:
    """Return the reason why a server does not run; None if it does."""
    rank = rank_of(pod)
    return None if rank.phase == "Running" and not rank.reason else rank.reason or rank.phase


def wait_for_pods(cluster: Cluster, nats: NatsCluster, *, timeout: float, progress: t.Callable[[str], None]) -> None:
    """Wait until the pods of all servers run, without querying the servers."""

    def observe_once(cluster: Cluster) -> tuple[None, str | None]:
        found = {pod["metadata"]["name"]: _pending_reason(pod) for pod in pods_of(cluster, nats)}
        pending = [f"{name}: {reason}" for name, reason in found.items() if reason]
        running = len(found) - len(pending)
        if running == len(found) == nats.replicas:
            return None, None
        return None, "; ".join([f"{running} of {nats.replicas} servers run", *pending[:3]])

    _watch(cluster, nats, observe_once, goal="does not run", timeout=timeout, progress=progress)


def wait(cluster: Cluster, nats: NatsCluster, *, timeout: float, progress: t.Callable[[str], None]) -> list[ServerView]:
    """Wait until every server has a route to every other one and max_payload is in force."""

    def observe_once(cluster: Cluster) -> tuple[list[ServerView], str | None]:
        found = views(cluster, pods_of(cluster, nats))
        return found, missing(nats, found)

    return _watch(cluster, nats, observe_once, goal="is not as desired", timeout=timeout, progress=progress)


def _watch(cluster: Cluster, nats: NatsCluster, observe: Observe[T], *, goal: str, timeout: float, progress: t.Callable[[str], None]) -> T:
    """Observe whenever a pod of a server changes, until nothing is missing."""
    hint = " ".join(filter(None, [OPERATOR_HINT, advice(nats)])) if nats.backend == "operator" else None
    return watch(cluster, nats, observe, goal=goal, timeout=timeout, progress=progress, hint=hint)


def replace_outdated(cluster: Cluster, nats: NatsCluster, *, timeout: float, progress: t.Callable[[str], None]) -> list[ServerView]:
    """Replace, one by one, the servers that nats-operator leaves running with an older configuration; then wait.

    The operator rewrites the configuration of a changed NatsCluster, but no server reads it again; and it never changes the resources of
    a running pod.

    Pods are deleted without grace period: if a pod ends before nats-operator 0.8.3 has seen its deletion, the operator waits for a pod that
    no longer exists (its deletePod), and never reconciles the NatsCluster again.
    """
    deadline, replaced = Deadline(timeout, cluster.clock), set[str]()
    outdated, said = _outdated(cluster, nats, replaced, deadline)
    while outdated:
        name, uid = outdated["name"], outdated["uid"]
        progress(f"replaces server {name}, which runs with an older configuration")
        bounded = cluster.within(deadline.answer_timeout)
        bounded.delete(Ref("v1", "Pod", name, nats.namespace), dry_run=False, uid=uid, grace_period_seconds=0)
        replaced.add(uid)
        _wait_for_successor(cluster, nats, replaced, timeout=deadline.answer_timeout, progress=progress)
        outdated, said = _outdated(cluster, nats, replaced, deadline)
    if not missing(nats, said):
        return said
    return wait(cluster, nats, timeout=deadline.answer_timeout, progress=progress)


def _outdated(
    cluster: Cluster, nats: NatsCluster, replaced: t.Container[str], deadline: Deadline
) -> tuple[Manifest | None, list[ServerView]]:
    """The metadata of the first server with an older configuration that was not replaced yet, and the reports of all servers."""
    asked = cluster.within(deadline.answer_timeout)
    found = pods_of(asked, nats)
    said = views(asked, found)
    for pod, view in zip(found, said, strict=True):
        if is_stale(nats, pod, (view.varz or {}).get("max_payload")) and pod["metadata"]["uid"] not in replaced:
            return pod["metadata"], said
    return None, said


def _wait_for_successor(
    cluster: Cluster, nats: NatsCluster, replaced: set[str], *, timeout: float, progress: t.Callable[[str], None]
) -> None:
    """Wait until the replaced server has a successor that all others know; their max_payload does not matter yet."""

    def observe_once(cluster: Cluster) -> tuple[None, str | None]:
        found = [pod for pod in pods_of(cluster, nats) if pod["metadata"]["uid"] not in replaced]
        return None, missing(nats, views(cluster, found), payload=False)

    _watch(cluster, nats, observe_once, goal="did not get its server back", timeout=timeout, progress=progress)


def faults(seen: Snapshot) -> t.Iterator[Finding]:
    """Ask the servers of each cluster by their monitoring port. Why a server is not ready is a finding about its pod."""
    for item in (*seen.of("StatefulSet"), *seen.of("NatsCluster")):
        spec, by_operator = item["spec"], group_kind(item) != STATEFUL_SET
        size, name = int(spec.get("size" if by_operator else "replicas") or 0), item["metadata"]["name"]
        nats = NatsCluster(name=name, namespace=seen.namespace, pod=PodSettings(image=""), replicas=size)
        if not by_operator and not nats.labels.items() <= labels_of(spec["template"]).items():
            continue
        pods = [pod for pod in seen.pods_of(nats.labels) if not pod["metadata"].get("deletionTimestamp")]
        if pods and all(_is_settled(seen, pod) for pod in pods):
            yield from _judged(seen, item, nats, pods)


def _judged(seen: Snapshot, item: Manifest, nats: NatsCluster, pods: list[Manifest]) -> t.Iterator[Finding]:
    found = views(seen.cluster, pods)
    silent = [f"NATS server {view.pod}: {view.error}" for view in found if view.varz is None]
    seen.unread += silent
    wrong = listed(problems(nats, found, payload=False))
    if wrong and not silent:
        next_step = f"Port {CLUSTER_PORT} must be open between the servers (NetworkPolicy), and their log tells what they try."
        hint = OPERATOR_HINT if group_kind(item) != STATEFUL_SET else ""
        yield Finding("error", str(ref_of(item)), "NATS servers are not connected", wrong, f"{next_step} {hint}".strip())


def _is_settled(seen: Snapshot, pod: Manifest) -> bool:
    ready = condition(pod, "Ready")
    return ready.get("status") == "True" and seen.age(ready.get("lastTransitionTime")) > _SETTLED
