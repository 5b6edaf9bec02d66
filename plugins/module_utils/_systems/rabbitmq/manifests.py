# SPDX-License-Identifier: GPL-3.0-or-later
"""RabbitMQ in the cluster: one node, or three that form a cluster, as a StatefulSet."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from decimal import Decimal

from ..._core.errors import InvalidInput
from ..._core.quantity import parse
from ..._manifests import servers, shared
from ..._manifests.meta import STATEFULSET_NAME_MAX, Manifest, check_name, pinned_tag, quantity
from ..._manifests.monitoring import alert, monitor
from ..._manifests.pods import PodSettings, field_env, init_container
from .upgrade import release_of

AMQP_PORTS = {False: 5672, True: 5671}
"""The AMQP ports without and with TLS. The port of the management API is 10000 above: StudioML's runner derives it so."""
MANAGEMENT_PORTS = {False: 15672, True: 15671}
METRICS_PORT = 15692
EPMD_PORT = 4369
DISTRIBUTION_PORT = 25672
USERNAME, PASSWORD, COOKIE = "username", "password", "erlang-cookie"
"""Keys of Secrets; the first two are those of type kubernetes.io/basic-auth."""

_ADMIN = "admin"
_CONFIG = "/etc/rabbitmq"
_DATA = "/var/lib/rabbitmq"
_LOGS = "/var/log/rabbitmq"
_RUN = "/run/rabbitmq"
_SECRETS = "/run/secrets/rabbitmq"
_TLS = "/etc/rabbitmq-tls"
_QUEUES = {"/metrics": {}, "/metrics/detailed": {"family": ["queue_coarse_metrics"]}}
"""The paths of the metrics. Those of a queue are at the second path only, since 3.9 (rabbitmq.com/docs/prometheus)."""
_UNTAKEN = "1h"
_GRACE_S = 300
"""Seconds to close queues and write messages to disk. The default of Kubernetes, 30, may kill a full broker in the middle."""
_BYTES = re.compile(r"(\d+)\s*(k|K|M|G|T)?(i?B)?")
# Units of rabbitmq.conf: a letter alone, or with iB, counts in 1024s (RabbitMQ calls k and kiB the same), kB and MB in 1000s.
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
# Erlang refuses a cookie that others can read, and volumes of Secrets are readable for the group that the pod gets. HOME keeps it in
# memory. printf is the shell's own, so the password is in no list of processes.
_SETUP = f"""set -eu
umask 077
rm -f {_RUN}/.erlang.cookie
cat {_SECRETS}/node/{COOKIE} > {_RUN}/.erlang.cookie
mkdir -p {_RUN}/conf.d
printf 'default_user = %s\\ndefault_pass = %s\\n' \\
  "$(cat {_SECRETS}/admin/{USERNAME})" "$(cat {_SECRETS}/admin/{PASSWORD})" > {_RUN}/conf.d/administrator.conf
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RabbitmqCluster(servers.ServerGroup):
    """SIZE nodes that know each other by the names of their pods."""

    module, title, app, peers_end = "rabbitmq_cluster", "RabbitMQ", "rabbitmq", "nodes"

    tls: bool = True
    admin_secret: str | None = None
    """The user's Secret with name and password of the administrator; None: the module creates one."""
    memory_watermark: float = 0.4
    disk_free_limit: str = "2GB"
    storage_size: str = "10Gi"

    @property
    def alerts_of_metrics(self) -> list[Manifest]:
        if not self.alerts:
            return []
        of, after = f'namespace="{self.namespace}",job="{self.name}"', self.alerts.after
        alarms, ready = f'{{__name__=~"rabbitmq_alarms_.+",{of}}}', f"rabbitmq_detailed_queue_messages_ready{{{of}}}[{_UNTAKEN}]"
        return [
            alert("RabbitmqAlarm", f"max by (namespace, job, pod) ({alarms}) == 1", after, "critical",
                  "{{ $labels.pod }} has an alarm, for memory, disk or open files.", "The broker takes no messages until it is gone."),
            # A number that falls is a reset; StudioML's runner takes messages without being a consumer.
            alert("RabbitmqQueueUntaken", f"min_over_time({ready}) > 0 and resets({ready}) == 0", after, "warning",
                  f"Nothing has taken a message from queue {{{{ $labels.queue }}}} for {_UNTAKEN}.", "Its consumers are gone, or busy."),
        ]  # fmt: skip

    @property
    def admin(self) -> str:
        """The name of the Secret of the administrator."""
        return self.admin_secret or f"{self.name}-admin"

    @property
    def node_secret(self) -> str:
        """The name of the Secret with the cookie, by which nodes trust each other."""
        return f"{self.name}-cookie"

    @property
    def server_tls(self) -> str:
        """The name of the Secret with the certificate of the nodes."""
        return f"{self.name}-server-tls"

    @property
    def host(self) -> str:
        """The name of the client Service, in every namespace."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def amqp_url(self) -> str:
        """The address for clients, without a login."""
        return f"{'amqps' if self.tls else 'amqp'}://{self.host}:{AMQP_PORTS[self.tls]}"

    @property
    def management_url(self) -> str:
        """The address of the management API."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{MANAGEMENT_PORTS[self.tls]}"


