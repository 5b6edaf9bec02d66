#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inference_route
short_description: Manage the routes from a Gateway to Triton servers, and replace a server in steps
description:
  - Routes of the Gateway API (an HTTPRoute and a GRPCRoute with the same weights) from a Gateway to servers of
    M(muster.ml.triton_server), for any controller that serves them; or Istio's own, a VirtualService with both protocols.
  - With O(steps), requests move to another server little by little. After each step the servers that get more of them are judged by their
    own statistics. If too many requests fail, or take too long, or a replica gets lost, all requests go again to where they went
    before, and the task fails with the reason. A run that was interrupted is taken up where it was.
  - Clients reach health, metadata and inference of the models. What loads and unloads models stays closed, see O(management_api).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.attributes
  - muster.ml.attributes.kube
attributes:
  action:
    support: none
options:
  name:
    description: Name of both routes.
    type: str
    default: inference
  kind:
    description:
      - Kind of the routes. V(istio) needs a Gateway of C(networking.istio.io). Its VirtualService has no status, so that no task can wait
        until the new weights count.
      - With another kind than before, routes of the other one are deleted when the new ones are there.
    type: str
    choices: [gateway-api, istio]
    default: gateway-api
  gateway:
    description: Name of the Gateway. Required with O(state=present).
    type: str
  gateway_namespace:
    description: Namespace of the Gateway, if it is another one. The Gateway's listeners must allow routes from O(namespace).
    type: str
  hostnames:
    description: Host names that the routes are for. By default all of the Gateway's.
    type: list
    elements: str
    default: []
  protocols:
    description:
      - Protocols that clients speak. A gRPC client needs a Gateway whose controller supports GRPCRoute.
      - V(openai) alone leads to servers of M(muster.ml.vllm_server), and only to what is below C(/v1). Its O(steps) cannot be judged.
    type: list
    elements: str
    choices: [http, grpc, openai]
    default: [http, grpc]
  backends:
    description: Servers that get the requests. Required with O(state=present).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of a server, which is that of its Service.
        type: str
        required: true
      weight:
        description:
          - Part of the requests that it gets, in proportion to the others.
          - V(0) takes it out, so that it can be stopped without a failed request.
        type: int
        default: 1
  management_api:
    description:
      - Routes to everything that the server offers, such as loading and unloading of models and shared memory. The server does not
        authenticate clients.
    type: bool
    default: false
  request_timeout:
    description: Seconds after which the Gateway gives up an HTTP request. By default its controller decides.
    type: int
  steps:
    description:
      - Percentages of the way from the weights that there are to O(backends), such as V([10, 50]). Without them the weights change at once.
    type: list
    elements: int
    default: []
  interval:
    description: Seconds for which each step is watched.
    type: int
    default: 60
  min_requests:
    description:
      - Requests that a server must have answered before a step is judged.
      - They are waited for by O(wait_timeout) longer than O(interval). If they do not come, it goes back.
    type: int
    default: 20
  max_failure_ratio:
    description: Share of failed requests above which it goes back.
    type: float
    default: 0.01
  max_latency_ms:
    description: Mean milliseconds of a request in the server, its queue included, above which it goes back. By default any time will do.
    type: float
  state:
    description: V(present) creates or changes the routes, V(absent) deletes them.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: muster.ml.triton_server
  - module: muster.ml.vllm_server
  - module: muster.ml.inference_check
"""

EXAMPLES = r"""
- name: Create the routes from a Gateway to a server
  muster.ml.inference_route:
    namespace: ml
    gateway: inference
    hostnames: [inference.example.com]
    backends: [{name: triton}]
    wait: true

- name: Create the routes from a Gateway of Istio
  muster.ml.inference_route:
    namespace: ml
    kind: istio
    gateway: inference
    hostnames: [inference.example.com]
    backends: [{name: triton}]

- name: Replace it by another server, but not if one in a hundred requests fails or the mean is more than 50 ms
  muster.ml.inference_route:
    namespace: ml
    gateway: inference
    hostnames: [inference.example.com]
    backends: [{name: triton-next}]
    steps: [5, 25, 50]
    interval: 300
    max_failure_ratio: 0.01
    max_latency_ms: 50
    wait: true
"""

RETURN = r"""
weights:
  description: Weight of each server.
  returned: state is present
  type: dict
  sample: {triton-next: 1}
objects:
  description: The routes with what was done to each.
  returned: success
  type: list
  elements: dict
  sample: [{kind: HTTPRoute, name: inference, namespace: ml, action: created}]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MissingKind
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE, WAIT, fields_of, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects, delete_unwanted
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Change, Report
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import check_count, owner_of
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import route, route_istio
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.route import InferenceRoute, Weights
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.route_steps import Limits, Steps

BACKEND: dict[str, dict[str, t.Any]] = {"name": {"type": "str", "required": True}, "weight": {"type": "int", "default": 1}}
APIS = {"gateway-api": route, "istio": route_istio}
"""The APIs of routes, by option kind."""
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **options_of(InferenceRoute, hidden=("weights",)),
    "name": {"type": "str", "default": "inference"},
    "kind": {"type": "str", "choices": list(APIS), "default": "gateway-api"},
    "backends": {"type": "list", "elements": "dict", "options": BACKEND},
    **options_of(Limits),
    **STATE,
    **APPLY,
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", ("gateway", "backends"))]}


