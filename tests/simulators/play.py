# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated cloud whose clusters are a small API server, as a user would run them."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from simulators.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Play:
    """Runs the playbooks of a cloud, and keeps what they said."""

    api_server: ApiServer
    folder: Path
    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)
    inventory: ClassVar[str]

    def command(self, playbook: str, *options: str, **settings: Any) -> list[str]:
        given = json.dumps(self.settings | settings)
        return [
            "ansible-playbook", "-i", f"inventories/{self.inventory}", f"playbooks/{playbook}.yml", "--diff", *options, "-e", given,
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        """That of ansible-playbook; the clouds add theirs."""
        programs = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}

    def begin(self, playbook: str, options: tuple[str, ...], settings: dict[str, Any]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(playbook, *options, **settings),
            cwd=ROOT, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Wait for the end of a run, and keep its output in the folder, too."""
        out, err = process.communicate(timeout=900)
        (self.folder / f"{len(self.outputs)}.log").write_text(out + err, encoding="utf-8")
        self.outputs.append(out + err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def said(self) -> str:
        """The last output, without the breaks of its lines."""
        return " ".join(self.outputs[-1].split())


def credential_of(token: str) -> dict[str, Any]:
    """What a client of Kubernetes takes a token from."""
    api = "client.authentication.k8s.io/v1beta1"
    return {"apiVersion": api, "kind": "ExecCredential", "status": {"token": token}}


def write_login(folder: Path, program: str, patterns: str, token: str) -> None:
    """A program on the path that hands out the token which the API server knows: only the cloud itself could make one."""
    path = folder / "bin" / program
    path.parent.mkdir()
    credential = json.dumps(credential_of(token))
    path.write_text(f"#!/bin/sh\ncase \"$*\" in {patterns}) echo '{credential}' ;; *) exit 64 ;; esac\n", encoding="utf-8")
    path.chmod(0o755)
