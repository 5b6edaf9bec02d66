# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster of NATS servers: as the NatsCluster resource of nats-operator, or as a StatefulSet.

Both have a client Service <name> on port 4222 and a headless Service <name>-mgmt, so clients see no difference.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Mapping

from ..._core.brief import Missing, listed
from ..._core.errors import InvalidInput
from ..._core.quantity import parse
from ..._manifests import servers, shared
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import STATEFULSET_NAME_MAX, Manifest, check_count, check_name, compact
from ..._manifests.pods import PodSettings, field_env, resources, unsayable

CLIENT_PORT = 4222
CLUSTER_PORT = 6222
MONITOR_PORT = 8222
# The NetworkPolicy matters, because the servers authenticate neither clients nor each other.
PORTS = servers.Ports(
    clients={"client": CLIENT_PORT}, peers={"cluster": CLUSTER_PORT}, metrics={"monitor": MONITOR_PORT}, headless=("cluster", "monitor")
)

# A server connects to these, learns from them of all others, and those connect to it. If each named all others, it would look up and try
# those that have no pod yet every second, and two connections would be made for each pair, of which one is closed again.
_SEEDS = 3

# Above this size the mesh of nats-operator's servers is work for more than a few cores (docs/systems/persia.md, "How many NATS servers").
_MANY = 30

# nats-server refuses to start when max_payload is over max_pending, which is 64 MiB unless it is set.
MAX_PENDING = 64 * 1024 * 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class NatsCluster(servers.ServerGroup):
    """SIZE connected servers, and what a client may send them."""

    module, title, app, peers_end = "nats_cluster", "NATS cluster", "nats", "mgmt"

    replicas: int = 3
    backend: t.Literal["native", "operator"] = "native"
    max_payload: int = 1024 * 1024
    debug: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the servers' pods. They are those of nats-operator for both backends, so that tools need one selector."""
        return {"app": "nats", "nats_cluster": self.name}

    def metadata(self, name: str = "") -> Manifest:
        """The metadata of an object: the common labels, and those of the pods."""
        return {**super().metadata(name), "labels": {**_labels(self), **self.labels}}

    @property
    def url(self) -> str:
        """The address for clients in the same namespace."""
        return f"nats://{self.name}:{CLIENT_PORT}"


def manifests(cluster: NatsCluster) -> list[Manifest]:
    """The objects of CLUSTER."""
    check(cluster)
    if cluster.backend == "operator":
        return [*servers.policies(cluster, PORTS), apply_overrides(nats_cluster_resource(cluster), cluster.overrides)]
    objects = servers.around(cluster, PORTS, budget=cluster.replicas > 1)
    # The hash leaves out the routes: a new server announces itself, so another size is no reason to restart the others.
    env = [field_env("POD_NAME", "metadata.name")]
    workload = servers.stateful_set(cluster, _server_pod(cluster), "nats", env, hashed=_settings(cluster))
    return [config_map(cluster), *objects, workload]


def check(cluster: NatsCluster) -> None:
    """Refuse options that only a server would refuse otherwise, in its log."""
    # The longest name derived from it is that of a pod of the StatefulSet, or of the -mgmt Service.
    check_name(cluster.name, "name", limit=STATEFULSET_NAME_MAX - len("-mgmt"), service=True)
    check_count(cluster.replicas, "replicas", minimum=1)
    check_count(cluster.max_payload, "max_payload", minimum=1)
    if cluster.max_payload > MAX_PENDING:
        raise InvalidInput(
            f"max_payload: {cluster.max_payload} bytes is over {MAX_PENDING} (64 MiB), the server's max_pending.",
            "nats-server would not start: choose 67108864 or less.",
        )
    if cluster.backend == "operator":
        _check_operator_can_say(cluster)
    else:
        _check_server_knows_pool_size(cluster.pod.image)


def _check_server_knows_pool_size(image: str) -> None:
    version = re.search(r":v?(\d+)\.(\d+)\b", image)
    if version and tuple(map(int, version.groups())) < (2, 10):
        raise InvalidInput(
            f"image: '{image}' is older than 2.10, and its server does not know pool_size, which keeps routes few.",
            "Choose 2.10 or later, such as nats:2.14.2, or backend: operator.",
        )


