# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what a host lacks for a local cluster: first gather all facts, then judge them with pure functions, so that one message has all."""

from __future__ import annotations

import ctypes
import dataclasses
import ipaddress
import json
import os
import shutil
import tempfile
import typing as t
from pathlib import Path

from .._core.errors import CommandFailed, Forbidden
from .cluster import LocalCluster, known_clusters
from .gobuild import version_problem
from .host import CNI_BIN_DIRS, SYSTEM_PATH, cgroup_mounts, run
from .kubeconfigs import has_other_entries
from .spec import STATE_ROOT, overlaps

GIB = 1 << 30
# Program -> its package in Debian and Ubuntu.
PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "nft": "nftables",
    "iptables": "iptables",
    "runc": "runc",
    "catatonit": "catatonit",
    "busybox": "busybox-static",
    "ldd": "libc-bin",
}
# The image pause is made from this program unless it is a released one.
REPLACED = {"catatonit": "pause"}
CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}
# The kubelet needs these as well where each controller has its own hierarchy.
CONTROLLERS_V1 = CONTROLLERS | {"cpuacct", "devices", "blkio"}
NEED_MEMORY = 2 * GIB
NEED_DISK = 5 * GIB
NEED_DISK_TO_BUILD = 10 * GIB
# The newest that a module of roles/local_cluster/files/go asks for.
NEED_GO = "1.26.8"
# inotify instances of a node with its control plane (23 were counted); without one a program of Kubernetes does not start.
NEED_INOTIFY = 30


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    what: str
    fix: str


