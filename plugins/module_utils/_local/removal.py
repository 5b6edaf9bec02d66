# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove a local cluster without a trace, and nothing of other owners.

First everything is judged (_core/deletion.py), then removed. The record of the cluster decides, whatever the options say now. It is
removed last, so that an interrupted removal can be repeated.
"""

from __future__ import annotations

import dataclasses
import errno
import re
import shutil
import typing as t
from pathlib import Path

from .._core.clock import Clock
from .._core.deletion import Candidate, why_kept
from .._core.errors import InvalidInput
from . import host, kubeconfigs, network, node, preflight, record
from .cluster import LocalCluster, known_clusters
from .leftovers import leftovers, mounts
from .node import draft_of
from .once import machine
from .spec import DEFAULT_LOG_FOLDER, MAX_NODES, RUN_ROOT, STATE_ROOT, VOLUMES, ClusterSpec, NodeSpec, record_file

# Names that we create in a cluster's folder. Anything else there has another owner.
OWN_FOLDERS = ("bin", "nodes", "supervisor", VOLUMES)
# The API server's name for a rotated log (lumberjack's backupTimeFormat).
ROTATED = r"-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}"
Progress = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class ClusterRemoval:
    """The plan of a removal."""

    cluster: LocalCluster
    """The cluster as it was created."""
    recorded: bool
    """Whether there is a record of its creation."""
    found: list[str]
    """The parts of the cluster that exist."""
    files: list[Path]
    """Files outside of its folders that are removed as well."""
    kept: list[str]
    """The files and folders that are kept, each with the reason."""
    differs: list[str]
    """Options that differ from those at creation."""

    @property
    def removable(self) -> list[str]:
        """The things that are removed; without a record only empty folders."""
        return [one for one in self.found if self.recorded or not _has_files(Path(one.split(" ", 1)[1]))]


def plan(asked: LocalCluster, *, delete_data: bool) -> ClusterRemoval:
    """Judge everything; refuse, before anything changes, what cannot be judged or holds data."""
    name, made = asked.spec.name, record.read(asked.spec.name)
    found = leftovers(asked.spec)
    if made is None:
        refuse_unrecorded(asked.spec, found)
        return ClusterRemoval(asked, False, [one for one in found if one.startswith("folder ")], [], _strangers_kept(asked.spec), [])
    cluster = asked.as_recorded(made)
    refuse_foreign_mounts(f"The local cluster {name}", cluster.spec.state_dir, cluster.spec.run_dir)
    judged = Candidate(name=f"The local cluster {name}", marked=True, recorded=True, data=_data(cluster))
    _refuse(judged, "Save what is needed first.", delete_data=delete_data)
    files, kept = [], _strangers_kept(cluster.spec)
    for path, candidate in (*_kubeconfigs(asked, cluster, made), *_audit_logs(cluster, made)):
        if why := why_kept(candidate, delete_data=delete_data):
            kept.append(f"{candidate.name}: it {why}")
        else:
            files.append(path)
    differs = [problem.what for problem in preflight.changed_immutable(asked, made)]
    return ClusterRemoval(cluster, True, found, files, kept, differs)


def _refuse(candidate: Candidate, hint: str, *, delete_data: bool = False) -> None:
    if why := why_kept(candidate, delete_data=delete_data):
        raise InvalidInput(f"{candidate.name} stays as it is: it {why}.", hint=hint)


def refuse_unrecorded(spec: ClusterSpec, found: list[str]) -> None:
    """Raise if something of a cluster exists without a record that we created it. Folders with nothing of ours do not count."""
    there = [one for one in found if not one.startswith("folder ") and one not in network.OF_THE_HOST]
    alien = foreign_files(spec)
    for path in (*(Path(spec.state_dir) / one for one in OWN_FOLDERS), Path(spec.run_dir)):
        there += [str(path)] if _has_files(path) and not any(path in one.parents for one in alien) else []
    path = record_file(spec.name)
    _refuse(
        Candidate(
            name=f"What is here under the name of the local cluster {spec.name} ({', '.join(there)})",
            marked=True, recorded=not there or path.is_file(),
        ),
        f"{path} is missing. If it is Muster's, run role local_cluster for it again, which records its options, and then remove it; "
        "if not, give the cluster another name.",
    )  # fmt: skip


def refuse_foreign_mounts(name: str, *folders: str) -> None:
    """Refuse if anything is mounted in the folders, because deleting a folder deletes what is mounted in it."""
    points = list(mounts(*folders))
    _refuse(
        Candidate(
            name=name, marked=True, recorded=True,
            unknown=f"{', '.join(points)} is mounted in its folders, and not by Muster" if points else "",
        ),
        f"Unmount it (umount {' '.join(points)}) and run the removal again.",
    )  # fmt: skip


def _data(cluster: LocalCluster) -> str:
    volumes = data_in(cluster)
    return f"has volumes with data: {', '.join(volumes)} (in {cluster.volumes_dir})" if volumes else ""


def data_in(cluster: LocalCluster) -> list[str]:
    """Volumes that are not empty."""
    if not cluster.volumes_dir.is_dir():
        return []
    return sorted(path.name for path in cluster.volumes_dir.iterdir() if path.is_symlink() or not path.is_dir() or any(path.iterdir()))


def _kubeconfigs(asked: LocalCluster, cluster: LocalCluster, made: record.Record) -> t.Iterator[tuple[Path, Candidate]]:
    """The kubeconfigs that we wrote and that are still this cluster's."""
    # The record of an older Muster does not contain their paths.
    recorded = made.get("kubeconfigs", asked.options["kubeconfigs"])
    for one in dict.fromkeys([*recorded, *asked.options["kubeconfigs"]]):
        path = Path(one)
        if path.exists():
            # A link is not the file that was written; its target may belong to another owner.
            ours = not path.is_symlink() and kubeconfigs.is_same_cluster(path, cluster.admin_kubeconfig)
            yield path, Candidate(name=f"kubeconfig {path}", marked=ours, recorded=one in recorded)


