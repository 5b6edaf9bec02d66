# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Survey a local cluster and its host: what exists, what is missing, what is in the way. Changes nothing.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from .._core.errors import InvalidInput
from . import host, network, node, preflight, programs, system_images
from .cluster import LocalCluster, is_initialised, known_clusters
from .gobuild import architecture
from .kubeconfigs import ends_soon
from .leftovers import leftovers
from .node_files import HostTraits
from .spec import NodeSpec, record_file

Row = dict[str, t.Any]
BUILD_KEYS = ("name", "module_dir", "package", "ldflags", "tags")
# Programs that nodes run themselves, and those for users; all others go into images.
NODE_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kubeadm")
TOOLS = ("kubectl",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    cluster: LocalCluster
    rows: list[Row]
    nodes: list[Row]
    network_missing: list[str]
    packages_missing: tuple[str, ...]
    problems: list[preflight.Problem]
    surplus: list[int]

    @classmethod
    def make(cls, cluster: LocalCluster, table: list[Row], cache_dir: Path, source: str, *, install_packages: bool) -> Survey:
        traits = host.traits()
        made = record_file(cluster.spec.name).exists()
        facts = preflight.gather_facts(cluster, cache_dir, architecture(), try_kernel=not made)
        usable = facts.root and "iproute2" not in facts.packages_missing and "nftables" not in facts.packages_missing
        steps = network.missing_steps(cluster.spec, egress=cluster.options["egress"]) if usable else []
        rows = resolve_sources(table, cache_dir, source)
        paths = {row["name"]: row["path"] for row in rows}
        nodes = [observe_node(cluster, one, paths, traits) for one in cluster.spec.all_nodes]
        mark_missing(rows, all_current=made and all(is_converged(one) for one in nodes))
        return cls(
            cluster=cluster,
            rows=rows,
            nodes=nodes,
            network_missing=[step.why for step in steps] if usable else ["unknown without root and its programs"],
            packages_missing=facts.packages_missing,
            problems=[
                *_problems(cluster, facts, rows, made=made),
                *([] if install_packages else preflight.package_problems(facts.packages_missing)),
            ],
            surplus=surplus_nodes(cluster),
        )

    def kubeconfig_current(self, path: str | None) -> bool:
        if not path:
            return True
        desired, have = self.cluster.admin_kubeconfig, Path(path).expanduser()
        return not ends_soon(desired) and have.is_file() and have.read_bytes() == desired.read_bytes()

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
            **programs_to_provide(self.rows),
            "paths": {row["name"]: row["path"] for row in self.rows},
            "node_programs": {row["name"]: row["path"] for row in self.rows if row["name"] in node_programs(self.cluster)},
            "supervisor_missing": not (self.cluster.supervisor_dir / "supervisor/supervisord.py").is_file(),
            "network_missing": self.network_missing,
            "nodes": self.nodes,
            "surplus": self.surplus,
            "endpoint": f"https://{self.cluster.spec.endpoint}",
            "kubectl": self.kubectl,
            "admin_kubeconfig": str(self.cluster.admin_kubeconfig) if self.cluster.admin_kubeconfig.is_file() else "",
            "kubeconfig_current": kubeconfig_current,
            "not_ready": gap,
            "leftovers": leftovers(self.cluster.spec),
        }


def resolve_sources(table: list[Row], cache_dir: Path, source: str) -> list[Row]:
    """Each program with its source and its place. The source is the same for all, because their versions must match."""
    go_rows = [{**row, "way": "go", "path": str(programs.go_build(row, cache_dir, architecture()).path)} for row in table]
    if source == "go":
        return go_rows
    released = _released(table, cache_dir)
    if source == "auto":
        # An existing cluster keeps its source, so that it does not change with the state of the network.
        present = [rows for rows in (go_rows, released) if rows and all(Path(row["path"]).is_file() for row in rows)]
        if present:
            return present[0]
        if not released or not all(programs.is_reachable(url) for url in {row["release"]["url"] for row in released}):
            return go_rows
    if not released and table:
        lacking = [row["name"] for row in table if not (row.get("release") or {}).get("checksum")]
        raise InvalidInput(
            f"No released file with a checksum is pinned for {', '.join(lacking)}.",
            hint="Set local_cluster_release for them, or local_cluster_source to go.",
        )
    return released


