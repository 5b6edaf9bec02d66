# SPDX-License-Identifier: GPL-3.0-or-later
"""Our playbooks against a simulated project whose clusters are a small API server, as a user would run them."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulators import play
from simulators.apiserver import ApiServer, node
from simulators.play import ROOT, write_login
from simulators.processes import kill_all

from .client import PROJECT, Simulator
from .reader import REGION

CALLBACKS = str(Path(__file__).parent / "callbacks")
TOKEN = "ya29.canary-token-of-the-cluster"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO0V4QmYkqVbcyS0Vd3n0VgK8J7b1Y5m1Qy0m7Ue6XkZ muster"
SETTINGS: dict[str, Any] = {
    "muster_gcp_project": PROJECT,
    "muster_gcp_region": REGION,
    "gke_cluster_master_authorized_networks": [{"cidr_block": "203.0.113.0/24", "display_name": "office"}],
    "gcp_broker_vm_ssh_public_key": PUBLIC_KEY,
}
MANAGEMENT: dict[str, Any] = {
    "name": "management",
    "config": {"machine_type": "e2-standard-4"},
    "autoscaling": {"enabled": True, "total_min_node_count": 1, "total_max_node_count": 3},
}
_DATA = ("gcs_buckets_delete_data", "gcp_artifact_registry_delete_data", "gcp_broker_vm_delete_data")
DATA_TOO = dict.fromkeys(_DATA, True)
# RabbitMQ itself runs in scenario rabbitmq: here there is no machine behind the address.
NO_MACHINE = ("--skip-tags", "gcp_broker_vm_configure")


def permissions(part: str) -> list[str]:
    """What docs/platforms/gke.md says is needed for it, and for what stands before."""
    page = (ROOT / "docs" / "platforms" / "gke.md").read_text(encoding="utf-8")
    table = page.split("<!-- begin: permissions -->")[1].split("<!-- end: permissions -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    found: list[str] = []
    for name, cell in rows[1:]:
        found += re.findall(r"`([a-z]+\.[A-Za-z.*]+)`", cell)
        if name == part:
            return found
    raise LookupError(part)


@dataclass
class Play(play.Play):
    """With the permissions that the page says are enough."""

    google: Simulator = field(kw_only=True)
    there: dict[str, set[str]] = field(default_factory=dict)
    """What a test found, for those after it."""
    inventory = "gke"

    def environment(self) -> dict[str, str]:
        return {
            **self.google.environment(),
            **super().environment(),
            "HOME": str(self.folder),
            "ANSIBLE_CALLBACK_PLUGINS": os.pathsep.join(filter(None, (CALLBACKS, os.environ.get("ANSIBLE_CALLBACK_PLUGINS")))),
            "ANSIBLE_CALLBACKS_ENABLED": "actions",
            "MUSTER_ACTIONS": str(self.actions_file),
        }

    def __call__(self, playbook: str, *options: str, also: Sequence[str] = (), **settings: Any) -> subprocess.CompletedProcess[str]:
        """``also``: permissions besides those of the table."""
        return self.end(self._start(playbook, options, settings, also))

    def killed(self, method: str, playbook: str, *options: str, **settings: Any) -> None:
        """The same, killed with everything that it has started once a request for this method was answered."""
        self.google.clear()
        process = self._start(playbook, options, settings)
        while method not in self.google.writes():
            assert process.poll() is None, "it ended before"
            time.sleep(0.02)
        kill_all(process.pid)
        self.end(process)

    def _start(self, playbook: str, options: tuple[str, ...], settings: dict[str, Any], also: Sequence[str] = ()) -> subprocess.Popen[str]:
        part = "check" if "--check" in options else {"gke": "apply", "gke_teardown": "tear down"}[playbook]
        self.google.permissions([*permissions(part), *also])
        self.actions_file.unlink(missing_ok=True)
        return self.begin(playbook, options, settings)

    def end(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        done = super().end(process)
        self.google.permissions(None)
        if self.actions_file.exists():
            shutil.copy(self.actions_file, self.folder / f"{len(self.outputs) - 1}.actions")
        return done

    @property
    def actions_file(self) -> Path:
        return self.folder / "actions"

    def actions(self) -> list[str]:
        """What the last run said that it would do, or did, at Google: "compute:networks.insert"."""
        lines = self.actions_file.read_text(encoding="utf-8").splitlines() if self.actions_file.exists() else []
        return [line.partition(" ")[0] for line in lines if re.match(r"(?!kubernetes:)[a-z]+:[\w.]+( |$)", line)]


def failure(done: subprocess.CompletedProcess[str]) -> str:
    """What to show of a run that ended otherwise than it should."""
    return done.stdout[-3000:] + done.stderr[-500:]


@contextmanager
def playground(folder: Path, settings: dict[str, Any]) -> Iterator[Play]:
    """An empty project, and a gke-gcloud-auth-plugin on the path that logs in to its clusters."""
    write_login(folder, "gke-gcloud-auth-plugin", "--use_application_default_credentials", TOKEN)
    nodes = [node(f"gke-muster-management-{n}", **{"cloud.google.com/gke-nodepool": "management"}) for n in range(2)]
    api_server = ApiServer(folder, TOKEN, *nodes)
    simulator = Simulator(folder / "google", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca), "--polls", "1")
    try:
        given = {**SETTINGS, "muster_kubeconfig": str(folder / "kubeconfig"), **settings}
        yield Play(api_server, folder, given, google=simulator)
    finally:
        simulator.stop()
        api_server.stop()


def hold(google: Simulator) -> dict[str, dict[str, Any]]:
    """Everything that the project has, by kind and name."""
    found: dict[str, dict[str, Any]] = google.ask("holdings")
    return found


def left(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[str]]:
    """What is there besides, by kind. Enabled APIs stay, and what Google itself has made with them or keeps for a while."""
    kinds = {kind for kind in after if kind not in ("services", "identityPools") and not kind.startswith("deleted")}
    found = {kind: sorted(after[kind].keys() - before.get(kind, {}).keys()) for kind in kinds}
    googles = re.compile(
        r"roles/.* (serviceAccount:.*gserviceaccount[.]com|user:owner@example[.]com)$|.*-compute@developer[.]gserviceaccount[.]com$"
    )
    rest = {kind: [name for name in names if f"@{PROJECT}." in name or not googles.match(name)] for kind, names in found.items()}
    return {kind: names for kind, names in rest.items() if names}
