# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated account whose clusters are a small API server, as a user would run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .apiserver import ApiServer
from .client import Simulator

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "k8s-aws-v1.canary-token-of-the-cluster"
NAMES = ("muster", "theirs")


@dataclass
class Play:
    """Runs our playbooks against the simulated account, as a user would."""

    aws: Simulator
    api_server: ApiServer
    folder: Path
    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)

    def __call__(self, playbook: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        programs = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        environment = {
            **self.aws.environment(),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
        }
        done = subprocess.run(
            ["ansible-playbook", "-i", "inventories/eks", f"playbooks/{playbook}.yml", "--diff", *options,
             "-e", json.dumps(self.settings | settings)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
        (self.folder / f"{len(self.outputs)}.log").write_text(output, encoding="utf-8")
        self.outputs.append(output)
        return done

    def said(self) -> str:
        """The last output, without the breaks of its lines."""
        return " ".join(self.outputs[-1].split())


def recap(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    line = [line for line in done.stdout.splitlines() if " failed=" in line][-1]
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}


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
    api_server = ApiServer(folder, TOKEN, nodes=2)
    simulator = Simulator(
        folder / "server.log", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca), "--polls", "1"
    )
    try:
        yield Play(simulator, api_server, folder, {"muster_kubeconfig": str(folder / "kubeconfig"), **settings})
    finally:
        simulator.stop()
        api_server.stop()
