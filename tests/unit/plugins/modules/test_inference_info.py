# SPDX-License-Identifier: GPL-3.0-or-later
"""inference_info: what real servers have told of themselves, and servers that tell nothing, by forwarded ports."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core import metrics
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.metrics import FIGURES as OF_VLLM
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import FIGURES as OF_TRITON
from ansible_collections.muster.ml.plugins.modules import inference_info, triton_server, vllm_server
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

RECORDED: dict[str, t.Any] = json.loads((Path(__file__).parents[2] / "recorded" / "metrics.json").read_text(encoding="utf-8"))
BUSY, LATER = RECORDED["triton"]["busy"], RECORDED["triton"]["later"]
OPT, BUCKETS = RECORDED["vllm"]["text"], RECORDED["vllm_buckets"]["text"]
LAST = 'vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf",model_name="/home/jovyan/qwen3-8b"} 3.0\n'


class Telling(Served):
    """A server that gives the same answer to every request; MEETING is waited for before."""

    def __init__(self, text: str, status: int = 200, *, meeting: threading.Barrier | None = None, size: int | None = None) -> None:
        self.paths: list[str] = []
        telling = self

        class Handler(Answering):
            def do_GET(self) -> None:
                telling.paths.append(self.path)
                if meeting:
                    meeting.wait(60)
                self.reply(status, text, {"Content-Length": str(size)} if size else None)
                # Until the client goes.
                while size and self.rfile.read(1):
                    pass

        super().__init__(Handler)


@pytest.fixture
def add(cluster: FakeCluster) -> t.Iterator[t.Callable[..., Telling]]:
    """Adds a server to the cluster, with replicas that are ready, all of which tell the same."""
    with contextlib.ExitStack() as stack:

        def added(module: t.Any, name: str, text: str, status: int = 200, *, replicas: tuple[str, ...] = ("a",), **more: t.Any) -> Telling:
            needed = {"model": "example/chat"} if module is vllm_server else {"model_repository": "gs://example-models/live"}
            cluster.add(tasks.DISKS)
            tasks.run(module, cluster, {"name": name, "namespace": "default", "wait": False, "replicas": len(replicas), **needed})
            live = cluster.objects["apps", "Deployment", "default", name]
            live["status"] = {"readyReplicas": len(replicas)}
            made = Telling(text, status, **more)
            stack.callback(made.stop)
            for replica in replicas:
                ready = [{"type": "Ready", "status": "True"}]
                cluster.add(pods.pod(f"{name}-{replica}", labels=live["spec"]["template"]["metadata"]["labels"], conditions=ready))
                port = 8000 if module is vllm_server else 8002
                cluster.forwarded["default", f"{name}-{replica}", port] = ("127.0.0.1", made.port)
            return made

        yield added


def run(cluster: FakeCluster, **params: t.Any) -> dict[str, t.Any]:
    writes = len(cluster.writes)
    result = tasks.run(inference_info, cluster, {"namespace": "default", **params})
    assert len(cluster.writes) == writes
    return result


def test_triton_tells_requests_queue_and_latency_of_each_model(cluster: FakeCluster, add: t.Callable[..., Telling]) -> None:
    asked = add(triton_server, "triton", BUSY)
    (row,) = run(cluster)["servers"]
    assert asked.paths == ["/metrics"]
    assert (row["served"], row["failed"], row["waiting"]) == (63, 0, 2)
    assert row["latency_ms"] == {"mean": 21.929, "queue": 0.065, "p50": 20.5, "p99": 39.561}
    # There is neither a count of requests that run nor a mean of none.
    assert {"running", "cache_percent", "requests_per_s"}.isdisjoint(row)
    assert [(one["name"], one["served"], one["waiting"]) for one in row["models"]] == [("add", 63, 0), ("slow", 0, 2)]
    assert row["models"][1]["latency_ms"] == {}
    assert row["line"] == (
        "1 of 1 ready, 63 served, 0 failed, 2 waiting, mean 21.9 ms, queue 0.065 ms, p50 20.5 ms, p99 39.6 ms, models add; slow"
    )


def test_vllm_tells_what_runs_and_how_long_it_takes(cluster: FakeCluster, add: t.Callable[..., Telling]) -> None:
    add(vllm_server, "llm", OPT, replicas=("a", "b"))
    (row,) = run(cluster)["servers"]
    assert (row["ready"], row["wanted"], row["pods"]) == (2, 2, {"llm-a": 1, "llm-b": 1})
    # Without a request that failed there is no count of them.
    assert {key: row[key] for key in ("served", "running", "waiting", "cache_percent") if key in row} == {
        "served": 2, "running": 0, "waiting": 0, "cache_percent": 0
    }  # fmt: skip
    assert "failed" not in row
    assert row["latency_ms"] == {"mean": 503.43, "p50": 500.0, "p99": 990.0}
    assert [one["name"] for one in row["models"]] == ["facebook/opt-125m"]


def test_the_names_are_those_that_the_pinned_version_has() -> None:
    fits = [name for name in RECORDED["vllm_names"]["names"] if any(fit(metrics.Sample(name, {}, 1)) for fit in OF_VLLM.counts.values())]
    assert fits == ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:request_success_total"]
    others = {
        OF_VLLM.latency,
        *(name for name, _by in OF_VLLM.largest.values()),
        *(name.rpartition("_")[0] for names in OF_VLLM.means.values() for name in names),
    }
    assert {*fits, *others} == set(RECORDED["vllm_names"]["names"])


def test_a_request_that_failed_is_not_served() -> None:
    line = 'vllm:request_success_total{{engine="0",finished_reason="{}",model_name="m"}} {}\n'
    found = OF_VLLM.of(list(metrics.samples(line.format("stop", 4) + line.format("error", 2) + line.format("abort", 1))))
    assert (found["served"], found["failed"]) == (5, 2)


def test_a_quantile_is_linear_in_its_bucket_and_of_all_replicas() -> None:
    name = "vllm:e2e_request_latency_seconds"
    once = [one._replace(labels={**one.labels, "pod": "a"}) for one in metrics.samples(BUCKETS + LAST)]
    # 1.5 of 3 requests: half of the way from 2.5 s, by which one was answered, to 5 s, by which two were.
    assert metrics.quantiles(name, once) == pytest.approx({"p50": 3.75, "p99": 9.85})
    other = [one._replace(labels={**one.labels, "pod": "b"}) for one in once if one.labels["le"] != "0.5"]
    assert metrics.quantiles(name, [*once, *other]) == pytest.approx({"p50": 3.75, "p99": 9.85})
    # Nobody knows how many there are in all.
    assert metrics.quantiles(name, list(metrics.samples(BUCKETS))) == {}
    slow = [one._replace(value=0.0) if one.labels["le"] != "+Inf" else one for one in once]
    assert metrics.quantiles(name, slow) == {"p50": 50.0, "p99": 50.0}


def test_the_rate_is_between_two_readings(cluster: FakeCluster, add: t.Callable[..., Telling], tmp_path: Path) -> None:
    add(triton_server, "triton", BUSY)
    earlier = tmp_path / "status.json"
    assert "requests_per_s" not in run(cluster, earlier=str(earlier))["servers"][0]
    earlier.write_text(json.dumps({"trainings": [], "servers": run(cluster)["servers"]}))
    cluster.forwarded["default", "triton-a", 8002] = ("127.0.0.1", add(triton_server, "other", LATER).port)
    cluster.clock.now += 6
    rows = run(cluster, earlier=str(earlier))["servers"]
    assert [(row["name"], row.get("requests_per_s")) for row in rows] == [("triton", 0.5), ("other", None)]
    assert "66 served, 0 failed, 0 waiting, 0.5 a second" in rows[0]["line"]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"servers": [{"name": "triton"}]}', '{"servers": [1]}'])
def test_an_earlier_reading_that_is_none_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(text)
    assert inference_info.earlier_of(str(tmp_path / "status.json")) == inference_info.earlier_of(None) == {}


def test_what_a_server_does_not_count_is_not_zero() -> None:
    told = [one for one in metrics.samples(BUSY) if "duration" not in one.name and "summary" not in one.name]
    assert OF_TRITON.of(told) == {"served": 63, "failed": 0, "waiting": 2, "latency_ms": {}}
    wrong = 'vllm:e2e_request_latency_seconds_bucket{le="1"} 0\nvllm:e2e_request_latency_seconds_bucket{le="+Inf"} -1\n'
    assert OF_VLLM.of(list(metrics.samples(wrong + "vllm:num_requests_running 1e999\n"))) == {"latency_ms": {}}


def test_a_replica_that_was_restarted_has_no_rate() -> None:
    assert metrics.rate({"a": 3, "b": 20}, {"a": 60, "b": 10, "c": 5}, 10) == 1.0
    assert metrics.rate({"a": 3}, {"a": 60}, 10) is metrics.rate({"a": 3}, {}, 10) is metrics.rate({"a": 3}, {"a": 1}, 0) is None


@pytest.mark.parametrize(
    ("status", "text", "cause"),
    [
        (404, '{"detail":"Not Found"}', "answers 404 to /metrics at port 8000"),
        (401, '{"error":"Unauthorized"}', "answers 401 to /metrics at port 8000"),
        (200, "", "has no metrics of vLLM at port 8000"),
        (200, "<!doctype html>\n<html><body>vllm:num_requests_running 1\n", "has no metrics of vLLM at port 8000"),
        (200, "vllm:num_requests_running x\n\x00\xff{ 1\npython_info 1\n", "has no metrics of vLLM at port 8000"),
        (200, BUSY, "has no metrics of vLLM at port 8000"),
    ],
)
def test_an_answer_that_is_no_metrics_is_told(
    cluster: FakeCluster, add: t.Callable[..., Telling], status: int, text: str, cause: str
) -> None:
    add(vllm_server, "llm", text, status)
    (row,) = run(cluster)["servers"]
    assert row["unread"] == [f"Pod default/llm-a {cause}"]
    assert (row["latency_ms"], row["models"], row["pods"], "served" in row) == ({}, [], {}, False)
    assert row["line"] == f"1 of 1 ready: Pod default/llm-a {cause}"


@pytest.mark.parametrize("text", ["", OPT])
def test_a_server_that_hangs_has_its_time_and_no_more(
    cluster: FakeCluster, add: t.Callable[..., Telling], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(inference_info, "WITHIN_S", 0.2)
    add(vllm_server, "llm", text, size=1 << 20)
    (row,) = run(cluster)["servers"]
    assert row["unread"][0].startswith("vLLM in Pod default/llm-a gives no answer: ")


def test_a_drop_at_a_time_is_no_answer(cluster: FakeCluster, add: t.Callable[..., Telling], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read of the client succeeds in its time: only all of the time ends it."""
    monkeypatch.setattr(inference_info, "WITHIN_S", 0.2)
    made = add(vllm_server, "llm", "", size=1 << 30)
    handler = made.server.RequestHandlerClass

    def drip(self: t.Any) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            for _number in itertools.count():
                self.wfile.write(b"# \n")

    monkeypatch.setattr(handler, "do_GET", drip)
    (row,) = run(cluster)["servers"]
    assert len(row["unread"]) == 1


