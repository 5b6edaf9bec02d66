# SPDX-License-Identifier: GPL-3.0-or-later
"""The names and labels of servers, and the objects around their pods: Services, NetworkPolicy, claims, a disruption budget."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from . import storage
from .devices import claim_templates
from .merge import apply_overrides
from .meta import ANNOTATION_CONFIG_HASH, STATEFUL_SET, Manifest, metadata, queued, spec_hash
from .monitoring import Alerts
from .network_policy import EVERY_POD, Flow, labelled, network_policy
from .pods import READ_ONLY_CONTAINER, RESTRICTED_POD, PodSettings, pod_template


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """Servers of one kind that clients reach by one name."""

    module: t.ClassVar[str]
    """Name of the module that creates them."""
    title: t.ClassVar[str]
    """Name of the program, for messages."""
    app: t.ClassVar[str]
    """Value of the label app.kubernetes.io/name."""
    workloads: t.ClassVar[Sequence[tuple[str, str]]] = (STATEFUL_SET,)
    """The kinds that may make the pods, as apiVersion and kind."""

    name: str
    namespace: str
    pod: PodSettings
    storage_size: str | None = None
    """Size of the claim that each pod of a StatefulSet has; None: the pods have no claims."""
    storage_class_name: str | None = None
    queue_name: str | None = None
    queue_priority_class: str | None = None
    overrides: Mapping[str, t.Any] | None = None
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()
    monitor: str | None = None
    """A kind of monitoring.MONITORS, or None."""
    alerts: Alerts | None = None

    def __str__(self) -> str:
        return f"{self.title} {self.namespace}/{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the pods, and of the claims."""
        return {"app.kubernetes.io/name": self.app, "app.kubernetes.io/instance": self.name}

    def metadata(self, name: str = "") -> Manifest:
        """The metadata of an object. NAME: that of the servers if it is empty."""
        return metadata(name or self.name, self.namespace, self.labels)

    @property
    def alerts_of_metrics(self) -> list[Manifest]:
        """The alerts by the servers' own metrics."""
        return []

    @property
    def queued_metadata(self) -> Manifest:
        """The metadata of the Deployment, whose pods a queue admits one by one."""
        return queued(self.metadata(), self.queue_name, self.queue_priority_class)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerGroup(Server):
    """REPLICAS servers that find each other by the names of their pods."""

    peers_end: t.ClassVar[str]
    """End of the name of the headless Service."""

    replicas: int = 1

    @property
    def peers(self) -> str:
        """The name of the headless Service, which includes pods that are not ready."""
        return f"{self.name}-{self.peers_end}"

    @property
    def domain(self) -> str:
        """The domain of the pods' names."""
        return f"{self.peers}.{self.namespace}.svc"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that a certificate of the servers is valid for."""
        ends = ("", f".{self.namespace}", f".{self.namespace}.svc", f".{self.namespace}.svc.cluster.local")
        pods = [f"*.{self.peers}{end}" for end in ends if end != f".{self.namespace}"]
        return ("localhost", "127.0.0.1", *(f"{self.name}{end}" for end in ends), *pods)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ports:
    """Numbers of ports by their names, and who may connect."""

    clients: Mapping[str, int]
    """The ports of the Service for clients, open to pods of the namespace and to those that the options name."""
    peers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The ports for servers of the same name only."""
    metrics: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The ports for every client, of metrics and probes, also where one is among those for clients."""
    headless: Sequence[str] = ()
    """Names of the ports of the Service by which servers find each other."""


def around(server: Server, ports: Ports, *, app_protocols: Mapping[str, str] | None = None, budget: bool = False) -> list[Manifest]:
    """The objects around the pods: Services, NetworkPolicy, disruption budget."""
    objects = [client_service(server.metadata(), server.labels, ports.clients, app_protocols)]
    if isinstance(server, ServerGroup):
        known = {**ports.clients, **ports.peers, **ports.metrics}
        found = {name: known[name] for name in ports.headless}
        objects.append(headless_service(server.metadata(server.peers), server.labels, found))
    objects += [*policies(server, ports), *claim_templates(server.pod.resource_claims, server.metadata())]
    if budget:
        objects.append(disruption_budget(server.metadata(), server.labels))
    return objects


def policies(server: Server, ports: Ports) -> list[Manifest]:
    """The NetworkPolicy, unless it is switched off."""
    admitted = [number for name, number in ports.clients.items() if name not in ports.metrics]
    flows = [Flow([EVERY_POD, *server.network_policy_from], admitted)]
    if ports.peers:
        flows.append(Flow([labelled(server.labels)], list(ports.peers.values())))
    if ports.metrics:
        # Probes through the API server come from an address that no selector knows, and Prometheus scrapes from anywhere.
        flows.append(Flow(None, list(ports.metrics.values())))
    return [network_policy(server.metadata(), server.labels, flows)] if server.network_policy else []


def secured(pod: PodSettings) -> PodSettings:
    """POD with a security context that the profile "restricted" admits, where it has none of its own."""
    return dataclasses.replace(
        pod,
        security_context=READ_ONLY_CONTAINER if pod.security_context is None else pod.security_context,
        pod_security_context=RESTRICTED_POD if pod.pod_security_context is None else pod.pod_security_context,
    )


def container_ports(ports: Mapping[str, int]) -> tuple[Manifest, ...]:
    """The ports of a container. PORTS: name -> number."""
    return tuple({"name": name, "container_port": number} for name, number in ports.items())


def client_service(
    metadata: Manifest, selector: Mapping[str, str], ports: Mapping[str, int], app_protocols: Mapping[str, str] | None = None
) -> Manifest:
    """The Service for clients: pods that are ready. PORTS: name -> number, APP_PROTOCOLS: name -> what is spoken there."""
    return _service(metadata, {"type": "ClusterIP"}, selector, ports, app_protocols or {})


def headless_service(metadata: Manifest, selector: Mapping[str, str], ports: Mapping[str, int]) -> Manifest:
    """The Service that gives every pod a DNS name, ready or not, because pods meet while they start."""
    return _service(metadata, {"clusterIP": "None", "publishNotReadyAddresses": True}, selector, ports, {})


def _service(
    metadata: Manifest, kind: Manifest, selector: Mapping[str, str], ports: Mapping[str, int], app_protocols: Mapping[str, str]
) -> Manifest:
    rows: list[Manifest] = [
        {
            "name": name,
            "port": port,
            "targetPort": port,
            "protocol": "TCP",
            **({"appProtocol": app_protocols[name]} if name in app_protocols else {}),
        }
        for name, port in ports.items()
    ]
    spec = {**kind, "selector": dict(selector), "ports": rows}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def stateful_set(server: Server, pod: PodSettings, container: str, env: Sequence[Manifest], *, hashed: t.Any = None) -> Manifest:
    """The pods, which start together: they meet while they start, and one that never got ready is replaced when its template changes.

    The claim of a pod is called data. HASHED: a value whose change restarts the pods.
    """
    group = server if isinstance(server, ServerGroup) else None
    template = pod_template(
        pod,
        container=container,
        labels=server.metadata()["labels"],
        selector=server.labels,
        env=env,
        annotations=None if hashed is None else {ANNOTATION_CONFIG_HASH: spec_hash(hashed)},
        claims=("data",),
    )
    spec = {
        "replicas": group.replicas if group else 1,
        "serviceName": group.peers if group else server.name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": server.labels},
        "template": template,
    }
    if server.storage_size is not None:
        data = storage.claim(
            {"name": "data", "labels": server.labels},
            size=server.storage_size,
            storage_class_name=server.storage_class_name,
            access_modes=["ReadWriteOnce"],
        )
        spec["volumeClaimTemplates"] = [data]
    workload = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": server.metadata(), "spec": spec}
    return apply_overrides(workload, server.overrides)


def disruption_budget(metadata: Manifest, selector: Mapping[str, str]) -> Manifest:
    """Let node drains stop one pod at a time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def prefer_own_nodes(selector: Mapping[str, str]) -> Manifest:
    """The affinity that avoids two of the pods on one node if there are enough nodes."""
    same_node = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(selector)}}
    preferred = [{"weight": 100, "podAffinityTerm": same_node}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
