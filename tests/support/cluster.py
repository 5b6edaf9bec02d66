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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from support import audit, canary
from support.lanes import Check, CheckFailed, Shell
from support.places import BIN, BUILD, ROOT

CLUSTER = "muster-test"
SETTINGS = ROOT / "tests" / "cluster.yml"
KUBECONFIG = BUILD / "cluster" / "kubeconfig"
AUDIT_LOG = BUILD / "cluster" / "audit.log"
SCENARIOS = ROOT / "extensions" / "molecule"
# The order in which they build on each other; what is not named here comes after, by name.
FIRST = ("local_cluster", "local_images", "namespace", "nats_operator", "gpu_drivers", "persia_operator", "persia")
CANARY = f"canary-{secrets.token_hex(16)}"


def scenarios() -> list[str]:
    found = {path.parent.name for path in SCENARIOS.glob("*/molecule.yml")}
    return [name for name in FIRST if name in found] + sorted(found - set(FIRST))


def environment() -> dict[str, str]:
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
        "MUSTER_AUDIT_LOG": str(AUDIT_LOG),
        "MUSTER_CANARY": CANARY,
        "MUSTER_CLUSTER_NAME": CLUSTER,
        "MUSTER_KUBECONFIG": str(KUBECONFIG),
        "NO_COLOR": "1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }


def playbook(shell: Shell, name: str) -> None:
    """Run one of our own playbooks for the test cluster."""
    shell.run(
        BIN / "ansible-playbook", f"playbooks/{name}.yml", "-i", "inventories/local",
        "-e", f"@{SETTINGS}", "-e", json.dumps({
            "local_cluster_name": CLUSTER,
            "local_cluster_audit_log": str(AUDIT_LOG),
            "local_cluster_kubeconfig": str(KUBECONFIG),
            "muster_kubeconfig": str(KUBECONFIG),
            "muster_remove_data": True,
        }),
        cwd=ROOT, env={**environment(), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
    )  # fmt: skip


def up(shell: Shell) -> None:
    KUBECONFIG.parent.mkdir(parents=True, exist_ok=True)
    playbook(shell, "local")


def down(shell: Shell) -> None:
    playbook(shell, "teardown")
    refuse_leftovers(shell)


def refuse_leftovers(shell: Shell) -> None:
    """Nothing of the cluster may stay on the machine: the kernel is asked, not the role."""
    found = [f"process {line}" for line in processes_of_cluster()]
    found += [f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines() if CLUSTER in line]
    for folder in ("/var/lib/muster", "/run/muster", "/sys/fs/cgroup", "/run/netns", "/var/run/netns"):
        found += [f"folder {path}" for path in Path(folder).glob(f"**/*{CLUSTER}*") if path.exists()]
    found += [f"interface {path.name}" for path in Path("/sys/class/net").iterdir() if CLUSTER[:10] in path.name]
    for line in found:
        shell.say(f"left over: {line}")
    if found:
        raise CheckFailed(f"{len(found)} things are left on this machine, the first: {found[0]}")


def processes_of_cluster() -> list[str]:
    """Processes whose arguments name the cluster's folders, whoever started them."""
    marks = [f"/{folder}/{CLUSTER}".encode() for folder in ("var/lib/muster", "run/muster")]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:  # ended since
            continue
        if any(mark in text for mark in marks):
            found.append(text.replace(b"\0", b" ").decode(errors="replace")[:120])
    return found


def kubeconfig_key() -> str:
    """The private key that opens the cluster: no output may show it."""
    for line in KUBECONFIG.read_text(encoding="utf-8").splitlines():
        if "client-key-data:" in line:
            return line.split(":", 1)[1].strip()
    raise CheckFailed(f"{KUBECONFIG} has no client-key-data")


def molecule(shell: Shell, scenario: str, command: str) -> list[audit.Request]:
    """Run one molecule command; returns the write requests that came of it."""
    began = datetime.now(UTC)
    shell.say(f"=== {scenario}: {command}")
    shell.run(BIN / "molecule", command, "--scenario-name", scenario, cwd=ROOT, env=environment())
    return audit.written(AUDIT_LOG, began)


def expect_no_writes(shell: Shell, what: str, found: list[audit.Request]) -> None:
    for request in found:
        shell.say(f"unexpected write: {request}")
    if found:
        raise CheckFailed(f"{what} sent {len(found)} write requests, the first: {found[0]}")


def scenario_life(scenario: str, shell: Shell) -> None:
    """A scenario's whole life; after each step that must not write, the audit log is asked."""
    hidden = {"the canary": CANARY, "the kubeconfig's key": kubeconfig_key()}
    has = {path.stem for path in (SCENARIOS / scenario).glob("*.yml")}
    with canary.ProcessWatch(hidden) as watch:
        try:
            if "prepare" in has:
                molecule(shell, scenario, "prepare")
            expect_no_writes(shell, "--check before the first run", molecule(shell, scenario, "check"))
            molecule(shell, scenario, "converge")
            expect_no_writes(shell, "the second run", molecule(shell, scenario, "idempotence"))
            expect_no_writes(shell, "--check after the run", molecule(shell, scenario, "check"))
            molecule(shell, scenario, "verify")
        finally:
            if "cleanup" in has:
                molecule(shell, scenario, "cleanup")
    leaks = watch.found | {f"{name} in the output" for name in canary.in_text(hidden, shell.log.read_bytes())}
    if leaks:
        raise CheckFailed(f"secrets in the open: {', '.join(sorted(leaks))}")


def checks() -> list[Check]:
    """The lane, in order. A scenario that fails does not stop the next; the cluster goes in any case."""
    return [
        Check("cluster-up", up, timeout_s=3000),
        *(
            Check(f"molecule-{name}", partial(scenario_life, name), timeout_s=1500, needs=("cluster-up",))
            for name in scenarios()
        ),
        Check("cluster-down", down, timeout_s=300, always=True),
    ]


def with_what_they_need(wanted: set[str]) -> set[str]:
    """A scenario asked for alone needs the cluster around it."""
    if any(name.startswith(("molecule-", "cluster-")) for name in wanted):
        return {"cluster-up", "cluster-down"}
    return set()
