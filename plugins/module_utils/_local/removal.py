# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Take a local cluster away without a trace.

Private to the collection.
"""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

from . import host, network, node
from .cluster import LocalCluster
from .errors import HostError
from .leftovers import leftovers
from .spec import RUN_ROOT, STATE_ROOT, NodeSpec

# Made by us. A folder that somebody else chose is theirs.
DEFAULT_LOG_FOLDER = Path("/var/log/muster")
Progress = t.Callable[[str], None]


def node_numbers(cluster: LocalCluster) -> list[int]:
    """Every node that was ever made, wanted or not."""
    names = {path.name for path in network.NETNS_DIR.glob(f"muster-{cluster.spec.name}-*")}
    folder = Path(cluster.spec.state_dir) / "nodes"
    names |= {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    numbers = {name.rpartition("-")[2] for name in names}
    return sorted({int(one) for one in numbers if one.isdigit()} | {one.index for one in cluster.spec.all_nodes})


def data_in(cluster: LocalCluster) -> list[str]:
    """Volumes that have something in them."""
    if not cluster.volumes_dir.is_dir():
        return []
    return sorted(path.name for path in cluster.volumes_dir.iterdir() if path.is_dir() and any(path.iterdir()))


def end_node(one: NodeSpec) -> None:
    """Everything of one node; also what is left of it after a removal that was interrupted."""
    node.stop(one)
    node.end_processes(one.cgroup)
    node.remove_cgroups(one.cgroup)
    for path in (Path(one.state_dir), Path(one.run_dir)):
        if path.exists():
            shutil.rmtree(path)


def remove(cluster: LocalCluster, progress: Progress) -> list[str]:
    """Remove everything and return what is left: nothing, unless somebody else put it there."""
    for number in node_numbers(cluster):
        progress(f"ending node {cluster.spec.name}-{number}")
        end_node(cluster.spec.node(number))
    for step in network.left(cluster.spec):
        host.run(step.argv)
    node.remove_cgroups(f"muster-{cluster.spec.name}")
    for path in (Path(cluster.spec.state_dir), Path(cluster.spec.run_dir)):
        if path.exists():
            shutil.rmtree(path)
    remove_audit_log(Path(cluster.options["audit_log"]))
    forget_host()
    return leftovers(cluster.spec)


def remove_audit_log(path: Path) -> None:
    """The log, and those it was rotated to (audit-TIME.log)."""
    for one in (path, *path.parent.glob(f"{path.stem}-*{path.suffix}")):
        one.unlink(missing_ok=True)
    for folder in path.parents:
        if folder.is_relative_to(DEFAULT_LOG_FOLDER):
            _remove_empty(folder)


def forget_host() -> None:
    """With the last cluster go the empty folders that had to be made for all of them."""
    if any(Path(STATE_ROOT).glob("*/nodes")):
        return
    if kept := node.remove_mount_points():
        raise HostError(
            f"The folders {', '.join(kept)} were made by Muster as empty mount points but have something in them now.",
            hint="Look at it and remove them by hand.",
        )
    for root in (STATE_ROOT, RUN_ROOT):
        _remove_empty(Path(root))


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
