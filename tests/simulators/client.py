# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' handle on a simulated cloud: start its server, read its journal, make things fail."""

import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


class Client:
    """A cloud, and the process of its server unless somebody else started that."""

    def __init__(self, url: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.url = url
        self._process = process

    def stop(self) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait(10)

    def ask(self, name: str, body: Any = None) -> Any:
        """Use the side door: requests, faults."""
        return self.send("POST", f"/_simulator/{name}", body)

    def send(self, verb: str, path: str, body: Any = None, **headers: str) -> Any:
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request(verb, path, json.dumps(body).encode() if body is not None else b"", headers)
        reply = json.loads(connection.getresponse().read() or b"null")
        connection.close()
        return reply

    def fault(self, kind: str, operation: str, times: int = 1, **detail: Any) -> None:
        self.ask("fault", {"kind": kind, "operation": operation, "times": times, "detail": detail})

    def clear(self) -> None:
        self.ask("clear")


def start(cloud: str, log: Path, *arguments: str) -> tuple[str, subprocess.Popen[bytes]]:
    """(URL, process) of a server of its own on a free port: it says where it listens once it does."""
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", f"simulators.{cloud}.server", *arguments],
            cwd=TESTS, stdout=out, stderr=subprocess.STDOUT, env=bare_environment(),
        )  # fmt: skip
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if line.startswith("listening on "):
                return line.split()[2], process
        time.sleep(0.05)
    raise RuntimeError(f"the simulator did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


def bare_environment() -> dict[str, str]:
    """This process's environment without anything that could lead to a real account or project.

    Compiled Python is kept, even where whoever runs the tests forbids it: every task of a playbook is a process of its own, and
    compiling a cloud's library anew for each would take most of the time.
    """
    forbidden = ("AWS_", "BOTO_", "GCP_", "GCE_", "GOOGLE_", "CLOUDSDK_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(forbidden)}
    return {**kept, "PYTHONPYCACHEPREFIX": str(TESTS.parent / "build" / "pycache")}
