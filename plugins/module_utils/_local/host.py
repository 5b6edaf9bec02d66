# SPDX-License-Identifier: GPL-3.0-or-later
"""The host: programs, processes, cgroups, capabilities. The only file here that starts programs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

from .._core.clock import Clock, Deadline
from .._core.deletion import Candidate, why_kept
from .._core.errors import Causes, CommandFailed
from .._core.waiting import fixed_interval, wait_for
from .node_files import HostTraits

CAP_SYS_RESOURCE = 24
PROC = Path("/proc")
# Debian and Ubuntu put the plugins in the first, upstream's own packages in the second.
CNI_BIN_DIRS = ("/usr/lib/cni", "/opt/cni/bin")
# Of programs, of systemd-resolved and of NetworkManager. The first may have the address of a cache on this machine, the others have not.
RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"), Path("/run/NetworkManager/no-stub-resolv.conf"))
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


NOT_INSTALLED = "not installed"
# What Go prints for ENOSPC (syscall/zerrors_linux_amd64.go), and so ctr.
_CTR: Causes = (("no space", re.compile("no space left on device")),)


def import_failure(image: str, node: str, said: str) -> CommandFailed:
    """The error of an import into a node's containerd; SAID: ctr's output, whose end is the error (``ctr: ...``)."""
    reason = said.rpartition("ctr: ")[2].strip()[-500:].rstrip(".")
    error = CommandFailed(f"Importing {image} into {node} failed: {reason}.").with_cause(reason, _CTR)
    error.hint = "Free space on the disk of /var/lib/muster, and run again." if error.cause else None
    return error


def failure(argv: t.Sequence[str], status: int, said: str, causes: Causes = ()) -> CommandFailed:
    """The error of a program that exited with STATUS and said why. CAUSES are in the words of that program."""
    return CommandFailed(f"{' '.join(argv[:4])} exited with {status}: {said}").with_cause(said, causes)


def run(
    argv: t.Sequence[str],
    *,
    stdin: t.IO[bytes] | None = None,
    env: t.Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout: float | None = None,
    causes: Causes = (),
) -> str:
    """Run a program to its end and return its output; an error has the last lines of it, and the one of CAUSES that these tell."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=cwd,
            timeout=timeout,
            env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}", "LC_ALL": "C", **(env or {})},
        )
    except FileNotFoundError as exc:
        error = CommandFailed(f"{argv[0]} is not installed.", hint="Install it and run again.")
        error.cause = NOT_INSTALLED
        raise error from exc
    except subprocess.TimeoutExpired as exc:
        raise CommandFailed(f"{' '.join(argv[:3])} did not end within {timeout:.0f} s.") from exc
    if done.returncode:
        raise failure(argv, done.returncode, (done.stderr or done.stdout).decode(errors="replace").strip()[-2000:], causes)
    return done.stdout.decode(errors="replace")


def wait_until(missing: t.Callable[[], str | None], *, timeout: float, what: str, clock: Clock, interval: float = 0.2) -> None:
    """Call MISSING, which returns what is still missing, until it returns None."""
    deadline = Deadline(timeout, clock)
    wait_for(lambda: (None, missing()), goal=f"{what} is not ready", deadline=deadline, pause=fixed_interval(interval, clock))


def capabilities(status: str) -> int:
    """The effective capabilities among the lines of /proc/self/status."""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def cgroup_mounts(mountinfo: str) -> tuple[int, tuple[str, ...]]:
    """The cgroup version in use and its mounts, from /proc/self/mountinfo. A hybrid host counts as version 1."""
    v1: list[str] = []
    v2: list[str] = []
    for line in mountinfo.splitlines():
        fields = line.split()
        kind = fields[fields.index("-") + 1]
        if kind == "cgroup":
            v1.append(fields[4])
        elif kind == "cgroup2":
            v2.append(fields[4])
    # A controller can be mounted once more elsewhere; programs use the first mount.
    return (1, tuple(dict.fromkeys(v1))) if v1 else (2, tuple(v2[:1]))


