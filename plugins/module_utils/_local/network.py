# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's bridge on the host, the nodes' veth pairs and, if pods may reach outside, one nftables table."""

from __future__ import annotations

import dataclasses
import json
import shutil
import typing as t
from pathlib import Path

from .host import SYSTEM_PATH, run
from .spec import STATE_ROOT, ClusterSpec, NodeSpec

NETNS_DIR = Path("/run/netns")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
FORWARDING_NOTE = Path(STATE_ROOT) / "forwarding-was-off"
# Steps for leftovers that all clusters on the host share, whichever one is removed.
OF_THE_HOST = ("forwarding off, as before", "note about forwarding")
Runner = t.Callable[[t.Sequence[str]], str]


@dataclasses.dataclass(frozen=True)
class Command:
    """One command that is still needed, and why."""

    why: str
    argv: tuple[str, ...]


def read_links(runner: Runner = run, netns: str | None = None) -> dict[str, dict[str, t.Any]]:
    """Interface name -> its entry in the output of ``ip``, with addresses."""
    if shutil.which("ip", path=SYSTEM_PATH) is None:
        # Nothing was created yet, because this program creates it.
        return {}
    where = ["-n", netns] if netns else []
    return {one["ifname"]: one for one in json.loads(runner(["ip", "-j", *where, "addr", "show"]) or "[]") if one}


def addresses(link: t.Mapping[str, t.Any]) -> set[str]:
    return {f"{one['local']}/{one['prefixlen']}" for one in link.get("addr_info", []) if one.get("family") == "inet"}


def is_up(link: t.Mapping[str, t.Any]) -> bool:
    return "UP" in link.get("flags", [])


def bridge_steps(spec: ClusterSpec, found: t.Mapping[str, t.Any]) -> list[Command]:
    """Missing steps for the bridge on the host, given its links."""
    steps = []
    bridge = found.get(spec.bridge)
    address = f"{spec.gateway}/{spec.prefix_length}"
    if bridge is None:
        steps.append(Command(f"bridge {spec.bridge}", ("ip", "link", "add", spec.bridge, "type", "bridge")))
    if bridge is None or address not in addresses(bridge):
        steps.append(Command(f"address {address}", ("ip", "addr", "add", address, "dev", spec.bridge)))
    if bridge is None or not is_up(bridge):
        steps.append(Command(f"{spec.bridge} up", ("ip", "link", "set", spec.bridge, "up")))
    return steps


def veth_steps(spec: ClusterSpec, node: NodeSpec, found: t.Mapping[str, t.Any], *, has_netns: bool) -> list[Command]:
    """Missing steps that connect a node with the bridge."""
    steps = []
    if not has_netns:
        steps.append(Command(f"network namespace {node.netns}", ("ip", "netns", "add", node.netns)))
    link = found.get(node.interface)
    if link is None or not has_netns:
        if link is not None:
            steps.append(Command(f"stale {node.interface}", delete_link(node.interface)))
        peer = ("type", "veth", "peer", "name", "eth0", "netns", node.netns)
        steps.append(Command(f"veth {node.interface}", ("ip", "link", "add", node.interface, *peer)))
        link = None
    if link is None or link.get("master") != spec.bridge:
        steps.append(Command(f"{node.interface} on {spec.bridge}", ("ip", "link", "set", node.interface, "master", spec.bridge)))
    if link is None or not is_up(link):
        steps.append(Command(f"{node.interface} up", ("ip", "link", "set", node.interface, "up")))
    return steps


def inside_steps(spec: ClusterSpec, node: NodeSpec, found: t.Mapping[str, t.Any], routes: t.Collection[tuple[str, str]]) -> list[Command]:
    """Missing steps for addresses and routes inside the node's namespace. ``routes`` are (destination, gateway) pairs."""
    ip = ("ip", "-n", node.netns)
    address = f"{node.address}/{node.prefix_length}"
    eth0 = found.get("eth0", {})
    steps = []
    if not is_up(found.get("lo", {})):
        steps.append(Command(f"{node.name}: lo up", (*ip, "link", "set", "lo", "up")))
    if address not in addresses(eth0):
        steps.append(Command(f"{node.name}: address {address}", (*ip, "addr", "add", address, "dev", "eth0")))
    if not is_up(eth0):
        steps.append(Command(f"{node.name}: eth0 up", (*ip, "link", "set", "eth0", "up")))
    desired = {("default", spec.gateway)}
    desired |= {(other.pod_cidr, other.address) for other in spec.all_nodes if other.index != node.index}
    for destination, gateway in sorted(desired - set(routes)):
        steps.append(Command(f"{node.name}: route {destination}", (*ip, "route", "replace", destination, "via", gateway)))
    return steps


def host_routes(spec: ClusterSpec, routes: t.Collection[tuple[str, str]]) -> list[Command]:
    """Routes from the host to the pods, without which no answer of the host or of the outside reaches them."""
    desired = {(node.pod_cidr, node.address) for node in spec.all_nodes}
    return [
        Command(f"route {destination}", ("ip", "route", "replace", destination, "via", gateway, "dev", spec.bridge))
        for destination, gateway in sorted(desired - set(routes))
    ]


