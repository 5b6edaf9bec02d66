# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the members of etcd themselves, through the API server's pod proxy.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from .._kube.engine import delete_objects
from .._kube.errors import MusterError
from .._kube.objects import Manifest, Ref
from .._kube.report import Report
from .._manifests.etcd import METRICS_PORT, EtcdCluster, MemberView, member_view, problems
from .._manifests.status import rank_of
from . import training
from .certificates import Leaf, secrets

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster
    from .run import Context

_TIMEOUT = 5.0


def selector(labels: t.Mapping[str, str]) -> str:
    """The label selector of the members' pods and claims."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def certificates(cluster: Cluster, etcd: EtcdCluster) -> list[Manifest]:
    """Secrets for what is to be encrypted, made once."""
    leaves = []
    if etcd.secures_peers:
        leaves.append(Leaf(f"{etcd.name}-peer-tls", etcd.peers, etcd.hosts))
    if etcd.client_tls:
        leaves.append(Leaf(f"{etcd.name}-server-tls", etcd.name, etcd.hosts))
        leaves.append(Leaf(f"{etcd.name}-client-tls", f"{etcd.name}-client"))
    return secrets(cluster, etcd.namespace, f"{etcd.name}-ca", leaves, etcd.labels) if leaves else []


def _view(cluster: Cluster, pod: Manifest) -> MemberView:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    rank = rank_of(pod)
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


def wait(ctx: Context, etcd: EtcdCluster, *, timeout: float) -> list[MemberView]:
    """Until every member is healthy, connected to every other one, and one of them leads."""
    cluster, labels = ctx.cluster, selector(etcd.labels)

    def look() -> tuple[list[MemberView], str | None]:
        pods = [
            p for p in cluster.list("v1", "Pod", etcd.namespace, labels) if not p["metadata"].get("deletionTimestamp")
        ]
        views = [_view(cluster, pod) for pod in pods]
        return views, "; ".join(problems(etcd, views)[:4]) or None

    goal = f"etcd {etcd.namespace}/{etcd.name} is not healthy"
    return training.follow(cluster, etcd.namespace, labels, look, goal=goal, timeout=timeout, progress=ctx.progress)


def drop_claims(ctx: Context, namespace: str, labels: t.Mapping[str, str]) -> Report:
    """The members' claims, which a StatefulSet makes and leaves."""
    kind = "PersistentVolumeClaim"
    found = ctx.cluster.list("v1", kind, namespace, selector(labels))
    refs = [Ref("v1", kind, claim["metadata"]["name"], namespace) for claim in found]
    return delete_objects(ctx.cluster, refs, check=ctx.check, delete_data=True)
