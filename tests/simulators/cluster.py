# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of a cluster, as the cloud's own side of it asks: whose token is this, and which nodes have a device plugin."""

import json
import ssl
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

Body = dict[str, Any]
PLUGIN = "app.kubernetes.io/name%3Dnvidia-device-plugin"
GPU = "nvidia.com/gpu"
ACCOUNT_USER = "system:serviceaccount:"


@dataclass(frozen=True)
class ApiClient:
    """``credential`` is a file with an ExecCredential, ``ca`` one with the certificate authority."""

    url: str
    ca: Path
    credential: Path

    def ask(self, method: str, path: str, body: Body | None = None) -> Body:
        token = json.loads(self.credential.read_text(encoding="utf-8"))["status"]["token"]
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(  # noqa: S310  # an address of the tests' own
            self.url + path,
            json.dumps(body).encode() if body is not None else None,
            {"Authorization": f"Bearer {token}", "Content-Type": kind},
            method=method,
        )
        context = ssl.create_default_context(cafile=str(self.ca))
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
            found: Body = json.load(answer)
        return found

    def service_account(self, token: str, audience: str) -> tuple[str, str] | None:
        """(namespace, name) of the service account whose token this is; none where it is no token for this audience."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": [audience]}}
        status = self.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).get("status", {})
        user = str(status.get("user", {}).get("username", ""))
        if not status.get("authenticated") or audience not in status.get("audiences", []):
            return None
        if not user.startswith(ACCOUNT_USER):
            return None
        namespace, _colon, name = user.removeprefix(ACCOUNT_USER).partition(":")
        return namespace, name

    def report_gpus(self, count: int) -> list[str]:
        """What kubelet does for a device plugin: a simulated node where the plugin's pod runs has so many GPUs. Those that had none."""
        pods = self.ask("GET", f"/api/v1/namespaces/kube-system/pods?labelSelector={PLUGIN}")["items"]
        running = {pod["spec"].get("nodeName") for pod in pods if pod.get("status", {}).get("phase") == "Running"}
        nodes = self.ask("GET", "/api/v1/nodes?labelSelector=type%3Dkwok")["items"]
        lacking = [
            node["metadata"]["name"]
            for node in nodes
            if node["metadata"]["name"] in running and GPU not in node.get("status", {}).get("allocatable", {})
        ]
        gpus = {GPU: str(count)}
        for name in lacking:
            self.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"capacity": gpus, "allocatable": gpus}})
        return lacking

    def report_gpus_for_ever(self, count: int) -> None:
        """In a thread of its own, as long as this process lives."""
        pause = threading.Event()

        def report() -> None:
            while not pause.wait(1):
                try:
                    self.report_gpus(count)
                except (HTTPError, URLError, TimeoutError) as error:
                    print(f"GPUs are not reported: {error}", flush=True)

        threading.Thread(target=report, daemon=True).start()
