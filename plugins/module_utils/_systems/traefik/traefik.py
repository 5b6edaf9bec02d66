# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role traefik installs: Traefik as a controller of the Gateway API, its GatewayClass, and only the permissions it uses.

The CustomResourceDefinitions are those of a release of the Gateway API.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._manifests import servers
from ..._manifests.access import access_in, rule, service_account
from ..._manifests.meta import Manifest, check_count, check_name, metadata
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod, operator_selector, operator_service

NAME = "traefik"
CONTROLLER = "traefik.io/gateway-controller"
"""The controller name of Traefik's GatewayClass."""
GATEWAY_GROUP = "gateway.networking.k8s.io"
PORTS = {"web": 80, "websecure": 443}
"""A listener of a Gateway has the port of an entry point."""
USER = 65532
SERVICE_TYPES = ("LoadBalancer", "NodePort", "ClusterIP")

_ADMIN = 8080
_READ = ["list", "watch"]
_KINDS = ("gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies")
_WITH_STATUS = ("gateways", "httproutes", "grpcroutes", "backendtlspolicies")
# Of no namespace. Selectors of listeners choose namespaces by their labels.
CLUSTER = [
    rule([GATEWAY_GROUP], ["gatewayclasses"], _READ),
    rule([GATEWAY_GROUP], ["gatewayclasses/status"], ["update"]),
    rule([""], ["namespaces"], _READ),
]
# In the namespaces that it serves, its own one for its Service. Secrets are those with the certificates of listeners.
SERVED = [
    rule([GATEWAY_GROUP], _KINDS, _READ),
    rule([GATEWAY_GROUP], [f"{kind}/status" for kind in _WITH_STATUS], ["update"]),
    rule([""], ["services", "secrets", "configmaps"], _READ),
    rule(["discovery.k8s.io"], ["endpointslices"], _READ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Traefik(Operator):
    """``namespaces``: those that it serves, all if there are none.

    ``drain_timeout``: seconds for which a pod that ends accepts requests; ``exit_timeout``: for those in flight then.
    """

    manifest: str = ""
    manifest_sha256: str = ""
    class_name: str = "traefik"
    namespaces: Sequence[str] = ()
    replicas: int = 1
    service_type: str = "LoadBalancer"
    drain_timeout: int = 10
    exit_timeout: int = 30


def manifests(traefik: Traefik) -> list[Manifest]:
    """Traefik, its ServiceAccount with RBAC, its GatewayClass and its Service."""
    check_name(traefik.class_name, "class_name")
    for name in ("replicas", "drain_timeout", "exit_timeout"):
        check_count(getattr(traefik, name), name)
    if traefik.service_type not in SERVICE_TYPES:
        raise InvalidInput(f"service_type: '{traefik.service_type}' is none of {', '.join(SERVICE_TYPES)}.")
    labels = operator_labels(NAME)
    account = service_account(NAME, traefik.namespace, labels)
    service = operator_service(NAME, traefik, {name: (port, name) for name, port in PORTS.items()}, traefik.service_type)
    budget = servers.disruption_budget(metadata(NAME, traefik.namespace, labels), operator_selector(NAME))
    gateway_class = {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "GatewayClass",
        "metadata": metadata(traefik.class_name, None, labels),
        "spec": {"controllerName": CONTROLLER},
    }
    served = _served(traefik)
    access: dict[str | None, list[Manifest]] = {None: CLUSTER if served else [*CLUSTER, *SERVED], **dict.fromkeys(served, SERVED)}
    return [account, *access_in(account, access), service, budget, _deployment(traefik), gateway_class]


def _served(traefik: Traefik) -> list[str]:
    """The namespaces that it watches; with any of them its own one, too, whose Service has the address of Gateways."""
    names = [check_name(name, "namespaces") for name in traefik.namespaces]
    return sorted({*names, traefik.namespace}) if names else []


def _arguments(traefik: Traefik) -> list[str]:
    flags: dict[str, t.Any] = {"entrypoints.traefik.address": f":{_ADMIN}"}
    for name, port in PORTS.items():
        flags[f"entrypoints.{name}.address"] = f":{port}"
        flags[f"entrypoints.{name}.transport.lifecycle.requestacceptgracetimeout"] = f"{traefik.drain_timeout}s"
        flags[f"entrypoints.{name}.transport.lifecycle.gracetimeout"] = f"{traefik.exit_timeout}s"
    provider = "providers.kubernetesgateway"
    flags |= {
        "ping": "true",
        provider: "true",
        f"{provider}.statusaddress.service.name": NAME,
        f"{provider}.statusaddress.service.namespace": traefik.namespace,
        # It sends no requests to servers outside of the cluster.
        "global.checknewversion": "false",
        "global.sendanonymoususage": "false",
    }
    if served := _served(traefik):
        flags[f"{provider}.namespaces"] = ",".join(served)
    return [f"--{name}={value}" for name, value in flags.items()]


def _deployment(traefik: Traefik) -> Manifest:
    probe = {"httpGet": {"path": "/ping", "port": "admin"}, "periodSeconds": 5}
    ports = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()]
    container = {
        "name": NAME,
        "args": _arguments(traefik),
        "ports": [*ports, {"name": "admin", "containerPort": _ADMIN, "protocol": "TCP"}],
        "readinessProbe": probe,
        "livenessProbe": {**probe, "periodSeconds": 10},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  (a path inside the container)
    }
    # The entry points have the ports of the listeners, which are below 1024, and the user is not root.
    sysctls = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]
    pod = operator_pod(
        traefik,
        container,
        user=USER,
        volumes=[{"name": "tmp", "emptyDir": {}}],
        terminationGracePeriodSeconds=traefik.drain_timeout + traefik.exit_timeout + 10,
    )
    pod["securityContext"] = {**pod["securityContext"], "sysctls": sysctls}
    # A new pod is ready before an old one ends.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    workload = {"replicas": traefik.replicas, "strategy": strategy}
    uses = [f"CustomResourceDefinition:{kind}.gateway.networking.k8s.io" for kind in ("gatewayclasses", *_KINDS)]
    return operator_deployment(NAME, traefik, workload, pod, uses=uses)
