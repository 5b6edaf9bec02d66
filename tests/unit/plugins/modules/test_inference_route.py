# SPDX-License-Identifier: GPL-3.0-or-later
"""inference_route: routes by weights, the steps between them, and the way back."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, MissingKind, NotFound, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import route, route_istio, route_steps
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.route_steps import Counts
from ansible_collections.muster.ml.plugins.modules import inference_route
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

Manifest = dict[str, t.Any]
VIRTUAL = Ref(route_istio.API, route_istio.KIND, "inference", "default")
HTTP, GRPC = (Ref(route.GATEWAY_API, kind, "inference", "default") for kind in ("HTTPRoute", "GRPCRoute"))


class World:
    """A cluster with the servers blue and green, whose replicas count requests by the weights of the route."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: str = "gateway-api") -> None:
        self.kind, self.api = kind, inference_route.APIS[kind]
        monkeypatch.setattr(route_steps, "reached", self.reached)
        self.cluster = FakeCluster()
        for kind, plural in (("HTTPRoute", "httproutes"), ("GRPCRoute", "grpcroutes")):
            self.cluster.kinds_served[route.GATEWAY_API, kind] = ServedKind(plural, namespaced=True)
            self.cluster.controllers[kind] = self.accepts
        if self.kind == "istio":
            self.install_istio()
        self.cluster.controllers["VirtualService"] = self.accepts
        for name in ("blue", "green"):
            self.cluster.add(self.pod(name))
        self.seen: list[dict[str, int]] = []
        self.counts = {"blue": Counts(), "green": Counts()}
        self.each = Counts(good=10, nanoseconds=10 * 5_000_000)
        """What a server counts between two looks at it, while it gets requests."""

    def install_istio(self) -> None:
        self.cluster.kinds_served[route_istio.API, "VirtualService"] = ServedKind("virtualservices", namespaced=True)

    def pod(self, name: str) -> Manifest:
        labels = {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": name}
        return pods.pod(f"{name}-0", labels=labels, conditions=[{"type": "Ready", "status": "True"}])

    def accepts(self, live: Manifest) -> Manifest:
        rows = [{"type": kind, "status": "True"} for kind in ("Accepted", "ResolvedRefs")]
        weights = self.api.weights_of(live)
        if live["kind"] != "GRPCRoute" and (not self.seen or self.seen[-1] != weights):
            self.seen.append(weights)
        return {"parents": [{"conditions": rows}]} if live["kind"] != "VirtualService" else {}

    def reached(self, _cluster: t.Any, pod: Ref, **_more: t.Any) -> t.Any:
        return Statistics(self, pod.name.removesuffix("-0"))

    def run(self, *backends: tuple[str, int], check: bool = False, **params: t.Any) -> Manifest:
        given = {
            "namespace": "default",
            "gateway": "edge",
            "kind": self.kind,
            "backends": [{"name": name, "weight": weight} for name, weight in backends],
            "interval": 1,
            "wait_timeout": 1,
            **params,
        }
        return tasks.run(inference_route, self.cluster, given, check=check)

    def weights(self) -> dict[str, int]:
        return self.api.weights_of(self.live())

    def live(self) -> Manifest:
        found = self.cluster.get(HTTP if self.kind == "gateway-api" else VIRTUAL)
        assert found is not None
        return found


class Statistics:
    """A client of one replica."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name

    def __enter__(self) -> Statistics:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def read(self, path: str) -> Manifest:
        assert path == "/v2/models/stats"
        if self.world.weights().get(self.name):
            self.world.counts[self.name] += self.world.each
        counts = self.world.counts[self.name]
        stats = {"success": {"count": counts.good, "ns": counts.nanoseconds}, "fail": {"count": counts.failed}}
        return {"model_stats": [{"name": "add", "inference_stats": stats}]}


@pytest.fixture(params=list(inference_route.APIS))
def world(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> World:
    return World(monkeypatch, request.param)


@pytest.fixture
def gateway_api(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


@pytest.fixture
def istio(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch, "istio")


MOVE = {"steps": [10, 50], "min_requests": 5}


def test_both_routes_have_the_weights(gateway_api: World) -> None:
    world = gateway_api
    assert world.run(("blue", 9), ("green", 1), hostnames=["a.example.com"])["changed"]
    http, grpc = world.cluster.get(HTTP), world.cluster.get(GRPC)
    assert http is not None
    assert grpc is not None
    assert route.weights_of(http) == route.weights_of(grpc) == {"blue": 9, "green": 1}
    assert [row["port"] for row in http["spec"]["rules"][0]["backendRefs"]] == [8000, 8000]
    assert [row["port"] for row in grpc["spec"]["rules"][0]["backendRefs"]] == [8001, 8001]
    assert http["spec"]["hostnames"] == ["a.example.com"]
    world.cluster.requests.clear()
    assert not world.run(("blue", 9), ("green", 1), hostnames=["a.example.com"])["changed"]
    assert world.cluster.writes == []


def test_what_loads_models_is_closed_unless_it_is_asked_for(gateway_api: World) -> None:
    world = gateway_api

    def paths() -> list[str]:
        live = world.cluster.get(HTTP)
        assert live is not None
        return [match["path"]["value"] for match in live["spec"]["rules"][0]["matches"]]

    world.run(("blue", 1))
    assert paths() == ["/v2", "/v2/health", "/v2/models"]
    world.run(("blue", 1), management_api=True)
    assert paths() == ["/"]


def test_istio_has_one_object_with_a_rule_for_each_protocol(istio: World) -> None:
    given = {"hostnames": ["a.example.com"], "gateway_namespace": "edges", "request_timeout": 9}
    assert istio.run(("blue", 9), ("green", 0), **given)["changed"]
    spec = istio.live()["spec"]
    assert (spec["hosts"], spec["gateways"]) == (["a.example.com"], ["edges/edge"])
    http, grpc = spec["http"]
    assert [(row["destination"], row["weight"]) for row in http["route"]] == [
        ({"host": "blue", "port": {"number": 8000}}, 9),
        ({"host": "green", "port": {"number": 8000}}, 0),
    ]
    assert [row["destination"]["port"]["number"] for row in grpc["route"]] == [8001, 8001]
    assert (http["timeout"], "timeout" in grpc) == ("9s", False)
    istio.cluster.requests.clear()
    assert not istio.run(("blue", 9), ("green", 0), **given)["changed"]
    assert istio.cluster.writes == []
    istio.run(("blue", 1), protocols=["grpc"])
    assert [rule["name"] for rule in istio.live()["spec"]["http"]] == ["grpc"]
    assert istio.run(state="absent")["changed"]
    assert istio.cluster.get(VIRTUAL) is None


def test_what_loads_models_is_closed_with_istio_too(istio: World) -> None:
    """A prefix of Istio's is one of the text: that of /v2/models without a slash would be one of /v2/models-of-others, too."""

    def admitted(path: str) -> bool:
        matches = [match["uri"] for rule in istio.live()["spec"]["http"] for match in rule["match"]]
        return any(path == uri.get("exact") or path.startswith(uri.get("prefix", "\n")) for uri in matches)

    loads = ["/v2/repository/index", "/v2/repository/models/add/load", "/v2/systemsharedmemory/status",
             "/inference.GRPCInferenceService/RepositoryModelLoad", "/v2/models-of-others", "/metrics"]  # fmt: skip
    infers = ["/v2", "/v2/health/ready", "/v2/models/add/infer", "/inference.GRPCInferenceService/ModelInfer"]
    istio.run(("blue", 1))
    assert [path for path in loads if admitted(path)] == []
    assert [path for path in infers if not admitted(path)] == []
    istio.run(("blue", 1), management_api=True)
    assert [path for path in [*loads[:4], *infers] if not admitted(path)] == []


def test_routes_of_another_kind_go_when_the_new_ones_are_there(gateway_api: World) -> None:
    gateway_api.install_istio()
    gateway_api.run(("blue", 1))
    assert gateway_api.run(("blue", 1), kind="istio")["changed"]
    assert (gateway_api.cluster.get(HTTP), gateway_api.cluster.get(GRPC)) == (None, None)
    assert gateway_api.cluster.get(VIRTUAL) is not None


def test_a_protocol_that_is_no_longer_wanted_loses_its_route(gateway_api: World) -> None:
    world = gateway_api
    world.run(("blue", 1))
    world.run(("blue", 1), protocols=["http"])
    assert world.cluster.get(GRPC) is None
    assert world.run(state="absent")["changed"]
    assert world.cluster.get(HTTP) is None


def test_routes_that_lead_to_other_servers_are_kept(world: World) -> None:
    """Removing one of two servers must not take the way to the other."""
    metadata = {"name": "green", "namespace": "default"}
    world.cluster.add({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    world.run(("blue", 1), ("green", 1))
    kept = world.run(("blue", 1), state="absent")
    assert not kept["changed"]
    assert {row["action"] for row in kept["objects"]} == {"kept"}
    assert "leads to Service " in kept["objects"][0]["reason"]
    world.run(("blue", 1), ("green", 0))
    assert world.run(("blue", 1), state="absent")["changed"]


def test_requests_move_in_steps(world: World) -> None:
    world.run(("blue", 1))
    assert world.run(("green", 1), **MOVE)["weights"] == {"green": 1}
    assert world.seen == [{"blue": 1}, {"blue": 900, "green": 100}, {"blue": 500, "green": 500}, {"green": 1}]
    assert route.weights_before(world.live()) is None
    world.cluster.requests.clear()
    assert not world.run(("green", 1), **MOVE)["changed"]
    assert world.cluster.writes == []


def test_a_plan_moves_nothing(world: World) -> None:
    world.run(("blue", 1))
    assert world.run(("green", 1), check=True, **MOVE)["changed"]
    assert world.weights() == {"blue": 1}


@pytest.mark.parametrize(
    ("each", "more", "says"),
    [
        (Counts(good=9, nanoseconds=9, failed=1), {}, r"At 10 % of the way \d+ of \d+ requests to green failed"),
        (Counts(good=10, nanoseconds=10 * 80_000_000), {"max_latency_ms": 50}, "green took 80.0 ms in the mean"),
    ],
)
def test_they_go_back_when_the_other_server_is_worse(world: World, each: Counts, more: Manifest, says: str) -> None:
    world.run(("blue", 1))
    world.each = each
    with pytest.raises(Failed, match=says) as failed:
        world.run(("green", 1), **MOVE, **more)
    assert "The weights are again blue: 1." in failed.value.message
    assert world.weights() == {"blue": 1}


def test_they_go_back_when_nobody_asks(world: World) -> None:
    world.run(("blue", 1))
    world.each = Counts()
    with pytest.raises(WaitTimeout, match="0 of 5 requests to green"):
        world.run(("green", 1), **MOVE)
    assert world.weights() == {"blue": 1}


def test_they_go_back_when_a_replica_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run(("blue", 1))
    read = Statistics.read

    def lost(self: Statistics, path: str) -> Manifest:
        answer = read(self, path)
        if self.world.counts["green"].good > 10:
            self.world.cluster.remove(Ref("v1", "Pod", "green-0", "default"))
        return answer

    monkeypatch.setattr(Statistics, "read", lost)
    metadata = {"name": "green", "namespace": "default"}
    world.cluster.add({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    with pytest.raises(Failed, match=r"No pod of .*green is ready"):
        world.run(("green", 1), **MOVE)
    assert world.weights() == {"blue": 1}


def test_a_server_that_cannot_be_judged_gets_nothing(world: World) -> None:
    world.run(("blue", 1))
    world.cluster.remove(Ref("v1", "Pod", "green-0", "default"))
    with pytest.raises(NotFound, match="green does not exist"):
        world.run(("green", 1), **MOVE)
    assert world.seen == [{"blue": 1}]


def killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the routes as a run that ends at its second step does."""
    world.run(("blue", 1))
    read = Statistics.read

    def ends(self: Statistics, path: str) -> Manifest:
        if world.weights().get("green") == 500:
            raise KeyboardInterrupt
        return read(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Statistics, "read", ends)
        with pytest.raises(KeyboardInterrupt):
            world.run(("green", 1), **MOVE)
    assert world.weights() == {"blue": 500, "green": 500}
    world.seen.clear()


def test_a_run_that_was_killed_is_taken_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(world, monkeypatch)
    assert world.run(("green", 1), **MOVE)["weights"] == {"green": 1}
    assert world.seen == [{"green": 1}]


def test_a_run_after_one_that_was_killed_knows_where_to_go_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(world, monkeypatch)
    world.each = Counts(good=0, failed=10)
    with pytest.raises(Failed, match="The weights are again blue: 1"):
        world.run(("green", 1), **MOVE)
    assert world.weights() == {"blue": 1}


def test_a_cluster_without_the_gateway_api_is_told_what_to_do() -> None:
    world = World(pytest.MonkeyPatch())
    del world.cluster.kinds_served[route.GATEWAY_API, "GRPCRoute"]
    with pytest.raises(MissingKind, match="does not serve GRPCRoute"):
        world.run(("blue", 1))
    assert world.run(("blue", 1), protocols=["http"])["changed"]


def test_a_cluster_without_istio_is_told_what_to_do(istio: World) -> None:
    del istio.cluster.kinds_served[route_istio.API, "VirtualService"]
    with pytest.raises(MissingKind, match=r"does not serve VirtualService.*") as caught:
        istio.run(("blue", 1))
    assert "Install Istio" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"backends": [{"name": "blue", "weight": 0}]}, "every request would be refused"),
        ({"backends": [{"name": "blue", "weight": 1}, {"name": "blue", "weight": 1}]}, "blue is there twice"),
        ({"backends": [{"name": "blue", "weight": -1}]}, "weight of blue is -1"),
        ({"steps": [50, 10]}, "not ascending"),
        ({"steps": [100]}, "not ascending"),
        ({"interval": 0}, "interval"),
        ({"max_failure_ratio": 1.0}, "max_failure_ratio"),
        ({"request_timeout": 0}, "request_timeout"),
    ],
)
def test_what_is_refused_before_any_request(world: World, params: Manifest, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        world.run(("blue", 1), **params)
    assert world.cluster.requests == []


def test_weights_between() -> None:
    assert route.between({"a": 1}, {"b": 1}, 25) == {"a": 750, "b": 250}
    assert route.between({"a": 3, "b": 1}, {"a": 1, "b": 1}, 50) == {"a": 625, "b": 375}
    assert route.between({"a": 1}, {"a": 1, "b": 0}, 50) == {"a": 1000, "b": 0}


def test_a_replica_that_has_restarted_counts_from_nothing() -> None:
    assert Counts(3, 30, 0).since(Counts(10, 100, 1)) == Counts(3, 30, 0)
    assert Counts(13, 130, 2).since(Counts(10, 100, 1)) == Counts(3, 30, 1)


@pytest.mark.parametrize(("kind", "ref"), [("gateway-api", HTTP), ("istio", VIRTUAL)])
def test_clients_of_openai_s_api_reach_nothing_but_that(monkeypatch: pytest.MonkeyPatch, kind: str, ref: Ref) -> None:
    world = World(monkeypatch, kind)
    world.run(("llm", 1), protocols=["openai"])
    made = str(world.cluster.get(ref))
    assert ("/v1" in made, "/v2" in made, "8000" in made) == (True, False, True)
    assert world.cluster.get(GRPC) is None
    with pytest.raises(InvalidInput, match="protocols: servers of language models speak neither"):
        world.run(("llm", 1), protocols=["http", "openai"])
    with pytest.raises(InvalidInput, match="statistics of Triton"):
        world.run(("llm", 1), protocols=["openai"], steps=[50])
