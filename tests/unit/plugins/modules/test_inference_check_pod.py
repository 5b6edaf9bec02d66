# SPDX-License-Identifier: GPL-3.0-or-later

"""inference_check from a pod: its program really runs, against a server of HTTP, and nothing of the pod stays."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import threading
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    InvalidInput,
    NotFound,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import pod_check
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.inference import Inference
from ansible_collections.muster.ml.tests.unit.fakes import pods
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.triton import METADATA, FakeTriton
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_inference_check import INPUTS, LABELS, SUM, run

Manifest = dict[str, t.Any]
POD_SPEC = {
    "containers": [{"name": "triton", "image": "registry.example/triton:1", "imagePullPolicy": "Never"}],
    "imagePullSecrets": [{"name": "login"}],
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
}
DEPLOYMENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "triton", "namespace": "default"},
    "spec": {"template": {"spec": POD_SPEC}},
}


class Node:
    """Runs the program of each pod that comes with a ConfigMap, at once and to its end."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.cluster = FakeCluster()
        self.cluster.add(DEPLOYMENT)
        self.cluster.controllers["Pod"] = self.run
        self.folder = folder
        self.ran: list[Manifest] = []
        self.files: dict[str, str] = {}
        self.said: str | None = None
        """Instead of what the program prints."""
        self.status: Manifest | None = None
        """Instead of running it."""
        self.beside: list[Manifest] = []
        """Containers that somebody put into the pod, which go on."""

    def run(self, pod: Manifest) -> Manifest | None:
        name = pod["metadata"]["name"]
        config = self.cluster.stored("ConfigMap", name, "default")
        if not config or pod["metadata"].get("deletionTimestamp"):
            return None
        self.ran.append(pod)
        self.files = config["data"]
        if self.status:
            return self.status
        for file, text in config["data"].items():
            (self.folder / file).write_text(text)
        python, *arguments = pod["spec"]["containers"][0]["command"]
        assert python == "python3"
        arguments = [argument.replace("/opt/muster", str(self.folder)) for argument in arguments]
        ended = subprocess.run([sys.executable, "-I", "-S", *arguments], capture_output=True, text=True, check=False)
        self.cluster.log_lines["default", name] = ended.stdout if self.said is None else self.said
        state = {"terminated": {"exitCode": ended.returncode, "message": ended.stderr}}
        phase = "Running" if self.beside else "Failed" if ended.returncode else "Succeeded"
        return {"phase": phase, "containerStatuses": [*self.beside, {"name": "check", "state": state}]}

    def add_replica(self, name: str, ip: str) -> None:
        found = pods.pod(name, labels=LABELS, conditions=[{"type": "Ready", "status": "True"}])
        found["status"]["podIP"] = ip
        self.cluster.add(found)

    @property
    def left(self) -> list[str]:
        """What is there besides the server's own pods."""
        return sorted(name for _group, kind, _namespace, name in self.cluster.objects if kind in ("Pod", "ConfigMap") and "check" in name)


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Node:
    return Node(tmp_path)


def url_of(triton: FakeTriton) -> str:
    return f"http://127.0.0.1:{triton.port}"


def test_an_address_is_asked_by_the_pod(node: Node, triton: FakeTriton) -> None:
    url = url_of(triton)
    found = run(node.cluster, from_pod=True, url=url, hostname="inference.example.com", **SUM, requests=5)
    assert (found["changed"], found["replicas"], found["requests"]) == (False, [url], 5)
    assert found["outputs"] == [{"name": "SUM", "datatype": "FP32", "shape": [1, 2], "data": [2.5, 3]}]
    assert (found["server"]["version"], found["model"], found["model_version"]) == ("2.51.0", METADATA, "1")
    assert 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["max"]
    assert (triton.hosts, len(triton.clients)) == ({"inference.example.com"}, 1)
    assert not node.left


def test_every_replica_is_asked_at_its_own_address(node: Node, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pod_check.PORTS, "http", triton.port)
    node.add_replica("triton-a", "127.0.0.1")
    node.add_replica("triton-b", "127.0.0.2")
    with pytest.raises(Unreachable, match=r"Triton at triton-b gives no answer: .*refused"):
        run(node.cluster, from_pod=True, **SUM)
    assert json.loads(node.files["task.json"])["urls"] == [f"http://127.0.0.{n}:{triton.port}" for n in (1, 2)]
    assert not node.left


