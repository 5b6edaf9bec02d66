# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of model add, each of which asks again as soon as it is answered: closed_loop.py HOST PORT HOSTNAME CLIENTS SECONDS

Prints JSON: requests, seconds, per_second, p50_ms, p99_ms. Whatever is not the right answer ends it with an error. The clients share one
thread and write the bytes themselves, so that little of what is measured is theirs.
"""

import contextlib
import json
import math
import re
import selectors
import socket
import sys
import time

WARM_S = 0.5  # not counted
TIMEOUT_S = 30.0
PIECE = 1 << 16
INPUTS = {"A": [1.5, 2.0], "B": [1.0, 1.0]}
EXPECTED = [2.5, 3.0]
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
LAST_CHUNK = b"\r\n0\r\n\r\n"


def request(hostname: str) -> bytes:
    """The request that every client sends."""
    rows = [{"name": name, "datatype": "FP32", "shape": [1, 2], "data": data} for name, data in INPUTS.items()]
    body = json.dumps({"inputs": rows}).encode()
    head = f"POST /v2/models/add/infer HTTP/1.1\r\nHost: {hostname}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def body_of(got: bytes) -> bytes | None:
    """The body of an answer, as it came, once it is whole. What Triton sends in one piece a Gateway may send in chunks."""
    head, found, body = got.partition(b"\r\n\r\n")
    if not found:
        return None
    length = LENGTH.search(head)
    if not head.startswith(b"HTTP/1.1 200 ") or not (length or CHUNKED.search(head)):
        raise SystemExit(f"An answer is {got[:500]!r}.")
    whole = len(body) >= int(length[1]) if length else body.endswith(LAST_CHUNK)
    return body if whole else None


def joined(body: bytes) -> bytes:
    """A body without the marks of its chunks, if it has some."""
    if not body.endswith(LAST_CHUNK):
        return body
    found = b""
    while body:
        size, _mark, rest = body.partition(b"\r\n")
        found, body = found + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return found


class Client:
    """One connection, with one request in flight."""

    def __init__(self, address: tuple[str, int], text: bytes) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._text, self._got, self._began = text, b"", 0.0

    def send(self) -> None:
        """Ask."""
        self._got, self._began = b"", time.perf_counter()
        self.socket.sendall(self._text)

    def receive(self) -> tuple[bytes, float] | None:
        """The body and its seconds, once the answer is whole."""
        piece = self.socket.recv(PIECE)
        took = time.perf_counter() - self._began
        if not piece:
            raise SystemExit(f"The connection ended after {self._got[:500]!r}.")
        self._got += piece
        body = body_of(self._got)
        return None if body is None else (body, took)


def run(address: tuple[str, int], hostname: str, count: int, seconds: float) -> list[float]:
    """The seconds of each request that ended within the time that counts."""
    text, right, times = request(hostname), b"", []
    with contextlib.ExitStack() as open_ones, selectors.DefaultSelector() as ready:
        for _number in range(count):
            client = Client(address, text)
            open_ones.callback(client.socket.close)
            ready.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        begin = time.perf_counter() + WARM_S
        while (now := time.perf_counter()) < begin + seconds:
            if not (events := ready.select(TIMEOUT_S)):
                raise SystemExit(f"No answer in {TIMEOUT_S:.0f} s.")
            for key, _events in events:
                if not (answer := key.data.receive()):
                    continue
                body, took = answer
                if body != right:  # the same bytes each time, so that they are read once
                    if json.loads(joined(body))["outputs"][0]["data"] != EXPECTED:
                        raise SystemExit(f"An answer is {body!r}.")
                    right = body
                if now >= begin:
                    times.append(took)
                key.data.send()
    return times


def account(times: list[float], seconds: float) -> dict[str, float]:
    """What is printed."""
    if not times:
        raise SystemExit("No request ended in the time that counts.")
    ordered = sorted(times)
    p50, p99 = (round(1000 * ordered[math.ceil(len(ordered) * share / 100) - 1], 3) for share in (50, 99))
    return {"requests": len(ordered), "seconds": seconds, "per_second": round(len(ordered) / seconds, 1), "p50_ms": p50, "p99_ms": p99}


def main() -> None:
    """Ask for so many seconds."""
    host, port, hostname, clients, seconds = sys.argv[1:]
    times = run((host, int(port)), hostname, int(clients), float(seconds))
    print(json.dumps(account(times, float(seconds))))


if __name__ == "__main__":
    main()
