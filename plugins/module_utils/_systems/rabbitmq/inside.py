# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to the management API of a broker in a cluster, with the login from its Secret.

It uses a forwarded port: the API server's HTTP proxy removes the header Authorization, and a broker has no port outside of the cluster.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Mapping

from ..._core.clock import Clock
from ..._core.errors import NotFound
from ..._core.sensitive import Sensitive
from ..._kube import forward
from ..._kube.cluster import Cluster, Reads
from ..._kube.objects import Ref
from ..._kube.secret_text import needed_text
from .api import Address, Login, ManagementApi
from .manifests import MANAGEMENT_PORTS, PASSWORD, USERNAME, RabbitmqCluster, read_live

if t.TYPE_CHECKING:
    from ..._kube.tunnel import Tunnel

NEEDED = f"{USERNAME} and {PASSWORD}"
"""The keys that a Secret with a login must have."""
_TELLS_WHY = "Module rabbitmq_cluster with wait: true says why."


def connect_inside(params: Mapping[str, t.Any], clock: Clock) -> ManagementApi:
    """The management API of the broker in ``login_kubernetes``."""
    from ..._kube.client import connect

    where = params["login_kubernetes"]
    cluster = connect(where, clock)
    namespace = where["namespace"] or cluster.namespace
    ref = Ref("apps/v1", "StatefulSet", where["name"], namespace)
    live = cluster.get(ref)
    if live is None:
        raise NotFound(f"{ref} does not exist.", "Module rabbitmq_cluster makes it.", ref=ref)
    login = None
    if params["login_password"] is not None:
        login = Login(params["login_user"], Sensitive(params["login_password"]))
    timeouts = {key: params[key] for key in ("request_timeout", "startup_timeout")}
    return management(cluster, read_live(live), login, **timeouts)


def management(
    cluster: Cluster, broker: RabbitmqCluster, login: Login | None = None, *, request_timeout: float = 10.0,
    startup_timeout: float = 30.0,
) -> ManagementApi:  # fmt: skip
    """The management API of BROKER, by default as its administrator. The names in its certificate are those of its Service."""
    address = Address(
        host=broker.host,
        port=MANAGEMENT_PORTS[broker.tls],
        protocol="https" if broker.tls else "http",
        request_timeout=request_timeout,
        startup_timeout=startup_timeout,
        authority=authority(cluster, broker) if broker.tls else None,
        tunnel=functools.partial(_forwarded, cluster, broker),
    )
    return ManagementApi(address, login or administrator(cluster, broker), cluster.clock)


def administrator(cluster: Reads, broker: RabbitmqCluster) -> Login:
    """The login in the Secret of the administrator."""
    ref = Ref("v1", "Secret", broker.admin, broker.namespace)
    found = cluster.get(ref)
    if found is None:
        raise NotFound(f"{ref}, which has the login of the administrator, does not exist.", ref=ref)
    return Login(str(needed_text(found, USERNAME, NEEDED).reveal()), needed_text(found, PASSWORD, NEEDED))


def authority(cluster: Cluster, broker: RabbitmqCluster) -> str | None:
    """The CA certificate of the nodes (PEM)."""
    ref = Ref("v1", "Secret", broker.server_tls, broker.namespace)
    found = cluster.get(ref)
    return str(needed_text(found, "ca.crt", "ca.crt").reveal()) if found else None


def _forwarded(cluster: Cluster, broker: RabbitmqCluster) -> Tunnel:
    """A connection to a node, preferably to one that accepts connections."""
    # Pods are read by name, so that tasks need no permission to list them. A node that starts is tried, too: the client retries
    # in the meantime.
    pods = [Ref("v1", "Pod", f"{broker.name}-{number}", broker.namespace) for number in range(broker.replicas)]
    return forward.reach(cluster, pods, MANAGEMENT_PORTS[broker.tls], _TELLS_WHY, starting=True)
