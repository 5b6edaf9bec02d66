# SPDX-License-Identifier: GPL-3.0-or-later
"""inference_check: every replica that is ready is asked, by a forwarded port or at an address, and what is wrong is told."""

from __future__ import annotations

import re
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, NotFound, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.inference import answers
from ansible_collections.muster.ml.plugins.modules import inference_check
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.triton import EVENTS, METADATA, NO_DECOUPLED, NO_SEQUENCE, RECORDED, FakeTriton

LABELS = {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": "triton"}
INPUTS = [
    {"name": "A", "datatype": "FP32", "shape": [1, 2], "data": [[1.5, 2]]},
    {"name": "B", "datatype": "FP32", "shape": [1, 2], "data": [1, 1]},
]
SUM = {"model": "add", "inputs": INPUTS, "expected": [{"name": "SUM", "data": [2.5, 3]}]}


class Ticking(FakeClock):
    """A clock on which 5 ms pass from one look to the next."""

    def monotonic(self) -> float:
        self.now += 0.005
        return self.now


def run(cluster: FakeCluster | None = None, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
    found = cluster or FakeCluster()
    result = tasks.run(inference_check, found, {"namespace": "default", **params}, check=check, clock=Ticking())
    assert not found.writes
    return result


def start(cluster: FakeCluster, name: str, triton: FakeTriton, **more: t.Any) -> None:
    """A pod that is ready, with TRITON behind it."""
    ready = [{"type": "Ready", "status": more.pop("ready", "True")}]
    cluster.add(pods.pod(name, labels=LABELS, conditions=ready, **more))
    cluster.forwarded["default", name, 8000] = ("127.0.0.1", triton.port)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"requests": 0}, "requests: 0 is too small"),
        ({"request_timeout": 0}, "request_timeout: 0 is too small"),
        ({"url": "inference.example.com"}, "is not the address of a server"),
        ({"url": "ftp://inference.example.com"}, "is not the address of a server"),
        ({"inputs": INPUTS[:1], "expected": SUM["expected"], "model": "a/b"}, "not a name of a model"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(cluster: FakeCluster, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(cluster, **{"model": "add", **params})
    assert told in caught.value.message
    assert not cluster.requests


def test_every_replica_that_is_ready_is_asked_over_one_connection(cluster: FakeCluster, triton: FakeTriton) -> None:
    start(cluster, "triton-a", triton)
    start(cluster, "triton-b", triton)
    start(cluster, "triton-c", triton, ready="False")
    start(cluster, "triton-d", triton, deleted=True)
    found = run(cluster, **SUM, requests=3)
    assert (found["replicas"], found["requests"], found["changed"]) == (["triton-a", "triton-b"], 6, False)
    assert found["outputs"] == [{"name": "SUM", "datatype": "FP32", "shape": [1, 2], "data": [2.5, 3]}]
    assert found["answers"] == {"SUM": [2.5, 3]}
    assert (found["server"]["version"], found["model"], found["model_version"]) == ("2.51.0", METADATA, "1")
    assert found["latency_ms"]["p50"] == found["latency_ms"]["max"] == 5
    assert triton.requests.count("/v2/models/add/infer") == 6
    assert len(triton.clients) == 2


def test_without_inputs_there_is_no_inference(triton: FakeTriton) -> None:
    found = run(url=f"http://127.0.0.1:{triton.port}", model="add", model_version="1")
    assert (found["requests"], found["latency_ms"], found["outputs"], found["answers"]) == (0, {}, [], {})
    assert triton.requests == ["/v2/models/add/versions/1/ready", "/v2/models/add/versions/1", "/v2"]


def test_an_address_is_asked_as_it_is(triton: FakeTriton) -> None:
    url = f"http://127.0.0.1:{triton.port}/"
    assert run(url=url, **SUM)["replicas"] == [url]
    assert triton.hosts == {f"127.0.0.1:{triton.port}"}


def test_an_address_can_be_asked_for_another_name(triton: FakeTriton) -> None:
    run(url=f"http://127.0.0.1:{triton.port}", hostname="inference.example.com", **SUM)
    assert triton.hosts == {"inference.example.com"}


@pytest.mark.parametrize(
    ("outputs", "shown"),
    [
        ([{"name": "A", "data": [[1, 2], [3]]}, {"name": "B", "data": ["a", "b"]}], {"A": [1, 2, 3], "B": ["a", "b"]}),
        ([{"name": "A", "data": ["w1"]}] * 17, {"A": ["w1" * 17]}),
        ([{"name": "A", "data": [1] * 16}, {"name": "B", "data": [1] * 17}], {"A": [1] * 16}),
        ([{"name": "A", "data": []}, {"name": "B"}], {"A": [], "B": []}),
    ],
)
def test_what_is_shown_of_an_answer(outputs: list[dict[str, t.Any]], shown: dict[str, t.Any]) -> None:
    assert answers({"outputs": outputs}) == shown


def test_a_wrong_output_is_told_with_its_place(triton: FakeTriton) -> None:
    triton.error = 0.5
    with pytest.raises(Failed, match=r"Output SUM differs in 2 of 2 values: value 0 is 3.0 instead of 2.5") as caught:
        run(url=f"http://127.0.0.1:{triton.port}", **SUM)
    assert caught.value.details["outputs"][0]["data"] == [3.0, 3.5]
    assert run(url=f"http://127.0.0.1:{triton.port}", **SUM, tolerance=0.5)["requests"] == 1


def test_a_refusal_is_told_in_the_words_of_the_server(triton: FakeTriton) -> None:
    with pytest.raises(Failed, match=r"refuses to infer with model add: expected 2 inputs \(status 400\)"):
        run(url=f"http://127.0.0.1:{triton.port}", model="add", inputs=INPUTS[:1])


def test_a_decoupled_model_makes_any_number_of_responses(triton: FakeTriton) -> None:
    triton.answers = (200, EVENTS)
    given = {"url": f"http://127.0.0.1:{triton.port}", "model": "add", "inputs": [{**INPUTS[0], "name": "A"}], "stream": True}
    made = run(**given, expected=[{"name": "B", "data": [1, 2, 2, 3, 3, 4]}])
    assert [row["data"] for row in made["outputs"]] == [[1, 2], [2, 3], [3, 4]]
    assert made["answers"] == {"B": [1, 2, 2, 3, 3, 4]}
    assert made["model_version"] == "1"
    assert "/v2/models/add/generate_stream" in triton.requests
    text = {"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["The weather is"]}
    run(**{**given, "inputs": [text]}, parameters={"temperature": 0, "stop": "."})
    assert triton.bodies[1] == {"text_input": "The weather is", "parameters": {"temperature": 0, "stop": "."}}
    triton.answers = (200, EVENTS + 'data: {"error":"no memory"}\n\n')
    with pytest.raises(Failed, match="no memory"):
        run(**given)
    triton.answers = NO_DECOUPLED
    with pytest.raises(Failed, match="decoupled") as caught:
        run(**{**given, "stream": False})
    assert caught.value.hint == "Set stream: true."


def test_a_decoupled_model_that_is_to_answer_once_is_asked_by_generate(triton: FakeTriton) -> None:
    recorded = {name: (one["status"], one["text"]) for name, one in RECORDED["http"].items()}
    triton.config = recorded["config"][1]
    text = {"name": "text_input", "datatype": "BYTES", "shape": [1], "data": [RECORDED["prompt"]]}
    alone = {"name": "exclude_input_in_output", "datatype": "BOOL", "shape": [1], "data": [True]}
    given = {"url": f"http://127.0.0.1:{triton.port}", "model": "add", "parameters": {"max_tokens": 16, "temperature": 0.0}}
    whole = [{"name": "text_output", "data": [RECORDED["greedy"]]}]
    triton.answers = recorded["generate"]
    found = run(**given, inputs=[text, alone], expected=whole, requests=2)
    assert (found["outputs"], found["model_version"]) == ([{"name": "text_output", "data": [RECORDED["greedy"]]}], "1")
    assert triton.requests.count("/v2/models/add/generate") == 2
    assert triton.requests.count("/v2/models/add/config") == 1
    asked = {"text_input": RECORDED["prompt"], "exclude_input_in_output": True, "parameters": {"max_tokens": 16, "temperature": 0.0}}
    assert triton.bodies == [asked] * 2
    triton.answers = recorded["generate_stream"]
    stream = {**text, "name": "stream", "datatype": "BOOL", "data": [True]}
    found = run(**given, inputs=[text, stream], expected=whole, stream=True)
    assert len(found["outputs"]) > 1
    assert found["answers"] == {"text_output": [RECORDED["greedy"]]}
    with pytest.raises(Failed, match="Output text_output differs in 1 of 1 values"):
        run(**given, inputs=[text, stream], expected=[{"name": "text_output", "data": ["w1"]}], stream=True)
    triton.answers = recorded["generate_of_stream"]
    with pytest.raises(Failed, match="exactly 1 response") as caught:
        run(**given, inputs=[text, stream], expected=whole)
    assert caught.value.hint == "Set stream: true."
    for name, told in ("too_long", "maximum context length"), ("bad_parameter", "has no attribute 'lora_name'.*server's log says which"):
        triton.answers = recorded[name]
        with pytest.raises(Failed, match="refuses to infer") as caught:
            run(**given, inputs=[text])
        assert re.search(told, str(caught.value))


def test_a_model_with_a_state_gets_its_parameters(triton: FakeTriton) -> None:
    given = {"url": f"http://127.0.0.1:{triton.port}", **SUM}
    sequence = {"sequence_id": 7, "sequence_start": True, "sequence_end": True}
    run(**given, parameters=sequence)
    assert triton.bodies[-1]["parameters"] == sequence
    triton.answers = NO_SEQUENCE
    with pytest.raises(Failed, match="correlation ID"):
        run(**given)
    with pytest.raises(InvalidInput, match="parameters: sequence_id is neither"):
        run(**given, parameters={"sequence_id": [7]})


def test_a_model_that_is_not_there_is_told(triton: FakeTriton) -> None:
    with pytest.raises(NotFound, match="model nosuch is not ready, or there is none"):
        run(url=f"http://127.0.0.1:{triton.port}", model="nosuch")


def test_no_server_no_pod_and_no_answer_are_told(cluster: FakeCluster) -> None:
    with pytest.raises(NotFound, match="Deployment default/triton does not exist"):
        run(cluster, **SUM)
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "triton", "namespace": "default"}}
    cluster.add(deployment)
    with pytest.raises(Unreachable, match="No pod of Deployment default/triton is ready"):
        run(cluster, **SUM)
    cluster.add(pods.pod("triton-a", labels=LABELS, conditions=[{"type": "Ready", "status": "True"}]))
    with pytest.raises(Unreachable, match="Port 8000 of Pod default/triton-a gives no answer: nobody listens"):
        run(cluster, **SUM)


def test_it_waits_for_a_model(triton: FakeTriton) -> None:
    triton.ready = False
    url = f"http://127.0.0.1:{triton.port}"
    with pytest.raises(WaitTimeout, match=f"Model add is not ready after 1 s. Last seen: {url}: the model is not ready"):
        run(url=url, **SUM, wait=True, wait_timeout=1)
    triton.ready = True
    assert run(url=url, **SUM, wait=True)["requests"] == 1


def test_it_waits_for_a_server_that_does_not_answer_yet() -> None:
    with pytest.raises(WaitTimeout, match="gives no answer"):
        run(url="http://127.0.0.1:9", **SUM, wait=True, wait_timeout=1)
