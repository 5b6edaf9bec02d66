# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests' handle on the simulator: start it, read its journal, make things fail."""

from pathlib import Path
from typing import Any

from ..client import Client, bare_environment, start
from .oauth import ACCESS_TOKEN, CALLER
from .state import NUMBER, PROJECT

__all__ = ["ACCESS_TOKEN", "CALLER", "NUMBER", "PROJECT", "Simulator", "bare_environment"]

# Everything that a playbook for GKE needs; see Simulator.enable.
SERVICES = [
    f"{name}.googleapis.com"
    for name in ("artifactregistry", "cloudresourcemanager", "compute", "container", "iam", "iamcredentials", "storage")
]


class Simulator(Client):
    """A server of its own on a free port, ended by :meth:`stop`. Its certificates, credentials and log are in ``folder``.

    A fault's operation is the id of the discovery document: container.projects.locations.clusters.create. There are

    refuse (status, message, reason, code), throttle (status=503), stale, slow (polls), stock_out, quota (metric), api_not_enabled,
    drop, operation_error (code, message). With after=METHOD, once that was answered.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        super().__init__(*start("google", folder / "server.log", "--folder", str(folder), *arguments))
        self.ca = folder / "ca.pem"
        self.allowed: list[str] | None = None

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

    def reset(self) -> None:
        """An empty project."""
        self.ask("reset")


def _shown(row: dict[str, Any]) -> str:
    return str(row["method"]).replace(".", ":", 1)
