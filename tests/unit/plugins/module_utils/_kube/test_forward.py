# SPDX-License-Identifier: GPL-3.0-or-later
"""A local port that leads to a pod: bytes, many connections, causes, and that nothing is left of it."""

from __future__ import annotations

import contextlib
import socket
import threading
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._kube import forward
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.tests.unit.fakes import pods
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

POD = Ref("v1", "Pod", "store-0", "default")
READY = [{"type": "Ready", "status": "True"}]


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with client:
            while data := client.recv(1 << 16):
                client.sendall(data)


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    echo, found = Echo(), FakeCluster()
    found.add(pods.pod("store-0", conditions=READY))
    found.forwarded["default", "store-0", 7070] = echo.address
    yield found
    echo.listener.close()


def forwarded(cluster: FakeCluster) -> t.Any:
    return forward.forwarded(cluster, POD, 7070, "Look there.")


def dial(way: forward.Forward) -> socket.socket:
    host, port = way.address.split(":")
    return socket.create_connection((host, int(port)), 5)


def read(wire: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := wire.recv(1 << 16)):
        found += piece
    return found


def test_connections_are_carried_at_the_same_time(cluster: FakeCluster) -> None:
    with forwarded(cluster) as way:
        wires = [dial(way) for _number in range(5)]
        for number, wire in enumerate(wires):
            wire.sendall(bytes([number]) * 100_000)
        assert [read(wire, 100_000) for wire in wires] == [bytes([number]) * 100_000 for number in range(5)]
        assert way.trouble is None
        for wire in wires:
            wire.close()


def test_nothing_is_left_at_the_end(cluster: FakeCluster) -> None:
    before = set(threading.enumerate())
    with forwarded(cluster) as way:
        address = way.address.split(":")
        wire = dial(way)
        wire.sendall(b"x")
        assert read(wire, 1) == b"x"
        carrying = {thread for thread in threading.enumerate() if "_carry" in thread.name or "_serve" in thread.name}
        assert len(carrying - before) == 2
    assert wire.recv(1) == b"", "an open connection ends"
    assert not [thread for thread in carrying if thread.is_alive()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address[0], int(address[1])), 5)
    wire.close()


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (None, "Pod default/store-0 does not exist"),
        (pods.pod("store-0", deleted=True, conditions=READY), "Pod default/store-0 is being deleted"),
        (pods.pod("store-0", "Pending"), "Pod default/store-0 is not running: Pending"),
        (
            pods.pod("store-0", "Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}),
            "Pod default/store-0 is not running: .*no image",
        ),
        (pods.pod("store-0"), "Pod default/store-0 is not ready: its readiness probe has not succeeded yet"),
    ],
)
def test_a_pod_that_takes_no_connections_is_named_with_the_cause(cluster: FakeCluster, pod: dict[str, t.Any] | None, told: str) -> None:
    cluster.remove(POD)
    cluster.add(*[pod] if pod else [])
    with pytest.raises(Unreachable, match=told) as caught, forwarded(cluster):
        pass
    assert caught.value.hint == "Look there."


def test_of_several_pods_the_first_that_is_ready_is_taken(cluster: FakeCluster) -> None:
    names = [Ref("v1", "Pod", f"store-{number}", "default") for number in (1, 2, 0)]
    cluster.add(pods.pod("store-2"))
    forward.reach(cluster, names, 7070, "Look there.").close()
    cluster.remove(POD)
    with pytest.raises(Unreachable, match=r"store-1 does not exist; Pod default/store-2 is not ready: .*; Pod default/store-0 does not"):
        forward.reach(cluster, names, 7070, "Look there.")


def test_a_pod_that_starts_is_taken_where_none_is_ready_and_the_caller_tries_again(cluster: FakeCluster) -> None:
    cluster.add(pods.pod("store-1"))
    cluster.forwarded["default", "store-1", 7070] = cluster.forwarded["default", "store-0", 7070]
    starting = [Ref("v1", "Pod", "store-1", "default")]
    with pytest.raises(Unreachable, match="store-1 is not ready"):
        forward.reach(cluster, starting, 7070, "Look there.")
    forward.reach(cluster, starting, 7070, "Look there.", starting=True).close()
    cluster.remove(starting[0])
    with pytest.raises(Unreachable, match="store-1 does not exist"):
        forward.reach(cluster, starting, 7070, "Look there.", starting=True)


def test_a_missing_permission_comes_at_once_as_it_is(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: t.Any, **_options: t.Any) -> t.NoReturn:
        raise Forbidden("User u may not create pods/portforward in namespace default.")

    monkeypatch.setattr(cluster, "port_forward", refuse)
    with pytest.raises(Forbidden, match="pods/portforward"), forwarded(cluster):
        pass


def test_the_cause_of_a_connection_that_ends_is_kept_until_one_brings_an_answer(cluster: FakeCluster) -> None:
    with forwarded(cluster) as way:
        there = dict(cluster.forwarded)
        cluster.forwarded.clear()
        with dial(way) as wire:
            assert wire.recv(1) == b""
        assert "Port 7070 of Pod default/store-0 gives no answer: nobody listens at port 7070" in str(way.trouble)
        assert "Look there." in str(way.trouble)
        cluster.remove(POD)
        with dial(way) as wire:
            assert wire.recv(1) == b""
        assert "Pod default/store-0 does not exist" in str(way.trouble)
        cluster.add(pods.pod("store-0", conditions=READY))
        cluster.forwarded.update(there)
        with dial(way) as wire:
            wire.sendall(b"x")
            assert read(wire, 1) == b"x"
        assert way.trouble is None


def test_the_cause_is_kept_also_where_the_client_sends_to_an_end_that_is_gone(cluster: FakeCluster) -> None:
    with forwarded(cluster) as way:
        cluster.forwarded.clear()
        for _number in range(20):
            way._note(None)
            with dial(way) as wire, contextlib.suppress(OSError):  # it may have ended in between
                wire.sendall(b"x" * 10_000)
                assert wire.recv(1) == b""
            assert "nobody listens at port 7070" in str(way.trouble)
