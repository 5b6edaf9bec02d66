# SPDX-License-Identifier: GPL-3.0-or-later
"""A forwarded port and a command, against a WebSocket server that speaks as a node does."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import ssl
import struct
import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.clock import Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, ServerError, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import token_of
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.tunnel import output_of
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

PORT = 15671
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
Act = t.Callable[["Node"], None]


class Node:
    """One connection, on the side of the API server: it answers the request and then does what the test says."""

    def __init__(self, act: Act, *, context: ssl.SSLContext | None = None, refusal: bytes = b"", accept: str = "") -> None:
        self.act, self.context, self.refusal, self.accept = act, context, refusal, accept
        self.asked: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def cluster(self, **options: t.Any) -> HttpCluster:
        scheme = "https" if self.context else "http"
        server = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        return HttpCluster(Transport(Connection(server=server, source="a test", **options), FakeClock()))

    def serve(self) -> None:
        with self.listener:
            self.wire, _address = self.listener.accept()
        if self.context:
            self.wire = self.context.wrap_socket(self.wire, server_side=True)
        self.reader = self.wire.makefile("rb")
        while (line := self.reader.readline().decode().strip()) != "":
            self.asked.append(line)
        if self.refusal:
            self.wire.sendall(self.refusal)
        else:
            self.upgrade()
            self.act(self)
        self.reader.close()
        self.wire.close()

    def upgrade(self) -> None:
        key = next(line.split(": ")[1] for line in self.asked if line.lower().startswith("sec-websocket-key"))
        digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()  # noqa: S324
        answer = self.accept or base64.b64encode(digest).decode()
        head = ["HTTP/1.1 101 Switching Protocols", "connection: Upgrade", "upgrade: websocket"]
        head += [f"sec-websocket-accept: {answer}", "sec-websocket-protocol: v4.channel.k8s.io", "", ""]
        # The ports come with the answer in one packet: they are no part of it.
        greeting = b"".join(frame(bytes([channel]) + struct.pack("<H", PORT)) for channel in (0, 1))
        self.wire.sendall("\r\n".join(head).encode() + greeting)

    def receive(self) -> tuple[int, bytes]:
        first, second = self.reader.read(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(self.reader.read(2 if size == 126 else 8), "big")
        assert second & 0x80, "a client masks"
        mask = self.reader.read(4)
        data = self.reader.read(size)
        return first & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


def frame(message: bytes, kind: int = BINARY, *, last: bool = True) -> bytes:
    size = len(message)
    length = bytes([size]) if size < 126 else bytes([126]) + struct.pack(">H", size) if size < 1 << 16 else (
        bytes([127]) + struct.pack(">Q", size))  # fmt: skip
    return bytes([(0x80 if last else 0) | kind]) + length + message


def forward(node: Node, **options: t.Any) -> t.Any:
    return node.cluster(**options).port_forward("ml", "rabbitmq-0", PORT, timeout=5)


def read(tunnel: t.Any, size: int) -> bytes:
    tunnel.socket.settimeout(5)
    found = b""
    while len(found) < size and (piece := tunnel.socket.recv(1 << 16)):
        found += piece
    return found


@pytest.mark.parametrize("size", [5, 300, 70_000])
def test_bytes_go_both_ways(size: int) -> None:
    def echo(node: Node) -> None:
        got = b""
        while len(got) < size:
            kind, message = node.receive()
            assert (kind, message[0]) == (BINARY, 0)
            got += message[1:]
        node.wire.sendall(frame(b"\x00" + got))
        assert node.receive()[0] == CLOSE
        ended.set()

    ended = threading.Event()
    node = Node(echo)
    tunnel = forward(node)
    sent = bytes(index % 251 for index in range(size))
    tunnel.socket.sendall(sent)
    assert read(tunnel, size) == sent
    assert node.asked[0] == f"GET /api/v1/namespaces/ml/pods/rabbitmq-0/portforward?ports={PORT} HTTP/1.1"
    tunnel.close()
    assert ended.wait(5), "the node learns that the connection ended"


def test_a_message_in_parts_and_a_ping_between_them() -> None:
    def act(node: Node) -> None:
        node.wire.sendall(frame(b"\x00one ", last=False) + frame(b"hello", PING) + frame(b"two", 0))
        pongs.append(node.receive())
        node.wire.sendall(frame(b"", CLOSE))

    pongs: list[tuple[int, bytes]] = []
    tunnel = forward(Node(act))
    assert read(tunnel, 100) == b"one two"
    tunnel.close()
    assert pongs == [(PONG, b"hello")]


def test_what_the_node_says_is_kept_and_ends_the_connection() -> None:
    said = b"error forwarding port 15671 to pod 1: connection refused"
    tunnel = forward(Node(lambda node: node.wire.sendall(frame(b"\x01" + said))))
    assert read(tunnel, 1) == b""
    assert tunnel.trouble == said.decode()
    tunnel.close()


def refused(status: str, payload: dict[str, t.Any]) -> bytes:
    body = json.dumps(payload).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_refusal_has_the_reason_of_the_api_server() -> None:
    message = 'pods "rabbitmq-0" is forbidden: User "dev" cannot create resource "pods/portforward" in API group ""'
    node = Node(print, refusal=refused("403 Forbidden", {"kind": "Status", "code": 403, "message": message}))
    with pytest.raises(Forbidden, match="User dev may not create pods/portforward in namespace ml"):
        forward(node)
    node = Node(print, refusal=refused("500 Internal", {"kind": "Status", "code": 500, "message": "no such pod"}))
    with pytest.raises(ServerError, match="failed to forward a port of Pod ml/rabbitmq-0"):
        forward(node)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"hello\r\n\r\n", b"HTTP/1.1 10"])
def test_a_server_that_forwards_nothing_is_named(answer: bytes) -> None:
    with pytest.raises(Unreachable, match=r"The API server http://127\.0\.0\.1:"):
        forward(Node(print, refusal=answer))


def test_an_answer_to_another_key_is_no_answer() -> None:
    with pytest.raises(Unreachable, match="opens no WebSocket"):
        forward(Node(print, accept="bm8="))


def test_a_token_goes_with_the_request_and_tls_is_that_of_the_cluster(tmp_path: Path) -> None:
    leaf = certificates.Leaf("server", "127.0.0.1", ["127.0.0.1"])
    certificates.files(tmp_path, "ca", "a test", [leaf], check=False, clock=FakeClock())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    size = 200_000

    def act(node: Node) -> None:
        node.wire.sendall(b"".join(frame(b"\x00" + bytes(1000)) for _number in range(size // 1000)))
        node.receive()

    node = Node(act, context=context)
    options = {"ca": (tmp_path / "ca.crt").read_text(), "credentials": token_of(Sensitive("canary"), "a test")}
    tunnel = forward(node, **options)
    assert len(read(tunnel, size)) == size
    assert "Authorization: Bearer canary" in node.asked
    tunnel.close()


# Commands


def execute(node: Node) -> tuple[str, str]:
    return node.cluster().execute("ml", "adult-0", "main", ["sh", "-c", "a & b"], timeout=5)


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        ({"status": "Success"}, ""),
        ({"status": "Failure", "message": "command terminated with exit code 2"}, "command terminated with exit code 2"),
        ({}, "the connection ended"),
    ],
)
def test_the_output_of_a_command_and_how_it_ended(ended: dict[str, str], why: str) -> None:
    def act(node: Node) -> None:
        said = [b"\x01one\n", b"\x02", b"\x02not this\n", b"\x01two\n", b"\x03" + json.dumps(ended).encode()]
        node.wire.sendall(b"".join(map(frame, said)) + frame(b"", CLOSE))

    node = Node(act)
    # The greeting of a port is here the output of a command.
    output, found = execute(node)
    assert (output[2:], found) == ("one\ntwo\n", why)
    where = "/api/v1/namespaces/ml/pods/adult-0/exec?container=main&command=sh&command=-c&command=a+%26+b&stdout=true&stderr=true"
    assert node.asked[0] == f"GET {where} HTTP/1.1"


def test_a_command_that_does_not_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible_collections.muster.ml.plugins.module_utils._kube.tunnel._MOST_OUTPUT", 3)
    for seconds, why in ((0, "it has not ended in time"), (5, "its output is too long")):
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.sendall(frame(b"\x01more"))
            assert output_of(ours, Deadline(seconds, FakeClock())) == ("more", why)
