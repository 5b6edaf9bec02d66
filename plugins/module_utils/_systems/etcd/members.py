# SPDX-License-Identifier: GPL-3.0-or-later
"""Query the etcd members through the API server's pod proxy."""

from __future__ import annotations

import re
import typing as t

from ..._core.brief import listed
from ..._core.errors import Causes, Failed, MusterError, cause_of
from ..._core.pool import PARALLEL, run_all
from ..._kube import reasons, servers, storage
from ..._kube.certificates import Leaf, secrets
from ..._kube.cluster import Cluster
from ..._kube.made_once import MadeOnce
from ..._kube.objects import Manifest, Ref
from ..._kube.ready import stateful_set
from ..._kube.servers import claims_of
from ..._training.status import rank_of
from .manifests import METRICS_PORT, EtcdCluster, MemberView, member_view, problems, with_mutual_connections

_TIMEOUT = 5.0
# etcd's message to a member that starts without data under a name that was used before.
_LOST: Causes = (("lost data", re.compile(r"has already been bootstrapped")),)


def certificates(once: MadeOnce, etcd: EtcdCluster, *, in_use: bool) -> list[Manifest]:
    """Secrets for the connections with TLS, created once. ``in_use``: members run with them."""
    leaves = [Leaf(f"{etcd.name}-peer-tls", etcd.peers, etcd.hosts)]
    if etcd.client_tls:
        leaves.append(Leaf(f"{etcd.name}-server-tls", etcd.name, etcd.hosts))
        leaves.append(Leaf(f"{etcd.name}-client-tls", f"{etcd.name}-client"))
    return secrets(once, etcd.namespace, f"{etcd.name}-ca", leaves, etcd.labels, in_use=in_use)


def _refuse_lost(cluster: Cluster, etcd: EtcdCluster, pod: str) -> None:
    """Refuse to wait for a member with a new, empty volume, which would only fail again and again."""
    for previous in (False, True):
        try:
            log = cluster.logs(etcd.namespace, pod, tail_lines=50, previous=previous)
        except MusterError:
            continue
        if cause_of(log, _LOST):
            raise Failed(
                f"{etcd}: member {pod} has lost its data, {claims_of(etcd).of_pod(pod)} is new and empty. "
                "The other members list it and do not accept it as a new one.",
                ref=Ref("v1", "Pod", pod, etcd.namespace),
                hint="If the data are not needed after a training, remove the cluster with its data (state: absent, "
                "delete_data: true) and create it again; else restore the claim, or remove the member and add it with etcdctl.",
            )


def _view(cluster: Cluster, etcd: EtcdCluster, pod: Manifest) -> MemberView:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    rank = rank_of(pod)
    if rank.restarts and not rank.ready:
        _refuse_lost(cluster, etcd, name)
    if rank.phase == "Pending":
        unbound = storage.why_unbound(cluster, claims_of(etcd).of_pod(name)) if etcd.storage_size else ""
        return MemberView(name, error=unbound or rank.reason or rank.phase)
    if rank.phase != "Running" or rank.reason:
        return MemberView(name, error=rank.reason or rank.phase)
    try:
        status, body = cluster.proxy_get(namespace, name, METRICS_PORT, "/health", timeout=_TIMEOUT)
        if status != 200:
            return MemberView(name, error=f"/health answers {status}: {body.strip()[:200]}")
        status, metrics = cluster.proxy_get(namespace, name, METRICS_PORT, "/metrics", timeout=_TIMEOUT)
    except MusterError as exc:
        return MemberView(name, error=exc.message)
    return member_view(name, '"true"' in body, metrics if status == 200 else "")


def wait(cluster: Cluster, etcd: EtcdCluster, *, timeout: float, progress: t.Callable[[str], None]) -> list[MemberView]:
    """Wait until every member is healthy and connected to every other one, and one of them leads."""

    def observe_once(cluster: Cluster) -> tuple[list[MemberView], str | None]:
        pods = servers.pods_of(cluster, etcd)
        seen, failures = run_all(lambda pod: _view(cluster, etcd, pod), pods, parallel=PARALLEL)
        if failures:  # the error of one member, which may be temporary
            raise failures[0]
        views = with_mutual_connections(seen)
        return views, listed(_pending_reasons(cluster, etcd, views))

    return servers.watch(cluster, etcd, observe_once, goal="is not healthy", timeout=timeout, progress=progress)


def _pending_reasons(cluster: Cluster, etcd: EtcdCluster, views: list[MemberView]) -> list[str]:
    """Return the reasons why the cluster is not ready. After a change, healthy members do not suffice: all must be restarted with it."""
    missing = problems(etcd.replicas, views)
    members = cluster.get(servers.stateful_set_of(etcd))
    if not missing:
        missing.append(stateful_set(members).reason)
    elif members and len(views) < etcd.replicas:
        missing.append(reasons.why_no_pods(cluster, members))
    return list(filter(None, missing))
