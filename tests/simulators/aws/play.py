# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated account whose clusters are a small API server, as a user would run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulators.apiserver import ApiServer, node
from simulators.processes import kill_all

from . import shapes
from .client import REGION, Simulator
from .permissions import CALLER_KEY

ROOT = Path(__file__).resolve().parents[3]
POLICIES = ROOT / "playbooks" / "files" / "eks-policies"
TOKEN = "k8s-aws-v1.canary-token-of-the-cluster"
NAMES = ("muster", "theirs", *shapes.NAMES)


def published() -> dict[str, list[dict[str, Any]]]:
    """The policies that the docs publish, by what a caller is about."""
    check, apply, teardown = (
        json.loads((POLICIES / f"{name}.json").read_text()) for name in ("check", "apply", "teardown")
    )
    return {"check": [check], "apply": [check, apply], "teardown": [check, teardown]}


def named(policies: list[dict[str, Any]], cluster: str) -> list[dict[str, Any]]:
    """The policies for a cluster of another name, as the docs tell to change them."""
    found: list[dict[str, Any]] = json.loads(
        re.sub(r"([:/])muster([-/])", rf"\g<1>{cluster}\g<2>", json.dumps(policies))
    )
    return found


def without(policies: list[dict[str, Any]], statement: str) -> list[dict[str, Any]]:
    """The policies with one statement less."""
    return [
        {**policy, "Statement": [row for row in policy["Statement"] if row["Sid"] != statement]} for policy in policies
    ]


@dataclass
class Play:
    """Runs our playbooks against the simulated account, as a user would, with the permissions that the docs tell to give."""

    aws: Simulator
    api_server: ApiServer
    folder: Path
    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)
    policies: dict[str, list[dict[str, Any]]] = field(default_factory=published)
    clusters: tuple[str, ...] = ("muster",)

    def __call__(self, playbook: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        process = self._start(playbook, options, settings)
        out, err = process.communicate()
        return self._note(subprocess.CompletedProcess(process.args, process.returncode, out, err))

    def killed(self, playbook: str, after: int, *options: str, **settings: Any) -> bool:
        """The same, killed with everything that it has started when it is about to send its next write after so many; False if it ended."""
        self.aws.cut(after, holds=True)
        process = self._start(playbook, options, settings)
        while process.poll() is None and not self.aws.is_cut():
            time.sleep(0.1)
        done = self.aws.is_cut()
        if done:
            kill_all(process.pid)
        self.aws.release()
        out, err = process.communicate()
        self._note(subprocess.CompletedProcess(process.args, process.returncode, out, err))
        return done

    def _start(self, playbook: str, options: tuple[str, ...], settings: dict[str, Any]) -> subprocess.Popen[str]:
        programs = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        environment = {
            **self.aws.environment(),
            "AWS_ACCESS_KEY_ID": CALLER_KEY,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        phase = "check" if "--check" in options else {"eks": "apply", "eks_teardown": "teardown"}[playbook]
        name = settings.get("muster_eks_name")
        clusters = (name,) if name else self.clusters
        self.aws.policies(phase, [policy for one in clusters for policy in named(self.policies[phase], one)])
        return subprocess.Popen(
            ["ansible-playbook", "-i", "inventories/eks", f"playbooks/{playbook}.yml", "--diff", *options,
             "-e", json.dumps(self.settings | settings)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _note(self, done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
        output = done.stdout + done.stderr
        (self.folder / f"{len(self.outputs)}.log").write_text(output, encoding="utf-8")
        self.outputs.append(output)
        return done

    def said(self) -> str:
        """The last output, without the breaks of its lines."""
        return " ".join(self.outputs[-1].split())


def pod_environment(
    aws: Simulator, api_server: ApiServer, folder: Path, how: str, account: str, role: str
) -> dict[str, str]:
    """What EKS's webhook gives the pods of a service account (namespace:name), so that they can become its role: pod_identity or irsa."""
    name, audience, more = {
        "pod_identity": (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "pods.eks.amazonaws.com",
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/v1/credentials"},
        ),
        "irsa": (
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "sts.amazonaws.com",
            {"AWS_ENDPOINT_URL_STS": aws.url, "AWS_ROLE_ARN": role},
        ),
    }[how]
    token = f"token-of-{account}"
    api_server.pods[token] = (account, audience)
    path = folder / "pod-token"
    path.write_text(token, encoding="utf-8")
    return {name: str(path), **more, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": aws.url}


@contextmanager
def playground(folder: Path, settings: dict[str, Any]) -> Iterator[Play]:
    """An empty account, and an `aws` on the path that hands out the token which the API server knows: only AWS itself could make one."""
    command = folder / "bin" / "aws"
    command.parent.mkdir()
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": TOKEN},
    }
    desired = " | ".join(f'"--region "*" eks get-token --cluster-name {name} --output json"' for name in NAMES)
    command.write_text(
        f"#!/bin/sh\ncase \"$*\" in {desired}) echo '{json.dumps(credential)}' ;; *) exit 64 ;; esac\n",
        encoding="utf-8",
    )
    command.chmod(0o755)
    nodes = [node(f"ip-10-40-0-{n}", **{"eks.amazonaws.com/nodegroup": "system"}) for n in range(2)]
    api_server = ApiServer(folder, TOKEN, *nodes)
    of_caller = folder / "credential.json"
    of_caller.write_text(json.dumps(credential), encoding="utf-8")
    simulator = Simulator(
        folder / "server.log", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca),
        "--cluster-credential", str(of_caller), "--gpus", "1", "--polls", "1",
    )  # fmt: skip
    try:
        yield Play(simulator, api_server, folder, {"muster_kubeconfig": str(folder / "kubeconfig"), **settings})
    finally:
        simulator.stop()
        api_server.stop()