def test_the_pod_is_as_restricted_as_it_can_be_and_where_the_image_is(node: Node, triton: FakeTriton) -> None:
    run(node.cluster, from_pod=True, url=url_of(triton), model="add")
    (pod,) = node.ran
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/triton:1", "Never")
    assert {key: spec[key] for key in ("imagePullSecrets", "nodeSelector", "tolerations")} == {
        key: POD_SPEC[key] for key in ("imagePullSecrets", "nodeSelector", "tolerations")
    }
    assert (spec["automountServiceAccountToken"], spec["restartPolicy"]) == (False, "Never")
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert spec["activeDeadlineSeconds"] > 120
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] != LABELS["app.kubernetes.io/name"]


def test_another_image_needs_no_server(node: Node, triton: FakeTriton) -> None:
    with pytest.raises(NotFound, match="Deployment default/other does not exist, whose image the pod would have"):
        run(node.cluster, from_pod=True, url=url_of(triton), model="add", name="other")
    run(node.cluster, from_pod=True, url=url_of(triton), model="add", name="other", image="python:3.12")
    assert node.ran[0]["spec"]["containers"][0]["image"] == "python:3.12"


def test_check_mode_makes_nothing(node: Node, triton: FakeTriton) -> None:
    found = run(node.cluster, check=True, from_pod=True, url=url_of(triton), **SUM)
    assert (found["changed"], found["requests"], found["latency_ms"]) == (False, 0, {})
    assert not node.cluster.requests
    assert not triton.requests


def test_what_is_wrong_is_told_and_the_pod_goes(node: Node, triton: FakeTriton) -> None:
    url = url_of(triton)
    triton.error = 0.5
    with pytest.raises(Failed, match=r"request 1: Output SUM differs in 2 of 2 values: value 0 is 3.0 instead of 2.5"):
        run(node.cluster, from_pod=True, url=url, **SUM)
    with pytest.raises(Failed, match=r"refuses to infer with model add: expected 2 inputs \(status 400\)"):
        run(node.cluster, from_pod=True, url=url, model="add", inputs=INPUTS[:1])
    with pytest.raises(NotFound, match="model nosuch is not ready, or there is none"):
        run(node.cluster, from_pod=True, url=url, model="nosuch")
    with pytest.raises(Unreachable, match=r"Triton at http://127.0.0.1:9 gives no answer: .*refused"):
        run(node.cluster, from_pod=True, url="http://127.0.0.1:9", **SUM)
    assert not node.left


def test_it_waits_in_the_pod(node: Node, triton: FakeTriton) -> None:
    triton.ready = False
    with pytest.raises(WaitTimeout, match=r"Model add is not ready after 1 s. Last seen: .*: the model is not ready"):
        run(node.cluster, from_pod=True, url=url_of(triton), **SUM, wait=True, wait_timeout=1)
    assert "/v2/models/add/infer" not in triton.requests
    threading.Timer(0.3, lambda: setattr(triton, "ready", True)).start()
    assert run(node.cluster, from_pod=True, url=url_of(triton), **SUM, wait=True)["requests"] == 1
    assert not node.left


def test_each_answer_is_read_with_its_own_time() -> None:
    path, inference = "/v2/models/add/infer", Inference(model="add", inputs=INPUTS)
    texts = ['{"outputs": [1]}', '{"outputs": [2]}']
    place = {"answers": [[path, 200, 0, 0.25], [path, 200, 1, 0.5]], "error": "connection reset"}
    client = pod_check.Recorded("Triton", place, texts)
    assert [client.infer(inference) for _number in range(2)] == [({"outputs": [1]}, 0.25), ({"outputs": [2]}, 0.5)]
    with pytest.raises(Unreachable, match="Triton gives no answer: connection reset"):
        client.infer(inference)


