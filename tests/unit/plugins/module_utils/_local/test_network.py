# SPDX-License-Identifier: GPL-3.0-or-later
"""Only what is missing is done; test_removal.py has that all of it is found again."""

import json
import os
import shutil
import subprocess
import sys
import typing as t
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._local import network
from ansible_collections.muster.ml.plugins.module_utils._local.spec import ClusterSpec

SPEC = ClusterSpec.make(name="dev", nodes=2, node_subnet="10.1.0.0/24", pod_subnet="10.2.0.0/16", service_subnet="10.3.0.0/16")


class FakeHost:
    """Answers `ip` and `nft` from what the steps given to it would have made."""

    def __init__(self) -> None:
        self.links: dict[str, dict[str, dict[str, t.Any]]] = {"": {"lo": {"ifname": "lo", "flags": ["UP"]}}}
        self.routes: dict[str, list[dict[str, str]]] = {"": []}

    def __call__(self, argv: Sequence[str]) -> str:
        where = argv[argv.index("-n") + 1] if "-n" in argv else ""
        if argv[0] == "nft":
            return json.dumps({"nftables": []})
        found = self.links[where].values() if "addr" in argv else self.routes[where]
        return json.dumps(list(found))

    def do(self, step: network.Command) -> None:
        argv = list(step.argv)
        if argv[0] != "ip":
            return
        where = argv[2] if argv[1] == "-n" else ""
        words = argv[3:] if where else argv[1:]
        links = self.links.setdefault(where, {})
        match words:
            case ["netns", "add", name]:
                self.links[name] = {"lo": {"ifname": "lo", "flags": []}}
                self.routes[name] = []
            case ["link", "add", name, *rest]:
                links[name] = {"ifname": name, "flags": []}
                if "netns" in rest:
                    self.links[rest[-1]]["eth0"] = {"ifname": "eth0", "flags": []}
            case ["addr", "add", address, "dev", name]:
                local, _slash, length = address.partition("/")
                entry = {"family": "inet", "local": local, "prefixlen": int(length)}
                links[name].setdefault("addr_info", []).append(entry)
            case ["link", "set", name, "up"]:
                links[name]["flags"] = ["UP"]
            case ["link", "set", name, "master", master]:
                links[name]["master"] = master
            case ["route", "replace", destination, "via", gateway, *_rest]:
                self.routes[where].append({"dst": destination, "gateway": gateway})
            case _:
                raise AssertionError(f"unknown command {argv}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def settle(host: FakeHost, folder: Path) -> None:
    for step in network.plan(SPEC, host, folder):
        host.do(step)
        if "netns" in step.argv and "add" in step.argv and "link" not in step.argv:
            (folder / step.argv[-1]).touch()


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network.shutil, "which", lambda name, **_where: f"/usr/sbin/{name}")


def test_a_second_run_has_nothing_to_do(folder: Path) -> None:
    host = FakeHost()
    settle(host, folder)
    assert network.plan(SPEC, host, folder) == []


def test_pods_of_other_nodes_are_reached_by_routes(folder: Path) -> None:
    host = FakeHost()
    settle(host, folder)
    assert {"dst": "10.2.1.0/24", "gateway": "10.1.0.3"} in host.routes["muster-dev-1"]
    assert {"dst": "10.2.0.0/24", "gateway": "10.1.0.2"} in host.routes["muster-dev-2"]
    assert {"dst": "10.2.0.0/24", "gateway": "10.1.0.2"} in host.routes[""]


def test_what_was_lost_is_made_again(folder: Path) -> None:
    host = FakeHost()
    settle(host, folder)
    host.links[""]["mu-dev-1"]["flags"] = []
    host.routes["muster-dev-2"].clear()
    assert [step.why for step in network.plan(SPEC, host, folder)] == ["mu-dev-1 up", "dev-2: route 10.2.0.0/24", "dev-2: route default"]


def test_a_veth_without_its_namespace_is_replaced(folder: Path) -> None:
    host = FakeHost()
    settle(host, folder)
    (folder / "muster-dev-1").unlink()
    steps = [step.why for step in network.plan(SPEC, host, folder)]
    assert steps[:3] == ["network namespace muster-dev-1", "stale mu-dev-1", "veth mu-dev-1"]


@pytest.mark.parametrize(("there", "status"), [(False, 0), (True, 1)])
def test_an_interface_that_the_kernel_deletes_meanwhile_is_gone_as_desired(tmp_path: Path, there: bool, status: int) -> None:
    (tmp_path / "ip").write_text("#!/bin/sh\nexit 1\n")  # as for one that it cannot find, or may not delete
    (tmp_path / "ip").chmod(0o755)
    command = network.delete_link("lo" if there else "mu-dev-1")
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert subprocess.run(command, check=False, env={"PATH": path}).returncode == status


def test_egress_is_one_table_of_our_own() -> None:
    rules = network.egress_rules(SPEC)
    assert rules.startswith("table ip muster_dev\ndelete table ip muster_dev\ntable ip muster_dev {")
    assert 'ip saddr { 10.1.0.0/24, 10.2.0.0/16 } oifname != "mu-dev" masquerade' in rules


EARLIER_RULES = "table ip muster_dev { chain postrouting { type nat hook postrouting priority srcnat; policy accept; }; }"
TRY_EGRESS = """\
set -eu
ip link add mu-dev type bridge && ip addr add 10.1.0.1/24 dev mu-dev && ip link set mu-dev up
for pair in "node mu-dev 10.1.0.2/24 10.1.0.1" "lan lan0 192.0.2.2/24 192.0.2.1"; do
    set -- $pair
    unshare -n sleep 60 & echo $! > $1.pid
    until [ "$(readlink /proc/$(cat $1.pid)/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
    ip link add $1-host type veth peer name eth0 netns $(cat $1.pid)
    ip link set $1-host up
    nsenter -t $(cat $1.pid) -n sh -c "ip addr add $3 dev eth0 && ip link set eth0 up && ip link set lo up && ip route add default via $4"
done
ip link set node-host master mu-dev
ip addr add 192.0.2.1/24 dev lan-host
echo 1 > /proc/sys/net/ipv4/ip_forward
nft "$EARLIER"
nft "$RULES"
inside() { nsenter -t $(cat $1.pid) -n "$PYTHON" -c "$ASK" $2; }
for server in node lan; do nsenter -t $(cat $server.pid) -n "$PYTHON" -c "$SERVE" & done
inside node 192.0.2.2
inside lan 10.1.0.2
"""
SERVE = "import socket; s = socket.create_server(('', 8)); c = [s.accept() for _ in iter(int, 1)]"
ASK = """
import socket, sys, time
for _ in range(40):
    try:
        print(socket.create_connection((sys.argv[1], 8), 1) and 'answered')
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
    except OSError:
        print('dropped')
        break
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("nft"), reason="needs root and nftables")
def test_the_outside_reaches_no_node_through_a_host_that_forwards(tmp_path: Path) -> None:
    """In network namespaces of their own, which end with their processes."""
    values = {"RULES": network.egress_rules(SPEC), "EARLIER": EARLIER_RULES, "SERVE": SERVE, "ASK": ASK, "PYTHON": sys.executable}
    argv = ["unshare", "-n", "-p", "-m", "-f", "--kill-child", "--mount-proc", "sh", "-c", TRY_EGRESS]
    done = subprocess.run(argv, cwd=tmp_path, env={**os.environ, **values}, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["answered", "dropped"], done.stderr