def manifests(cluster: RabbitmqCluster) -> list[Manifest]:
    """The objects of CLUSTER, without its Secrets."""
    check(cluster)
    objects = servers.around(cluster, _ports(cluster), budget=cluster.replicas > 1)
    # The nodes start in parallel, because a node only becomes ready when a majority of known nodes runs.
    workload = servers.stateful_set(cluster, _node_pod(cluster), "rabbitmq", _environment(cluster), hashed=_files(cluster))
    if cluster.monitor:
        objects.append(monitor(cluster.monitor, cluster.metadata(), cluster.labels, paths=_QUEUES))
    return [config_map(cluster), *objects, workload]


def check(cluster: RabbitmqCluster) -> None:
    """Refuse options that only a node would refuse otherwise, in its log."""
    check_name(cluster.name, "name", limit=STATEFULSET_NAME_MAX - len("-server-tls"), service=True)
    if cluster.replicas not in (1, 3):
        raise InvalidInput(f"replicas: {cluster.replicas} nodes are not possible.", "Choose 1 or 3: after a loss a majority must be left.")
    if not 0 < cluster.memory_watermark < 1:
        raise InvalidInput(f"memory_watermark: {cluster.memory_watermark} is no share of the memory.", "Such as 0.4.")
    room = parse(quantity(cluster.storage_size, "storage_size"))
    if information_units(cluster.disk_free_limit, "disk_free_limit") >= room:
        raise InvalidInput(
            f"disk_free_limit: {cluster.disk_free_limit} are never free in a claim of {cluster.storage_size}, and the broker would stop "
            "every publisher.",
            "Make storage_size larger, or the limit smaller.",
        )
    _check_image(cluster)


def information_units(text: str, what: str) -> Decimal:
    """The bytes of an amount as rabbitmq.conf has them."""
    found = _BYTES.fullmatch(text)
    if not found or (found[3] == "iB" and not found[2]):
        raise InvalidInput(f"{what}: '{text}' is not an amount of bytes.", "RabbitMQ writes 2GB or 512MiB.")
    base = 1000 if found[3] == "B" else 1024
    return Decimal(int(found[1]) * base ** _POWERS[found[2] or ""])


def _check_image(cluster: RabbitmqCluster) -> None:
    hint = "Give it a version, such as docker.io/library/rabbitmq:4.2.9, or a digest."
    tag = pinned_tag(cluster.pod.image, hint)
    found = release_of(tag)
    if cluster.replicas > 1 and found and found[:2] < (4, 1):
        raise InvalidInput(
            f"replicas: RabbitMQ {tag} finds its nodes by asking the API server, and two clusters may form when all nodes start at once.",
            "Use an image of 4.1 or later for three nodes, or replicas: 1.",
        )


