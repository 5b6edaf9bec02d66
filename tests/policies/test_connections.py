# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may connect to the pods of each system, as docs/operating/connections.md has it, tried on a local cluster (MUSTER_KUBECONFIG).

Policies and labels come from the systems' own builders. The pods that have these labels only listen, on the ports of that table.
"""

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.places import ROOT, local_kubectl

from ansible_collections.muster.ml.tests.unit.fakes.policies import GATEWAY, SYSTEMS, labels_of

KUBECONFIG = os.environ["MUSTER_KUBECONFIG"]
NAMESPACE, OTHER = "connections", "connections-of-others"
IMAGE = "muster.local/tools:1.35.0"
PAGE = ROOT / "docs/operating/connections.md"
# Stand for every port, where the table says so.
SOME_PORTS = (29400, 40000)
ANOTHER_PORT = (40000,)
CLIENTS = ("their own kind", "their namespace", "another namespace", "the machine")
TIMEOUT_S = 4

Open = frozenset[tuple[str, int, str]]
"""System, port and client of each connection that is answered."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table: which clients reach these ports of a system."""

    system: str
    ports: tuple[int, ...]
    clients: tuple[str, ...]


def table() -> list[Row]:
    rows, system = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or cells[0] == "pods" or set(cells[0]) == {"-"}:
            continue
        system = cells[0] or system
        assert set(cells[2:]) <= {"yes", "no"}, line
        own, namespace, others = (cell == "yes" for cell in cells[2:])
        allowed = zip(CLIENTS, (own, namespace, others, others), strict=True)
        rows.append(Row(system, _ports(cells[1]), tuple(client for client, yes in allowed if yes)))
    return rows


def _ports(cell: str) -> tuple[int, ...]:
    number = re.match(r"\d+", cell)
    return (int(number[0]),) if number else {"every": SOME_PORTS, "every other": ANOTHER_PORT}[cell]


ROWS = table()
PORTS = {system: sorted({port for row in ROWS if row.system == system for port in row.ports}) for system in {row.system for row in ROWS}}
EXPECTED: Open = frozenset((row.system, port, client) for row in ROWS for port in row.ports for client in row.clients)
EVERYTHING: Open = frozenset((system, port, client) for system, ports in PORTS.items() for port in ports for client in CLIENTS)


def kubectl(*words: str, text: str | None = None) -> str:
    command = [local_kubectl(KUBECONFIG), "--kubeconfig", KUBECONFIG, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def slug(system: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", system.lower()).strip("-")


def pod(name: str, namespace: str, labels: t.Mapping[str, str], ports: Sequence[int] = ()) -> dict[str, t.Any]:
    """A pod that answers on PORTS, and can be told to connect."""
    listening = " ".join(f"busybox nc -ll -p {port} -e echo ok &" for port in ports)
    container: dict[str, t.Any] = {"name": "main", "image": IMAGE, "command": ["sh", "-c", f"{listening} exec sleep 3600"]}
    if ports:
        # Asked by the node itself, on a port that may be closed to all others.
        container["readinessProbe"] = {"tcpSocket": {"port": ports[-1]}, "periodSeconds": 1}
    spec = {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)}, "spec": spec}


def objects_of(system: str) -> list[dict[str, t.Any]]:
    """The policies of a system, a pod of it that listens, and one that connects, of another kind where there are several."""
    made = {**SYSTEMS, **GATEWAY}[system]()
    policies = [{**one, "metadata": {"name": slug(system), "namespace": NAMESPACE}} for one in made if one["kind"] == "NetworkPolicy"]
    first, *_others, last = [*labels_of(system, made)] * 2
    server, client = pod(slug(system), NAMESPACE, first, PORTS[system]), pod(f"{slug(system)}-own", NAMESPACE, last)
    return [*policies, server, client]


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """System -> the address of its pod that listens."""
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (NAMESPACE, OTHER)]
    strangers = [pod("stranger", name, {"app": "stranger"}) for name in (NAMESPACE, OTHER)]
    objects = [*spaces, *strangers, *(one for system in PORTS for one in objects_of(system))]
    try:
        kubectl("apply", "-f", "-", text="\n---\n".join(map(json.dumps, objects)))
        for namespace in (NAMESPACE, OTHER):
            kubectl("wait", "pods", "--all", "-n", namespace, "--for=condition=Ready", "--timeout=180s")
        pods = json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
        found = {one["metadata"]["name"]: one["status"]["podIP"] for one in pods}
        yield {system: found[slug(system)] for system in PORTS}
    finally:
        kubectl("delete", "namespace", NAMESPACE, OTHER, "--ignore-not-found", "--wait=true")


