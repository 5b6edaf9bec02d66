# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of role inference_gateway besides the routes: a Gateway in front of servers, and how it asks for their health."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest, check_name
from . import route_istio
from .route import GATEWAY_API
from .server import PORTS

# A replica that ends without a word gets no requests for half a minute. What a model answers, an error too, says nothing of its replica.
_OUTLIERS = {
    "consecutive5xxErrors": 0,
    "consecutiveGatewayErrors": 5,
    "interval": "5s",
    "baseEjectionTime": "30s",
    "maxEjectionPercent": 50,
}
_GOOGLE = "gke-"
"""Beginning of the names of classes with load balancers of Google. These ask for / by themselves, where the servers have nothing."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferenceGateway:
    """``http``: whether port 80 answers beside HTTPS; ``backends``: the servers, by the names of their Services; ``options``: those of the
    routes, of which the protocols say what the servers are. Port 8000 is that of Triton and of vLLM."""

    name: str
    namespace: str
    kind: t.Literal["gateway-api", "istio"] = "gateway-api"
    class_name: str = ""
    selector: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"istio": "ingressgateway"})
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    addresses: Sequence[Mapping[str, t.Any]] = ()
    hostnames: Sequence[str] = ()
    tls_secret: str = ""
    http: bool = False
    backends: Sequence[Mapping[str, t.Any]] = ()
    options: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    @property
    def ports(self) -> dict[str, int]:
        """Protocol -> port. With a certificate port 80 answers only if asked to, too."""
        return {**({"http": 80} if self.http or not self.tls_secret else {}), **({"https": 443} if self.tls_secret else {})}


def manifests(gateway: InferenceGateway) -> list[Manifest]:
    """The Gateway, and an object for each server where the Gateway needs one."""
    check_name(gateway.name, "name")
    servers = [backend["name"] for backend in gateway.backends]
    match gateway.kind:
        case "istio":
            return [_istio(gateway), *(_rule(gateway, server) for server in servers)]
        case "gateway-api":
            asked = servers if gateway.class_name.startswith(_GOOGLE) else []
            return [_gateway_api(gateway), *(_health_check(gateway, server) for server in asked)]
    raise InvalidInput(f"kind: '{gateway.kind}' is none of gateway-api, istio.")


def _metadata(gateway: InferenceGateway) -> Manifest:
    annotations = {"annotations": dict(gateway.annotations)} if gateway.annotations else {}
    return {"name": gateway.name, "namespace": gateway.namespace, **annotations}


def _gateway_api(gateway: InferenceGateway) -> Manifest:
    certificate = {"group": "", "kind": "Secret", "name": gateway.tls_secret}
    tls = {"http": {}, "https": {"tls": {"mode": "Terminate", "certificateRefs": [certificate]}}}
    listeners = [{"name": name, "port": port, "protocol": name.upper(), **tls[name]} for name, port in gateway.ports.items()]
    addresses = {"addresses": list(gateway.addresses)} if gateway.addresses else {}
    spec = {"gatewayClassName": gateway.class_name, "listeners": listeners, **addresses}
    return {"apiVersion": GATEWAY_API, "kind": "Gateway", "metadata": _metadata(gateway), "spec": spec}


def _health_check(gateway: InferenceGateway, server: str) -> Manifest:
    path = "/health" if "openai" in gateway.options.get("protocols", ()) else "/v2/health/ready"
    ready = {"portSpecification": "USE_FIXED_PORT", "port": PORTS["http"], "requestPath": path}
    config = {"type": "HTTP", "httpHealthCheck": ready}
    spec = {"default": {"config": config}, "targetRef": {"group": "", "kind": "Service", "name": server}}
    metadata = {"name": server, "namespace": gateway.namespace}
    return {"apiVersion": "networking.gke.io/v1", "kind": "HealthCheckPolicy", "metadata": metadata, "spec": spec}


def _istio(gateway: InferenceGateway) -> Manifest:
    hosts, tls = list(gateway.hostnames) or ["*"], {"mode": "SIMPLE", "credentialName": gateway.tls_secret}
    servers = [
        {"port": {"name": name, "number": port, "protocol": name.upper()}, "hosts": hosts, **({"tls": tls} if name == "https" else {})}
        for name, port in gateway.ports.items()
    ]
    spec = {"selector": dict(gateway.selector), "servers": servers}
    return {"apiVersion": route_istio.API, "kind": "Gateway", "metadata": _metadata(gateway), "spec": spec}


def _rule(gateway: InferenceGateway, server: str) -> Manifest:
    spec = {"host": server, "trafficPolicy": {"outlierDetection": _OUTLIERS}}
    metadata = {"name": server, "namespace": gateway.namespace}
    return {"apiVersion": route_istio.API, "kind": "DestinationRule", "metadata": metadata, "spec": spec}
