# SPDX-License-Identifier: GPL-3.0-or-later

"""Upgrade a local cluster in place, as kubeadm does: the control plane, then the other nodes, one minor version at a time."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from . import record
from .cluster import LocalCluster, is_initialised
from .host import PROC, processes_in_cgroup, run
from .node import marker
from .preflight import Problem
from .record import versions
from .spec import NodeSpec

HELD_BACK = frozenset({"kubelet", "kubectl"})
"""No kubelet is newer than its API server (version skew policy of Kubernetes), so these wait for the control plane."""


def problems(cluster: LocalCluster, made: t.Mapping[str, t.Any]) -> list[Problem]:
    """The versions of the cluster and its nodes from which kubeadm does not come to the desired ones. MADE: the record."""
    have = {f"Cluster {cluster.spec.name}": versions(made), **{one.name: node_versions(cluster, one) for one in cluster.spec.all_nodes}}
    return [why for name, those in have.items() if (why := why_not(name, those, versions(cluster.options)))]


def why_not(name: str, have: t.Mapping[str, str], desired: t.Mapping[str, str]) -> Problem | None:
    """Return why a cluster or node with these versions cannot get the desired ones in place, and the way out; None if it can."""
    for key in have:
        old, new = _numbers(have[key]), _numbers(desired[key])
        if new < old:
            what = f"{name} has {key} {have[key]}, and {desired[key]} is older: kubeadm does not go back."
            fix = "Use the version of Muster that it was last run with, or a newer one; or remove the cluster and create it again."
            return Problem(what=what, fix=fix)
        if key == "kubernetes_version" and (new[:1] != old[:1] or new[1] > old[1] + 1):
            what = f"{name} has Kubernetes {have[key]}, and {desired[key]} skips a minor version, which kubeadm does not."
            way = f"First run the version of Muster that has Kubernetes {old[0]}.{old[1] + 1} (CHANGELOG.md)"
            return Problem(what=what, fix=f"{way}; or remove the cluster (tasks_from: remove) and create it again.")
    return None


def _numbers(version: str) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", version)[:3]]


def node_versions(cluster: LocalCluster, node: NodeSpec) -> dict[str, str]:
    """The versions that a node has, and those of its cluster's record before Muster wrote down each node's."""
    if not is_initialised(node):
        return {}
    words = marker(node).read_text(encoding="utf-8").split()
    made = versions(record.read(cluster.spec.name) or {})
    return dict(zip(versions(cluster.options), words, strict=False)) if words else made


def pending(cluster: LocalCluster, node: NodeSpec) -> str:
    """Return the change that an upgrade makes of the node, for a plan; empty if it has the versions, or is none of the cluster yet."""
    have, desired = node_versions(cluster, node), versions(cluster.options)
    changed = [f"{key.removesuffix('_version')} {have[key]} -> {desired[key]}" for key in have if have[key] != desired[key]]
    if not changed:
        return ""
    stops = "the API does not answer for up to two minutes" if node.index == 1 else "the kubelet restarts"
    return f"{node.name} is upgraded in place, {', '.join(changed)}: {stops}; containers of pods run on"


def for_node(cluster: LocalCluster, programs: dict[str, str]) -> dict[str, str]:
    """The programs that nodes may have now: not a kubelet of a version that the control plane does not have yet."""
    held = HELD_BACK if pending(cluster, cluster.spec.control_plane) else ()
    return {name: path for name, path in programs.items() if name not in held}


def static_pods(node: NodeSpec) -> Path:
    """The folder of the static pods of the control plane."""
    return Path(node.state_dir) / "own/etc/kubernetes/manifests"


def new_etcd(cluster: LocalCluster) -> str:
    """The end of the reference of etcd's desired image if its static pod has it, which may be still on its way; else nothing."""
    image = f"/etcd:{cluster.options['etcd_version']}"
    lines = (static_pods(cluster.spec.control_plane) / "etcd.yaml").read_text(encoding="utf-8").splitlines()
    return image if any(line.endswith(image) for line in lines) else ""


def api_server_to_end(node: NodeSpec, kubelet: Path) -> int | None:
    """The process ID of the API server that a restart of the node's kubelet, now this program, replaces; None if it leaves it running.

    A kubelet of another minor version replaces all static pods, because their UIDs are hashes of all fields that a pod can have
    (applyDefaults in pkg/kubelet/config/common.go, 1.36).
    """
    running = processes_in_cgroup(node.cgroup)
    if "kubelet" not in running or _minor(PROC / str(running["kubelet"]) / "exe") == _minor(kubelet):
        return None
    return running.get("kube-apiserver")


def _minor(kubelet: Path) -> list[int]:
    return _numbers(run([str(kubelet), "--version"]))[:2]


def without_api_server(node: NodeSpec, ended: int) -> str | None:
    """Return that the node has not yet another API server than the process ENDED."""
    return "it has not been replaced" if processes_in_cgroup(node.cgroup).get("kube-apiserver", ended) == ended else None