def _check_operator_can_say(cluster: NatsCluster) -> None:
    pod = cluster.pod
    if missing := unsayable(pod, "image", "image_pull_policy", "env", "resources", "node_selector", "tolerations"):
        raise InvalidInput(
            f"backend operator: a NatsCluster has no field for {', '.join(missing)}.",
            "Use backend: native, or set them with overrides at spec.template.",
        )
    if "@" in pod.image:
        raise InvalidInput(
            f"backend operator: image '{pod.image}' is pinned by digest, but the operator builds its image from name and tag.",
            "Use a tag here, or backend: native.",
        )
    if "alpine" in split_image(pod.image)[1]:
        raise InvalidInput(
            f"backend operator: image '{pod.image}' has no /nats-server, which nats-operator starts.",
            "Use the tag without alpine, such as nats:2.14.2, or backend: native.",
        )


def advice(cluster: NatsCluster) -> str | None:
    """Return a warning about the many servers that nats-operator would start; None if they are few or another backend starts them."""
    if cluster.backend != "operator" or cluster.replicas <= _MANY:
        return None
    return (
        f"nats-operator starts {cluster.replicas} servers one after the other, with four connections for each of their "
        f"{cluster.replicas * (cluster.replicas - 1) // 2} pairs, and restarts those that answer late. Backend native (role persia: "
        "persia_nats_backend: native) starts them together, with one connection for each pair."
    )


def split_image(image: str) -> tuple[str, str]:
    """Repository and tag, which are separate fields for the operator."""
    repository, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        raise InvalidInput(f"image: '{image}' has no tag.", "Pin one, for example nats:2.14.2.")
    return repository, tag


def nats_cluster_resource(cluster: NatsCluster) -> Manifest:
    """The NatsCluster. Its schema accepts every field and checks none, so mistakes here would not be noticed."""
    repository, tag = split_image(cluster.pod.image)
    spec = compact(
        {
            "size": cluster.replicas,
            "version": tag,
            "serverImage": repository,
            "natsConfig": compact({"maxPayload": cluster.max_payload, "debug": cluster.debug or None}),
            "pod": compact(
                {
                    # Not in spec.resources, where PERSIA's documents put them, because the operator ignores that field.
                    "resources": resources(cluster.pod.resources, "resources"),
                    "nodeSelector": cluster.pod.node_selector,
                    "tolerations": [dict(entry) for entry in cluster.pod.tolerations],
                    "natsEnv": [dict(entry) for entry in cluster.pod.env],
                }
            ),
        }
    )
    metadata = {"name": cluster.name, "namespace": cluster.namespace, "labels": _labels(cluster)}
    return {"apiVersion": "nats.io/v1alpha2", "kind": "NatsCluster", "metadata": metadata, "spec": spec}


def _labels(cluster: NatsCluster) -> dict[str, str]:
    return {"app.kubernetes.io/name": cluster.app, "app.kubernetes.io/instance": cluster.name}


def server_config(cluster: NatsCluster) -> str:
    """nats.conf: the same file for every server, which takes its own name from the environment."""
    return "\n".join([*_settings(cluster), *_routes(cluster)]) + "\n"


def _routes(cluster: NatsCluster) -> list[str]:
    # The shortest name that resolves: a longer one that is not fully qualified is first tried with each search domain.
    seeds = [f"{cluster.name}-{i}.{cluster.peers}" for i in range(min(cluster.replicas, _SEEDS))]
    routes = [f'    "nats://{seed}:{CLUSTER_PORT}"' for seed in seeds]
    return [
        "cluster {",
        f'  name: "{cluster.name}"',
        f"  port: {CLUSTER_PORT}",
        # Clients come through the Service, and pod addresses would be stale after a restart.
        "  no_advertise: true",
        # One connection for each pair of servers. A pool (3, and 1 for the system account) spreads accounts, and there is only one here.
        "  pool_size: -1",
        # Retries between servers that are no seeds; a seed is tried until it answers.
        "  connect_retries: 120",
        "  routes: [",
        *routes,
        "  ]",
        "}",
    ]


def _settings(cluster: NatsCluster) -> list[str]:
    lines = ["server_name: $POD_NAME", f"port: {CLIENT_PORT}", f"http_port: {MONITOR_PORT}", f"max_payload: {cluster.max_payload}"]
    if cluster.debug:
        lines.append("debug: true")
    return lines