def test_all_replicas_are_asked_side_by_side(cluster: FakeCluster, add: t.Callable[..., Telling]) -> None:
    """None answers before all were asked."""
    meeting = threading.Barrier(4)
    add(triton_server, "triton", BUSY, replicas=("a", "b"), meeting=meeting)
    add(vllm_server, "llm", OPT, meeting=meeting)
    add(vllm_server, "old", "", 404, meeting=meeting)
    rows = [(row["system"], row["name"], row.get("served")) for row in run(cluster)["servers"]]
    assert rows == [("triton", "triton", 126), ("vllm", "llm", 1), ("vllm", "old", None)]


def test_a_missing_right_is_told_and_fails_nothing(
    cluster: FakeCluster, add: t.Callable[..., Telling], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(vllm_server, "llm", OPT)

    def refused(_namespace: str, pod: str, _port: int, **_: float) -> t.Any:
        raise Forbidden("You may not forward a port.", ref=Ref("v1", "Pod", pod, "default"))

    monkeypatch.setattr(cluster, "port_forward", refused)
    assert run(cluster)["servers"][0]["unread"] == ["You may not forward a port"]
    listing = cluster.list

    def hidden(api_version: str, kind: str, *more: t.Any) -> t.Any:
        if kind in unlisted:
            raise Forbidden(f"You may not list {kind}s.")
        return listing(api_version, kind, *more)

    monkeypatch.setattr(cluster, "list", hidden)
    unlisted = {"LeaderWorkerSet"}
    found = run(cluster)
    assert ([row["name"] for row in found["servers"]], found["unread"]) == (["llm"], ["vLLM: You may not list LeaderWorkerSets."])
    unlisted = {"Deployment"}
    found = run(cluster)
    titles = ("Triton", "vLLM", "Runner")
    assert (found["servers"], found["unread"]) == ([], [f"{title}: You may not list Deployments." for title in titles])


def test_a_server_without_replicas_has_no_figures(cluster: FakeCluster, add: t.Callable[..., Telling]) -> None:
    add(vllm_server, "llm", OPT, replicas=())
    (row,) = run(cluster)["servers"]
    assert (row["line"], row["unread"]) == ("0 of 0 ready", [])


def test_labels_are_read_as_they_were_meant() -> None:
    text = 'a{m="x\\"},\\\\\\n",n="}"} 1 1700000000000\nb 2e3\nc{m="open} 1\n# d 1\ne{q="1"} Nan\nf +Inf\ng 1'
    assert [tuple(one) for one in metrics.samples(text)] == [("a", {"m": 'x"},\\\n', "n": "}"}, 1.0), ("b", {}, 2000.0)]


_TOLD, _OF_ETCD, ETCD = (Path(__file__).parents[2] / "recorded" / "exposition.txt").read_text(encoding="utf-8").partition("# etcd")
BROKER = _TOLD.partition("# RabbitMQ")[2]
FIRST, LEADS, ALONE, FULL, FULL_3_5 = ETCD.split("# etcd")
RUNNER = Path(__file__).parents[4] / "roles" / "local_images" / "files" / "studioml_runner" / "0.14.2.json"
SCENES: dict[str, t.Any] = json.loads(RUNNER.read_text(encoding="utf-8"))["scenes"]
SUMMARY = {"pods": [{"podRef": {"name": name, "namespace": "default"}, "volume": [
    {"name": "tmp", "usedBytes": 7}, {"name": "data", "pvcRef": {"name": "data"}, "usedBytes": 1 << 30, "availableBytes": 3 << 30},
]} for name in ("x-0", "other")]}  # fmt: skip


@pytest.fixture(name="place")
def placed(cluster: FakeCluster) -> t.Iterator[t.Callable[..., None]]:
    """Adds the workload x of an app, of which each pod tells a text at PORT, where it is not empty; READY: how many are ready."""
    with contextlib.ExitStack() as stack:

        def place(app: str, port: int, *texts: str, ready: int = 1, status: int = 200, kind: str = "StatefulSet", **more: t.Any) -> None:
            labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/instance": "x"}
            meta = {"name": "x", "namespace": "default", "labels": {**labels, "muster.ml/owner": "x"}, "annotations": more.pop("notes", {})}
            spec = {"replicas": len(texts), **more}
            cluster.add({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec, "status": {"readyReplicas": ready}})
            for number, text in enumerate(texts):
                name = f"x-{number}" if kind == "StatefulSet" else f"x-{kind}-{number}"
                are = {"PodScheduled": True, "Ready": number < ready}
                states = [{"type": one, "status": str(is_so)} for one, is_so in are.items()]
                pod = pods.pod(name, labels=labels, conditions=states)
                cluster.add({**pod, "spec": {**pod.get("spec", {}), "nodeName": "n"}})
                made = Telling(text, status)
                stack.callback(made.stop)
                cluster.forwarded["default", name, port] = ("127.0.0.1", made.port)

        yield place


def test_a_broker_tells_its_queues_and_alarms(cluster: FakeCluster, place: t.Callable[..., None], tmp_path: Path) -> None:
    place("rabbitmq", 15692, BROKER.replace("memory_used_watermark 0", "memory_used_watermark 1"))
    (row,) = run(cluster)["servers"]
    # The stand-in tells everything at each of the two paths.
    assert row["line"].startswith("1 of 1 ready, 6 messages ready, 0 messages unacked, 0 consumers, 2 alarms, ")
    assert [(one["name"], one["messages_ready"], one["consumers"]) for one in row["queues"]] == [("rmq_left", 6, 0)]
    (tmp_path / "status.json").write_text(json.dumps({"servers": [{**row, "history": [[row["at"] - 60, 9]]}]}))
    (again,) = run(cluster, earlier=str(tmp_path / "status.json"))["servers"]
    assert again["history"] == [(row["at"] - 60, 9.0), (row["at"], 6)]
    assert [(one["name"], one["spark"], one["last"]) for one in again["plots"]] == [("messages ready", "█▁", "6")]


@pytest.mark.parametrize("text", ['{"connections": 2, "in_msgs": 9, "out_msgs": 8, "slow_consumers": 0, "version": "2"}', "[]", "none"])
def test_nats_tells_its_connections(cluster: FakeCluster, place: t.Callable[..., None], text: str) -> None:
    place("nats", 8222, text)
    (row,) = run(cluster)["servers"]
    wrong = "1 of 1 ready: Pod default/x-0 has no metrics of NATS cluster at port 8222"
    assert row["line"] == ("1 of 1 ready, 2 connections, 9 messages in, 8 messages out, 0 slow consumers" if "{" in text else wrong)


def test_the_kubelet_tells_the_volume_of_a_store(cluster: FakeCluster, place: t.Callable[..., None]) -> None:
    place("object-store", 1, "")
    cluster.paths["/api/v1/nodes/n/proxy/stats/summary"] = {"pods": []}
    assert run(cluster)["servers"][0]["unread"] == ["the kubelet does not measure the volume of Pod default/x-0"]
    cluster.paths["/api/v1/nodes/n/proxy/stats/summary"] = SUMMARY
    assert run(cluster)["servers"][0]["line"] == "1 of 1 ready, 1 GiB used, 3 GiB free"


ETCD_LINES = {
    "three members": ((FIRST, LEADS, FIRST), 3, 200, "3 of 3 ready, 3 members, 3 keys, 20 KiB used, 2 GiB quota, leader x-1, no alarm"),
    # One that has no leader is not ready.
    "no majority": ((ALONE,), 0, 503, "0 of 1 ready, 1 member, 3 keys, 20 KiB used, 2 GiB quota, no leader, no alarm"),
    "3.6": ((FULL,), 0, 503, "0 of 1 ready, 1 member, 11 keys, 2.895 MiB used, 2.861 MiB quota, leader x-0, alarm NOSPACE"),
    "3.5": ((FULL_3_5,), 0, 503, "0 of 1 ready, 1 member, 8 keys, 2.707 MiB used, 2.861 MiB quota, leader x-0, alarm NOSPACE"),
    "an alarm that is over": ((FULL.replace("ALARM NOSPACE", "").replace("} 1", "} 21", 1),), 1, 200,
                              "1 of 1 ready, 1 member, 11 keys, 2.895 MiB used, 2.861 MiB quota, leader x-0, no alarm"),
    "no etcd": (("<html>",), 1, 200, "1 of 1 ready: Pod default/x-0 has no metrics of etcd at port 2381"),
}  # fmt: skip


@pytest.mark.parametrize("name", ETCD_LINES)
def test_etcd_tells_its_leader_and_its_alarm(cluster: FakeCluster, place: t.Callable[..., None], name: str) -> None:
    texts, ready, status, line = ETCD_LINES[name]
    place("etcd", 2381, *texts, ready=ready, status=status)
    assert run(cluster)["servers"][0]["line"] == line


def test_a_member_that_is_gone_is_named(cluster: FakeCluster, place: t.Callable[..., None]) -> None:
    place("etcd", 2381, FIRST, LEADS, ready=1)
    del cluster.forwarded["default", "x-1", 2381]
    line = run(cluster)["servers"][0]["line"]
    assert line.startswith("1 of 2 ready, 1 member, 3 keys, 20 KiB used, 2 GiB quota, no leader, no alarm: ")
    assert "x-1" in line.partition(": ")[2]


@pytest.mark.parametrize(
    ("scene", "line"),
    [("idle", "0 running, 0 ended"), ("working", "0 running, 0 ended"), ("finished", "0 running, 1 ended"),
     ("artifact_missing", "0 running, 1 ended")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("uses", "variables", "waits"),
    [("x Secret:login", {}, ", 6 waiting"), ("x.default.svc s3.example", {}, ", 6 waiting"), ("x", {"QUEUE_MATCH": "^sqs_"}, ""),
     ("x", {"QUEUE_MISMATCH": "left$"}, ""), ("broker.example", {}, ""), ("x.other.svc", {}, "")],
)  # fmt: skip
def test_a_runner_tells_its_experiments(
    cluster: FakeCluster, place: t.Callable[..., None], scene: str, line: str, uses: str, variables: dict[str, str], waits: str
) -> None:
    answers = BROKER.replace("rmq_left", "rmq_left_response") + BROKER
    place("rabbitmq", 15692, answers)
    env = [{"name": name, "value": value} for name, value in {"QUEUE_MATCH": "^rmq_.*$", **variables}.items()]
    template = {"spec": {"containers": [{"env": [{"name": "AMQP_URL", "valueFrom": {}}, *env]}]}}
    told = "\n".join([*SCENES[scene]["metrics"], ""])
    place("studioml-runner", 9090, told, kind="Deployment", template=template, notes={"muster.ml/uses": uses})
    broker, runner = run(cluster)["servers"]
    assert (broker["system"], runner["line"]) == ("rabbitmq", f"1 of 1 ready, {line}{waits}")


def test_a_runner_tells_what_runs(cluster: FakeCluster, place: t.Callable[..., None], tmp_path: Path) -> None:
    lines = [line.replace("} 0", "} 1") if "running{" in line else line for line in SCENES["finished"]["metrics"]]
    place("studioml-runner", 9090, "\n".join([*lines, ""]), kind="Deployment", template={"spec": {"containers": [{}]}})
    (row,) = run(cluster)["servers"]
    assert (row["line"], row["running"]) == ("1 of 1 ready, 1 running, 1 ended", 1)
    (tmp_path / "status.json").write_text(json.dumps({"servers": [{**row, "history": [[row["at"] - 60, 3]]}]}))
    (plot,) = run(cluster, earlier=str(tmp_path / "status.json"))["servers"][0]["plots"]
    assert (plot["name"], plot["spark"]) == ("running", "█▁")
