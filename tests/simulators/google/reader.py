# SPDX-License-Identifier: GPL-3.0-or-later
"""What a project has, without the collection's code, and what somebody else does there."""

from __future__ import annotations

from typing import Any

import requests

from .client import ACCESS_TOKEN, PROJECT, Simulator

REGION, ZONE = "us-central1", "us-central1-b"
COMPUTE = f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}"
GKE = f"https://container.googleapis.com/v1/projects/{PROJECT}/locations"
IAM = f"https://iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
PROJECTS = f"https://cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}"
STORAGE = "https://storage.googleapis.com/storage/v1"


class Reader:
    """Google's API without the collection's code: the second opinion."""

    def __init__(self, google: Simulator) -> None:
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.proxies = {"https": google.url}
        self._session.verify = str(google.ca)
        self._session.headers["Authorization"] = f"Bearer {ACCESS_TOKEN}"

    def get(self, url: str) -> Any:
        """What is there; None if nothing is."""
        answer = self._session.get(url)
        return None if answer.status_code == 404 else self._body(answer)

    def write(self, verb: str, url: str, body: Any = None) -> Any:
        """Send a request, and wait for the operation of compute or GKE that it starts."""
        answer = self.begin(verb, url, body)
        while "operationType" in answer and answer["status"] != "DONE":
            answer = self._body(self._session.get(answer["selfLink"]))
        return answer

    def begin(self, verb: str, url: str, body: Any = None) -> Any:
        """Send a request, and wait for nothing."""
        return self._body(self._session.request(verb, url, json=body))

    def refused(self, verb: str, url: str, body: Any = None) -> tuple[int, str, str]:
        """(status, reason, message) of a request that is not taken."""
        answer = self._session.request(verb, url, json=body)
        assert not answer.ok, answer.text
        error = answer.json()["error"]
        return answer.status_code, error["errors"][0]["reason"], error["message"]

    def members(self, verb: str, url: str) -> dict[str, list[str]]:
        """The members of each role in a policy."""
        policy = self.write(verb, url)
        return {row["role"]: sorted(row["members"]) for row in policy.get("bindings", [])}

    def raw(self, verb: str, url: str, **options: Any) -> requests.Response:
        return self._session.request(verb, url, **options)

    @staticmethod
    def _body(answer: requests.Response) -> Any:
        assert answer.ok, answer.text
        return answer.json() if answer.content else {}
