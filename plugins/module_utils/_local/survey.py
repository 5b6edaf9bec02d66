# SPDX-License-Identifier: GPL-3.0-or-later
"""Survey a local cluster and its host: what exists, what is missing, what is in the way. Changes nothing."""

from __future__ import annotations

import dataclasses
import datetime as dt
import typing as t
from pathlib import Path

from . import host, network, node, preflight, system_images, upgrade
from .cluster import LocalCluster, is_initialised, known_clusters
from .gobuild import architecture
from .kubeconfigs import ends_soon
from .leftovers import leftovers
from .node_files import HostTraits
from .sources import Row, Sources, to_provide
from .spec import NodeSpec, record_file

# Programs that nodes run themselves, and those for users; all others go into images. Those of the second line are Debian's unless released
# ones are used.
NODE_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kubeadm", "runc", "ptp", "portmap", "host-local", "loopback")
TOOLS = ("kubectl",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    cluster: LocalCluster
    rows: list[Row]
    reason: str
    nodes: list[Row]
    network_missing: list[str]
    packages_missing: tuple[str, ...]
    problems: list[preflight.Problem]
    surplus: list[int]

    @classmethod
    def make(cls, cluster: LocalCluster, sources: Sources, *, install_packages: bool) -> Survey:
        traits = host.traits()
        made = record_file(cluster.spec.name).exists()
        rows, reason = sources.rows(node.linked_programs(cluster.bin_dir))
        paths = {row["name"]: row["path"] for row in rows}
        facts = preflight.gather_facts(cluster, sources.cache_dir, architecture(), provided=paths.keys(), try_kernel=not made)
        usable = facts.root and "iproute2" not in facts.packages_missing and "nftables" not in facts.packages_missing
        steps = network.missing_steps(cluster.spec, egress=cluster.options["egress"]) if usable else []
        nodes = [observe_node(cluster, one, paths, traits) for one in cluster.spec.all_nodes]
        mark_missing(rows, all_current=made and all(is_converged(one) for one in nodes))
        return cls(
            cluster=cluster,
            rows=rows,
            reason=reason,
            nodes=nodes,
            network_missing=[step.why for step in steps] if usable else ["unknown without root and its programs"],
            packages_missing=facts.packages_missing,
            problems=[
                *_problems(cluster, facts, rows, made=made),
                *([] if install_packages else preflight.package_problems(facts.packages_missing)),
            ],
            surplus=surplus_nodes(cluster),
        )

    def kubeconfig_current(self, path: str | None, now: dt.datetime) -> bool:
        if not path:
            return True
        desired, have = self.cluster.admin_kubeconfig, Path(path).expanduser()
        return not ends_soon(desired, now) and have.is_file() and have.read_bytes() == desired.read_bytes()

    @property
    def kubectl(self) -> str:
        """The path of kubectl; empty until it exists."""
        path = self.cluster.bin_dir / "kubectl"
        return str(path) if path.is_file() else ""

    def result(self, gap: str, *, kubeconfig_current: bool) -> dict[str, t.Any]:
        todo = [
            *self.problems, *self.packages_missing, *self.network_missing, *self.surplus, gap,
            *(row for row in self.rows if row["missing"]), *(one for one in self.nodes if not is_converged(one)),
        ]  # fmt: skip
        return {
            "ready": kubeconfig_current and not any(todo),
            "problems": [f"{problem.what} {problem.fix}" for problem in self.problems],
            "packages_missing": list(self.packages_missing),
            **to_provide(self.rows, self.reason),
            "paths": {row["name"]: row["path"] for row in self.rows},
            "node_programs": {row["name"]: row["path"] for row in self.rows if row["name"] in node_programs(self.cluster)},
            "supervisor_missing": not (self.cluster.supervisor_dir / "supervisor/supervisord.py").is_file(),
            "network_missing": self.network_missing,
            "nodes": self.nodes,
            "upgrades": [one["upgrade"] for one in self.nodes if one["upgrade"]],
            "surplus": self.surplus,
            "endpoint": f"https://{self.cluster.spec.endpoint}",
            "kubectl": self.kubectl,
            "admin_kubeconfig": str(self.cluster.admin_kubeconfig) if self.cluster.admin_kubeconfig.is_file() else "",
            "kubeconfig_current": kubeconfig_current,
            "not_ready": gap,
            "leftovers": leftovers(self.cluster.spec),
        }


def mark_missing(rows: list[Row], *, all_current: bool) -> None:
    """Mark the missing programs; a cluster that has all of them needs no cache."""
    for row in rows:
        row["missing"] = not all_current and not Path(row["path"]).is_file()


def observe_node(cluster: LocalCluster, one: NodeSpec, paths: dict[str, str], traits: HostTraits) -> Row:
    running = node.init_process(one)
    own = {name: paths[name] for name in node_programs(cluster) if name in paths}
    return {
        "name": one.name,
        "index": one.index,
        "address": one.address,
        "pid": running.pid if running else 0,
        "processes": host.processes_in_cgroup(one.cgroup) if running else {},
        "current": not (
            node.stale_files(one, cluster.files(one, traits))
            or node.link_programs(cluster.bin_dir, own, check=True)
            or node.outdated_services(one, cluster.bin_dir)
        ),
        "initialised": is_initialised(one),
        "upgrade": upgrade.pending(cluster, one),
        "images_missing": system_images.missing_images(cluster, one, paths) if paths else [],
    }


def node_programs(cluster: LocalCluster) -> tuple[str, ...]:
    return (*NODE_PROGRAMS, *TOOLS, *(["kwok"] if cluster.options["simulated_nodes"] else []))


def is_converged(one: Row) -> bool:
    return bool(one["pid"] and one["current"] and one["initialised"] and not one["upgrade"] and not one["images_missing"])


def surplus_nodes(cluster: LocalCluster) -> list[int]:
    """Numbers of nodes that exist and are no longer desired."""
    folder = Path(cluster.spec.state_dir) / "nodes"
    found = [path.name.rpartition("-")[2] for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(number) for number in found if number.isdecimal() and int(number) > cluster.spec.nodes)


def _problems(cluster: LocalCluster, facts: preflight.HostFacts, rows: list[Row], *, made: bool) -> list[preflight.Problem]:
    """Problems that the user must solve. An existing cluster already has its space and its ranges."""
    taken = preflight.foreign_kubeconfigs(cluster)
    if made and facts.root:
        options = known_clusters().get(cluster.spec.name, {})
        found = [*preflight.changed_immutable(cluster, options), *upgrade.problems(cluster, options), *taken]
    else:
        found = [*preflight.find_problems(cluster, facts, preflight.other_clusters(cluster.spec.name)), *taken]
    to_build = [row["name"] for row in rows if row["missing"] and row["way"] == "build"]
    return found + (preflight.go_problems(to_build, facts.free_cache) if to_build else [])