def all_cgroup_mounts(mountinfo: str) -> tuple[str, ...]:
    """Every hierarchy of both versions, because on a hybrid host the runtime creates folders in both."""
    points = (line.split() for line in mountinfo.splitlines())
    return tuple(dict.fromkeys(words[4] for words in points if words[words.index("-") + 1] in {"cgroup", "cgroup2"}))


def cgroup_folders(path: str) -> list[Path]:
    """A cgroup's folder in every hierarchy that has it."""
    mounts = all_cgroup_mounts((PROC / "self/mountinfo").read_text(encoding="utf-8"))
    return [Path(mount) / path for mount in mounts if (Path(mount) / path).is_dir()]


def name_servers() -> tuple[str, ...]:
    """The addresses of the host's name servers that its nodes reach, which have no IPv6. A resolver reads three (resolv.conf(5))."""
    for path in RESOLVERS:
        with contextlib.suppress(OSError):
            addresses = re.findall(r"^nameserver[ \t]+([0-9.]+)[ \t]*$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
            if found := [one for one in addresses if not one.startswith("127.")]:
                return tuple(found[:3])
    return ()


def traits() -> HostTraits:
    version, mounts = cgroup_mounts((PROC / "self/mountinfo").read_text(encoding="utf-8"))
    effective = capabilities((PROC / "self/status").read_text(encoding="utf-8"))
    return HostTraits(
        # A virtual environment may be deleted; its base stays.
        python=str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()),
        cgroup_version=version,
        cgroup_mounts=mounts,
        may_raise_limits=bool(effective >> CAP_SYS_RESOURCE & 1),
        cni_bin_dirs=tuple(path for path in CNI_BIN_DIRS if Path(path).is_dir()) or CNI_BIN_DIRS[:1],
        name_servers=name_servers(),
    )


class Process(t.NamedTuple):
    pid: int
    # Process IDs, from that on the host to that in the innermost namespace.
    ns_pids: tuple[int, ...]
    name: str


def processes_in(netns: Path) -> list[Process]:
    """The processes in one named network namespace, pods apart (they have namespaces of their own)."""
    try:
        desired = (netns.stat().st_dev, netns.stat().st_ino)
    except FileNotFoundError:
        return []
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdecimal() and _namespace(folder / "ns/net") == desired and (one := _process(folder)):
            found.append(one)
    return found


def _namespace(link: Path) -> tuple[int, int] | None:
    try:
        found = link.stat()
    except OSError:
        # The process has ended meanwhile, or is a zombie.
        return None
    return found.st_dev, found.st_ino


def _process(folder: Path) -> Process | None:
    try:
        status = (folder / "status").read_text(encoding="utf-8")
    except OSError:
        return None
    values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    ids = tuple(int(one) for one in values.get("NSpid", folder.name).split())
    return Process(pid=int(folder.name), ns_pids=ids, name=values.get("Name", "").strip())


def pids_in_cgroup(path: str) -> list[int]:
    """The IDs of all processes in one of our cgroups and below it, in any hierarchy.

    Read from the cgroup's folder, because paths in /proc/PID/cgroup depend on the reader's root: a cluster inside a container has the
    same names further down.
    """
    found: set[int] = set()
    for top in cgroup_folders(path):
        for folder, _names, _files in os.walk(top):
            with contextlib.suppress(OSError):  # gone meanwhile, or threads of processes listed above
                found |= {int(pid) for pid in (Path(folder) / "cgroup.procs").read_text(encoding="utf-8").split()}
    # 0 is a process that is invisible in this process namespace.
    return sorted(found - {0})


def processes_in_cgroup(path: str) -> dict[str, int]:
    """Name of the program -> process ID on the host, of all processes below one cgroup; of several the oldest."""
    found: dict[str, int] = {}
    for pid in pids_in_cgroup(path):
        with contextlib.suppress(OSError):
            words = (PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
            found.setdefault(Path(words[0]).name, pid)
    return found


def kill(pid: int, judged: t.Callable[[], Candidate]) -> str:
    """Kill a process, or return why it must stay.

    A handle to the process is opened before it is judged, so that another process that gets its number is never killed.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return ""
    try:
        why = why_kept(judged(), delete_data=False)
        if not why:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        return why
    finally:
        os.close(handle)
