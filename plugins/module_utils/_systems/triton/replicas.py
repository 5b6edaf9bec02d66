# SPDX-License-Identifier: GPL-3.0-or-later
"""The replicas of a Triton server in a cluster, each reached by a forwarded port: a Service would select any one of them."""

from __future__ import annotations

import contextlib
import typing as t
from collections.abc import Iterator

from ..._core.conditions import is_true
from ..._core.errors import NotFound, Unreachable
from ..._kube import forward
from ..._kube.cluster import Cluster
from ..._kube.objects import Ref, selector_of
from ..._manifests.meta import DEPLOYMENT
from ..._manifests.replicas import Replicas
from ..._manifests.servers import Server
from .client import Client
from .server import PORTS, TritonServer, labels_of


def pods_ready_now(cluster: Cluster, name: str, namespace: str, kind: type[Server] = TritonServer, unready: bool = False) -> list[Ref]:
    """The pods of the server of a KIND that are ready, with UNREADY all, and stay."""
    found = cluster.list("v1", "Pod", namespace, selector_of(labels_of(name, kind.app)))
    taken = [one["metadata"] for one in found if unready or is_true(one, "Ready")]
    return [Ref("v1", "Pod", pod, namespace) for pod in sorted(one["name"] for one in taken if not one.get("deletionTimestamp"))]


def ready_pods(cluster: Cluster, name: str, namespace: str, kind: type[Replicas] = TritonServer) -> list[Ref]:
    """The ready pods of the server of a KIND; raise Unreachable if there is none."""
    ready = pods_ready_now(cluster, name, namespace, kind)
    if ready:
        return ready
    deployment = Ref(*DEPLOYMENT, name, namespace)
    if cluster.get(deployment) is None:
        raise NotFound(f"{deployment} does not exist.", f"Module {kind.module} makes it.", ref=deployment)
    raise Unreachable(f"No pod of {deployment} is ready.", _tells_why(kind), ref=deployment)


def _tells_why(kind: type[Server]) -> str:
    return f"Module {kind.module} with wait: true says why."


T = t.TypeVar("T")
Speaking = t.Callable[[str, str], contextlib.AbstractContextManager[T]]
"""Creates the client of a server from its URL and its name in messages."""


def reached(cluster: Cluster, pod: Ref, *, timeout: float) -> contextlib.AbstractContextManager[Client]:
    """A client of one replica, for the time of the with block."""
    return reached_by(cluster, pod, PORTS["http"], lambda url, who: Client(url, who, timeout=timeout))


@contextlib.contextmanager
def reached_by(
    cluster: Cluster, pod: Ref, port: int, speaking: Speaking[T], kind: type[Server] = TritonServer, within: float | None = None,
    *, unready: bool = False,
) -> Iterator[T]:  # fmt: skip
    """Return the client that SPEAKING creates for one replica of a KIND, at PORT, for the time of the with block, or WITHIN seconds.

    UNREADY: also for one that runs and is not ready.
    """
    way = forward.forwarded(cluster, pod, port, _tells_why(kind), within, starting=unready)
    with way as open_way, speaking(f"http://{open_way.address}", f"{kind.title} in {pod}") as client:
        try:
            yield client
        except Unreachable as exc:
            raise open_way.trouble or exc from exc
