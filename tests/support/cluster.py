# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks on a real cluster, which the collection's own role brings up and removes.

Every molecule scenario goes through its whole life there, those of roles for hosts apart, which have simulated machines.

The cluster has a name, addresses, a kubeconfig and an audit log of its own: one that a developer runs is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._local import sources
from support import audit, canary, mirror, versions
from support.lanes import Check, CheckFailed, Shell
from support.places import BIN, BUILD, ROOT, below, tree
from support.scenario import SCENARIOS, Scenario


@dataclass(frozen=True)
class Ground:
    """What checks stand on, with its files in a folder of its own: a cluster, or only simulated machines."""

    name: str
    cluster: bool = True
    user: str = ""
    """The Kubernetes user of a check that runs beside others; without one it is the cluster's first administrator."""

    @property
    def kubeconfig(self) -> Path:
        return BUILD / self.name / (f"{self.user}.kubeconfig" if self.user else "kubeconfig")

    def with_user(self, user: str) -> Ground:
        """The same cluster with a user of its own, whose kubeconfig is written."""
        from support.users import write_kubeconfig  # with the 800 files of the client, which most readers of this module do not need

        found = replace(self, user=user)
        write_kubeconfig(self.kubeconfig, user, found.kubeconfig)
        return found

    @property
    def audit_log(self) -> Path:
        return BUILD / self.name / "audit.log"


SHARED = Ground("must-test")
# Simulated nodes, policies, a drained node and an API server that is killed change a cluster for all: these checks have one of their own.
ENGINE = Ground("must-eng")
# The scenario of the role local_cluster makes a cluster and removes it: not the one that the others need.
OWN = Ground("must-mol")
MACHINES = Ground("must-machines", cluster=False)
# Scenarios run in two lanes, side by side, each in this order. Those that install an operator for the whole cluster and those that use
# it are in one lane, from the ground up. What is not named comes at the end of the first.
LANES = (
    ("namespace", "nats_operator", "gpu_drivers", "persia_operator", "persia", "elastic", "dataset"),
    ("jobset", "trainer", "training_operator", "object_store", "rabbitmq_cluster", "studioml", "studioml_client", "studioml_runner",
     "local_images", "local_cluster", "kueue"),
)  # fmt: skip
# It drains the node on which all pods run.
ON_ENGINE = ("jobset_training",)
# Roles for hosts: they run beside the cluster, one after the other, because the machines share addresses.
ON_MACHINES = ("rabbitmq",)
# One of each family of roles: a plan after the run sends no write request either.
PLANNED_AGAIN = frozenset({"namespace", "persia", "elastic", "kueue", "studioml_runner", "triton", "local_images", "local_cluster"})
# existing.yml looks at the nodes before anything is done, and gpu_drivers waits for GPUs after.
WAITED_FOR = frozenset({"/api/v1/nodes"})
# Each model that is uploaded asks which pods serve it, and which one is its store.
ASKED_BY_EACH = {"triton_model": re.compile(r"/pods\?labelSelector=[^&]*%2Fname%3D(triton|object-store)$")}
# Under the names of what is published: what somebody's cluster would pull.
STAND_INS = ["published-nats", "published-nats-operator", "published-pushgateway", "published-pytorch", "published-persia"]
# The local cluster and the code that all scenarios run.
PLUGINS = ("plugins/*", "roles/local_cluster/*", "roles/local_images/*", "tests/images/*", "meta/*")
CANARY = f"canary-{secrets.token_hex(16)}"


def scenarios() -> tuple[list[str], list[str]]:
    """The scenarios of both lanes."""
    found = {path.parent.name for path in SCENARIOS.glob("*/molecule.yml")}
    first, second = LANES
    return [*first, *sorted(found - {*first, *second, *ON_MACHINES, *ON_ENGINE})], list(second)


def ground_of(scenario: str) -> Ground:
    if scenario == "local_cluster":
        return OWN
    if scenario in ON_MACHINES:
        return MACHINES
    return (ENGINE if scenario in ON_ENGINE else SHARED).with_user(f"scenario-{scenario.replace('_', '-')}")


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


