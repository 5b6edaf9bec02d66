# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a project has, as Google's own libraries and gcloud see it."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import google.auth.transport.requests
import google.oauth2.credentials

from .client import ACCESS_TOKEN, PROJECT, Simulator

ADDRESSES = {
    "compute": "https://compute.googleapis.com/compute/v1/",
    "container": "https://container.googleapis.com/v1/",
    "iam": "https://iam.googleapis.com/v1/",
    "projects": "https://cloudresourcemanager.googleapis.com/v3/",
    "storage": "https://storage.googleapis.com/storage/v1/",
}


class Reader:
    """google-auth's session: reads, and does what somebody else does."""

    def __init__(self, simulator: Simulator) -> None:
        credentials = google.oauth2.credentials.Credentials(ACCESS_TOKEN)
        self._session = google.auth.transport.requests.AuthorizedSession(credentials)
        self._session.trust_env = False
        self._session.proxies = {"https": simulator.url}
        self._session.verify = str(simulator.ca)

    def get(self, service: str, path: str) -> dict[str, Any]:
        """A resource; empty if it is not there."""
        answer = self._session.get(ADDRESSES[service] + path)
        if answer.status_code == 404:
            return {}
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def send(self, verb: str, service: str, path: str, **body: Any) -> dict[str, Any]:
        answer = self._session.request(verb, ADDRESSES[service] + path, json=body or None)
        assert answer.status_code < 400, answer.text
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def compute(self, path: str) -> dict[str, Any]:
        return self.get("compute", f"projects/{PROJECT}/{path}")

    def container(self, path: str) -> dict[str, Any]:
        return self.get("container", f"projects/{PROJECT}/locations/{path}")

    def members(self, service: str, path: str) -> dict[str, list[str]]:
        """The members of each role in a policy."""
        policy = self.get("storage", path) if service == "storage" else self.send("POST", service, path)
        return {row["role"]: sorted(row["members"]) for row in policy.get("bindings", [])}


def gcloud(simulator: Simulator, *words: str) -> Any:
    """What gcloud prints. Without gcloud on the path nothing can be asked."""
    program = shutil.which("gcloud")
    assert program, "gcloud is not on the PATH"
    command = [program, *words, "--format=json", "--quiet"]
    done = subprocess.run(command, env=simulator.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout or "null")
