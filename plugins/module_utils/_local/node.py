# SPDX-License-Identifier: GPL-3.0-or-later
"""One node on this host: create, check and remove its files, folders, cgroups and processes."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

from .._core.clock import Clock
from .._core.deletion import Candidate
from .._core.errors import Failed
from .._core.files import naming
from .host import PROC, Process, cgroup_folders, kill, pids_in_cgroup, processes_in, processes_in_cgroup, run, wait_until
from .network import NETNS_DIR
from .node_files import OWN_FOLDERS, HostTraits
from .once import machine
from .spec import STATE_ROOT, VOLUMES, NodeSpec, record_file

# Empty folders that were created on the host as mount points, recorded so that removal can delete them.
MOUNT_POINTS = Path(STATE_ROOT) / "mount-points.json"
LINKED = "programs.json"
# Programs that supervisord runs. Containers have shims of their own, which run on while any of these restarts.
SERVICES = ("containerd", "kubelet", "kwok")
_IN_NODE = 2
"""Process IDs of a process of a node: that on the host and that in the node."""


def write_if_changed(path: Path, text: str, mode: int) -> bool:
    """Replace a file atomically, so that readers see the old or the new content."""
    if path.is_file() and path.read_text(encoding="utf-8") == text and path.stat().st_mode & 0o777 == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        # Root only at first, so that the file is never more open than MODE.
        with naming(path), os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


def draft_of(path: Path) -> Path:
    """The name of a file while it is being written."""
    return path.with_name(f".{path.name}.new")


def stale_files(node: NodeSpec, files: dict[str, tuple[int, str]]) -> list[str]:
    """The files of a node that are missing or outdated."""
    state = Path(node.state_dir)

    def differs(name: str) -> bool:
        path, (_mode, text) = state / name, files[name]
        return not path.is_file() or path.read_text(encoding="utf-8") != text

    volumes = volumes_of(node)
    private = volumes.is_dir() and stat.S_IMODE(volumes.stat().st_mode) == 0o700
    return [*(name for name in files if differs(name)), *([] if private else [VOLUMES])]


def marker(node: NodeSpec) -> Path:
    """The file that says that kubeadm is done in the node, with the versions that it was done with."""
    return Path(node.state_dir) / "initialised"


def volumes_of(node: NodeSpec) -> Path:
    """The folder with the volumes of the node's cluster."""
    return Path(node.state_dir).parents[1] / VOLUMES


def write_files(node: NodeSpec, files: dict[str, tuple[int, str]]) -> None:
    state, volumes = Path(node.state_dir), volumes_of(node)
    # Pods of any user write to their own volume, which is mounted there; on the host only root reaches the volumes.
    volumes.mkdir(parents=True, exist_ok=True)
    volumes.chmod(0o700)
    for folder in ("log", "run", *(f"own{one}" for one in OWN_FOLDERS)):
        (state / folder).mkdir(parents=True, exist_ok=True)
    # Only root may enter, because certificates and keys are below.
    state.chmod(0o700)
    for name, (mode, text) in files.items():
        write_if_changed(state / name, text, mode)


def make_mount_points(folders: tuple[str, ...] = OWN_FOLDERS) -> None:
    """Create the host's folders that a node mounts its own over, and record those that did not exist."""
    with machine():
        _make_mount_points(folders)


def _make_mount_points(folders: tuple[str, ...]) -> None:
    made = json.loads(MOUNT_POINTS.read_text(encoding="utf-8")) if MOUNT_POINTS.exists() else []
    for folder in folders:
        missing = [one for one in (Path(folder), *Path(folder).parents) if not one.exists()]
        made += [str(one) for one in missing if str(one) not in made]
        write_if_changed(MOUNT_POINTS, json.dumps(made) + "\n", 0o644)
        Path(folder).mkdir(parents=True, exist_ok=True)


