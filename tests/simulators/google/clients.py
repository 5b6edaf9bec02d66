# SPDX-License-Identifier: GPL-3.0-or-later
"""Google's own client libraries, led to the simulator: what they make of its answers is the judgement that counts."""

from __future__ import annotations

import json
from typing import Any

import httplib2
import pytest
import requests
from google.auth.transport.requests import AuthorizedSession
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.storage import Client
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build

from .client import ACCESS_TOKEN, PROJECT, Simulator


def session(simulator: Simulator) -> AuthorizedSession:
    made = AuthorizedSession(Credentials(ACCESS_TOKEN))
    made.trust_env, made.proxies, made.verify = False, {"https": simulator.url}, str(simulator.ca)
    return made


def storage(simulator: Simulator) -> Client:
    """google-cloud-storage."""
    return Client(project=PROJECT, credentials=Credentials(ACCESS_TOKEN), _http=session(simulator))


class Http:
    """What google-api-python-client sends its requests by; httplib2, its own, needs PySocks for a proxy."""

    def __init__(self, simulator: Simulator) -> None:
        self._session = session(simulator)

    def request(self, uri: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any) -> tuple[Any, bytes]:
        answer = self._session.request(method, uri, data=body, headers=headers, timeout=30)
        return httplib2.Response({"status": str(answer.status_code), **answer.headers}), answer.content


def discovered(simulator: Simulator, name: str, version: str = "v1") -> Any:
    """google-api-python-client."""
    return build(name, version, http=Http(simulator), static_discovery=True, cache_discovery=False)


def container(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> ClusterManagerClient:
    """google-cloud-container, which takes its proxy and authorities from the environment."""
    for name in ("HTTPS_PROXY", "REQUESTS_CA_BUNDLE", "NO_PROXY"):
        monkeypatch.setenv(name, simulator.environment()[name])
    return ClusterManagerClient(credentials=Credentials(ACCESS_TOKEN), transport="rest")


def dropped(simulator: Simulator, verb: str, url: str, body: Any) -> None:
    """Send a request whose answer never comes."""
    with pytest.raises(requests.exceptions.ConnectionError):
        session(simulator).request(verb, url, json=body, max_allowed_time=30)


def told(error: Any) -> tuple[int, str, str]:
    """(status, reason, message) of googleapiclient's HttpError."""
    body = json.loads(error.content)["error"]
    return error.status_code, body["errors"][0]["reason"], body["message"]
