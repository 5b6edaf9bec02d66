# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' handle on the simulator: start it, read its journal, make things fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from .oauth import ACCESS_TOKEN, CALLER
from .state import NUMBER, PROJECT

__all__ = ["ACCESS_TOKEN", "CALLER", "NUMBER", "PROJECT", "Simulator", "bare_environment"]

TESTS = Path(__file__).resolve().parents[2]
# Everything that a playbook for GKE needs; see Simulator.enable.
SERVICES = [
    f"{name}.googleapis.com"
    for name in ("artifactregistry", "cloudresourcemanager", "compute", "container", "iam", "iamcredentials", "storage")
]


class Simulator:
    """A server of its own on a free port, ended by :meth:`stop`. Its certificates, credentials and log are in ``folder``."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.log = folder, folder / "server.log"
        with self.log.open("w", encoding="utf-8") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "simulators.google.server", "--folder", str(folder), *arguments],
                cwd=TESTS, stdout=out, stderr=subprocess.STDOUT, env=bare_environment(),
            )  # fmt: skip
        self.url = self._address()
        self.ca = folder / "ca.pem"
        self.allowed: list[str] | None = None

    def _address(self) -> str:
        """Where it listens: it says so once it does."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self.log.read_text(encoding="utf-8").splitlines():
                if line.startswith("listening on "):
                    return line.split()[2]
            time.sleep(0.05)
        raise RuntimeError(f"the simulator did not start:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def environment(self, auth: str = "accesstoken") -> dict[str, str]:
        """What makes every client of Google's in a process talk to the simulator, and to nothing else.

        ``auth`` is the auth_kind of google.cloud's modules: accesstoken, serviceaccount or application. Client libraries always find a
        service account's key in GOOGLE_APPLICATION_CREDENTIALS.
        """
        kinds = {
            "accesstoken": {"GCP_ACCESS_TOKEN": ACCESS_TOKEN},
            "serviceaccount": {"GCP_SERVICE_ACCOUNT_FILE": str(self.folder / "service_account.json")},
            "application": {},
        }
        return {
            **bare_environment(),
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), self.url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            **dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(self.ca)),
            "GCP_AUTH_KIND": auth,
            "GCP_PROJECT": PROJECT,
            **kinds[auth],
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.folder / "service_account.json"),
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            # No question to a metadata server whether this is a machine of Google's.
            "NO_GCE_CHECK": "true",
            "CLOUDSDK_CONFIG": str(self.folder / "gcloud"),
            "CLOUDSDK_CORE_PROJECT": PROJECT,
        }

    def ask(self, name: str, body: Any = None) -> Any:
        """Use the side door: requests, faults, holdings."""
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        connection.request("POST", f"/_simulator/{name}", json.dumps(body).encode() if body is not None else b"")
        reply = json.loads(connection.getresponse().read() or b"null")
        connection.close()
        return reply

    def fault(self, kind: str, method: str, times: int = 1, **detail: Any) -> None:
        """``method`` is the id of the discovery document: container.projects.locations.clusters.create.

        refuse (status, message, reason, code), throttle (status=503), stale, slow (polls), stock_out, quota (metric), api_not_enabled,
        drop, operation_error (code, message). With after=METHOD, once that was answered.
        """
        self.ask("fault", {"kind": kind, "operation": method, "times": times, "detail": detail})

    def permissions(self, allowed: list[str] | None) -> None:
        """What the caller may from now on: permissions or patterns; None is everything."""
        self.allowed = allowed
        self.ask("permissions", allowed)

    def enable(self, *services: str) -> None:
        """Services that an administrator enabled long ago."""
        self.ask("enable", list(services) or SERVICES)

    def workload(self, cluster: str, location: str, fades: int = 0) -> list[str]:
        """What workloads of a cluster make in the project: a disk for a claim, and a load balancer with its firewall rule. Their paths."""
        made: list[str] = self.ask("workload", {"cluster": cluster, "location": location, "fades": fades})
        return made

    def writes(self) -> list[str]:
        """What changed something since :meth:`clear`, as the server saw it: "compute:networks.insert"."""
        return [_shown(r) for r in self.ask("requests") if r["writes"] and r["status"] < 400]

    def attempts(self) -> list[str]:
        """What meant to, refused requests too."""
        return [_shown(r) for r in self.ask("requests") if r["writes"]]

    def strangers(self) -> list[str]:
        """Hosts that somebody wanted to reach and that are not Google's, or not simulated."""
        return [r["host"] for r in self.ask("requests") if r["method"] == "stranger"]

    def clear(self) -> None:
        self.ask("clear")

    def reset(self) -> None:
        """An empty project."""
        self.ask("reset")


def _shown(row: dict[str, Any]) -> str:
    return str(row["method"]).replace(".", ":", 1)


def bare_environment() -> dict[str, str]:
    """This process's environment without anything that could lead to a real project.

    Compiled Python is kept, even where whoever runs the tests forbids it: every task of a playbook is a process of its own.
    """
    forbidden = ("GCP_", "GCE_", "GOOGLE_", "CLOUDSDK_", "BOTO_", "AWS_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(forbidden)}
    return {**kept, "PYTHONPYCACHEPREFIX": str(TESTS.parent / "build" / "pycache")}
