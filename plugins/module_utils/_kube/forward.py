# SPDX-License-Identifier: GPL-3.0-or-later
"""A local port whose connections lead to a port of a pod, for clients that open connections themselves: ``kubectl port-forward``.

Each connection is one tunnel through the API server, opened when a client connects. A client at the local port only sees that its
connection ended, so the cause is kept for the error that the client then raises.
"""

from __future__ import annotations

import contextlib
import functools
import selectors
import socket
import threading
import typing as t
from collections.abc import Iterator, Sequence

from .._core.conditions import condition, is_true, reason_of
from .._core.errors import MusterError, Unreachable
from .cluster import Cluster
from .objects import Manifest, Ref
from .pod_status import why_not_running
from .tunnel import Tunnel

Reach = t.Callable[[], Tunnel]

_HOST = "127.0.0.1"
_CONNECTS_S = 10.0
_ENDS_S = 2.0
"""Seconds for the threads to end after their sockets were shut down."""
_PIECE = 1 << 16


def reach(cluster: Cluster, pods: Sequence[Ref], port: int, hint: str, *, starting: bool = False) -> Tunnel:
    """A connection to a port of the first of PODS that is ready. HINT is for the error if none is.

    ``starting``: otherwise of one that runs, because the caller tries again while it starts.
    """
    runs: Ref | None = None
    trouble: list[str] = []
    for pod in pods:
        found = cluster.get(pod)
        why = _not_running(found)
        unready = _not_ready(found) if found and not why else ""
        if not why and not unready:
            return _tunnel(cluster, pod, port)
        runs = runs or (None if why else pod)
        trouble.append(f"{pod} {why or unready}")
    if runs and starting:
        return _tunnel(cluster, runs, port)
    raise Unreachable(f"Port {port} cannot be forwarded: {'; '.join(trouble)}.", hint, ref=pods[0])


def _tunnel(cluster: Cluster, pod: Ref, port: int) -> Tunnel:
    return cluster.port_forward(str(pod.namespace), pod.name, port, timeout=_CONNECTS_S)


def _not_running(pod: Manifest | None) -> str:
    """The reason why the pod cannot be connected to, as the end of a sentence about the pod; empty if it runs."""
    if pod is None:
        return "does not exist"
    if pod["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    return "" if phase == "Running" else f"is not running: {why_not_running(pod)[0] or phase}"


def _not_ready(pod: Manifest) -> str:
    if is_true(pod, "Ready"):
        return ""
    why = why_not_running(pod)[0] or reason_of(condition(pod, "Ready"))
    return f"is not ready: {why or 'its readiness probe has not succeeded yet'}"


@contextlib.contextmanager
def forwarded(
    cluster: Cluster, pod: Ref, port: int, hint: str, within: float | None = None, *, starting: bool = False
) -> Iterator[Forward]:
    """Listen for the time of the with block, or WITHIN so many seconds, after which connections end. That one can be made at all is tried
    first, so that its error comes at once. STARTING is that of reach."""
    to = functools.partial(reach, cluster, [pod], port, hint, starting=starting)
    to().close()
    forward = Forward(to, f"Port {port} of {pod}", hint)
    timer = threading.Timer(within or 0, forward.close)
    if within:
        timer.start()
    try:
        yield forward
    finally:
        timer.cancel()
        forward.close()


class Forward:
    """Listens at ``address``, a port of this machine that the system has chosen. WHAT and HINT are for messages."""

    def __init__(self, to: Reach, what: str, hint: str) -> None:
        self._to = to
        self._what, self._hint = what, hint
        self._listener = socket.create_server((_HOST, 0))
        self._ending, self._ended = socket.socketpair()
        self._guard = threading.Lock()
        self._closed = False
        self._trouble: MusterError | None = None
        self._carried: dict[threading.Thread, list[socket.socket]] = {}
        self.address = f"{_HOST}:{self._listener.getsockname()[1]}"
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    @property
    def trouble(self) -> MusterError | None:
        """The reason why the last connection failed or ended; None if it brought a response."""
        with self._guard:
            return self._trouble

    def close(self) -> None:
        """End the connections, and listen no more."""
        with self._guard:
            self._closed = True
            carried = dict(self._carried)
            for end in (end for ends in carried.values() for end in ends):
                # Only the thread that uses a socket closes it: its number could be that of another one by then.
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._ending.close()
        for thread in (self._server, *carried):
            thread.join(_ENDS_S)

    def _serve(self) -> None:
        with self._listener, self._ended, selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            ready.register(self._ended, selectors.EVENT_READ)
            while self._ended not in [key.fileobj for key, _events in ready.select()]:
                with contextlib.suppress(OSError):  # a client that has gone already
                    self._begin(self._listener.accept()[0])

    def _begin(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=self._carry, args=(client,), daemon=True)
        with self._guard:
            self._carried[thread] = [client]
        thread.start()

    def _carry(self, client: socket.socket) -> None:
        me = threading.current_thread()
        try:
            with client:
                try:
                    self._exchange(client, me)
                except MusterError as error:
                    self._note(error)  # before the client sees that its connection ended
        finally:
            with self._guard:
                del self._carried[me]

    def _exchange(self, client: socket.socket, me: threading.Thread) -> None:
        """Move bytes both ways until one side ends."""
        tunnel = self._to()
        try:
            with self._guard:
                if self._closed:
                    return
                self._carried[me].append(tunnel.socket)
            # Sending to an end that is closed already fails, whichever side closed it.
            with contextlib.suppress(OSError), selectors.DefaultSelector() as ready:
                ready.register(client, selectors.EVENT_READ, tunnel.socket)
                ready.register(tunnel.socket, selectors.EVENT_READ, client)
                while all(self._move(key.fileobj, key.data, client) for key, _events in ready.select()):
                    pass
            if tunnel.trouble:
                raise Unreachable(f"{self._what} gives no answer: {tunnel.trouble}.", self._hint)
        finally:
            tunnel.close()

    def _move(self, source: t.Any, target: socket.socket, client: socket.socket) -> bool:
        """Move what SOURCE has to the other side; false at its end."""
        data = source.recv(_PIECE)
        if data:
            if target is client:
                self._note(None)
            # A client of HTTP reads the answer before it asks again, so the two sides do not wait for each other.
            target.sendall(data)
        return bool(data)

    def _note(self, trouble: MusterError | None) -> None:
        with self._guard:
            self._trouble = trouble
