# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish a message at one NATS server, receive it at another, and ask all servers for their memory. Runs in a pod beside them.

Takes the number of servers (nats-0 is the sender's, the last one the receiver's) and of bytes; prints what was found as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
import typing as t
import urllib.request


class Client:
    """A connection to one server."""

    def __init__(self, server: int) -> None:
        self.sock = socket.create_connection((f"nats-{server}.nats-mgmt", 4222), timeout=60)
        self.received: t.BinaryIO = self.sock.makefile("rb")
        self.received.readline()  # INFO
        self.sock.sendall(b'CONNECT {"verbose": false}\r\n')

    def publish(self, payload: bytes) -> None:
        self.sock.sendall(b"PUB features %d\r\n%b\r\n" % (len(payload), payload))

    def next_message(self) -> bytes | None:
        """The next message; None if the server has none before its answer to a PING."""
        self.sock.sendall(b"PING\r\n")
        while line := self.received.readline():
            if line.startswith(b"MSG "):
                return self.received.read(int(line.split()[-1]))
            if line.startswith(b"PONG"):
                return None
            if line.startswith(b"-ERR"):
                break
        raise SystemExit(f"the server says {line!r}")


def deliver(sender: Client, receiver: Client, payload: bytes, *, again: bool) -> bytes:
    """What arrives of PAYLOAD. AGAIN: publish it until then, because a server learns a little later who listens at the others."""
    sender.publish(payload)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        arrived = receiver.next_message()
        if arrived is not None and len(arrived) == len(payload):
            return arrived
        if again:
            sender.publish(payload)
    raise SystemExit(f"nothing of {len(payload)} bytes arrives")


def memory(server: int) -> float:
    with urllib.request.urlopen(f"http://nats-{server}.nats-mgmt:8222/varz", timeout=60) as answer:
        return float(json.load(answer)["mem"]) / 2**20


def main(servers: int, size: int) -> None:
    used = max(memory(server) for server in range(servers))
    sender, receiver = Client(0), Client(servers - 1)
    receiver.sock.sendall(b"SUB features 1\r\n")
    deliver(sender, receiver, b"?", again=True)
    payload, began = os.urandom(size), time.monotonic()
    arrived = deliver(sender, receiver, payload, again=False)
    seconds = round(time.monotonic() - began, 2)
    if hashlib.sha256(arrived).digest() != hashlib.sha256(payload).digest():
        raise SystemExit("the message arrives changed")
    found = {"bytes": len(arrived), "seconds": seconds, "server_mib": round(used, 1)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