def _released(table: list[Row], cache_dir: Path) -> list[Row]:
    """The rows with their released files, or nothing if any of them has no pinned checksum."""
    rows = []
    for row in table:
        release = row.get("release") or {}
        if not release.get("checksum"):
            return []
        desired = programs.Release(
            name=row["name"], url=release["url"], checksum=release["checksum"],
            member=release.get("member") or "", cache_dir=cache_dir,
        )  # fmt: skip
        rows.append({**row, "way": "release", "path": str(desired.path)})
    return rows


def mark_missing(rows: list[Row], *, all_current: bool) -> None:
    """Mark the missing programs; a cluster that has all of them needs no cache."""
    for row in rows:
        row["missing"] = not all_current and not Path(row["path"]).is_file()


def programs_to_provide(rows: list[Row]) -> dict[str, t.Any]:
    """The missing programs, with the task that fetches or builds each, and a summary for the user."""
    missing = [row for row in rows if row["missing"]]
    to_fetch = [
        {"name": row["name"], **row["release"], "member": row["release"].get("member") or ""} for row in missing if row["way"] == "release"
    ]
    to_build = [{"ldflags": "", "tags": [], **{key: row[key] for key in BUILD_KEYS if key in row}} for row in missing if row["way"] == "go"]
    lines = []
    if to_fetch:
        lines.append(f"Programs to fetch: {len(to_fetch)}.")
    if to_build:
        lines.append(f"Programs to build from Go modules: {len(to_build)}, which takes about ten minutes on two cores the first time.")
    return {"to_fetch": to_fetch, "to_build": to_build, "programs_ahead": " ".join(lines)}


def observe_node(cluster: LocalCluster, one: NodeSpec, paths: dict[str, str], traits: HostTraits) -> Row:
    running = node.init_process(one)
    own = {name: paths[name] for name in node_programs(cluster) if name in paths}
    return {
        "name": one.name,
        "index": one.index,
        "address": one.address,
        "pid": running.pid if running else 0,
        "processes": host.processes_in_cgroup(one.cgroup) if running else {},
        "current": not node.stale_files(one, cluster.files(one, traits)) and not node.link_programs(cluster.bin_dir, own, check=True),
        "initialised": is_initialised(one),
        "images_missing": system_images.missing_images(cluster, one, paths) if paths else [],
    }


def node_programs(cluster: LocalCluster) -> tuple[str, ...]:
    return (*NODE_PROGRAMS, *TOOLS, *(["kwok"] if cluster.options["simulated_nodes"] else []))


def is_converged(one: Row) -> bool:
    return bool(one["pid"] and one["current"] and one["initialised"] and not one["images_missing"])


def surplus_nodes(cluster: LocalCluster) -> list[int]:
    """Numbers of nodes that exist and are no longer desired."""
    folder = Path(cluster.spec.state_dir) / "nodes"
    found = [path.name.rpartition("-")[2] for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(number) for number in found if number.isdecimal() and int(number) > cluster.spec.nodes)


def _problems(cluster: LocalCluster, facts: preflight.HostFacts, rows: list[Row], *, made: bool) -> list[preflight.Problem]:
    """Problems that the user must solve. An existing cluster already has its space and its ranges."""
    taken = preflight.foreign_kubeconfigs(cluster)
    if made and facts.root:
        return [*preflight.changed_immutable(cluster, known_clusters().get(cluster.spec.name, {})), *taken]
    found = [*preflight.find_problems(cluster, facts, preflight.other_clusters(cluster.spec.name)), *taken]
    go_mods = {(Path(row["module_dir"]) / "go.mod").read_text(encoding="utf-8") for row in rows if row["missing"] and row["way"] == "go"}
    return found + (preflight.go_problems(go_mods, facts.free_cache) if go_mods else [])
