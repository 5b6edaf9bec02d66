# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' handle on the simulator: start it, read its journal, make things fail, ask it with boto3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import boto3

REGION = "us-west-2"
TESTS = Path(__file__).resolve().parents[2]
# A canary: no output may show it.
SECRET = "canary/aws/secret/access/key"


class Account:
    """An account where somebody else started the server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = boto3.session.Session("AKIAIOSFODNN7EXAMPLE", SECRET)
        self._clients: dict[tuple[str, str], Any] = {}

    def client(self, service: str, region: str = REGION) -> Any:
        """boto3, which shares no code with the collection's modules: the second opinion."""
        key = service, region
        if key not in self._clients:
            self._clients[key] = self._session.client(service, region_name=region, endpoint_url=self.url)
        return self._clients[key]

    def ask(self, name: str, body: Any = None) -> Any:
        """Use the side door."""
        return self._post(f"/_simulator/{name}", body)

    def _post(self, path: str, body: Any = None) -> Any:
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request("POST", path, json.dumps(body).encode() if body is not None else b"")
        reply = json.loads(connection.getresponse().read())
        connection.close()
        return reply

    def keys_of_pod(self, token: str) -> dict[str, str]:
        """Those that the agent of Pod Identity hands out."""
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/v1/credentials", headers={"Authorization": token})
        reply: dict[str, str] = json.loads(connection.getresponse().read())
        connection.close()
        return reply

    def caller(self, address: str = "203.0.113.7", private_address: str = "") -> None:
        """From where the tests reach the internet, and the VPCs."""
        self.ask("caller", [address, private_address])

    def fault(self, kind: str, operation: str, times: int = 1, **detail: Any) -> None:
        self.ask("fault", {"kind": kind, "operation": operation, "times": times, "detail": detail})

    def cut(self, writes: int, *, holds: bool) -> None:
        """Answer nothing of the caller's after so many more writes, until :meth:`release`."""
        self.ask("cut", [writes, holds])

    def is_cut(self) -> bool:
        return bool(self.ask("is_cut"))

    def release(self) -> None:
        self.ask("release")

    def quota(self, name: str, count: int) -> None:
        """Another quota for the account: gpus (vCPUs of instances with them), vpcs, addresses."""
        self.ask("quota", {name: count})

    def policies(self, phase: str, policies: list[dict[str, Any]] | None) -> None:
        """What the caller of the playbooks is about, and may do; None: everything."""
        self.ask("policies", [phase, policies])

    def needed(self) -> dict[str, list[dict[str, Any]]]:
        """The permissions that the playbooks have needed so far, by what they were about."""
        found: dict[str, list[dict[str, Any]]] = self.ask("needed")
        return found

    def writes(self) -> list[str]:
        """The operations that changed something since :meth:`clear`, as the server saw them."""
        return [f"{r['service']}:{r['operation']}" for r in self.ask("requests") if r["writes"] and r["status"] < 400]

    def attempts(self) -> list[str]:
        """Those that meant to, refused ones too."""
        return [f"{r['service']}:{r['operation']}" for r in self.ask("requests") if r["writes"]]

    def clear(self) -> None:
        self.ask("clear")


class Simulator(Account):
    """A server of its own on a free port, ended by :meth:`stop`."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("w", encoding="utf-8") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "simulators.aws.server", "--port", "0", *arguments],
                cwd=TESTS, stdout=out, stderr=subprocess.STDOUT, env=bare_environment(),
            )  # fmt: skip
        super().__init__(self._address())

    def _address(self) -> str:
        """Where it listens: it says so once it does."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self.log.read_text(encoding="utf-8").splitlines():
                if line.startswith("listening on "):
                    return line.removeprefix("listening on ")
            time.sleep(0.05)
        raise RuntimeError(f"the simulator did not start:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def environment(self) -> dict[str, str]:
        """What makes every AWS client of a process talk to the simulator, and to nothing else."""
        return {
            **bare_environment(),
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def reset(self) -> None:
        """An empty account."""
        self.ask("reset")
        self._post("/moto-api/reset")


def bare_environment() -> dict[str, str]:
    """This process's environment without anything that could lead to a real account.

    Compiled Python is kept, even where whoever runs the tests forbids it: every task of a playbook is a process of its own, and
    compiling the AWS library anew for each would take most of the time.
    """
    forbidden = ("AWS_", "BOTO_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(forbidden)}
    return {**kept, "PYTHONPYCACHEPREFIX": str(TESTS.parent / "build" / "pycache")}
