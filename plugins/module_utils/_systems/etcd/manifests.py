# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd cluster as a StatefulSet, for the rendezvous of torchrun and other clients that need a small consistent store."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._core.metrics import samples
from ..._manifests import servers
from ..._manifests.meta import STATEFULSET_NAME_MAX, Manifest, check_name, pinned_tag, quantity
from ..._manifests.pods import PodSettings, field_env

CLIENT_PORT = 2379
PEER_PORT = 2380
METRICS_PORT = 2381
PORTS = servers.Ports(
    clients={"client": CLIENT_PORT}, peers={"peer": PEER_PORT}, metrics={"metrics": METRICS_PORT}, headless=("client", "peer")
)

_DATA = "/var/lib/etcd"
_TLS = "/etc/etcd-tls"
_VERSION = re.compile(r"v?(\d+)\.(\d+)(\.|$|-)")
# Metrics with the interesting value in a label, and the name of that label.
_LABEL_OF = {"etcd_network_active_peers": "Remote", "etcd_server_id": "server_id", "etcd_server_version": "server_version"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class EtcdCluster(servers.ServerGroup):
    """SIZE members that know each other from the start."""

    module, title, app, peers_end = "etcd_cluster", "etcd", "etcd", "peers"

    enable_v2: bool = False
    client_tls: bool = True
    storage_size: str | None = "1Gi"

    @property
    def client_scheme(self) -> str:
        """http or https."""
        return "https" if self.client_tls else "http"

    @property
    def url(self) -> str:
        """The address for clients in the same namespace."""
        return f"{self.client_scheme}://{self.name}:{CLIENT_PORT}"


def manifests(cluster: EtcdCluster) -> list[Manifest]:
    """The objects of CLUSTER, without the Secrets of its certificates."""
    check(cluster)
    objects = servers.around(cluster, PORTS, budget=cluster.replicas > 1)
    # The members start together, because none is ready without a majority.
    env = [field_env("POD_NAME", "metadata.name")]
    return [*objects, servers.stateful_set(cluster, _member_pod(cluster), "etcd", env, hashed=arguments(cluster))]


def check(cluster: EtcdCluster) -> None:
    """Refuse options that only a member would refuse otherwise, in its log."""
    check_name(cluster.name, "name", limit=STATEFULSET_NAME_MAX - len("-client-tls"), service=True)
    if cluster.replicas not in (1, 3, 5):
        raise InvalidInput(f"replicas: {cluster.replicas} members cannot be.", "Choose 1, 3 or 5: after a loss a majority must be left.")
    if cluster.storage_size is None and cluster.replicas > 1:
        raise InvalidInput("storage_size: missing.", "A member that lost its data cannot come back to a cluster of more than one.")
    if cluster.storage_size is not None:
        quantity(cluster.storage_size, "storage_size")
    _check_image(cluster)


def _check_image(cluster: EtcdCluster) -> None:
    tag = pinned_tag(cluster.pod.image, "Give it a version, such as quay.io/coreos/etcd:v3.5.35, or a digest.")
    found = _VERSION.match(tag)
    if cluster.enable_v2 and found and (int(found[1]), int(found[2])) >= (3, 6):
        raise InvalidInput(
            f"enable_v2: etcd {tag} has no v2 API any more, 3.5 was the last that has.",
            "Use an image of 3.5 for torchrun's backends etcd and etcd-v2, or its backend c10d, which needs no etcd.",
        )


def initial_cluster(cluster: EtcdCluster) -> str:
    """Names and addresses of all members, which etcd reads only at its first start."""
    return ",".join(f"{cluster.name}-{i}=https://{cluster.name}-{i}.{cluster.domain}:{PEER_PORT}" for i in range(cluster.replicas))


def arguments(cluster: EtcdCluster) -> list[str]:
    """The arguments, the same for every member, which takes its own name from the environment."""
    own = f"$(POD_NAME).{cluster.domain}"
    args = [
        "--name=$(POD_NAME)",
        f"--data-dir={_DATA}/data",
        f"--listen-client-urls={cluster.client_scheme}://0.0.0.0:{CLIENT_PORT}",
        f"--advertise-client-urls={cluster.client_scheme}://{own}:{CLIENT_PORT}",
        f"--listen-peer-urls=https://0.0.0.0:{PEER_PORT}",
        f"--initial-advertise-peer-urls=https://{own}:{PEER_PORT}",
        # Health and metrics need no certificate, because the kubelet and the API server's proxy have none.
        f"--listen-metrics-urls=http://0.0.0.0:{METRICS_PORT}",
        f"--initial-cluster={initial_cluster(cluster)}",
        f"--initial-cluster-token={cluster.namespace}.{cluster.name}",
        "--initial-cluster-state=new",
        "--auto-compaction-retention=1h",
    ]
    if cluster.enable_v2:
        args.append("--enable-v2=true")
    return args + _tls_arguments(cluster)


def _tls_arguments(cluster: EtcdCluster) -> list[str]:
    args = [
        f"--peer-cert-file={_TLS}/peer/tls.crt",
        f"--peer-key-file={_TLS}/peer/tls.key",
        f"--peer-trusted-ca-file={_TLS}/peer/ca.crt",
        "--peer-client-cert-auth=true",
        # Client certificates come from the same authority, and must not be accepted from members.
        f"--peer-cert-allowed-cn={cluster.peers}",
        # A pod's address changes, and its reverse lookup may lag behind; only the name above is checked.
        "--experimental-peer-skip-client-san-verification=true",
    ]
    if cluster.client_tls:
        args += [
            f"--cert-file={_TLS}/server/tls.crt",
            f"--key-file={_TLS}/server/tls.key",
            f"--trusted-ca-file={_TLS}/server/ca.crt",
            "--client-cert-auth=true",
        ]
    return args


def _member_pod(cluster: EtcdCluster) -> PodSettings:
    alive = {"httpGet": {"path": "/health?serializable=true", "port": METRICS_PORT}}
    # Without a leader a member serves no client, but a restart would not elect one.
    serves = {"httpGet": {"path": "/health", "port": METRICS_PORT}}
    secured = ["peer", *(["server"] if cluster.client_tls else [])]
    volumes = [{"name": f"{n}-tls", "secret": {"secretName": f"{cluster.name}-{n}-tls"}} for n in secured]
    if cluster.storage_size is None:
        volumes.append({"name": "data", "emptyDir": {}})
    mounts = [{"name": f"{n}-tls", "mountPath": f"{_TLS}/{n}", "readOnly": True} for n in secured]
    pod = servers.secured(cluster.pod)
    return dataclasses.replace(
        pod,
        # The published image has no entrypoint.
        command=("/usr/local/bin/etcd",),
        args=tuple(arguments(cluster)),
        ports=servers.container_ports({**PORTS.clients, **PORTS.peers, **PORTS.metrics}),
        volumes=(*pod.volumes, *volumes),
        volume_mounts=(*pod.volume_mounts, {"name": "data", "mountPath": _DATA}, *mounts),
        startup_probe={**alive, "periodSeconds": 2, "failureThreshold": 90, "timeoutSeconds": 5},
        readiness_probe={**serves, "periodSeconds": 5, "failureThreshold": 2, "timeoutSeconds": 5},
        liveness_probe={**alive, "periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 10},
        affinity=pod.affinity or (servers.prefer_own_nodes(cluster.labels) if cluster.replicas > 1 else None),
    )


def _argument(live: Manifest, name: str) -> str | None:
    """An argument of the members of a live StatefulSet."""
    args = live["spec"]["template"]["spec"]["containers"][0].get("args") or []
    return next((arg.partition("=")[2] for arg in args if arg.startswith(f"{name}=")), None)


def check_live(cluster: EtcdCluster, live: Manifest) -> None:
    """Refuse another number of members, or other addresses, which etcd only reads at its first start."""
    was, desired = _argument(live, "--initial-cluster"), initial_cluster(cluster)
    if was is not None and was != desired:
        raise InvalidInput(
            f"{cluster} was made with the members {was} and cannot be changed to {desired}.",
            "Keep the number, or remove it with state: absent and delete_data: true and create it again.",
        )


# Reports of members


@dataclasses.dataclass(frozen=True)
class MemberView:
    """The report of one member, or its error. ``member``: its ID; ``active``: those of the peers it is connected to."""

    pod: str
    member: str = ""
    healthy: bool = False
    version: str = ""
    leads: bool = False
    has_leader: bool = False
    active: frozenset[str] = frozenset()
    peers: int = 0
    error: str = ""

    @property
    def trouble(self) -> str:
        """The reason why the member is not healthy; empty if it is."""
        return self.error or ("" if self.healthy else "says that it is not healthy")


def member_view(pod: str, healthy: bool, metrics: str) -> MemberView:
    """Read a member's metrics."""
    plain: dict[str, float] = {}
    labelled: dict[str, set[str]] = collections.defaultdict(set)
    for name, labels, value in samples(metrics):
        if not labels:
            plain[name] = value
        elif (label := _LABEL_OF.get(name)) and value > 0:
            labelled[name].add(labels.get(label, ""))
    active = frozenset(labelled["etcd_network_active_peers"])
    return MemberView(
        pod,
        member="".join(labelled["etcd_server_id"]),
        healthy=healthy,
        version="".join(labelled["etcd_server_version"]),
        leads=plain.get("etcd_server_is_leader") == 1,
        has_leader=plain.get("etcd_server_has_leader") == 1,
        active=active,
        peers=len(active),
    )


def with_mutual_connections(views: Sequence[MemberView]) -> list[MemberView]:
    """Count a connection if either end reports it.

    One end may report a stale status: etcd 3.5.35 reported a peer as inactive for 300 s after it was back. In etcd's rafthttp, streams and
    single messages share one status, so a message to the lost peer that fails late (pipeline.go) overrules streams that are connected
    again.
    """
    return [dataclasses.replace(view, peers=len(view.active | {o.member for o in views if view.member in o.active})) for view in views]


def problems(size: int, views: list[MemberView]) -> list[str]:
    """Return the differences from the desired cluster, one line per faulty member; empty if every member reports the desired state."""
    found = []
    if len(views) != size:
        found.append(f"{len(views)} of {size} members have a pod")
    for view in views:
        if view.trouble:
            found.append(f"{view.pod}: {view.trouble}")
        elif not view.has_leader:
            found.append(f"{view.pod}: has no leader")
        elif view.peers != size - 1:
            found.append(f"{view.pod}: is connected to {view.peers} of {size - 1} other members")
    if not found and sum(view.leads for view in views) != 1:
        found.append("the members do not agree on a leader")
    return found