def remove_mount_points() -> list[str]:
    """Remove the folders of make_mount_points that are still empty. Returns those that stay."""
    draft_of(MOUNT_POINTS).unlink(missing_ok=True)
    if not MOUNT_POINTS.exists():
        return []
    kept = []
    for folder in sorted(json.loads(MOUNT_POINTS.read_text(encoding="utf-8")), key=len, reverse=True):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            kept.append(folder)
    MOUNT_POINTS.unlink()
    return kept


def make_cgroups(node: NodeSpec, host: HostTraits) -> None:
    """Create the node's cgroup in every hierarchy, and one for the services in it (version 2 allows processes only in leaves)."""
    for mount in host.cgroup_mounts:
        top = Path(mount)
        path = top
        for part in (*node.cgroup.split("/"), "init"):
            if host.cgroup_version == 2:
                _delegate(path)
            path /= part
            path.mkdir(exist_ok=True)
            if (path / "cpuset.cpus").exists() and host.cgroup_version == 1:
                _inherit_cpuset(path)


def _delegate(folder: Path) -> None:
    """Enable every controller of this cgroup for those below it."""
    available = (folder / "cgroup.controllers").read_text(encoding="utf-8").split()
    enabled = (folder / "cgroup.subtree_control").read_text(encoding="utf-8").split()
    for controller in (one for one in available if one not in enabled):
        (folder / "cgroup.subtree_control").write_text(f"+{controller}", encoding="utf-8")


def _inherit_cpuset(folder: Path) -> None:
    """Copy the cpuset of the parent: in version 1 it begins empty, and no process may enter an empty one."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (folder / name).read_text(encoding="utf-8").strip():
            (folder / name).write_text((folder.parent / name).read_text(encoding="utf-8"), encoding="utf-8")


def remove_cgroups(path: str, clock: Clock) -> None:
    """Remove a cgroup and all below it in every hierarchy, the deepest first. Its processes have ended already."""
    for top in cgroup_folders(path):
        for folder, _names, _files in os.walk(top, topdown=False):
            wait_until(functools.partial(_try_rmdir, Path(folder)), timeout=10, what=f"cgroup {folder}", clock=clock)


def _try_rmdir(folder: Path) -> str | None:
    try:
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
    except OSError as exc:
        return str(exc)
    return None


def init_process(node: NodeSpec) -> Process | None:
    """The node's pid 1: the process of its network namespace that counts itself as 1, one level below the host."""
    found = [one for one in processes_in(NETNS_DIR / node.netns) if len(one.ns_pids) > 1 and one.ns_pids[-1] == 1]
    return min(found, key=lambda one: len(one.ns_pids), default=None)