def _audit_logs(cluster: LocalCluster, made: record.Record) -> t.Iterator[tuple[Path, Candidate]]:
    """The audit log and its rotated files."""
    path = Path(cluster.options["audit_log"])
    known = known_clusters()
    sharing = [name for name in known if name != cluster.spec.name and known[name]["audit_log"] == str(path)]
    needed = f"is that of the local cluster {sharing[0]}, too" if sharing else ""
    before = "existed before the cluster" if str(path) in made.get("found", []) else ""
    for one in audit_logs(path):
        yield (one, Candidate(name=f"audit log {one}", marked=not one.is_symlink(), recorded=True, needed=before or needed))


def audit_logs(path: Path) -> list[Path]:
    """The log and its rotated files, NAME-TIME.EXTENSION, and no other file whose name begins alike."""
    name, dot, extension = path.name.rpartition(".")
    stem = name if dot else extension
    rotated = re.compile(re.escape(stem) + ROTATED + re.escape(dot + extension if dot else ""))
    folder = list(path.parent.iterdir()) if path.parent.is_dir() else []
    return sorted(one for one in folder if one.is_file() and (one == path or rotated.fullmatch(one.name)))


def foreign_files(spec: ClusterSpec) -> list[Path]:
    """Files in the cluster's folder that are not ours."""
    state = Path(spec.state_dir)
    known = {*(state / one for one in OWN_FOLDERS), record_file(spec.name), draft_of(record_file(spec.name))}
    nodes = list((state / "nodes").iterdir()) if (state / "nodes").is_dir() else []
    found = [one for one in state.iterdir() if one not in known] if state.is_dir() else []
    found += [one for one in nodes if not one.name.removeprefix(f"{spec.name}-").isdecimal()]
    return sorted(found)


