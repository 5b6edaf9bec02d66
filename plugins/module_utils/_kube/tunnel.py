# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to a port of a pod, or to a command in it, inside of a WebSocket to the API server: what ``kubectl port-forward`` and
``kubectl exec`` do.

The API server's HTTP proxy takes the header Authorization for itself and removes it, so a server with a login of its own cannot be asked
through it. The messages are those of the subprotocol v4.channel.k8s.io, with one byte for the channel. Of a port: 0 for data, 1 for the
node's error text, each beginning with a message that has the port's number. Of a command: 1 and 2 for its output, 3 for how it ended.
"""

from __future__ import annotations

import base64
import contextlib
import email.message
import hashlib
import json
import os
import selectors
import socket
import ssl
import struct
import threading
import typing as t

from .._core.clock import Deadline

PROTOCOL = "v4.channel.k8s.io"
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _BINARY, _CLOSE, _PING, _PONG = 0, 2, 8, 9, 10
_DATA, _ERROR = 0, 1
_PIECE = 1 << 16
"""More than a record of TLS, of which otherwise a part would be left that does not show in the socket."""
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_OUTPUT, _ENDED = 1, 3
_MOST_OUTPUT = 64 << 20


def request_headers() -> dict[str, str]:
    """The headers of a request for a WebSocket (RFC 6455), with a fresh key."""
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": PROTOCOL,
    }


def is_accepted(key: str, answer: email.message.Message) -> bool:
    """Whether a server answered to this very key, in the protocol of Kubernetes."""
    digest = hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()
    accepted = answer.get("Sec-WebSocket-Accept") == base64.b64encode(digest).decode()
    return accepted and answer.get("Sec-WebSocket-Protocol") == PROTOCOL


class Tunnel:
    """Moves bytes between a WebSocket and ``socket`` until one of them ends. ``trouble``: what the node said was wrong."""

    def __init__(self, wire: socket.socket) -> None:
        self.socket, self._ours = socket.socketpair()
        self.trouble = ""
        self._wire = wire
        self._frames = _Frames()
        self._greeted: set[int] = set()
        wire.settimeout(0)
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """End the connection, if it did not end by itself."""
        self.socket.close()

    def _run(self) -> None:
        # One thread for both directions: a TLS session must not be read and written at the same time.
        with self._ours, self._wire, selectors.DefaultSelector() as ready:
            ready.register(self._ours, selectors.EVENT_READ)
            ready.register(self._wire, selectors.EVENT_READ)
            try:
                while all(self._move(key.fileobj) for key, _events in ready.select()):
                    pass
                self._send(_CLOSE, b"")
            except OSError:
                pass  # the reader at the other end sees that the connection ended

    def _move(self, source: object) -> bool:
        """Move what SOURCE has to the other end; false at its end."""
        if source is self._wire:
            return self._from_wire()
        data = self._ours.recv(_PIECE)
        if data:
            self._send(_BINARY, bytes([_DATA]) + data)
        return bool(data)

    def _from_wire(self) -> bool:
        try:
            data = self._wire.recv(_PIECE)
        except _LATER:
            return True
        for kind, message in self._frames.feed(data):
            if kind == _CLOSE or (kind == _BINARY and not self._take(message)):
                return False
            if kind == _PING:
                self._send(_PONG, message)
        return bool(data)

    def _take(self, message: bytes) -> bool:
        channel, data = message[0], message[1:]
        if channel not in self._greeted:  # the number of the port
            self._greeted.add(channel)
        elif channel == _ERROR:
            self.trouble = data.decode(errors="replace").strip()
            return False
        elif channel == _DATA:
            # The reader at the other end takes all of an answer before it writes again, so this does not wait for a write of its own.
            self._ours.sendall(data)
        return True

    def _send(self, kind: int, message: bytes) -> None:
        left = memoryview(_frame(kind, message))
        while left:
            try:
                left = left[self._wire.send(left) :]
            except _LATER:
                with selectors.DefaultSelector() as ready:
                    ready.register(self._wire, selectors.EVENT_WRITE)
                    ready.select(1.0)


def _frame(kind: int, message: bytes) -> bytes:
    """One whole message; a client masks what it sends."""
    size, mask = len(message), os.urandom(4)
    head = bytes([0x80 | kind])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + struct.pack(">H", size)
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", size)
    stretched = mask * (size // 4 + 1)
    masked = int.from_bytes(message, "big") ^ int.from_bytes(stretched[:size], "big")
    return head + mask + masked.to_bytes(size, "big")


def output_of(wire: socket.socket, deadline: Deadline) -> tuple[str, str]:
    """The output of a command, and why it failed or is not whole: in the node's words, or because it has not ended in time."""
    frames, found, why = _Frames(), {_OUTPUT: bytearray(), _ENDED: bytearray()}, ""
    with wire:
        while not why:
            wire.settimeout(deadline.answer_timeout)
            with contextlib.suppress(TimeoutError):
                data = wire.recv(_PIECE)
                messages = list(frames.feed(data))
                for message in (message for kind, message in messages if kind == _BINARY and message[0] in found):
                    found[message[0]] += message[1:]
                if not data or any(kind == _CLOSE for kind, _message in messages):
                    ended = json.loads(found[_ENDED] or b"{}")
                    why = "" if ended.get("status") == "Success" else str(ended.get("message") or "the connection ended")
                    break
            why = "it has not ended in time" if deadline.passed else "its output is too long" if len(found[_OUTPUT]) > _MOST_OUTPUT else ""
    return found[_OUTPUT].decode(errors="replace"), why


class _Frames:
    """Takes bytes in any portions and gives out messages."""

    def __init__(self) -> None:
        self._left = bytearray()
        self._begun: tuple[int, bytes] | None = None

    def feed(self, data: bytes) -> t.Iterator[tuple[int, bytes]]:
        self._left += data
        while (found := self._next()) is not None:
            last, kind, message = found
            if kind >= _CLOSE:  # control messages may come between the parts of another one
                yield kind, message
                continue
            if kind == _CONTINUED and self._begun:
                kind, message = self._begun[0], self._begun[1] + message
            self._begun = None if last else (kind, message)
            if last and message:
                yield kind, message

    def _next(self) -> tuple[bool, int, bytes] | None:
        if len(self._left) < 2:
            return None
        size, start = self._left[1] & 0x7F, 2
        if size > 125:
            width = 2 if size == 126 else 8
            if len(self._left) < 2 + width:
                return None
            size, start = int.from_bytes(self._left[2 : 2 + width], "big"), 2 + width
        if len(self._left) < start + size:
            return None
        first, message = self._left[0], bytes(self._left[start : start + size])
        del self._left[: start + size]
        return bool(first & 0x80), first & 0x0F, message