def routes_in(netns: str | None, runner: Runner = run) -> set[tuple[str, str]]:
    if shutil.which("ip", path=SYSTEM_PATH) is None:
        return set()
    where = ["-n", netns] if netns else []
    found = json.loads(runner(["ip", "-j", *where, "route", "show"]) or "[]")
    return {(one["dst"], one["gateway"]) for one in found if one.get("gateway")}


def plan(spec: ClusterSpec, runner: Runner = run, netns_dir: Path = NETNS_DIR) -> list[Command]:
    """Every step that a cluster's network still needs; all steps inside a namespace that does not exist yet."""
    host_links = read_links(runner)
    steps = bridge_steps(spec, host_links)
    # Routes need the address of the bridge, so these steps come after it; a new bridge has no routes.
    steps += host_routes(spec, routes_in(None, runner) if spec.bridge in host_links else set())
    for node in spec.all_nodes:
        has_netns = (netns_dir / node.netns).exists()
        outside = veth_steps(spec, node, host_links, has_netns=has_netns)
        steps += outside
        fresh = any(step.argv[:3] == ("ip", "link", "add") for step in outside)
        inside = {} if fresh else read_links(runner, node.netns)
        steps += inside_steps(spec, node, inside, set() if fresh else routes_in(node.netns, runner))
    return steps


def egress_rules(spec: ClusterSpec) -> str:
    """Rules by which nodes and pods reach the outside with the host's address, in a separate table beside the rules of other programs.

    Forwarding is a setting of the whole host, so the outside would reach nodes and pods, too: from other interfaces only packets of
    established connections pass. An earlier table is replaced as a whole.
    """
    ours, table = f"{{ {spec.node_subnet}, {spec.pod_subnet} }}", egress_table(spec)
    return (
        f"table ip {table}\ndelete table ip {table}\n"
        f"table ip {table} {{\n"
        "  chain forward {\n"
        "    type filter hook forward priority filter; policy accept;\n"
        f'    iifname != "{spec.bridge}" oifname "{spec.bridge}" ct state != {{ established, related }} drop\n'
        "  }\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f'    ip saddr {ours} oifname != "{spec.bridge}" masquerade\n'
        "  }\n"
        "}\n"
    )


def egress_table(spec: ClusterSpec) -> str:
    return f"muster_{spec.name.replace('-', '_')}"


def read_tables(runner: Runner = run) -> dict[str, set[str]]:
    """Name of a table -> the names of its chains."""
    if shutil.which("nft", path=SYSTEM_PATH) is None:
        return {}
    found = json.loads(runner(["nft", "-j", "list", "chains", "ip"]))["nftables"]
    chains = [one["chain"] for one in found if "chain" in one]
    return {one["table"]: {other["name"] for other in chains if other["table"] == one["table"]} for one in chains}


def missing_steps(spec: ClusterSpec, *, egress: bool) -> list[Command]:
    """Every step that is missing for the desired network."""
    steps = plan(spec)
    table, tables = egress_table(spec), read_tables()
    if ("forward" in tables.get(table, ())) != egress or (table in tables) != egress:
        steps.append(
            Command("address translation to the outside", ("nft", egress_rules(spec)))
            if egress
            else Command("no address translation to the outside", ("nft", "delete", "table", "ip", table))
        )
    if egress and FORWARDING.read_text(encoding="utf-8").strip() == "0":
        # Write the note first: without it, forwarding counts as switched on by the administrator, and stays on.
        steps.append(Command("note about forwarding", ("touch", str(FORWARDING_NOTE))))
        steps.append(Command("forwarding between interfaces", ("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")))
    return steps


def delete_link(name: str) -> tuple[str, ...]:
    """The command that deletes an interface, which may go meanwhile: the kernel deletes veth pairs some time after their namespace."""
    return "sh", "-c", f"ip link delete {name} || ! [ -e /sys/class/net/{name} ]"


def removal_steps(spec: ClusterSpec, runner: Runner = run, netns_dir: Path = NETNS_DIR) -> list[Command]:
    """The steps that remove what exists of a cluster's network."""
    found = read_links(runner)
    steps = []
    for namespace in sorted(netns_dir.glob(f"muster-{spec.name}-*")) if netns_dir.is_dir() else []:
        if namespace.name.removeprefix(f"muster-{spec.name}-").isdecimal():
            steps.append(Command(f"network namespace {namespace.name}", ("ip", "netns", "delete", namespace.name)))
    for name in found:
        if name == spec.bridge or name.removeprefix(f"{spec.bridge}-").isdecimal():
            steps.append(Command(f"interface {name}", delete_link(name)))
    if egress_table(spec) in read_tables(runner):
        steps.append(Command("nftables table", ("nft", "delete", "table", "ip", egress_table(spec))))
    others = {name for name in read_tables(runner) if name.startswith("muster_")} - {egress_table(spec)}
    if FORWARDING_NOTE.exists() and not others:
        steps.append(Command(OF_THE_HOST[0], ("sysctl", "-q", "-w", "net.ipv4.ip_forward=0")))
        steps.append(Command(OF_THE_HOST[1], ("rm", str(FORWARDING_NOTE))))
    return steps