def from_pod(name: str, namespace: str, targets: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """The targets that answer this pod. All are tried at once, because a packet that is dropped is not answered at all."""
    connect = "(busybox nc -w {2} {0} {1} </dev/null | sed 's/ok/{0} {1}/') &"
    tries = " ".join(connect.format(*target, TIMEOUT_S) for target in targets)
    answered = kubectl("exec", "-n", namespace, name, "--", "sh", "-c", f"({tries} wait) 2>/dev/null")
    return {(address, int(port)) for address, port in (line.split() for line in answered.splitlines())}


def from_machine(target: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(target, timeout=TIMEOUT_S) as connection:
            return connection.recv(2) == b"ok"
    except OSError:
        return False


def connections(addresses: dict[str, str]) -> Open:
    """Try every port of every system, from every client."""
    systems = {address: system for system, address in addresses.items()}
    targets = [(addresses[system], port) for system, ports in PORTS.items() for port in ports]
    with ThreadPoolExecutor(8) as pool:
        own = {
            system: pool.submit(from_pod, f"{slug(system)}-own", NAMESPACE, [one for one in targets if one[0] == address])
            for system, address in addresses.items()
        }
        stranger, other = (pool.submit(from_pod, "stranger", namespace, targets) for namespace in (NAMESPACE, OTHER))
    with ThreadPoolExecutor(len(targets)) as pool:
        machine = {one for one, answered in zip(targets, pool.map(from_machine, targets), strict=True) if answered}
    reached = zip(CLIENTS, (set().union(*(one.result() for one in own.values())), stranger.result(), other.result(), machine), strict=True)
    return frozenset((systems[address], port, client) for client, found in reached for address, port in found)


def test_the_table_has_all_systems() -> None:
    assert PORTS.keys() == {*SYSTEMS, *GATEWAY}


# Shows row 003.11.
def test_who_may_connect_can_and_others_cannot(addresses: dict[str, str]) -> None:
    assert sorted(connections(addresses) ^ EXPECTED) == []


def test_a_killed_enforcer_lets_nobody_in_and_comes_back(addresses: dict[str, str]) -> None:
    """New connections wait until the kubelet has started it again."""
    os.kill(_enforcer(), signal.SIGKILL)
    address = addresses["object store"], PORTS["object store"][0]
    assert not from_machine(address)
    assert from_pod("stranger", NAMESPACE, [address]) or from_pod("stranger", NAMESPACE, [address]) == {address}


def _enforcer() -> int:
    """Its process id on this machine, in the network namespace of the cluster's first node."""
    cluster = json.loads(kubectl("config", "view", "-o", "json"))["clusters"][0]["name"]
    found = subprocess.run(["ip", "netns", "pids", f"muster-{cluster}-1"], capture_output=True, text=True, check=True).stdout.split()
    (pid,) = [int(one) for one in found if Path(f"/proc/{one}/comm").read_text().startswith("kube-network-po")]
    return pid


def test_one_policy_less_is_seen(addresses: dict[str, str]) -> None:
    """The pods that it was for are open to all, and no others."""
    kubectl("delete", "networkpolicy", slug("etcd"), "-n", NAMESPACE)
    assert connections(addresses) ^ EXPECTED == {one for one in EVERYTHING - EXPECTED if one[0] == "etcd"}


def test_without_policies_all_can(addresses: dict[str, str]) -> None:
    """Each pod listens on all its ports, so what was refused above was refused by its policy."""
    kubectl("delete", "networkpolicy", "--all", "-n", NAMESPACE)
    assert sorted(EVERYTHING - connections(addresses)) == []