def desired(params: dict[str, t.Any], namespace: str) -> InferenceRoute:
    """The routes that the options describe."""
    if params["request_timeout"] is not None:
        check_count(params["request_timeout"], "request_timeout", minimum=1)
    weights = route.checked_weights(params["backends"])
    return InferenceRoute(**{**fields_of(InferenceRoute, params), "namespace": namespace, "weights": weights})


def all_refs(name: str, namespace: str) -> list[Ref]:
    """The routes of all protocols and kinds."""
    return [ref for api in APIS.values() for ref in api.all_refs(name, namespace)]


class _Routes:
    """The routes in a cluster."""

    def __init__(self, ctx: Context, wanted: InferenceRoute) -> None:
        self._ctx, self._wanted = ctx, wanted
        self._api = APIS[ctx.params["kind"]]
        self._refs = self._api.refs(wanted)
        self.owner = owner_of("inference_route", wanted.namespace, wanted.name)

    def require_kinds(self) -> None:
        """Raise if the cluster does not serve the routes."""
        for ref in self._refs:
            if not self._ctx.check and self._ctx.cluster.resource(ref.api_version, ref.kind) is None:
                raise MissingKind(f"This cluster does not serve {ref.kind} ({ref.api_version}).", hint=self._api.MISSING)

    def live(self) -> tuple[Weights, Weights]:
        """The weights in effect, and those to roll back to; both empty if there is no route."""
        for ref in self._refs:
            if found := self._ctx.cluster.get(ref):
                weights = self._api.weights_of(found)
                return weights, route.weights_before(found) or weights
        return {}, {}

    def write(self, weights: Weights | None = None, before: Weights | None = None, *, wait: bool = True) -> Report:
        """Apply the routes."""
        made = self._api.manifests(self._wanted, weights, before)
        return groups.apply_group(self._ctx, made, self.owner, wait=wait)

    def unwanted(self) -> list[Ref]:
        """The routes of protocols and kinds that are no longer desired."""
        return [ref for ref in all_refs(self._wanted.name, self._wanted.namespace) if ref not in self._refs]


def execute(ctx: Context) -> dict[str, t.Any]:
    """Create, change or delete the routes."""
    params = ctx.params
    if params["state"] == "absent":
        namespace, name = ctx.namespace, params["name"]
        kept = _kept(ctx, all_refs(name, namespace))
        if kept.changes:
            return ctx.result(kept)
        # Objects are deleted by name: a server without a Gateway is removed the same way, and no list of all kinds is needed.
        report = delete_objects(
            ctx.cluster, all_refs(name, namespace), owner_of("inference_route", namespace, name), check=ctx.check,
            on_progress=ctx.progress, **{key: params[key] for key in WAIT},
        )  # fmt: skip
        return ctx.result(report)
    limits = Limits(**fields_of(Limits, params))
    if limits.steps and "openai" in params["protocols"]:
        raise InvalidInput("steps: they are judged by the statistics of Triton.", "Change the weights at once.")
    APIS[params["kind"]].manifests(desired(params, params["namespace"] or "default"))  # invalid input fails before any request
    wanted = desired(params, ctx.namespace)
    routes = _Routes(ctx, wanted)
    routes.require_kinds()
    report = Report()

    def write(weights: Weights, back: Weights | None) -> None:
        report.merge(routes.write(weights, back))

    if limits.steps and not ctx.check:
        live, before = routes.live()
        if live and route.shares(live) != route.shares(wanted.weights):
            how = {"timeout": ctx.params["wait_timeout"], "progress": ctx.progress, "clock": ctx.clock}
            steps = Steps(ctx.cluster, wanted.namespace, limits, before, wanted.weights, **how)
            steps.walk(live, write)
    report.merge(routes.write(wait=params["wait"]))
    report.merge(delete_unwanted(ctx.cluster, routes.unwanted(), routes.owner, check=ctx.check))
    return ctx.result(report, weights=dict(wanted.weights))


def _kept(ctx: Context, refs: t.Sequence[Ref]) -> Report:
    """Report all routes as kept if one has a backend that is not in option backends; empty otherwise."""
    given = {row["name"] for row in ctx.params["backends"] or ()}
    live = {ref: item for ref in refs if (item := ctx.cluster.get(ref))} if given else {}
    weights = {name: weight for ref, item in live.items() for name, weight in _api_of(ref).weights_of(item).items()}
    others = [
        str(service)
        for name in sorted(name for name, weight in weights.items() if weight and name not in given)
        if ctx.cluster.get(service := Ref("v1", "Service", name, refs[0].namespace))
    ]
    if not others:
        return Report()
    why = f"leads to {', '.join(others)}, too: take the others from its backends, or remove them first"
    warning = f"Kept: {', '.join(map(str, live))} ({why})."
    return Report([Change(ref, "kept", why) for ref in live], [warning])


def _api_of(ref: Ref) -> t.Any:
    return next(api for api in APIS.values() if ref in api.all_refs(ref.name, str(ref.namespace)))


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()