def _strangers_kept(spec: ClusterSpec) -> list[str]:
    candidates = [Candidate(name=str(one), marked=False, recorded=False) for one in foreign_files(spec)]
    return [f"{one.name}: it {why_kept(one, delete_data=False)}" for one in candidates]


def node_numbers(cluster: LocalCluster) -> list[int]:
    """Every node that was ever created, desired or not."""
    names = {path.name.removeprefix(f"muster-{cluster.spec.name}-") for path in network.NETNS_DIR.glob("muster-*")}
    folder = Path(cluster.spec.state_dir) / "nodes"
    there = folder.iterdir() if folder.is_dir() else []
    names |= {path.name.removeprefix(f"{cluster.spec.name}-") for path in there}
    numbers = {int(one) for one in names if one.isdecimal() and 1 <= int(one) <= MAX_NODES}
    return sorted(numbers | {one.index for one in cluster.spec.all_nodes})


def remove_node(one: NodeSpec, clock: Clock) -> None:
    """Remove a node, including what an interrupted removal left."""
    node.stop(one, clock)
    node.end_processes(one.cluster, one.cgroup, clock)
    node.remove_cgroups(one.cgroup, clock)
    for path in (Path(one.state_dir), Path(one.run_dir)):
        remove_tree(path)


def remove_tree(path: Path) -> None:
    """Remove one of our folders with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove(planned: ClusterRemoval, progress: Progress, clock: Clock) -> tuple[list[str], list[str]]:
    """Remove everything that was planned. Returns what is left because something holds it, and what else was kept."""
    cluster, spec, kept = planned.cluster, planned.cluster.spec, []
    for path in planned.files:
        path.unlink(missing_ok=True)
    for folder in Path(cluster.options["audit_log"]).parents:
        if folder.is_relative_to(DEFAULT_LOG_FOLDER):
            _remove_empty(folder)
    if planned.recorded:
        for number in node_numbers(cluster):
            progress(f"ending node {spec.name}-{number}")
            remove_node(spec.node(number), clock)
        node.end_processes(spec.name, f"muster-{spec.name}", clock)
        node.remove_cgroups(f"muster-{spec.name}", clock)
    with machine():
        if planned.recorded:
            for step in network.removal_steps(spec):
                host.run(step.argv)
            kept = _remove_folders(spec)
        # The power failed while it was being written.
        draft_of(record_file(spec.name)).unlink(missing_ok=True)
    for folder in (Path(spec.state_dir), Path(spec.run_dir), Path(STATE_ROOT), Path(RUN_ROOT)):
        _remove_empty(folder)
    stays = {*network.OF_THE_HOST, *([f"folder {spec.state_dir}"] if foreign_files(spec) else [])}
    # A disk of the host's that is mounted there is empty now, and stays mounted.
    stays |= {f"folder {one}" for one in (spec.state_dir, spec.run_dir) if one in mounts(str(Path(one).parent))}
    return [one for one in leftovers(spec) if one not in stays], kept


def _remove_folders(spec: ClusterSpec) -> list[str]:
    """Remove the folders; with the last cluster also those that all clusters share; the record after everything else."""
    state = Path(spec.state_dir)
    remove_tree(Path(spec.run_dir))
    alien = foreign_files(spec)
    for one in OWN_FOLDERS:
        if not any((state / one) in path.parents for path in alien):
            remove_tree(state / one)
    kept = node.remove_mount_points() if is_last(spec) else []
    record_file(spec.name).unlink()
    return [f"folder {one}: it was created as an empty mount point, and is not empty now" for one in kept]


def is_last(spec: ClusterSpec) -> bool:
    """Whether no other cluster is on this host. A cluster has its record before anything else of it is made."""
    return all(path == record_file(spec.name) for path in Path(STATE_ROOT).glob(f"*/{record_file('').name}"))


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _remove_empty(folder: Path) -> None:
    """Remove a folder if nothing is in it and nothing is mounted there; another cluster may remove or fill it at the same time."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise
