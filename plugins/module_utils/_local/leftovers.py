# SPDX-License-Identifier: GPL-3.0-or-later
"""List everything of a local cluster on the host, which is nothing after a removal."""

from __future__ import annotations

import typing as t
from pathlib import Path

from .._core.created import mount_points
from .._core.errors import CommandFailed
from . import host, network
from .spec import ClusterSpec

KINDS = ("network namespaces", "interfaces", "nftables tables", "processes", "cgroups", "mounts", "folders")


def leftovers(spec: ClusterSpec) -> list[str]:
    """Processes, mounts, cgroups, interfaces, network namespaces, rules and folders, each with its name."""
    return [*_network(spec), *_processes(spec), *_cgroups(spec), *_mounts(spec), *_folders(spec)]


def _mounts(spec: ClusterSpec) -> t.Iterator[str]:
    return (f"mount {point}" for point in mounts(spec.state_dir, spec.run_dir))


def _network(spec: ClusterSpec) -> t.Iterator[str]:
    try:
        for step in network.removal_steps(spec):
            yield step.why
    except CommandFailed:
        # The network was created with these programs, so without them none is left.
        return


def _processes(spec: ClusterSpec) -> t.Iterator[str]:
    for pid in host.pids_in_cgroup(f"muster-{spec.name}"):
        try:
            name = (host.PROC / str(pid) / "comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        yield f"process {name} ({pid})"


def _cgroups(spec: ClusterSpec) -> t.Iterator[str]:
    for folder in host.cgroup_folders(f"muster-{spec.name}"):
        yield f"cgroup {folder}"


def mounts(*folders: str) -> t.Iterator[str]:
    """Mounts of the host in these folders. They are never ours, because nodes mount in their own namespaces."""
    inside = tuple(f"{folder}/" for folder in folders)
    return (point for point in sorted(mount_points(host.PROC / "self/mountinfo")) if point.startswith(inside))


def _folders(spec: ClusterSpec) -> t.Iterator[str]:
    for path in (spec.state_dir, spec.run_dir):
        if Path(path).exists():
            yield f"folder {path}"