def start(node: NodeSpec, clock: Clock) -> Process:
    """Start the node's pid 1 in a new session and wait until it runs."""
    log = Path(node.state_dir) / "log" / "start.log"
    run_dir = Path(node.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    run_dir.chmod(0o700)
    for left in run_dir.iterdir():
        left.unlink()
    with log.open("wb") as out:
        child = subprocess.Popen(
            [f"{node.state_dir}/start.sh"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/"
        )

    def missing() -> str | None:
        if child.poll() is not None:
            raise Failed(
                f"Node {node.name} did not start: {log.read_text(encoding='utf-8', errors='replace').strip()[-500:]}",
                hint=f"See {log} and {node.state_dir}/log.",
            )
        return None if (run_dir / "containerd.sock").exists() else "containerd has no socket yet"

    wait_until(missing, timeout=60, what=f"node {node.name}", clock=clock)
    found = init_process(node)
    if found is None:
        raise Failed(f"Node {node.name} ended right after its start.", hint=f"See {node.state_dir}/log.")
    # Documented: to let the node die, kill this process.
    write_if_changed(run_dir / "pid", f"{found.pid}\n", 0o644)
    return found


def stop(node: NodeSpec, clock: Clock) -> bool:
    """Kill the node's pid 1, and with it every process and mount in the node."""
    before = init_process(node)
    if before is not None:
        kill(before.pid, lambda: _candidate(node.cluster, before.pid, marked=getattr(init_process(node), "pid", 0) == before.pid))
    wait_until(lambda: _left_in(node), timeout=30, what=f"the end of node {node.name}", clock=clock)
    return before is not None


def end_processes(cluster: str, cgroup: str, clock: Clock) -> None:
    """Kill all processes below a cgroup of the cluster, such as one that left its namespaces."""

    def end(pid: int) -> None:
        kill(pid, lambda: _candidate(cluster, pid, marked=pid in pids_in_cgroup(cgroup)))

    def running() -> str | None:
        found = processes_in_cgroup(cgroup)
        for pid in pids_in_cgroup(cgroup):
            end(pid)
        return f"processes {', '.join(found)}" if found else None

    wait_until(running, timeout=30, what=f"end of {cgroup}", clock=clock)


def _candidate(cluster: str, pid: int, *, marked: bool) -> Candidate:
    return Candidate(name=f"process {pid}", marked=marked, recorded=record_file(cluster).is_file())


def _left_in(node: NodeSpec) -> str | None:
    left = processes_in(NETNS_DIR / node.netns)
    return f"processes {', '.join(f'{one.name} ({one.pid})' for one in left)}" if left else None


def reload_services(node: NodeSpec, python: str, supervisor_dir: Path) -> None:
    """Tell the running supervisord of changed programs; those that did not change keep running."""
    _supervisorctl(node, ["update"], python, supervisor_dir)


def _supervisorctl(node: NodeSpec, words: list[str], python: str, supervisor_dir: Path) -> None:
    argv = [python, "-m", "supervisor.supervisorctl", "-c", f"{node.state_dir}/supervisord.conf", *words]
    run(argv, env={"PYTHONPATH": str(supervisor_dir)}, timeout=60)


def outdated_services(node: NodeSpec, bin_dir: Path) -> list[str]:
    """The services of the node that still run a file which was replaced since. Containers have a process namespace further inside."""
    found = [one for one in processes_in(NETNS_DIR / node.netns) if one.name in SERVICES and len(one.ns_pids) == _IN_NODE]
    running = {one.name: PROC / str(one.pid) / "exe" for one in found}
    with contextlib.suppress(FileNotFoundError):
        return [name for name, exe in running.items() if (bin_dir / name).exists() and not exe.samefile(bin_dir / name)]
    return []  # one ended meanwhile, and supervisord starts the new file


def restart_services(node: NodeSpec, names: list[str], python: str, supervisor_dir: Path) -> None:
    _supervisorctl(node, ["restart", *names], python, supervisor_dir)


def linked_programs(bin_dir: Path) -> dict[str, str]:
    """Name -> path in the cache from which it was linked, of the programs in the cluster's folder."""
    path = bin_dir / LINKED
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def link_programs(bin_dir: Path, programs: dict[str, str], *, check: bool) -> list[str]:
    """Put programs into the cluster's folder, so that it does not depend on a cache. Returns those that changed.

    They are links if cache and cluster are on one file system, otherwise copies; a running program keeps its old file.
    """
    have = linked_programs(bin_dir)
    stale = [name for name, path in programs.items() if have.get(name) != path or not (bin_dir / name).exists()]
    if check or not stale:
        return stale
    bin_dir.mkdir(parents=True, exist_ok=True)
    for name in stale:
        draft = bin_dir / f".{name}.new"
        draft.unlink(missing_ok=True)
        try:
            with contextlib.suppress(OSError):
                draft.hardlink_to(programs[name])
            if not draft.exists():
                shutil.copy2(programs[name], draft)
            draft.replace(bin_dir / name)
        finally:
            draft.unlink(missing_ok=True)
    write_if_changed(bin_dir / LINKED, json.dumps({**have, **programs}, indent=1) + "\n", 0o644)
    return stale
