# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated project whose clusters are a small API server, as a user would run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .apiserver import ApiServer
from .client import PROJECT, Simulator

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "ya29.canary-token-of-the-cluster"
REGION, ZONE = "us-central1", "us-central1-b"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO0V4QmYkqVbcyS0Vd3n0VgK8J7b1Y5m1Qy0m7Ue6XkZ muster"
SETTINGS: dict[str, Any] = {
    "muster_gcp_project": PROJECT,
    "muster_gcp_region": REGION,
    "gke_cluster_master_authorized_networks": [{"cidr_block": "203.0.113.0/24", "display_name": "office"}],
    "gcp_broker_vm_ssh_public_key": PUBLIC_KEY,
}


@dataclass
class Play:
    """Runs our playbooks against the simulated project, as a user would."""

    google: Simulator
    api_server: ApiServer
    folder: Path
    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)

    def command(self, playbook: str, *options: str, **settings: Any) -> list[str]:
        given = json.dumps(self.settings | settings)
        return [
            "ansible-playbook",
            "-i",
            "inventories/gke",
            f"playbooks/{playbook}.yml",
            "--diff",
            *options,
            "-e",
            given,
        ]

    def environment(self) -> dict[str, str]:
        programs = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        return {
            **self.google.environment(),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callbacks"),
            "ANSIBLE_CALLBACKS_ENABLED": "actions",
            "MUSTER_ACTIONS": str(self.actions_file),
        }

    def __call__(self, playbook: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        self.actions_file.unlink(missing_ok=True)
        done = subprocess.run(
            self.command(playbook, *options, **settings),
            cwd=ROOT, env=self.environment(), capture_output=True, text=True, check=False,
            timeout=600,
        )  # fmt: skip
        output = done.stdout + done.stderr
        (self.folder / f"{len(self.outputs)}.log").write_text(output, encoding="utf-8")
        if self.actions_file.exists():
            shutil.copy(self.actions_file, self.folder / f"{len(self.outputs)}.actions")
        self.outputs.append(output)
        return done

    @property
    def actions_file(self) -> Path:
        return self.folder / "actions"

    def actions(self) -> list[str]:
        """What the last run said that it would do, or did, at Google: "compute:networks.insert"."""
        lines = self.actions_file.read_text(encoding="utf-8").splitlines() if self.actions_file.exists() else []
        return [line.partition(" ")[0] for line in lines if re.match(r"(?!kubernetes:)[a-z]+:[\w.]+( |$)", line)]

    def said(self) -> str:
        """The last output, without the breaks of its lines."""
        return " ".join(self.outputs[-1].split())


def recap(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    line = [line for line in done.stdout.splitlines() if " failed=" in line][-1]
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}


@contextmanager
def playground(folder: Path, settings: dict[str, Any]) -> Iterator[Play]:
    """An empty project, and a gke-gcloud-auth-plugin on the path that hands out the token which the API server knows."""
    command = folder / "bin" / "gke-gcloud-auth-plugin"
    command.parent.mkdir()
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": TOKEN},
    }
    command.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in --use_application_default_credentials) echo '{json.dumps(credential)}' ;; *) exit 64 ;; esac\n",
        encoding="utf-8",
    )
    command.chmod(0o755)
    api_server = ApiServer(folder, TOKEN, nodes=2)
    simulator = Simulator(
        folder / "google", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca), "--polls", "1"
    )
    try:
        yield Play(
            simulator, api_server, folder, {**SETTINGS, "muster_kubeconfig": str(folder / "kubeconfig"), **settings}
        )
    finally:
        simulator.stop()
        api_server.stop()
