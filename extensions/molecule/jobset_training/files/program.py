# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pods of the scenario's trainings run; its argument says how it goes on when all of them have met."""

from __future__ import annotations

import os
import socket
import sys
import time

HOSTS = int(os.environ["MUSTER_HOSTS"])
WORLD = int(os.environ["MUSTER_SLICES"]) * HOSTS
SLICE = int(os.environ["MUSTER_SLICE"])
RANK = SLICE * HOSTS + int(os.environ["JOB_COMPLETION_INDEX"])
RESTARTS = int(os.environ["MUSTER_RESTARTS"])
HOST, PORT = os.environ["MUSTER_COORDINATOR"].rsplit(":", 1)


def say(text: str) -> None:
    print(f"rank={RANK} of={WORLD} restarts={RESTARTS} {text}", flush=True)  # noqa: T201


def listen() -> str:
    """The first rank waits for all others and answers each with the ranks that have come."""
    with socket.create_server(("", int(PORT))) as server:
        links = [server.accept()[0] for _peer in range(WORLD - 1)]
        ranks = sorted([0, *(int(link.makefile().readline()) for link in links)])
        text = ",".join(map(str, ranks))
        for link in links:
            link.sendall(f"{text}\n".encode())
            link.close()
    return text


def call() -> str:
    """The others look for the first one until it is there."""
    while True:
        try:
            with socket.create_connection((HOST, int(PORT)), timeout=30) as link:
                link.sendall(f"{RANK}\n".encode())
                if answer := link.makefile().readline().strip():
                    return answer
        except OSError:
            pass
        time.sleep(0.5)


def meet() -> None:
    say(f"met={call() if RANK else listen()}")


def broken() -> None:
    """One rank finds out that it cannot go on."""
    if RANK == 3:
        say("broken: there is no file /data/train.csv")
        sys.exit(7)
    time.sleep(600)


def once() -> None:
    """The first attempt fails in one rank."""
    if not RESTARTS:
        broken()


def first() -> None:
    """The first slice is done at once, the second one never."""
    if SLICE:
        time.sleep(600)


def wait() -> None:
    time.sleep(600 if RESTARTS == 0 else 0)


if __name__ == "__main__":
    meet()
    if len(sys.argv) > 1:
        globals()[sys.argv[1]]()