NOT_ROOT = Problem(
    what="Namespaces, mounts and network interfaces need root.",
    fix="Run as root, or let Ansible become root (muster_become: true in the inventory, or --become --ask-become-pass).",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostFacts:
    """The facts about the host that preflight needs."""

    root: bool
    architecture: str
    memory: int
    free_state: int
    free_cache: int
    controllers: frozenset[str]
    cgroup_version: int
    # Address range that the host uses -> its interface.
    routes: dict[str, str]
    packages_missing: tuple[str, ...]
    # Empty if everything could be tried and works.
    kernel_missing: tuple[str, ...] = ()
    # As far as more than NEED_INOTIFY of them do not matter.
    inotify_instances: int = NEED_INOTIFY


def require_root(cluster: LocalCluster) -> None:
    """Refuse other users than root, because an existing cluster has private keys in its folders."""
    if os.geteuid() != 0 and Path(cluster.spec.state_dir).exists():
        raise Forbidden(f"The local cluster {cluster.spec.name} belongs to root. {NOT_ROOT.what}", hint=NOT_ROOT.fix)


def find_problems(cluster: LocalCluster, facts: HostFacts, others: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[Problem]:
    """Every problem that prevents the creation of this cluster."""
    return [
        *_machine_problems(facts),
        *_kernel_problems(facts),
        *_inotify_problems(facts),
        *_route_problems(cluster, facts),
        *_neighbour_problems(cluster, others),
    ]


def _machine_problems(facts: HostFacts) -> t.Iterator[Problem]:
    if not facts.root:
        yield NOT_ROOT
    if facts.architecture not in {"amd64", "arm64"}:
        yield Problem(what=f"Kubernetes is not built for {facts.architecture}.", fix="Use an amd64 or arm64 machine.")
    if facts.memory < NEED_MEMORY:
        yield Problem(
            what=f"Only {facts.memory / GIB:.1f} GiB of memory are free; the control plane and a node need 2 GiB.",
            fix="Stop something or use a larger machine.",
        )
    if facts.free_state < NEED_DISK:
        yield Problem(
            what=f"Only {facts.free_state / GIB:.1f} GiB are free for {STATE_ROOT}; images and etcd need 5 GiB.",
            fix="Free some space there, or mount a larger disk at that folder.",
        )


def _kernel_problems(facts: HostFacts) -> t.Iterator[Problem]:
    needed = CONTROLLERS_V1 if facts.cgroup_version == 1 else CONTROLLERS
    if lacking := sorted(needed - facts.controllers):
        yield Problem(
            what=f"cgroup controllers are missing: {', '.join(lacking)} (cgroup version {facts.cgroup_version}).",
            fix="Enable them on the kernel's command line (cgroup_enable=...) and reboot, or use another host.",
        )
    for feature in facts.kernel_missing:
        yield Problem(
            what=f"The kernel cannot do this: {feature}",
            fix="Load the module (modprobe overlay bridge veth nf_tables nft_masq nft_compat xt_NFQUEUE) or use a kernel that has it; "
            "in a container, run it privileged.",
        )


def _inotify_problems(facts: HostFacts) -> t.Iterator[Problem]:
    if facts.inotify_instances < NEED_INOTIFY:
        yield Problem(
            what=f"Only {facts.inotify_instances} inotify instances are free for root; a node needs {NEED_INOTIFY}.",
            fix="Allow more (sysctl -w fs.inotify.max_user_instances=1024, and in /etc/sysctl.d for the next start).",
        )


def _route_problems(cluster: LocalCluster, facts: HostFacts) -> t.Iterator[Problem]:
    spec = cluster.spec
    taken = {
        f"{destination} ({device})": network
        for destination, device in facts.routes.items()
        if device != spec.bridge and (network := _network(destination)) is not None
    }
    for ours, theirs in overlaps(spec.subnets, taken):
        yield Problem(
            what=f"{ours} {spec.subnets[ours]} overlaps the host's route {theirs}.", fix=f"Set local_cluster_{ours} to a free range."
        )


def _neighbour_problems(cluster: LocalCluster, others: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Iterator[Problem]:
    spec = cluster.spec
    for name, fixed in others.items():
        if name == spec.name:
            continue
        theirs = {key: ipaddress.IPv4Network(fixed[key]) for key in spec.subnets if key in fixed}
        for ours, other in overlaps(spec.subnets, theirs):
            yield Problem(
                what=f"{ours} {spec.subnets[ours]} overlaps {other} {theirs[other]} of the local cluster {name}.",
                fix=f"Set local_cluster_{ours} to a free range.",
            )
        if fixed.get("audit_log") == cluster.options["audit_log"]:
            yield Problem(
                what=f"The local cluster {name} writes its audit log to {fixed['audit_log']} too.",
                fix="Set local_cluster_audit_log to another file.",
            )


def changed_immutable(cluster: LocalCluster, made_with: t.Mapping[str, t.Any]) -> list[Problem]:
    """Options that differ from those at creation and cannot be changed in place."""
    return [
        Problem(
            what=f"The cluster {cluster.spec.name} was made with {key} {made_with[key]!r}, not {desired!r}.",
            fix=f"Set local_cluster_{key} back, or remove the cluster (tasks_from: remove) and create it again.",
        )
        for key, desired in cluster.immutable().items()
        if key in made_with and made_with[key] != desired
    ]


def foreign_kubeconfigs(cluster: LocalCluster) -> list[Problem]:
    """Files of others that the cluster's kubeconfig would overwrite."""
    taken = [one for one in cluster.options["kubeconfigs"] if has_other_entries(Path(one), f"https://{cluster.spec.endpoint}")]
    return [
        Problem(
            what=f"{one} exists and is not a kubeconfig of the cluster {cluster.spec.name} alone.",
            fix="Set local_cluster_kubeconfig to another file, or move this one away.",
        )
        for one in taken
    ]


def go_problems(names: t.Iterable[str], free_cache: int) -> list[Problem]:
    """Problems that prevent building these programs on this machine."""
    problems = []
    try:
        reason = version_problem(run(["go", "version"]), run(["go", "env", "GOTOOLCHAIN"]).strip(), NEED_GO)
    except CommandFailed:
        reason = "Go is not installed"
    if reason:
        problems.append(
            Problem(
                what=f"{reason}, which builds {', '.join(sorted(names))}.",
                fix=f"Install Go {NEED_GO} or later and put it on root's PATH (go version).",
            )
        )
    if free_cache < NEED_DISK_TO_BUILD:
        problems.append(
            Problem(
                what=f"Only {free_cache / GIB:.1f} GiB are free for building; Go's caches need 10 GiB.",
                fix="Free some space, or point GOCACHE, GOMODCACHE and XDG_CACHE_HOME to a larger disk.",
            )
        )
    return problems


def package_problems(missing: t.Sequence[str]) -> list[Problem]:
    """The problem that packages are missing and the role may not install them."""
    fix = f"Install them (apt-get install {' '.join(missing)}) or set local_cluster_install_packages: true."
    return [Problem(what="Packages are missing.", fix=fix)] if missing else []


def missing_packages(provided: t.Collection[str] = ()) -> tuple[str, ...]:
    """The packages that the host lacks. PROVIDED: programs and images that are released, and need no package."""
    needed = {program: package for program, package in PACKAGES.items() if REPLACED.get(program, program) not in provided}
    packages = [package for program, package in needed.items() if not shutil.which(program, path=SYSTEM_PATH)]
    if "ptp" not in provided and not any((Path(folder) / "ptp").exists() for folder in CNI_BIN_DIRS):
        packages.append("containernetworking-plugins")
    return tuple(packages)


def gather_facts(
    cluster: LocalCluster, cache_dir: Path, architecture: str, *, provided: t.Collection[str] = (), try_kernel: bool
) -> HostFacts:
    root = os.geteuid() == 0
    packages = missing_packages(provided)
    version, mounts = cgroup_mounts(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    has_ip = "iproute2" not in packages
    ready = root and try_kernel and not packages
    return HostFacts(
        root=root,
        architecture=architecture,
        memory=_available_memory(Path("/proc/meminfo").read_text(encoding="utf-8")),
        free_state=_free(Path(STATE_ROOT)),
        free_cache=_free(cache_dir),
        controllers=_controllers(version, mounts),
        cgroup_version=version,
        routes=_routes() if has_ip else {},
        packages_missing=packages,
        kernel_missing=tuple(kernel_gaps(cluster.options["snapshotter"])) if ready else (),
        inotify_instances=inotify_instances(NEED_INOTIFY) if ready else NEED_INOTIFY,
    )


def kernel_gaps(snapshotter: str) -> t.Iterator[str]:
    """Try what a node does, in namespaces that vanish at once, so that nothing on the host changes."""
    bridge = "ip link add b0 type bridge && ip link add v0 type veth peer name v1 && ip link set v0 master b0"
    table = "add table ip t; add chain ip t c { type nat hook postrouting priority 100; }; add rule ip t c masquerade"
    trials = {
        "network, mount and pid namespaces": ["unshare", "-n", "-m", "-p", "-f", "true"],
        "a bridge and veth pairs": ["unshare", "-n", "sh", "-c", bridge],
        "nftables with address translation": ["unshare", "-n", "nft", table],
        # What files/go/kube-network-policies writes, by the program that writes targets of x_tables into nf_tables.
        "a queue of packets": ["unshare", "-n", "iptables-nft", "-A", "FORWARD", "-j", "NFQUEUE", "--queue-num", "100"],
    }
    for what, argv in trials.items():
        try:
            run(argv, timeout=20)
        except CommandFailed as exc:
            yield f"{what} ({exc.message[-160:]})."
    if snapshotter == "overlayfs":
        yield from _overlay_gap()


def inotify_instances(most: int) -> int:
    """Count the inotify instances that this user may still open, up to MOST."""
    libc = ctypes.CDLL(None)
    opened: list[int] = []
    while len(opened) < most and (one := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
        opened.append(one)
    for one in opened:
        os.close(one)
    return len(opened)


def _overlay_gap() -> t.Iterator[str]:
    base = _existing(Path(STATE_ROOT))
    with tempfile.TemporaryDirectory(dir=base, prefix=".muster-") as folder:
        for name in ("l", "u", "w", "m"):
            (Path(folder) / name).mkdir()
        mount = "mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m"
        try:
            run(["unshare", "-m", "sh", "-c", f"cd {folder} && {mount}"], timeout=20)
        except CommandFailed as exc:
            yield f"an overlay below {base} ({exc.message[-160:]}); local_cluster_snapshotter: native does without."


def _routes() -> dict[str, str]:
    found = json.loads(run(["ip", "-j", "-4", "route", "show"]) or "[]")
    return {one["dst"]: one.get("dev", "") for one in found if one.get("dst") not in {None, "default"}}


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None


def _controllers(version: int, mounts: tuple[str, ...]) -> frozenset[str]:
    if version == 1:
        return frozenset(part for mount in mounts for part in Path(mount).name.split(","))
    return frozenset(word for mount in mounts for word in (Path(mount) / "cgroup.controllers").read_text(encoding="utf-8").split())


def _available_memory(meminfo: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _free(path: Path) -> int:
    return shutil.disk_usage(_existing(path)).free


def _existing(path: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))


def other_clusters(name: str) -> dict[str, dict[str, t.Any]]:
    return {other: fixed for other, fixed in known_clusters().items() if other != name}