def config_map(cluster: NatsCluster) -> Manifest:
    """The servers' configuration file."""
    return shared.config_map(cluster.metadata(f"{cluster.name}-config"), {"nats.conf": server_config(cluster)})


def _server_pod(cluster: NatsCluster) -> PodSettings:
    """The user's pod settings with probes, ports and the configuration file."""
    health = {"httpGet": {"path": "/healthz", "port": MONITOR_PORT}, "timeoutSeconds": 5}
    config = {"name": "config", "configMap": {"name": f"{cluster.name}-config"}}
    return dataclasses.replace(
        servers.secured(cluster.pod),
        # No command, because the published images differ in the path of the binary, but all have an entrypoint that takes flags.
        args=("-c", "/etc/nats-config/nats.conf"),
        ports=servers.container_ports({**PORTS.clients, **PORTS.peers, **PORTS.metrics}),
        volumes=(*cluster.pod.volumes, config),
        volume_mounts=(*cluster.pod.volume_mounts, {"name": "config", "mountPath": "/etc/nats-config", "readOnly": True}),
        # The threshold is high, because a restart makes the other servers connect again, and many servers on a busy node respond late. A
        # server that does not respond loses its clients by the readiness probe first.
        startup_probe={**health, "periodSeconds": 2, "failureThreshold": 150},
        readiness_probe={**health, "periodSeconds": 5, "failureThreshold": 3},
        liveness_probe={**health, "periodSeconds": 30, "failureThreshold": 10},
        topology_spread_constraints=cluster.pod.topology_spread_constraints or _spread(cluster),
    )


def _spread(cluster: NatsCluster) -> tuple[Manifest, ...]:
    """Spread the servers over nodes as evenly as possible."""
    if cluster.replicas == 1:
        return ()
    return ({"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},)


@dataclasses.dataclass(frozen=True)
class ServerView:
    """The report of one server (/varz), or the reason why there is none."""

    pod: str
    varz: Mapping[str, t.Any] | None
    error: str | None = None

    @property
    def peers(self) -> int | None:
        """The number of other servers that it has routes to, each counted once; None if it does not answer."""
        return None if self.varz is None else int(self.varz.get("remotes") or 0)


def is_stale(cluster: NatsCluster, pod: Mapping[str, t.Any], payload: int | None) -> bool:
    """Whether a server runs with other settings than those of CLUSTER. A server that does not answer counts as up to date."""
    main = pod["spec"]["containers"][0]
    desired = resources(cluster.pod.resources, "resources")
    return (payload is not None and payload != cluster.max_payload) or not _same(main.get("resources") or {}, desired)


def _same(live: Mapping[str, t.Any], desired: Mapping[str, t.Any]) -> bool:
    """Whether resources are equal by value; requests that Kubernetes derived from limits do not count."""
    for side in ("limits", "requests"):
        have, want = live.get(side) or {}, desired.get(side) or {}
        if any(key not in have or parse(have[key]) != parse(value) for key, value in want.items()):
            return False
        extra = set(have) - set(want) - (set(desired.get("limits") or {}) if side == "requests" else set())
        if extra:
            return False
    return True


def problems(cluster: NatsCluster, views: list[ServerView], *, payload: bool = True) -> list[str]:
    """Return the differences from the desired cluster, one line per faulty server; empty if every server reports the desired state."""
    found = []
    if len(views) != cluster.replicas:
        found.append(f"{len(views)} of {cluster.replicas} servers have a pod")
    for view in views:
        if view.varz is None:
            found.append(f"{view.pod}: {view.error or 'does not answer'}")
            continue
        if view.peers != cluster.replicas - 1:
            found.append(f"{view.pod}: routes to {view.peers} of {cluster.replicas - 1} other servers")
        if payload and view.varz.get("max_payload") != cluster.max_payload:
            found.append(f"{view.pod}: max_payload is {view.varz.get('max_payload')}, not {cluster.max_payload}")
    return found


def missing(cluster: NatsCluster, views: list[ServerView], *, payload: bool = True) -> Missing | None:
    """The problems as one text that begins with the number of connected servers; None if there are none."""
    found = listed(problems(cluster, views, payload=payload))
    if found is None or cluster.replicas == 1:
        return found
    others = cluster.replicas - 1
    count = f"{sum(view.peers == others for view in views)} of {cluster.replicas} servers have all {others} routes"
    return Missing(f"{count}; {found}", f"{count}; {found.brief}")
