# SPDX-License-Identifier: GPL-3.0-or-later
"""inference_check by gRPC: the same answers and the same errors as by HTTP, from a real server of gRPC; and TLS by both."""

from __future__ import annotations

import pathlib
import socket
import sys
import threading
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, NotFound, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.tests.unit.fakes import pods
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.triton import FakeTriton, certificate_in
from ansible_collections.muster.ml.tests.unit.fakes.triton_grpc import FakeGrpcTriton
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_inference_check import INPUTS, LABELS, SUM, run

HOSTNAME = "inference.example.com"
SERVERS: dict[str, type[FakeTriton] | type[FakeGrpcTriton]] = {"http": FakeTriton, "grpc": FakeGrpcTriton}


@pytest.fixture
def triton() -> t.Iterator[FakeGrpcTriton]:
    found = FakeGrpcTriton()
    yield found
    found.stop()


def asked(triton: FakeGrpcTriton, **params: t.Any) -> dict[str, t.Any]:
    return run(url=f"http://127.0.0.1:{triton.port}", protocol="grpc", **params)


def forwarded(triton: FakeGrpcTriton, *names: str) -> FakeCluster:
    """Pods that are ready, with TRITON behind them."""
    cluster = FakeCluster()
    for name in names:
        cluster.add(pods.pod(name, labels=LABELS, conditions=[{"type": "Ready", "status": "True"}]))
        cluster.forwarded["default", name, 8001] = ("127.0.0.1", triton.port)
    return cluster


def test_every_replica_is_asked_over_one_connection(triton: FakeGrpcTriton) -> None:
    found = run(forwarded(triton, "triton-a", "triton-b"), **SUM, requests=3, protocol="grpc")
    assert (found["replicas"], found["requests"], len(triton.peers)) == (["triton-a", "triton-b"], 6, 2)
    assert found["outputs"] == [{"name": "SUM", "datatype": "FP32", "shape": [1, 2], "data": [2.5, 3]}]
    assert (found["server"]["version"], found["model_version"]) == ("2.51.0", "1")
    assert (found["model"]["versions"], found["model"]["inputs"][0]["shape"]) == (["1"], [-1, 2])
    assert found["latency_ms"]["p50"] == found["latency_ms"]["max"] == 5


def test_a_message_larger_than_any_buffer_goes_both_ways_through_a_forwarded_port(triton: FakeGrpcTriton) -> None:
    big = {"name": "A", "datatype": "BYTES", "shape": [1], "data": ["x" * (16 << 20)]}
    same = [{"name": "A", "data": big["data"]}]
    found = run(forwarded(triton, "triton-a"), model="echo", inputs=[big], expected=same, protocol="grpc")
    assert found["requests"] == 1


def test_types_that_http_has_no_json_for(triton: FakeGrpcTriton) -> None:
    rows = [{"name": kind, "datatype": kind, "shape": [2], "data": [1.5, -2.0]} for kind in ("FP16", "BF16")]
    assert [row["data"] for row in asked(triton, model="echo", inputs=rows)["outputs"]] == [[1.5, -2.0]] * 2
    http = FakeTriton()
    with pytest.raises(InvalidInput, match="inputs: FP16 is FP16, for which the HTTP API has no JSON"):
        run(url=f"http://127.0.0.1:{http.port}", model="add", inputs=rows)
    http.stop()


def test_a_decoupled_model_makes_any_number_of_responses(triton: FakeGrpcTriton) -> None:
    given = {"inputs": INPUTS[:1], "stream": True, "parameters": {"sequence_id": 7, "sequence_start": True, "tag": "a"}}
    made = asked(triton, model="echo", **given, expected=[{"name": "A", "data": [1.5, 2] * 3}])
    assert (len(made["outputs"]), made["model_version"]) == (3, "1")
    kinds = {"sequence_id": "int64_param", "sequence_start": "bool_param", "tag": "string_param"}
    assert triton.parameters == {**kinds, "triton_enable_empty_final_response": "bool_param"}
    with pytest.raises(Failed, match="refuses to infer with model add: unexpected inference input 'A'"):
        asked(triton, model="add", **given)
    triton.decoupled = {"echo"}
    with pytest.raises(Failed, match="exactly 1 response") as caught:
        asked(triton, model="echo", inputs=INPUTS[:1], parameters={"temperature": 0.5})
    assert (caught.value.hint, triton.parameters["temperature"]) == ("Set stream: true.", "double_param")


