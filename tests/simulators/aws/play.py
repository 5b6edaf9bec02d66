# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated account whose clusters are a small API server, as a user would run them."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulators import play
from simulators.apiserver import ApiServer, node
from simulators.play import ROOT, credential_of, write_login
from simulators.processes import kill_all

from . import shapes
from .client import REGION, Simulator
from .permissions import CALLER_KEY

POLICIES = ROOT / "playbooks" / "files" / "eks-policies"
TOKEN = "k8s-aws-v1.canary-token-of-the-cluster"
NAMES = ("muster", "theirs", *shapes.NAMES)


def published() -> dict[str, list[dict[str, Any]]]:
    """The policies that the docs publish, by what a caller is about."""
    check, apply, teardown = (json.loads((POLICIES / f"{name}.json").read_text()) for name in ("check", "apply", "teardown"))
    return {"check": [check], "apply": [check, apply], "teardown": [check, teardown]}


def named(policies: list[dict[str, Any]], cluster: str) -> list[dict[str, Any]]:
    """The policies for a cluster of another name, as the docs tell to change them."""
    found: list[dict[str, Any]] = json.loads(re.sub(r"([:/])muster([-/])", rf"\g<1>{cluster}\g<2>", json.dumps(policies)))
    return found


def without(policies: list[dict[str, Any]], statement: str) -> list[dict[str, Any]]:
    """The policies with one statement less."""
    return [{**policy, "Statement": [row for row in policy["Statement"] if row["Sid"] != statement]} for policy in policies]


@dataclass
class Play(play.Play):
    """With the permissions that the docs tell to give."""

    aws: Simulator = field(kw_only=True)
    policies: dict[str, list[dict[str, Any]]] = field(default_factory=published)
    clusters: tuple[str, ...] = ("muster",)
    inventory = "eks"

    def __call__(self, playbook: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        return self.end(self._start(playbook, options, settings))

    def killed(self, playbook: str, after: int, *options: str, **settings: Any) -> bool:
        """The same, killed with everything that it has started when it is about to send its next write after so many; False if it ended."""
        self.aws.cut(after)
        process = self._start(playbook, options, settings)
        while process.poll() is None and not self.aws.is_cut():
            time.sleep(0.1)
        done = self.aws.is_cut()
        if done:
            kill_all(process.pid)
        self.aws.release()
        self.end(process)
        return done

    def environment(self) -> dict[str, str]:
        return {
            **self.aws.environment(),
            **super().environment(),
            "AWS_ACCESS_KEY_ID": CALLER_KEY,
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def _start(self, playbook: str, options: tuple[str, ...], settings: dict[str, Any]) -> subprocess.Popen[str]:
        phase = "check" if "--check" in options else {"eks": "apply", "eks_teardown": "teardown"}[playbook]
        name = settings.get("muster_eks_name")
        clusters = (name,) if name else self.clusters
        self.aws.policies(phase, [policy for one in clusters for policy in named(self.policies[phase], one)])
        return self.begin(playbook, options, settings)


def pod_environment(aws: Simulator, api_server: ApiServer, folder: Path, how: str, account: str, role: str) -> dict[str, str]:
    """What EKS's webhook gives the pods of a service account (namespace:name), so that they can become its role: pod_identity or irsa."""
    name, audience, more = {
        "pod_identity": (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "pods.eks.amazonaws.com",
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/v1/credentials"},
        ),
        "irsa": ("AWS_WEB_IDENTITY_TOKEN_FILE", "sts.amazonaws.com", {"AWS_ENDPOINT_URL_STS": aws.url, "AWS_ROLE_ARN": role}),
    }[how]
    token = f"token-of-{account}"
    api_server.pods[token] = (account, audience)
    path = folder / "pod-token"
    path.write_text(token, encoding="utf-8")
    return {name: str(path), **more, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": aws.url}


@contextmanager
def playground(folder: Path, settings: dict[str, Any]) -> Iterator[Play]:
    """An empty account, and an `aws` on the path that logs in to its clusters."""
    commands = " | ".join(f'"--region "*" eks get-token --cluster-name {name} --output json"' for name in NAMES)
    write_login(folder, "aws", commands, TOKEN)
    nodes = [node(f"ip-10-40-0-{n}", **{"eks.amazonaws.com/nodegroup": "system"}) for n in range(2)]
    api_server = ApiServer(folder, TOKEN, *nodes)
    of_caller = folder / "credential.json"
    of_caller.write_text(json.dumps(credential_of(TOKEN)), encoding="utf-8")
    simulator = Simulator(
        folder / "server.log", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca),
        "--cluster-credential", str(of_caller), "--gpus", "1", "--polls", "1",
    )  # fmt: skip
    try:
        given = {"muster_kubeconfig": str(folder / "kubeconfig"), **settings}
        yield Play(api_server, folder, given, aws=simulator)
    finally:
        simulator.stop()
        api_server.stop()