def test_a_pod_that_cannot_ask_is_told_and_goes(node: Node) -> None:
    asked: Manifest = {"from_pod": True, "url": "http://triton.ml.svc:8000", **SUM}
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    node.status = {"phase": "Pending", "containerStatuses": [{"name": "check", "state": waiting}]}
    with pytest.raises(WaitTimeout, match=r"which checks the server, does not run after 1 s.*ImagePullBackOff"):
        run(node.cluster, **asked, wait_timeout=1)
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": "python3: not found"}}
    node.status = {"phase": "Failed", "containerStatuses": [{"name": "check", "state": ended}]}
    with pytest.raises(Failed, match="could not check the server: python3: not found"):
        run(node.cluster, **asked)
    node.status = None
    node.said = "{"
    with pytest.raises(Failed, match=r"The log of Pod default/triton-check-\w+ is not whole: 1 bytes"):
        run(node.cluster, **{**asked, "url": "http://127.0.0.1:9"})
    assert not node.left


def test_the_name_is_that_of_the_check_and_not_of_the_replicas(node: Node, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pod_check.PORTS, "http", triton.port)
    node.add_replica("triton-a", "127.0.0.1")
    run(node.cluster, from_pod=True, model="add")
    del node.cluster.objects["", "Pod", "default", "triton-a"]
    node.add_replica("triton-b", "127.0.0.1")
    run(node.cluster, from_pod=True, model="add")
    run(node.cluster, from_pod=True, model="add", url=url_of(triton))
    replicas, others, url = (pod["metadata"]["name"] for pod in node.ran)
    assert replicas == others != url


def test_the_container_of_a_mesh_is_not_waited_for(node: Node, triton: FakeTriton) -> None:
    node.beside = [{"name": "istio-proxy", "state": {"running": {}}, "ready": True}]
    assert run(node.cluster, from_pod=True, url=url_of(triton), model="add")["model"] == METADATA
    assert not node.left


def test_a_pod_that_takes_its_time_to_go_hides_nothing(node: Node, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def never_gone(*_given: t.Any, wait: bool, **_more: t.Any) -> None:
        asked.append(wait)
        if wait and node.left:
            raise WaitTimeout("2 of 2 objects not gone")

    monkeypatch.setattr(pod_check, "delete_objects", never_gone)
    triton.error = 0.5
    with pytest.raises(Failed, match="Output SUM differs"):
        run(node.cluster, from_pod=True, url=url_of(triton), **SUM)
    assert asked == [True, False, True]  # the second time both at once, because the first to go would be waited for
    with pytest.raises(WaitTimeout, match="not gone"):
        run(node.cluster, from_pod=True, url=url_of(triton), **SUM)


def test_what_a_killed_run_has_left_is_replaced(node: Node, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    node.status = {"phase": "Running"}
    monkeypatch.setattr(pod_check.PodCheck, "longest", 0)
    monkeypatch.setattr(pod_check, "_ENDS_S", 0.1)
    monkeypatch.setattr(pod_check, "delete_objects", lambda *_given, **_more: None)
    with pytest.raises(WaitTimeout, match="does not end"):
        run(node.cluster, from_pod=True, url=url_of(triton), model="add")
    assert node.left
    monkeypatch.undo()
    node.status, before = None, len(node.cluster.writes)
    assert run(node.cluster, from_pod=True, url=url_of(triton), model="add")["server"]["version"] == "2.51.0"
    assert [request.verb for request in node.cluster.writes[before:]] == ["delete"] * 2 + ["apply"] * 2 + ["delete"] * 2
    assert not node.left


def test_what_a_pod_cannot_do_is_refused_before_there_is_one(node: Node) -> None:
    big = [{"name": "A", "datatype": "BYTES", "shape": [1], "data": ["x" * 1_000_000]}]
    refused: list[tuple[Manifest, str]] = [
        ({"protocol": "grpc"}, "from_pod: the pod asks by HTTP only"),
        ({"url": "triton.ml.svc:8000"}, "is not the address of a server"),
        ({"inputs": big}, r"inputs: 1\d{6} bytes are more than a pod is given"),
    ]
    for more, told in refused:
        with pytest.raises(InvalidInput, match=told):
            run(node.cluster, **{"from_pod": True, "url": "http://triton.ml.svc:8000", "model": "add", **more})
    assert not node.cluster.writes