def test_what_is_wrong_is_told_as_by_http(triton: FakeGrpcTriton) -> None:
    with pytest.raises(Failed, match=r"refuses to infer with model add: expected 2 inputs .* \(status INVALID_ARGUMENT\)"):
        asked(triton, model="add", inputs=INPUTS[:1])
    with pytest.raises(NotFound, match="model nosuch is not ready, or there is none"):
        asked(triton, model="nosuch")
    for data in (["a", "b"], [True, 1.0]):
        with pytest.raises(InvalidInput, match="inputs: A has values that are not FP32"):
            asked(triton, model="add", inputs=[{**INPUTS[0], "data": data}])
    triton.error = 0.5
    with pytest.raises(Failed, match="the answer has no outputs as Triton sends them"):
        asked(triton, model="echo", inputs=INPUTS)
    with pytest.raises(Failed, match=r"Output SUM differs in 2 of 2 values: value 0 is 3.0 instead of 2.5"):
        asked(triton, **SUM)


def test_no_answer_is_told(triton: FakeGrpcTriton) -> None:
    with pytest.raises(Unreachable, match=r"Triton at http://127.0.0.1:9 gives no answer: .*Connection refused"):
        run(url="http://127.0.0.1:9", protocol="grpc", **SUM)
    cluster = forwarded(triton, "triton-a")
    cluster.forwarded.clear()
    with pytest.raises(Unreachable, match="Port 8001 of Pod default/triton-a gives no answer: nobody listens"):
        run(cluster, protocol="grpc", **SUM)
    with pytest.raises(InvalidInput, match="has a path, which gRPC has not"):
        run(url="http://127.0.0.1:9/triton", protocol="grpc", **SUM)


def test_it_waits(triton: FakeGrpcTriton) -> None:
    triton.ready = False
    with pytest.raises(WaitTimeout, match="the model is not ready"):
        asked(triton, **SUM, wait=True, wait_timeout=1)
    with pytest.raises(WaitTimeout, match="gives no answer"):
        run(url="http://127.0.0.1:9", protocol="grpc", **SUM, wait=True, wait_timeout=1)
    triton.ready = True
    assert asked(triton, **SUM, wait=True)["requests"] == 1


def authority_seen(**params: t.Any) -> bytes:
    """What a client sends to a server that says nothing but hello: gRPC for Python does not tell its servers the authority."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[bytes] = []

        def answer() -> None:
            connection = server.accept()[0]
            connection.settimeout(5)
            with connection:
                connection.sendall(b"\0\0\0\4\0\0\0\0\0")  # SETTINGS of HTTP/2, without which a client does not ask
                while b"/inference.GRPCInferenceService/" not in b"".join(seen):
                    seen.append(connection.recv(4096))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unreachable):
            run(url=f"http://127.0.0.1:{server.getsockname()[1]}", protocol="grpc", **SUM, **params)
        thread.join()
    return b"".join(seen)


def test_an_address_can_be_asked_for_another_name() -> None:
    assert b"127.0.0.1:" in authority_seen()
    seen = authority_seen(hostname=HOSTNAME)
    assert HOSTNAME.encode() in seen
    assert b"127.0.0.1" not in seen


def test_a_library_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, triton: FakeGrpcTriton) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ImportError) as caught:
        asked(triton, **SUM)
    assert "(grpcio>=" in failure(caught.value)["msg"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A file with a certificate for HOSTNAME, its own authority, and its key."""
    return certificate_in(tmp_path_factory.mktemp("tls"), HOSTNAME)


@pytest.mark.parametrize("protocol", SERVERS)
def test_with_tls_the_server_proves_that_it_has_the_name(certificate: pathlib.Path, protocol: str) -> None:
    triton = SERVERS[protocol](certificate)
    given = {"url": f"https://127.0.0.1:{triton.port}", "protocol": protocol, **SUM}
    trusted = {"url_ca_cert": str(certificate)}
    try:
        assert run(**given, **trusted, hostname=HOSTNAME)["requests"] == 1
        for refused in ({"hostname": HOSTNAME}, trusted, {**trusted, "hostname": "another.example.com"}):
            with pytest.raises(Unreachable, match="gives no answer"):
                run(**given, **refused)
    finally:
        triton.stop()


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_a_file_without_certificates_is_refused(tmp_path: pathlib.Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    told = "is not a PEM certificate" if text is not None else "cannot be read: No such file"
    for protocol in SERVERS:
        with pytest.raises(InvalidInput, match=f"url_ca_cert: .*ca.pem {told}"):
            run(url="https://127.0.0.1:9", protocol=protocol, url_ca_cert=str(file), **SUM)