def _ports(cluster: RabbitmqCluster) -> servers.Ports:
    amqp, management = ("amqps", "https") if cluster.tls else ("amqp", "http")
    metrics = {"metrics": METRICS_PORT}  # numbers and names of queues only
    return servers.Ports(
        clients={amqp: AMQP_PORTS[cluster.tls], management: MANAGEMENT_PORTS[cluster.tls], **metrics},
        peers={"epmd": EPMD_PORT, "distribution": DISTRIBUTION_PORT},
        metrics=metrics,
        headless=("epmd", "distribution"),
    )


def plugins(cluster: RabbitmqCluster) -> list[str]:
    """The enabled plugins."""
    found = ["rabbitmq_management", "rabbitmq_prometheus"]
    return [*found, "rabbitmq_peer_discovery_k8s"] if cluster.replicas > 1 else found


def settings(cluster: RabbitmqCluster) -> dict[str, str]:
    """The settings of rabbitmq.conf."""
    found = {
        "cluster_name": f"{cluster.namespace}.{cluster.name}",
        "log.console": "true",
        "log.file": "false",
        **_listeners(cluster),
        "prometheus.tcp.port": str(METRICS_PORT),
        "vm_memory_high_watermark.relative": str(cluster.memory_watermark),
        "disk_free_limit.absolute": cluster.disk_free_limit,
    }
    limit = ((cluster.pod.resources or {}).get("limits") or {}).get("memory")
    if limit is not None:
        # Otherwise RabbitMQ computes its limit from the memory of the whole Kubernetes node.
        found["total_memory_available_override_value"] = str(int(parse(limit)))
    if cluster.replicas > 1:
        found["cluster_formation.peer_discovery_backend"] = "rabbit_peer_discovery_k8s"
        # Ignored by 4.3, which uses Raft for all metadata.
        found["cluster_partition_handling"] = "pause_minority"
    return found


def _listeners(cluster: RabbitmqCluster) -> dict[str, str]:
    amqp, management = str(AMQP_PORTS[cluster.tls]), str(MANAGEMENT_PORTS[cluster.tls])
    if not cluster.tls:
        return {"listeners.tcp.default": amqp, "management.tcp.port": management}
    files = {"certfile": f"{_TLS}/tls.crt", "keyfile": f"{_TLS}/tls.key", "cacertfile": f"{_TLS}/ca.crt"}
    return {
        "listeners.tcp": "none",
        "listeners.ssl.default": amqp,
        **{f"ssl_options.{key}": path for key, path in files.items()},
        "ssl_options.verify": "verify_none",
        "ssl_options.fail_if_no_peer_cert": "false",
        "ssl_options.versions.1": "tlsv1.3",
        "ssl_options.versions.2": "tlsv1.2",
        "management.ssl.port": management,
        **{f"management.ssl.{key}": path for key, path in files.items()},
    }


def _files(cluster: RabbitmqCluster) -> dict[str, str]:
    lines = [f"{key} = {value}\n" for key, value in settings(cluster).items()]
    return {"rabbitmq.conf": "".join(lines), "enabled_plugins": f"[{','.join(plugins(cluster))}].\n"}


def config_map(cluster: RabbitmqCluster) -> Manifest:
    """The ConfigMap with the configuration, without secrets. It replaces that of the image."""
    return shared.config_map(cluster.metadata(), _files(cluster))


def authority_map(cluster: RabbitmqCluster, certificate: str) -> Manifest:
    """The ConfigMap with the CA certificate, for pods of clients: the Secrets that have it contain keys, too."""
    return shared.config_map(cluster.metadata(f"{cluster.name}-ca"), {"ca.crt": certificate})


