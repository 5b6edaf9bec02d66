# SPDX-License-Identifier: GPL-3.0-or-later
"""What a project has, without the collection's code, and what somebody else does there."""

from typing import Any

import requests

from .client import ACCESS_TOKEN, PROJECT, Simulator

REGION, ZONE = "us-central1", "us-central1-b"
COMPUTE = f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}"
GKE = f"https://container.googleapis.com/v1/projects/{PROJECT}/locations"
IAM = f"https://iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
PROJECTS = f"https://cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}"
STORAGE = "https://storage.googleapis.com/storage/v1"


def cluster(name: str, network: str = "ground", subnetwork: str = "ground", services: str = "services", **fields: Any) -> dict[str, Any]:
    """What a cluster is made of; a range for Services belongs to one cluster."""
    ranges = {"useIpAliases": True, "clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": services}
    return {"cluster": {"name": name, "network": network, "subnetwork": subnetwork, "ipAllocationPolicy": ranges, **fields}}


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

    def subnetwork(self, region: str, name: str, network: str, cidr: str, **ranges: str) -> None:
        """One of a network, with secondary ranges."""
        rows = [{"rangeName": one.replace("_", "-"), "ipCidrRange": text} for one, text in ranges.items()]
        body = {"name": name, "network": f"projects/{PROJECT}/global/networks/{network}", "ipCidrRange": cidr, "secondaryIpRanges": rows}
        self.write("POST", f"{COMPUTE}/regions/{region}/subnetworks", {**body, "privateIpGoogleAccess": True})

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
