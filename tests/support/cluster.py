# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks on a real cluster, which the collection's own role brings up and removes.

Every molecule scenario goes through its whole life there.

The cluster has a name, addresses, a kubeconfig and an audit log of its own: one that a developer runs is left alone.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from support import audit, canary
from support.lanes import Check, CheckFailed, Shell
from support.places import BIN, BUILD, ROOT


@dataclass(frozen=True)
class Ground:
    """A cluster that checks stand on; its files lie in a folder of its own."""

    name: str

    @property
    def kubeconfig(self) -> Path:
        return BUILD / self.name / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return BUILD / self.name / "audit.log"


SHARED = Ground("must-test")
# The scenario of the role local_cluster makes a cluster and removes it: not the one that the others need.
OWN = Ground("must-mol")
SCENARIOS = ROOT / "extensions" / "molecule"
# From the ground up; what is not named comes between the two. The last two take away what the others stand on.
FIRST = ("namespace", "nats_operator", "gpu_drivers", "persia_operator", "persia")
LAST = ("local_images", "local_cluster")
CANARY = f"canary-{secrets.token_hex(16)}"


def scenarios() -> list[str]:
    found = {path.parent.name for path in SCENARIOS.glob("*/molecule.yml")}
    between = sorted(found - {*FIRST, *LAST})
    return [name for name in (*FIRST, *between, *LAST) if name in found]


def environment(ground: Ground) -> dict[str, str]:
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "MUSTER_AUDIT_LOG": str(ground.audit_log),
        "MUSTER_CANARY": CANARY,
        "MUSTER_CLUSTER_NAME": ground.name,
        "MUSTER_KUBECONFIG": str(ground.kubeconfig),
        "NO_COLOR": "1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }


def playbook(shell: Shell, name: str) -> None:
    """Run one of our own playbooks for the shared cluster."""
    settings = {
        "local_cluster_name": SHARED.name,
        "local_cluster_audit_log": str(SHARED.audit_log),
        "local_cluster_kubeconfig": str(SHARED.kubeconfig),
        "muster_kubeconfig": str(SHARED.kubeconfig),
        "muster_become": os.geteuid() != 0,
        "muster_remove_data": True,
    }
    shell.run(
        BIN / "ansible-playbook", f"playbooks/{name}.yml", "-i", "inventories/local", "-e", json.dumps(settings),
        cwd=ROOT, env={**environment(SHARED), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
    )  # fmt: skip


def up(shell: Shell) -> None:
    playbook(shell, "teardown")  # what a run that was killed left
    SHARED.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    playbook(shell, "local")


def down(shell: Shell) -> None:
    playbook(shell, "teardown")
    refuse_leftovers(shell, SHARED)


def refuse_leftovers(shell: Shell, ground: Ground) -> None:
    """Nothing of the cluster may stay on the machine: the kernel is asked, not the role."""
    found = [f"process {line}" for line in processes_of(ground.name)]
    found += [
        f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines() if ground.name in line
    ]
    for folder in ("/var/lib/muster", "/run/muster", "/sys/fs/cgroup", "/run/netns", "/var/run/netns"):
        found += [f"folder {path}" for path in Path(folder).glob(f"**/*{ground.name}*") if path.exists()]
    found += [f"interface {path.name}" for path in Path("/sys/class/net").iterdir() if ground.name[:10] in path.name]
    for line in found:
        shell.say(f"left over: {line}")
    if found:
        raise CheckFailed(f"{len(found)} things are left on this machine, the first: {found[0]}")


def processes_of(name: str) -> list[str]:
    """Processes whose arguments name the cluster's folders, whoever started them."""
    marks = [f"/{folder}/{name}".encode() for folder in ("var/lib/muster", "run/muster")]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:  # ended since
            continue
        if any(mark in text for mark in marks):
            found.append(text.replace(b"\0", b" ").decode(errors="replace")[:120])
    return found


def kubeconfig_key(ground: Ground) -> str:
    """The private key that opens the cluster: no output may show it."""
    for line in ground.kubeconfig.read_text(encoding="utf-8").splitlines():
        if "client-key-data:" in line:
            return line.split(":", 1)[1].strip()
    raise CheckFailed(f"{ground.kubeconfig} has no client-key-data")


def molecule_state(scenario: str) -> Path:
    """Where molecule notes what it has done; in the home it would be shared by every clone that ever lay at one path."""
    return BUILD / "molecule" / scenario


def molecule(shell: Shell, ground: Ground, scenario: str, command: str) -> None:
    shell.say(f"=== {scenario}: {command}")
    shell.run(
        BIN / "molecule", command, "--scenario-name", scenario,
        cwd=ROOT, env={**environment(ground), "MOLECULE_EPHEMERAL_DIRECTORY": str(molecule_state(scenario))},
    )  # fmt: skip


def without_writing(shell: Shell, ground: Ground, scenario: str, command: str) -> None:
    """Run a molecule command that must not write, and ask the audit log whether it did."""
    no_cluster_yet = not ground.kubeconfig.exists()
    began = datetime.now(UTC)
    molecule(shell, ground, scenario, command)
    if no_cluster_yet and not ground.kubeconfig.exists():
        return  # there is nothing that could have been written to
    found = audit.written(ground.audit_log, began)
    for request in found:
        shell.say(f"unexpected write: {request}")
    if found:
        raise CheckFailed(f"molecule {command} sent {len(found)} write requests, the first: {found[0]}")


def steps(shell: Shell, ground: Ground, scenario: str) -> None:
    """Plan, run, run again, plan again, ask the scenario's own questions."""
    if (SCENARIOS / scenario / "prepare.yml").exists():
        molecule(shell, ground, scenario, "prepare")
    without_writing(shell, ground, scenario, "check")
    molecule(shell, ground, scenario, "converge")
    without_writing(shell, ground, scenario, "idempotence")
    without_writing(shell, ground, scenario, "check")
    molecule(shell, ground, scenario, "verify")


def life(scenario: str, shell: Shell) -> None:
    """A scenario's whole life, and a look for secrets all along. What it made goes, also when it failed."""
    ground = OWN if scenario == "local_cluster" else SHARED
    ground.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    # What an earlier run prepared is gone with its cluster.
    shutil.rmtree(molecule_state(scenario), ignore_errors=True)
    hidden = {"the canary": CANARY}
    with canary.ProcessWatch(hidden) as watch:
        try:
            steps(shell, ground, scenario)
            hidden["the kubeconfig's key"] = kubeconfig_key(ground)
        finally:
            molecule(shell, ground, scenario, "cleanup")
    leaks = watch.found | {f"{name} in the output" for name in canary.in_text(hidden, shell.log.read_bytes())}
    if leaks:
        raise CheckFailed(f"secrets in the open: {', '.join(sorted(leaks))}")
    if ground is OWN:
        refuse_leftovers(shell, ground)


def checks() -> list[Check]:
    """The lane, in order. A scenario that fails does not stop the next; the cluster goes in any case."""
    return [
        Check("cluster-up", up, timeout_s=3000),
        *(
            Check(f"molecule-{name}", partial(life, name), timeout_s=1500, needs=("cluster-up",))
            for name in scenarios()
        ),
        Check("cluster-down", down, timeout_s=300, always=True),
    ]


def with_what_they_need(wanted: set[str]) -> set[str]:
    """A scenario asked for alone needs the cluster around it."""
    return {"cluster-up", "cluster-down"} if any(name.startswith("molecule-") for name in wanted) else set()