def playbook(shell: Shell, ground: Ground, name: str, *options: str) -> None:
    """Run one of our own playbooks for a cluster of the checks."""
    settings = {
        "local_cluster_name": ground.name,
        "local_cluster_audit_log": str(ground.audit_log),
        "local_cluster_kubeconfig": str(ground.kubeconfig),
        "muster_kubeconfig": str(ground.kubeconfig),
        "muster_become": os.geteuid() != 0,
        "muster_delete_data": True,
        "muster_delete_cluster": True,
    }
    shell.run(
        BIN / "ansible-playbook", f"playbooks/{name}.yml", "-i", "inventories/local", "-e", json.dumps(settings), *options,
        cwd=ROOT, env={**environment(ground), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
    )  # fmt: skip


def up(ground: Ground, shell: Shell, *options: str) -> None:
    playbook(shell, ground, "teardown")  # what a run that was killed left
    ground.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    playbook(shell, ground, "local", *options)


def shared_up(shell: Shell) -> None:
    # Scenario nats_operator needs its image.
    up(SHARED, shell, "-e", "persia_nats_backend=operator")


def engine_up(shell: Shell) -> None:
    images = ["tools", "nats", "rabbitmq", "published-python", "py-spy"]
    up(ENGINE, shell, "-e", "@tests/images/published.yml", "-e", json.dumps({"local_images_names": images}))


def down(ground: Ground, shell: Shell) -> None:
    playbook(shell, ground, "teardown")
    refuse_leftovers(shell, ground)


def refuse_leftovers(shell: Shell, ground: Ground) -> None:
    """Nothing of the cluster may stay on the machine: the kernel is asked, not the role."""
    found = [f"process {line}" for line in processes_of(ground.name)]
    found += [f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines() if ground.name in line]
    for folder in ("/var/lib/muster", "/run/muster", "/sys/fs/cgroup", "/run/netns", "/var/run/netns"):
        found += [f"folder {path}" for path in below(folder) if ground.name in path.name and path.exists()]
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


def play(shell: Shell, ground: Ground, scenario: Scenario, step: str) -> None:
    """Run one step of a scenario; idempotence must change nothing."""
    shell.say(f"=== {scenario.name}: {step}")
    began = shell.log.stat().st_size
    settings = {**environment(ground), "K8S_AUTH_KUBECONFIG": str(ground.kubeconfig), **scenario.environment()}
    shell.run(*scenario.command(step), cwd=scenario.folder, env=settings)
    if step != "idempotence":
        return
    with shell.log.open("rb") as log:
        log.seek(began)
        lines = log.read().decode(errors="replace").splitlines()
    if any(re.search(r" changed=[1-9]", line) for line in lines):
        task = ""
        for line in lines:
            if line.startswith("TASK ["):
                task = line
            elif line.startswith("changed: ["):
                shell.say(f"changed again: {task}")
        raise CheckFailed(f"{scenario.name} changed something when it ran again")


def no_writes(shell: Shell, ground: Ground, what: str, work: Callable[[], None]) -> None:
    """Do work that must not write, and ask the audit log whether it did."""
    no_cluster_yet = not ground.kubeconfig.exists()
    began = datetime.now(UTC)
    work()
    if no_cluster_yet and not ground.kubeconfig.exists():
        return  # there is nothing that could have been written to
    found = audit.written(ground.audit_log, began, user=ground.user)
    for request in found:
        shell.say(f"unexpected write: {request}")
    if found:
        raise CheckFailed(f"{what} sent {len(found)} write requests, the first: {found[0]}")


def nothing_to_do(shell: Shell, ground: Ground, what: str, work: Callable[[], None], again: re.Pattern[str] | None = None) -> None:
    """Do work again that was done: it must not write, and must not ask twice for one list, unless it fits ``again``."""
    began = datetime.now(UTC)
    no_writes(shell, ground, what, work)
    if not ground.cluster:
        return
    lists = audit.listed(ground.audit_log, began, user=ground.user)
    twice = [
        f"{uri} ({times} times)"
        for uri, times in lists.items()
        if times > 1 and uri not in WAITED_FOR and not (again and again.search(uri))
    ]
    for uri in twice:
        shell.say(f"asked more than once: {uri}")
    if twice:
        raise CheckFailed(f"{what} asked for {len(twice)} lists more than once, the first: {twice[0]}")


def steps(shell: Shell, ground: Ground, scenario: Scenario) -> None:
    """Plan, run, run again, plan again, ask the scenario's own questions."""
    step = partial(play, shell, ground, scenario)
    plan = partial(no_writes, shell, ground, "the plan", partial(step, "check"))
    if scenario.has("prepare"):
        step("prepare")
    plan()
    step("converge")
    again = partial(step, "idempotence")
    nothing_to_do(shell, ground, "the second run", again, ASKED_BY_EACH.get(scenario.name))
    if scenario.name in PLANNED_AGAIN:
        plan()
    step("verify")


def life(name: str, shell: Shell) -> None:
    """A scenario's whole life, and a look for secrets all along. What it made goes, also when it failed."""
    ground = ground_of(name)
    ground.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    scenario = Scenario(name, BUILD / "molecule" / name)
    # What an earlier run prepared is gone with its cluster.
    shutil.rmtree(scenario.state, ignore_errors=True)
    scenario.write()
    with released(scenario) if ground is OWN else contextlib.nullcontext():
        _life(shell, ground, scenario)


@contextlib.contextmanager
def released(scenario: Scenario) -> Iterator[None]:
    """Serve what Kubernetes releases, made of this machine's programs, for a cache of the scenario's own: nothing is asked for twice."""
    with mirror.running(scenario.state / "mirror") as served:
        scenario.extra_variables.write_text(json.dumps(served.settings), encoding="utf-8")
        yield
    asked = [request for request in served.requests if request.startswith("GET ")]
    if len(asked) < len(sources.IMAGES) or len(asked) != len(set(asked)):
        raise CheckFailed(f"the mirror had {len(asked)} requests for {len(set(asked))} files")


def _life(shell: Shell, ground: Ground, scenario: Scenario) -> None:
    hidden = {"the canary": CANARY}
    with canary.ProcessWatch(hidden) as watch:
        try:
            steps(shell, ground, scenario)
            if ground.cluster:
                hidden["the kubeconfig's key"] = kubeconfig_key(ground)
        finally:
            play(shell, ground, scenario, "cleanup")
    leaks = watch.found | {f"{name} in the output" for name in canary.in_text(hidden, shell.log.read_bytes())}
    if leaks:
        raise CheckFailed(f"secrets in the open: {', '.join(sorted(leaks))}")
    if ground is OWN:
        refuse_leftovers(shell, ground)


def published(shell: Shell, *names: str) -> None:
    """Import stand-ins for published images."""
    images = json.dumps({"local_images_names": names})
    playbook(shell, SHARED, "local", "--tags", "local_images", "-e", "@tests/images/published.yml", "-e", images)


def ansible_versions(shell: Shell) -> None:
    """The installed artefact on a cluster that is there, with the oldest and the newest Ansible: plan, train, again, remove."""
    ground = SHARED.with_user("ansible-versions")
    published(shell, *STAND_INS)
    for version, installed in versions.homes(shell, BUILD / "versions", tree()):
        for settings in version.runs:
            shell.say(f"=== ansible-core {version.core} on Python {version.python}: {settings}")
            installed_life(shell, ground, installed, settings)


def installed_life(shell: Shell, ground: Ground, installed: versions.Installed, settings: Mapping[str, object]) -> None:
    given = {
        **settings,
        "muster_kubeconfig": str(ground.kubeconfig),
        "muster_namespace": "existing",
        "local_cluster_audit_log": str(ground.audit_log),
    }
    train = partial(installed.play, "site", given, environment(ground))
    no_writes(shell, ground, "the plan", partial(train, "--check", "--diff"))
    try:
        train()
        nothing_to_do(shell, ground, "site.yml again", train)
        if " changed=0 " not in last_recap(shell.log):
            raise CheckFailed(f"site.yml again: {last_recap(shell.log)}")
    finally:
        installed.play("teardown", {**given, "muster_delete_data": True}, environment(ground))


def folder(name: str, ground: Ground, shell: Shell) -> None:
    """The tests of a folder, whose first lines say what they show of a cluster."""
    shell.run(BIN / "pytest", f"tests/{name}", "--durations=5", cwd=ROOT, env=environment(ground))


def commands(shell: Shell) -> None:
    """What the pages show, as far as it can go here; none of it may write to the cluster."""
    ground = SHARED.with_user("commands")
    no_writes(shell, ground, "a command of the documentation", partial(folder, "commands", ground, shell))


def readme(shell: Shell) -> None:
    """README's path for a cluster that is there, in fresh roots of Debian."""
    published(shell, "published-pytorch")
    shell.run(BIN / "pytest", "-s", "tests/readme", cwd=ROOT, env=environment(SHARED.with_user("readme")))


def last_recap(log: Path) -> str:
    """The newest line of a play recap."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if " ok=" in line and " changed=" in line]
    return lines[-1] if lines else "no play recap"


def machine_checks() -> list[Check]:
    """The scenarios of roles for hosts, in order."""
    return [_scenario(name) for name in ON_MACHINES]


def _scenario(name: str, *needs: str) -> Check:
    reads = (
        f"extensions/molecule/{name}/*",
        "extensions/molecule/config.yml",
        "extensions/molecule/machine",
        "extensions/molecule/shared/*",
        *PLUGINS,
    )
    return Check(f"molecule-{name}", partial(life, name), timeout_s=2400, needs=needs, reads=reads, names=True)


def _on_engine(name: str, *more: str) -> Check:
    """A folder of tests about what is in plugins."""
    reads = (f"tests/{name}/*", "tests/faults/*", "tests/unit/fakes/*", *PLUGINS, *more)
    return Check(name, partial(folder, name, ENGINE), needs=("engine-up",), reads=reads)


def checks() -> list[list[Check]]:
    """The lanes of the clusters. A scenario that fails does not stop the next; the clusters are removed in any case.

    The second cluster waits for the first, which has built the programs of Kubernetes and the images.
    """
    first, second = ([_scenario(name, "cluster-up") for name in lane] for lane in scenarios())
    first += [
        Check("registry", partial(folder, "registry", SHARED), needs=("cluster-up",)),
        Check("commands", commands, needs=("cluster-up",)),
    ]
    second += [Check("ansible-versions", ansible_versions, timeout_s=1800, needs=("cluster-up",))]
    # Its inventory is written from what the cluster has: no queues of scenario kueue.
    alone = Check("readme", readme, timeout_s=2400, needs=("cluster-up",), after=("molecule-kueue",))
    third = [
        _on_engine("differential"),
        _on_engine("systems"),
        _on_engine("policies", "docs/operating/connections.md"),
        *(_scenario(name, "engine-up") for name in ON_ENGINE),
        _on_engine("scheduler"),
        _on_engine("faults"),
    ]
    others = tuple(check.name for check in [*first, *second, alone])
    up_first = Check("cluster-up", shared_up, timeout_s=3000)
    down_first = Check("cluster-down", partial(down, SHARED), timeout_s=300, after=others, always=True)
    up_third = Check("engine-up", engine_up, after=("cluster-up",))
    down_third = Check("engine-down", partial(down, ENGINE), timeout_s=300, always=True)
    return [[up_first, *first, down_first], second, [alone], [up_third, *third, down_third]]


# The checks that bring a cluster of the others up and take it away.
GROUND = ("cluster-up", "cluster-down", "engine-up", "engine-down")


def with_what_they_need(desired: set[str]) -> set[str]:
    """The clusters around the checks that run on them. The last lane has one, the others share the first."""
    *shared, engine = ({check.name for check in lane} for lane in checks())
    return {name for name in GROUND if desired & (engine if name.startswith("engine") else set().union(*shared))}
