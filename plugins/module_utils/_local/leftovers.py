# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything of a local cluster that is on the host: what removal must leave empty.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from . import host, network
from .errors import CommandFailed
from .spec import ClusterSpec

KINDS = ("network namespaces", "interfaces", "nftables tables", "processes", "cgroups", "mounts", "folders")


def leftovers(spec: ClusterSpec) -> list[str]:
    """Processes, mounts, cgroups, interfaces, network namespaces, rules and folders, each with its name."""
    return [*_network(spec), *_processes(spec), *_cgroups(spec), *_mounts(spec), *_folders(spec)]


def _network(spec: ClusterSpec) -> t.Iterator[str]:
    try:
        for step in network.left(spec):
            yield step.why
    except CommandFailed:
        # Without the programs there is no network of ours either: it was made with them.
        return


def _processes(spec: ClusterSpec) -> t.Iterator[str]:
    mark = f"/muster-{spec.name}/"
    for folder in host.PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            groups = (folder / "cgroup").read_text(encoding="utf-8")
            name = (folder / "comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if mark in groups:
            yield f"process {name} ({folder.name})"


def _cgroups(spec: ClusterSpec) -> t.Iterator[str]:
    for folder in host.cgroup_folders(f"muster-{spec.name}"):
        yield f"cgroup {folder}"


def _mounts(spec: ClusterSpec) -> t.Iterator[str]:
    for line in (host.PROC / "self/mountinfo").read_text(encoding="utf-8").splitlines():
        point = line.split()[4]
        if point.startswith((f"{spec.state_dir}/", f"{spec.run_dir}/")):
            yield f"mount {point}"


def _folders(spec: ClusterSpec) -> t.Iterator[str]:
    for path in (spec.state_dir, spec.run_dir):
        if Path(path).exists():
            yield f"folder {path}"
