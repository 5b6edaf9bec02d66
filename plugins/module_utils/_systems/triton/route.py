# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes from a Gateway to Triton servers: an HTTPRoute and a GRPCRoute with the same weights.

Triton's API can also load and unload models, and map the memory of the server, and it does not authenticate clients. So only the
paths that clients of a model need are routed. The prefix of the models includes their trace settings
(docs/systems/inference-gateway.md).
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._kube.objects import Manifest, Ref, annotations_of
from ..._manifests.meta import DNS_LABEL_MAX, check_name
from .server import PORTS

GATEWAY_API = "gateway.networking.k8s.io/v1"
Protocol = t.Literal["http", "grpc", "openai"]
KINDS: Mapping[Protocol, str] = {"http": "HTTPRoute", "grpc": "GRPCRoute", "openai": "HTTPRoute"}
"""Protocol -> the kind of its route."""
BOTH: tuple[Protocol, ...] = ("http", "grpc")
"""The protocols of Triton. The other one is of language models, at the port of the first."""
MISSING = "Enable the Gateway API (on GKE --gateway-api=standard), or install a controller of it, such as role traefik."
ANNOTATION_FROM = "muster.ml/weights-before"
"""The weights to which a route is rolled back, while they are being changed in steps."""

_MOST = 1_000_000
"""The maximum of a weight in the Gateway API."""
_PATHS = (("Exact", "/v2"), ("PathPrefix", "/v2/health"), ("PathPrefix", "/v2/models"))
SERVICE = "inference.GRPCInferenceService"
METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelConfig", "ModelInfer", "ModelStreamInfer")

Weights = Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferenceRoute:
    """``weights``: of each server, by the name of its Service."""

    name: str
    namespace: str
    gateway: str
    weights: Weights
    gateway_namespace: str | None = None
    hostnames: Sequence[str] = ()
    protocols: Sequence[Protocol] = BOTH
    management_api: bool = False
    request_timeout: int | None = None


def refs(route: InferenceRoute) -> list[Ref]:
    """The desired routes."""
    return [Ref(GATEWAY_API, KINDS[protocol], route.name, route.namespace) for protocol in route.protocols]


def all_refs(name: str, namespace: str) -> list[Ref]:
    """The routes of all protocols."""
    return [Ref(GATEWAY_API, kind, name, namespace) for kind in dict.fromkeys(KINDS.values())]


def checked_weights(rows: Sequence[Mapping[str, t.Any]]) -> dict[str, int]:
    """The option backends as weights."""
    found: dict[str, int] = {}
    for row in rows:
        name, weight = check_name(row["name"], "backends", limit=DNS_LABEL_MAX, service=True), row["weight"]
        if name in found:
            raise InvalidInput(f"backends: {name} is there twice.")
        if not 0 <= weight <= _MOST:
            raise InvalidInput(f"backends: the weight of {name} is {weight}, and may be 0 to {_MOST}.")
        found[name] = weight
    if not sum(found.values()):
        raise InvalidInput("backends: every request would be refused.", "Give at least one of them a weight above 0.")
    return found


def manifests(route: InferenceRoute, weights: Weights | None = None, before: Weights | None = None) -> list[Manifest]:
    """The routes, for now with other WEIGHTS; BEFORE: those to go back to."""
    check_protocols(route)
    made = []
    for protocol in route.protocols:
        spec: Manifest = {"parentRefs": [_parent(route)], "rules": [_rule(route, protocol, weights or route.weights)]}
        if route.hostnames:
            spec["hostnames"] = list(route.hostnames)
        metadata = metadata_of(route, before)
        made.append({"apiVersion": GATEWAY_API, "kind": KINDS[protocol], "metadata": metadata, "spec": spec})
    return made


def check_protocols(route: InferenceRoute) -> None:
    """Refuse routes of one name for both kinds of servers."""
    check_name(route.name, "name")
    if "openai" in route.protocols and len(route.protocols) > 1:
        raise InvalidInput("protocols: servers of language models speak neither of the others.", "Make routes of another name for them.")


def port_of(protocol: str) -> int:
    """The port of the servers."""
    return PORTS.get(protocol, PORTS["http"])


def metadata_of(route: InferenceRoute, before: Weights | None) -> Manifest:
    """The metadata of an object of the route, with the former weights while they are being changed."""
    metadata: Manifest = {"name": route.name, "namespace": route.namespace}
    if before is not None:
        metadata["annotations"] = {ANNOTATION_FROM: json.dumps(dict(before), sort_keys=True)}
    return metadata


def _parent(route: InferenceRoute) -> Manifest:
    # Group and kind are the API's defaults, and are set so that a plan shows the stored values.
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": route.gateway}
    return parent | ({"namespace": route.gateway_namespace} if route.gateway_namespace else {})


def _rule(route: InferenceRoute, protocol: str, weights: Weights) -> Manifest:
    rule: Manifest = {
        "matches": _grpc_matches(route) if protocol == "grpc" else _http_matches(route),
        "backendRefs": [
            {"group": "", "kind": "Service", "name": name, "port": port_of(protocol), "weight": weight} for name, weight in weights.items()
        ],
    }
    if route.request_timeout and protocol != "grpc":
        rule["timeouts"] = {"request": f"{route.request_timeout}s"}
    return rule


def _http_matches(route: InferenceRoute) -> list[Manifest]:
    paths = (("PathPrefix", "/v1"),) if "openai" in route.protocols else _PATHS
    paths = (("PathPrefix", "/"),) if route.management_api else paths
    return [{"path": {"type": kind, "value": value}} for kind, value in paths]


def _grpc_matches(route: InferenceRoute) -> list[Manifest]:
    whole: Manifest = {"type": "Exact", "service": SERVICE}
    methods = [whole] if route.management_api else [{**whole, "method": name} for name in METHODS]
    return [{"method": method} for method in methods]


def weights_of(live: Manifest) -> dict[str, int]:
    """The weights of a live route; one that is not written is 1."""
    rows = (row for rule in live["spec"].get("rules") or () for row in rule.get("backendRefs") or ())
    return {row["name"]: int(row.get("weight", 1)) for row in rows}


def weights_before(live: Manifest) -> dict[str, int] | None:
    """The weights of a live route before an interrupted run changed them."""
    text = annotations_of(live).get(ANNOTATION_FROM)
    return dict(json.loads(text)) if text else None


def shares(weights: Weights) -> dict[str, float]:
    """The share of the requests that each server gets."""
    total = sum(weights.values()) or 1
    return {name: weight / total for name, weight in weights.items()}


def between(before: Weights, after: Weights, percent: int) -> dict[str, int]:
    """The weights, in thousandths, at PERCENT of the change. A server that is missing in one of both has weight 0 there."""
    old, new = shares(before), shares(after)
    part = percent / 100
    return {name: round(1000 * ((1 - part) * old.get(name, 0) + part * new.get(name, 0))) for name in {**before, **after}}
