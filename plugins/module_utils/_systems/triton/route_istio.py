# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes as Istio's own object: a VirtualService with a rule for each protocol.

Read in istio.io/api 1.32.0 (networking/v1alpha3/virtual_service.proto): weights are relative to each other, 0 gets nothing, and with one
destination the weight does not count. A prefix matches text, so that paths end in a slash here, where those of the Gateway API match
path elements.
"""

from __future__ import annotations

from ..._kube.objects import Manifest, Ref
from .route import METHODS, SERVICE, InferenceRoute, Weights, check_protocols, metadata_of, port_of

API = "networking.istio.io/v1"
KIND = "VirtualService"
MISSING = "Install Istio, or Cloud Service Mesh with its API, or choose another kind."

_PATHS = (("exact", "/v2"), ("prefix", "/v2/health/"), ("exact", "/v2/models"), ("prefix", "/v2/models/"))


def refs(route: InferenceRoute) -> list[Ref]:
    """The one object of all protocols."""
    return all_refs(route.name, route.namespace)


def all_refs(name: str, namespace: str) -> list[Ref]:
    """The routes of all protocols: the same object."""
    return [Ref(API, KIND, name, namespace)]


def manifests(route: InferenceRoute, weights: Weights | None = None, before: Weights | None = None) -> list[Manifest]:
    """The VirtualService, for now with other WEIGHTS; BEFORE: those to go back to."""
    check_protocols(route)
    gateway = f"{route.gateway_namespace}/{route.gateway}" if route.gateway_namespace else route.gateway
    spec: Manifest = {
        "hosts": list(route.hostnames) or ["*"],
        "gateways": [gateway],
        "http": [_rule(route, protocol, weights or route.weights) for protocol in route.protocols],
    }
    return [{"apiVersion": API, "kind": KIND, "metadata": metadata_of(route, before), "spec": spec}]


def _rule(route: InferenceRoute, protocol: str, weights: Weights) -> Manifest:
    rule: Manifest = {
        "name": protocol,
        "match": [{"uri": {how: text}} for how, text in _uris(route, protocol)],
        "route": [
            {"destination": {"host": name, "port": {"number": port_of(protocol)}}, "weight": weight} for name, weight in weights.items()
        ],
    }
    if route.request_timeout and protocol != "grpc":
        rule["timeout"] = f"{route.request_timeout}s"
    return rule


def _uris(route: InferenceRoute, protocol: str) -> list[tuple[str, str]]:
    """The paths of a protocol: a request of gRPC is one of HTTP for /SERVICE/METHOD."""
    if protocol == "grpc":
        return [("prefix", f"/{SERVICE}/")] if route.management_api else [("exact", f"/{SERVICE}/{name}") for name in METHODS]
    if protocol == "openai":
        return [("prefix", "/" if route.management_api else "/v1/")]
    # Requests of gRPC must not match here: their rule comes after this one.
    return [("prefix", "/v2")] if route.management_api else list(_PATHS)


def weights_of(live: Manifest) -> dict[str, int]:
    """The weights of a live VirtualService; a single destination needs none."""
    rows = (row for rule in live["spec"].get("http") or () for row in rule.get("route") or ())
    return {row["destination"]["host"]: int(row.get("weight", 1)) for row in rows}
