# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers in a cluster: their pods, their claims, and the wait for both."""

from __future__ import annotations

import typing as t

from . import watching
from .claims import Claims
from .objects import Manifest, Ref, selector_of

if t.TYPE_CHECKING:
    from .._core.pool import OnProgress
    from .._manifests.servers import Server
    from .cluster import Cluster

T = t.TypeVar("T")


def pods_of(cluster: Cluster, server: Server) -> list[Manifest]:
    """The pods, without those that are being deleted."""
    found = cluster.list("v1", "Pod", server.namespace, selector_of(server.labels))
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def stateful_set_of(server: Server) -> Ref:
    """The StatefulSet of the pods."""
    return Ref("apps/v1", "StatefulSet", server.name, server.namespace)


def claims_of(server: Server) -> Claims:
    """The claims of the pods. Their mark is named after the module: muster.ml/etcd-cluster."""
    return Claims(stateful_set_of(server), server.labels, f"muster.ml/{server.module.replace('_', '-')}")


def watch(
    cluster: Cluster,
    server: Server,
    observe: t.Callable[[Cluster], tuple[T, str | None]],
    *,
    goal: str,
    timeout: float,
    progress: OnProgress,
    hint: str | None = None,
) -> T:
    """Observe whenever a pod changes, until nothing is missing. GOAL completes the sentence that begins with the server."""
    changes = watching.Changes.of_pods(server.namespace, selector_of(server.labels))
    goal = f"{server} {goal}"
    return watching.watch_until(cluster, changes, observe, goal=goal, timeout=timeout, progress=progress, hint=hint)