def _volumes(cluster: RabbitmqCluster) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "config", "configMap": {"name": cluster.name}},
        {"name": "cookie", "secret": {"secretName": cluster.node_secret, "defaultMode": 0o440}},
        {"name": _ADMIN, "secret": {"secretName": cluster.admin, "defaultMode": 0o440}},
        {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "logs", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if cluster.tls:
        volumes.append({"name": "tls", "secret": {"secretName": cluster.server_tls, "defaultMode": 0o440}})
    return volumes


def _mounts(places: Mapping[str, str], *read_only: str) -> list[Manifest]:
    """The mounts of volumes. PLACES: name -> path."""
    return [{"name": name, "mountPath": path, **({"readOnly": True} if name in read_only else {})} for name, path in places.items()]


def _node_pod(cluster: RabbitmqCluster) -> PodSettings:
    pod, ports = servers.secured(cluster.pod), _ports(cluster)
    mounts = {"config": _CONFIG, "run": _RUN, "logs": _LOGS, "tmp": "/tmp", "data": _DATA}  # noqa: S108
    if cluster.tls:
        mounts["tls"] = _TLS
    # The port opens when the node has started and joined the cluster. A probe that runs rabbitmq-diagnostics starts another
    # Erlang each time. A liveness probe could only kill a node that waits for the others or is busy; one that ends is restarted anyway.
    opens = {"tcpSocket": {"port": AMQP_PORTS[cluster.tls]}, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}
    grace = pod.termination_grace_period_seconds
    places = {"cookie": f"{_SECRETS}/node", _ADMIN: f"{_SECRETS}/admin", "run": _RUN}
    # It gives a node its cookie and its first administrator, in files that only the node can read.
    setup = init_container(pod, "setup", ["/bin/sh", "-c", _SETUP], _mounts(places, "cookie", _ADMIN))
    return dataclasses.replace(
        pod,
        command=("rabbitmq-server",),
        ports=servers.container_ports({**ports.clients, **ports.peers}),
        init_containers=(setup,),
        volumes=(*pod.volumes, *_volumes(cluster)),
        volume_mounts=_mounts(mounts, "config", "tls"),
        readiness_probe=opens,
        termination_grace_period_seconds=_GRACE_S if grace is None else grace,
        affinity=pod.affinity or (servers.prefer_own_nodes(cluster.labels) if cluster.replicas > 1 else None),
    )


def _environment(cluster: RabbitmqCluster) -> list[Manifest]:
    plain = {
        "RABBITMQ_USE_LONGNAME": "true",
        # The data directory is named after the node, so the name must not change.
        "RABBITMQ_NODENAME": f"rabbit@$(POD_NAME).{cluster.domain}",
        "RABBITMQ_CONFIG_FILES": f"{_RUN}/conf.d",
        "RABBITMQ_MNESIA_BASE": f"{_DATA}/mnesia",
        "HOME": _RUN,
        "LC_ALL": "C.UTF-8",
    }
    rows: list[Manifest] = [{"name": key, "value": value} for key, value in plain.items()]
    return [field_env("POD_NAME", "metadata.name"), *rows]


def tls_of(live: Manifest) -> bool:
    """Whether clients of live nodes use TLS."""
    ports = live["spec"]["template"]["spec"]["containers"][0].get("ports") or []
    return "amqps" in [port.get("name") for port in ports]


def read_live(live: Manifest) -> RabbitmqCluster:
    """Read the fields of a live cluster that a connection to it needs."""
    template = live["spec"]["template"]["spec"]
    admin = next((v["secret"]["secretName"] for v in template.get("volumes") or [] if v["name"] == _ADMIN), None)
    return RabbitmqCluster(
        name=live["metadata"]["name"],
        namespace=live["metadata"]["namespace"],
        pod=PodSettings(image=template["containers"][0]["image"]),
        replicas=live["spec"].get("replicas", 1),
        tls=tls_of(live),
        admin_secret=admin,
    )


def check_live(cluster: RabbitmqCluster, live: Manifest) -> None:
    """Refuse another number of nodes: removed nodes would remain members of the cluster, and queues may be on single nodes."""
    was = (live.get("spec") or {}).get("replicas", 1)
    if was != cluster.replicas:
        raise InvalidInput(
            f"replicas: {cluster} has {was} nodes and cannot be changed to {cluster.replicas}.",
            "Keep the number, or remove it with state: absent and delete_data: true and create it again.",
        )
