# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' handle on the simulator: start it, read its journal, make things fail, ask it with boto3."""

import os
import subprocess
from pathlib import Path
from typing import Any

import boto3

from ..client import Client, bare_environment, start

__all__ = ["REGION", "SECRET", "Account", "Simulator", "bare_environment"]

REGION = "us-west-2"
# A canary: no output may show it.
SECRET = "canary/aws/secret/access/key"


class Account(Client):
    """An account where somebody else started the server."""

    def __init__(self, url: str, process: subprocess.Popen[bytes] | None = None) -> None:
        super().__init__(url, process)
        self._session = boto3.session.Session("AKIAIOSFODNN7EXAMPLE", SECRET)
        self._clients: dict[tuple[str, str], Any] = {}

    def client(self, service: str, region: str = REGION) -> Any:
        """boto3, which shares no code with the collection's modules: the second opinion."""
        key = service, region
        if key not in self._clients:
            self._clients[key] = self._session.client(service, region_name=region, endpoint_url=self.url)
        return self._clients[key]

    def keys_of_pod(self, token: str) -> dict[str, str]:
        """Those that the agent of Pod Identity hands out."""
        reply: dict[str, str] = self.send("GET", "/v1/credentials", Authorization=token)
        return reply

    def caller(self, address: str = "203.0.113.7", private_address: str = "") -> None:
        """From where the tests reach the internet, and the VPCs."""
        self.ask("caller", [address, private_address])

    def cut(self, writes: int) -> None:
        """Answer nothing of the caller's after so many more writes, until :meth:`release`."""
        self.ask("cut", writes)

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


class Simulator(Account):
    """A server of its own on a free port, ended by :meth:`stop`."""

    def __init__(self, log: Path, *arguments: str) -> None:
        super().__init__(*start("aws", log, "--port", "0", *arguments))

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
