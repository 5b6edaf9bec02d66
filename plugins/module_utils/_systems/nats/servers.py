# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the NATS servers themselves, through the API server's pod proxy.

Private to the collection.
"""

from __future__ import annotations

import json
import typing as t

from ..._core.brief import listed
from ..._core.clock import Deadline
from ..._core.errors import MusterError
from ..._core.pool import PARALLEL, run_all_or_raise
from ..._kube import watching
from ..._kube.objects import Manifest, Ref
from ..._training.status import rank_of
from .manifests import MONITOR_PORT, NatsCluster, ServerView, is_stale, problems

if t.TYPE_CHECKING:
    from ..._edge.run import Context
    from ..._kube.cluster import Cluster

_TIMEOUT = 5.0


def selector(nats: NatsCluster) -> str:
    """The label selector of the servers' pods."""
    return ",".join(f"{key}={value}" for key, value in sorted(nats.labels.items()))


def pods(cluster: Cluster, nats: NatsCluster) -> list[Manifest]:
    """The servers' pods, without those that are on their way out."""
    found = cluster.list("v1", "Pod", nats.namespace, selector(nats))
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def views(cluster: Cluster, servers: list[Manifest]) -> list[ServerView]:
    """What each server says about itself, asked side by side."""
    return run_all_or_raise(lambda pod: _view(cluster, pod), servers, parallel=PARALLEL)


def _view(cluster: Cluster, pod: Manifest) -> ServerView:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    rank = rank_of(pod)
    if rank.phase != "Running" or rank.reason:
        return ServerView(name, None, None, rank.reason or rank.phase)
    answers: list[dict[str, t.Any]] = []
    for path in ("/varz", "/routez"):
        try:
            status, body = cluster.proxy_get(namespace, name, MONITOR_PORT, path, timeout=_TIMEOUT)
        except MusterError as exc:
            return ServerView(name, None, None, exc.message)
        if status != 200:
            return ServerView(name, None, None, f"{path} answers {status}: {body.strip()[:200]}")
        try:
            answers.append(json.loads(body))
        except ValueError:
            return ServerView(name, None, None, f"{path} answers no JSON: {body.strip()[:80]}")
    return ServerView(name, answers[0], answers[1])


def wait(ctx: Context, nats: NatsCluster, *, timeout: float) -> list[ServerView]:
    """Until every server has a route to every other one and max_payload is in force."""

    def observe_once(cluster: Cluster) -> tuple[list[ServerView], str | None]:
        found = views(cluster, pods(cluster, nats))
        return found, listed(problems(nats, found))

    return watching.watch_until(
        ctx.cluster,
        watching.Changes.of_pods(nats.namespace, selector(nats)),
        observe_once,
        goal=f"NATS cluster {nats.namespace}/{nats.name} is not as wanted",
        timeout=timeout,
        progress=ctx.progress,
        hint="Is nats-operator running and watching this namespace?" if nats.backend == "operator" else None,
    )


def replace_outdated(ctx: Context, nats: NatsCluster, *, timeout: float) -> list[ServerView]:
    """Replace, one by one, the servers that nats-operator leaves running with an older configuration; then wait.

    The operator rewrites the configuration of a changed NatsCluster, but no server reads it again; and it never gives
    a running pod other resources.
    """
    deadline, replaced = Deadline(timeout), set[str]()
    outdated, said = _outdated(ctx.cluster, nats, replaced, deadline)
    while outdated:
        name, uid = outdated["name"], outdated["uid"]
        ctx.progress(f"replaces server {name}, which runs with an older configuration")
        ctx.cluster.delete(Ref("v1", "Pod", name, nats.namespace), dry_run=False, uid=uid)
        replaced.add(uid)
        _wait_for_successor(ctx, nats, replaced, timeout=deadline.answer_timeout)
        outdated, said = _outdated(ctx.cluster, nats, replaced, deadline)
    return wait(ctx, nats, timeout=deadline.answer_timeout) if problems(nats, said) else said


def _outdated(
    cluster: Cluster, nats: NatsCluster, replaced: t.Container[str], deadline: Deadline
) -> tuple[Manifest | None, list[ServerView]]:
    """The metadata of the first server with an older configuration that was not replaced already, and what all servers say."""
    asked = cluster.within(deadline.answer_timeout)
    found = pods(asked, nats)
    said = views(asked, found)
    for pod, view in zip(found, said, strict=True):
        if is_stale(nats, pod, (view.varz or {}).get("max_payload")) and pod["metadata"]["uid"] not in replaced:
            return pod["metadata"], said
    return None, said


def _wait_for_successor(ctx: Context, nats: NatsCluster, replaced: set[str], *, timeout: float) -> None:
    """Until the replaced server has a successor that all others know; their max_payload does not matter yet."""

    def observe_once(cluster: Cluster) -> tuple[None, str | None]:
        found = [pod for pod in pods(cluster, nats) if pod["metadata"]["uid"] not in replaced]
        return None, listed(problems(nats, views(cluster, found), payload=False))

    goal = f"NATS cluster {nats.namespace}/{nats.name} did not get its server back"
    changes = watching.Changes.of_pods(nats.namespace, selector(nats))
    watching.watch_until(ctx.cluster, changes, observe_once, goal=goal, timeout=timeout, progress=ctx.progress)
