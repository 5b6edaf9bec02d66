# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal takes all of a cluster and nothing of anybody else, wherever it, or the making of the cluster, was interrupted."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.deletion import Candidate
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import cluster as clusters
from ansible_collections.muster.ml.plugins.module_utils._local import host, leftovers, network, node, preflight, record, removal, spec
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.node_files import HostTraits
from ansible_collections.muster.ml.plugins.modules import local_cluster_removal, local_network, local_node
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

DEFAULTS = {key: one.get("default") for key, one in CLUSTER_OPTION["options"].items()} | {
    "kubernetes_version": "v1.36.3",
    "etcd_version": "3.6.8",
    "coredns_version": "v1.14.2",
}
KUBECONFIG = "clusters:\n- cluster:\n    certificate-authority-data: {ca}\n    server: https://10.1.0.2:6443\n  name: kubernetes\n"


class Power(BaseException):
    """It went."""


class Machine:
    """A host below one folder, with what a local cluster uses of one: cgroups, processes, network namespaces, links."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state, self.netns, self.proc = root / "lib/muster", root / "netns", root / "proc"
        self.cgroups = (root / "cgroup/cpu", root / "cgroup/unified")
        self.logs, self.home = root / "log/muster", root / "home"
        for folder in (self.netns, self.proc / "self", *self.cgroups, self.home, root / "etc"):
            folder.mkdir(parents=True)
        self.links, self.tables = {"lo", "eth0"}, {"filter"}
        self.mounts("")
        self.next_pid = 100
        # What the kernel does is done at once; the power does not go in the middle of it.
        self.kernel = False
        self.killed: list[int] = []

    def mounts(self, more: str) -> None:
        cpu, unified = self.cgroups
        lines = f"30 1 0:1 / {cpu} rw - cgroup cgroup rw,cpu\n31 1 0:2 / {unified} rw - cgroup2 cgroup2 rw\n{more}"
        (self.proc / "self/mountinfo").write_text(lines)

    def cgroup(self, path: str) -> None:
        for mount in self.cgroups:
            folder = mount
            for part in path.split("/"):
                folder /= part
                folder.mkdir(exist_ok=True)
                if not (folder / "cgroup.procs").exists():
                    (folder / "cgroup.procs").touch()

    def process(self, name: str, cgroup: str = "", netns: str = "") -> int:
        """One that runs in a cgroup, and in a network namespace as its pid 1."""
        self.next_pid += 1
        self.kernel = True
        folder = self.proc / str(self.next_pid)
        (folder / "ns").mkdir(parents=True)
        (folder / "comm").write_text(name)
        (folder / "cmdline").write_text(f"/usr/bin/{name}\0")
        (folder / "status").write_text(f"Name:\t{name}\nNSpid:\t{self.next_pid}\t1\n")
        if netns:
            os.link(self.netns / netns, folder / "ns/net")
        if cgroup:
            self.cgroup(cgroup)
            for mount in self.cgroups:
                with (mount / cgroup / "cgroup.procs").open("a") as procs:
                    procs.write(f"{self.next_pid}\n")
        self.kernel = False
        return self.next_pid

    def kill(self, pid: int) -> None:
        self.killed.append(pid)
        self.kernel = True
        shutil.rmtree(self.proc / str(pid))
        for procs in (self.root / "cgroup").rglob("cgroup.procs"):
            procs.write_text("".join(f"{one}\n" for one in procs.read_text().split() if int(one) != pid))
        self.kernel = False

    def run(self, argv: t.Sequence[str], **_options: t.Any) -> subprocess.CompletedProcess[bytes]:
        """Of ip, nft and the rest what removal asks of them."""
        said = ""
        match list(argv):
            case ["ip", "-j", "addr", "show"]:
                said = json.dumps([{"ifname": name} for name in sorted(self.links)])
            case ["nft", "-j", "list", "chains", "ip"]:
                said = json.dumps({"nftables": [{"chain": {"table": name, "name": "forward"}} for name in sorted(self.tables)]})
            case ["ip", "netns", "delete", name]:
                (self.netns / name).unlink()
            case ["sh", "-c", command]:
                self.links.discard(command.split()[3])
            case ["nft", "delete", "table", "ip", name]:
                self.tables.discard(name)
            case _:
                raise AssertionError(argv)
        return subprocess.CompletedProcess(argv, 0, said.encode(), b"")

    def options(self, **more: t.Any) -> dict[str, t.Any]:
        return {
            **DEFAULTS, "name": "dev", "nodes": 2, "node_subnet": "10.1.0.0/24", "pod_subnet": "10.2.0.0/16",
            "service_subnet": "10.3.0.0/16", "audit_log": str(self.logs / "audit.log"),
            "kubeconfigs": [str(self.home / "kube/dev")], **more,
        }  # fmt: skip

    def make(self, **more: t.Any) -> LocalCluster:
        """What the role does, in its order."""
        cluster = LocalCluster.of(self.options(**more))
        record.write(cluster)
        self.links.add(cluster.spec.bridge)
        self.tables.add(network.egress_table(cluster.spec))
        traits = HostTraits(
            python="python3", cgroup_version=1, may_raise_limits=True, cni_bin_dirs=(),
            cgroup_mounts=tuple(str(one) for one in self.cgroups),
        )  # fmt: skip
        for one in cluster.spec.all_nodes:
            self.links.add(one.interface)
            (self.netns / one.netns).touch()
            (self.state / "dev/bin").mkdir(exist_ok=True)
            node.write_files(one, {"start.sh": (0o755, "#!/bin/sh\n")})
            node.make_mount_points((str(self.root / "etc/kubernetes"), str(self.root / "etc/cni/net.d")))
            node.make_cgroups(one, traits)
            self.process("supervisord", f"{one.cgroup}/init", one.netns)
            self.process("kubelet", f"{one.cgroup}/init")
            Path(one.run_dir).mkdir(parents=True, exist_ok=True)
            node.write_if_changed(Path(one.run_dir) / "pid", "1\n", 0o644)
        node.write_if_changed(cluster.admin_kubeconfig, KUBECONFIG.format(ca="QQ=="), 0o600)
        for path in cluster.options["kubeconfigs"]:
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_text(KUBECONFIG.format(ca="QQ=="))
        self.logs.mkdir(parents=True, exist_ok=True)
        (self.logs / "audit-2026-01-01T00-00-00.000.log").touch()
        Path(cluster.options["audit_log"]).touch()
        cluster.volumes_dir.mkdir(exist_ok=True)
        return cluster

    def everything(self) -> set[str]:
        """What is there, the means apart."""
        paths = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.name != "cgroup.procs"}
        return paths | {f"link {one}" for one in self.links} | {f"table {one}" for one in self.tables}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "host")


@pytest.fixture(autouse=True)
def pretended(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    on(machine, monkeypatch)


def on(machine: Machine, patch: pytest.MonkeyPatch) -> None:
    """Let everything happen on this machine, and be sure that nothing happens on the real one."""
    for module in (spec, removal, clusters, node):
        patch.setattr(module, "STATE_ROOT", str(machine.state))
    for module in (spec, removal):
        patch.setattr(module, "RUN_ROOT", str(machine.root / "run/muster"))
    for module in (removal, record):
        patch.setattr(module, "DEFAULT_LOG_FOLDER", machine.logs)
    for module in (network, node):
        patch.setattr(module, "NETNS_DIR", machine.netns)
    patch.setattr(network.removal_steps, "__defaults__", (host.run, machine.netns))
    patch.setattr(network.shutil, "which", lambda name, **_options: f"/sbin/{name}")
    patch.setattr(network, "FORWARDING_NOTE", machine.state / "forwarding-was-off")
    patch.setattr(node, "MOUNT_POINTS", machine.state / "mount-points.json")
    patch.setattr(host, "PROC", machine.proc)
    patch.setattr(host.subprocess, "run", machine.run)
    patch.setattr(host.os, "pidfd_open", lambda pid: os.open(machine.proc / str(pid) / "comm", os.O_RDONLY))
    patch.setattr(host.signal, "pidfd_send_signal", lambda handle, _signal: machine.kill(pid_of(handle)))
    patch.setattr(node, "_try_rmdir", rmdir_of_cgroup)
    patch.setattr(node.os, "fsync", lambda _handle: None)


def pid_of(handle: int) -> int:
    return int(Path(f"/proc/self/fd/{handle}").readlink().parent.name)


def rmdir_of_cgroup(folder: Path) -> str | None:
    procs = folder / "cgroup.procs"
    if procs.exists() and procs.read_text():
        return "busy"
    procs.unlink(missing_ok=True)
    folder.rmdir()
    return None


def remove(options: dict[str, t.Any], *, check: bool = False, delete_data: bool = False) -> dict[str, t.Any]:
    return local_cluster_removal.execute(HostContext({"cluster": options, "delete_data": delete_data}, check, clock=FakeClock()))


def test_everything_goes_and_nothing_else(machine: Machine) -> None:
    machine.logs.mkdir(parents=True)
    for name in ("audit-b.log", "audit-b-2026-01-01T00-00-00.000.log", "audit-old.log", "audit.log.bak"):
        (machine.logs / name).touch()
    machine.links |= {"mu-dev-x", "mu-devel", "mu-dev-x-1"}
    machine.tables.add("muster_dev_x")
    (machine.netns / "muster-dev-x-1").touch()
    machine.process("kubelet", "system.slice/docker-abc.scope/muster-dev/dev-1/init")
    machine.process("kubelet", "muster-dev-x/dev-x-1/init")
    before = machine.everything()
    machine.make()
    machine.process("straggler", "muster-dev/dev-1/kubepods/pod1")
    found = remove(machine.options())
    assert found["changed"]
    assert (found["left"], found["kept"], found["differs"]) == ([], [], [])
    assert machine.everything() | {"home/kube"} == before | {"home/kube", "lib", "run"}
    assert not remove(machine.options())["changed"]


def test_check_mode_takes_nothing(machine: Machine) -> None:
    machine.make()
    before = machine.everything()
    assert remove(machine.options(), check=True)["changed"]
    assert machine.everything() == before


def dying(machine: Machine, patch: pytest.MonkeyPatch, after: int) -> None:
    """Let the power go at the call number AFTER of those that change something."""
    left = [after]

    def wrapped(real: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
            left[0] -= not machine.kernel
            if left[0] < 0:
                raise Power
            return real(*args, **kwargs)

        return call

    for name in ("unlink", "rmdir", "replace", "mkdir"):
        patch.setattr(os, name, wrapped(getattr(os, name)))
    patch.setattr(host.subprocess, "run", wrapped(host.subprocess.run))
    patch.setattr(host.signal, "pidfd_send_signal", wrapped(host.signal.pidfd_send_signal))


def small(machine: Machine) -> None:
    machine.make(nodes=1)


def interrupted_at_every_step(
    root: Path, patching: pytest.MonkeyPatch, before: t.Callable[[Machine], t.Any], what: t.Callable[[Machine], t.Any]
) -> int:
    """Do WHAT on a machine of its own until it gets to its end, each time dying one step later; removal then leaves nothing."""
    for steps in range(1000):
        machine = Machine(root / str(steps))
        (machine.home / "kube").mkdir()
        with patching.context() as patch:
            on(machine, patch)
            others = machine.everything()
            before(machine)
            try:
                with patch.context() as mortal:
                    dying(machine, mortal, steps)
                    what(machine)
            except Power:
                remove(machine.options())
                assert machine.everything() - {"lib", "log", "run"} == others
                continue
            return steps
    raise AssertionError


def test_a_removal_that_is_interrupted_anywhere_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = interrupted_at_every_step(tmp_path, monkeypatch, small, lambda machine: remove(machine.options()))
    assert steps > 30


def test_a_cluster_whose_making_is_interrupted_anywhere_can_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = interrupted_at_every_step(tmp_path, monkeypatch, lambda _machine: None, small)
    assert steps > 30


def test_with_the_last_cluster_go_the_mount_points_as_far_as_they_are_empty(machine: Machine) -> None:
    machine.make()
    (machine.root / "etc/kubernetes/mine").touch()
    found = remove(machine.options())
    kept = [f"folder {machine.root}/etc/kubernetes: it was created as an empty mount point, and is not empty now"]
    assert found["kept"] == kept
    assert not (machine.root / "etc/cni").exists()
    assert not machine.state.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"audit_log": null}', '{"audit_log": "/x", "name": "other"}'])
def test_a_record_that_cannot_be_read_keeps_everything(machine: Machine, text: str) -> None:
    machine.make()
    spec.record_file("dev").write_text(text)
    before = machine.everything()
    with pytest.raises(Failed, match=r"record of local cluster dev, .*cluster.json, cannot be read: .*Nothing was changed"):
        remove(machine.options())
    assert machine.everything() == before


@pytest.mark.parametrize("what", ["processes", "folder", "network", "run", "all"])
def test_without_a_record_nothing_says_that_it_is_ours(machine: Machine, what: str) -> None:
    if what == "all":
        machine.make()
        spec.record_file("dev").unlink()
    elif what == "processes":
        machine.process("kubelet", "muster-dev/dev-1/init")
    elif what == "network":
        machine.links.add("mu-dev")
    else:
        folder = machine.state / "dev/volumes/a" if what == "folder" else machine.root / "run/muster/dev/dev-1"
        folder.mkdir(parents=True)
    before = machine.everything()
    with pytest.raises(InvalidInput, match=r"stays as it is: it has the mark of this owner, but no record says.*cluster.json is missing"):
        remove(machine.options(), delete_data=True)
    assert machine.everything() == before
    assert machine.killed == []


def test_a_node_and_the_network_are_judged_alike(machine: Machine) -> None:
    cluster = machine.make()
    spec.record_file("dev").unlink()
    before = machine.everything()
    for module, params in ((local_node, {"index": 2, "program_paths": {}}), (local_network, {})):
        with pytest.raises(InvalidInput, match="no record says that Muster created it"):
            module.execute(HostContext({"cluster": machine.options(), "state": "absent", **params}, check=False))
    assert machine.everything() == before
    record.write(cluster)
    machine.mounts(f"40 1 0:9 / {cluster.spec.node(2).state_dir}/own/var rw - ext4 /dev/sdb rw\n")
    with pytest.raises(InvalidInput, match=r"The node dev-2 stays .* is mounted in its folders"):
        local_node.execute(HostContext({"cluster": machine.options(), "state": "absent", "index": 2, "program_paths": {}}, check=False))
    assert machine.killed == []


def test_what_is_left_of_a_folder_is_no_cluster(machine: Machine) -> None:
    (machine.state / "dev").mkdir(parents=True)
    assert remove(machine.options())["changed"]
    assert not machine.state.exists()


def test_what_somebody_put_into_the_folders_stays(machine: Machine) -> None:
    machine.make()
    for name in ("etcd-backup.tar", "nodes/notes"):
        (machine.state / "dev" / name).write_text("mine")
    for _turn in range(2):
        found = remove(machine.options())
        assert found["kept"] == [
            f"{machine.state}/dev/{name}: it does not have the mark of this owner" for name in ("etcd-backup.tar", "nodes/notes")
        ]
        assert {str(path.relative_to(machine.state)) for path in machine.state.rglob("*")} == {
            "dev", "dev/etcd-backup.tar", "dev/nodes", "dev/nodes/notes",
        }  # fmt: skip
    assert not found["changed"]


def test_what_is_mounted_in_the_folders_is_not_reached_into(machine: Machine) -> None:
    cluster = machine.make()
    machine.mounts(f"40 1 0:9 / {cluster.volumes_dir}/shared rw - nfs server:/ rw\n")
    before = machine.everything()
    with pytest.raises(InvalidInput, match=r"cannot be judged: .*/volumes/shared is mounted .*Unmount it \(umount"):
        remove(machine.options(), delete_data=True)
    assert machine.everything() == before


@pytest.mark.parametrize("shared", [False, True])
def test_a_disk_that_is_mounted_as_the_clusters_folder_stays(machine: Machine, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    machine.make()
    point = machine.state if shared else machine.state / "dev"
    machine.mounts(f"40 1 0:3 / {point} rw - ext4 /dev/x rw\n")
    real = os.rmdir

    def rmdir(path: t.Any, **more: t.Any) -> None:
        if str(path) == str(point):
            raise OSError(errno.EBUSY, "Device or resource busy")
        real(path, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert remove(machine.options())["left"] == []
    assert list(point.iterdir()) == []


def test_links_in_the_place_of_what_was_written_stay(machine: Machine) -> None:
    cluster = machine.make()
    moved = {}
    for path in (Path(cluster.options["kubeconfigs"][0]), Path(cluster.options["audit_log"])):
        moved[path] = machine.root / path.name
        path.rename(moved[path])
        path.symlink_to(moved[path])
    found = remove(machine.options())
    assert [one.rpartition(": ")[2] for one in found["kept"]] == ["it does not have the mark of this owner"] * 2
    assert all(path.is_symlink() and target.exists() for path, target in moved.items())


def test_data_goes_by_its_own_word_only(machine: Machine) -> None:
    cluster = machine.make()
    (cluster.volumes_dir / "empty").mkdir()
    (cluster.volumes_dir / "claim").mkdir()
    (cluster.volumes_dir / "claim/epoch9").touch()
    (cluster.volumes_dir / "file").touch()
    before = machine.everything()
    told = r"has volumes with data: claim, file \(in .*\); delete_data: true deletes it"
    with pytest.raises(InvalidInput, match=told):
        remove(machine.options())
    assert machine.everything() == before
    assert remove(machine.options(), delete_data=True)["left"] == []


def test_it_goes_by_what_the_cluster_was_made_with(machine: Machine) -> None:
    theirs = machine.root / "log/theirs.log"
    machine.make(audit_log=str(machine.root / "log/ours.log"))
    theirs.touch()
    found = remove(machine.options(audit_log=str(theirs), node_subnet="10.9.0.0/29", nodes=1))
    assert theirs.exists()
    assert not (machine.root / "log/ours.log").exists()
    assert found["differs"] == [
        "The cluster dev was made with node_subnet '10.1.0.0/24', not '10.9.0.0/29'.",
        f"The cluster dev was made with audit_log '{machine.root}/log/ours.log', not '{theirs}'.",
    ]


@pytest.mark.parametrize("whose", ["another cluster", "before"])
def test_an_audit_log_of_somebody_else_stays(machine: Machine, whose: str) -> None:
    path = machine.root / "log/audit.log"
    path.parent.mkdir()
    if whose == "before":
        path.touch()
    machine.make(audit_log=str(path))
    if whose != "before":
        (machine.state / "other").mkdir()
        (machine.state / "other/cluster.json").write_text(json.dumps({"audit_log": str(path)}))
    reason = "existed before the cluster" if whose == "before" else "is that of the local cluster other, too"
    assert remove(machine.options(audit_log=str(path)))["kept"] == [f"audit log {path}: it {reason}"]
    assert path.exists()


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (KUBECONFIG.format(ca="QQ=="), False),
        (KUBECONFIG.format(ca="QQ==") + "# mine\n", False),
        (KUBECONFIG.format(ca="Wg=="), True),
        (KUBECONFIG.format(ca="QQ==") + KUBECONFIG.format(ca="Wg=="), True),
        ("", True),
    ],
)
def test_a_kubeconfig_goes_as_long_as_it_is_this_clusters(machine: Machine, text: str, stays: bool) -> None:
    machine.make()
    path = machine.home / "kube/dev"
    path.write_text(text)
    found = remove(machine.options())
    assert path.exists() == stays
    assert bool(found["kept"]) == stays


@pytest.mark.parametrize("text", ["", "apiVersion: v1\n", KUBECONFIG.format(ca="QQ==")])
def test_before_there_is_a_control_plane_no_kubeconfig_is_ours(machine: Machine, text: str) -> None:
    cluster = LocalCluster.of(machine.options())
    record.write(cluster)
    path = machine.home / "kube/dev"
    path.parent.mkdir()
    path.write_text(text)
    assert remove(machine.options())["kept"] == [f"kubeconfig {path}: it does not have the mark of this owner"]
    assert path.read_text() == text


def test_every_kubeconfig_that_was_ever_written_goes_and_none_that_was_not(machine: Machine) -> None:
    first, second, copy = (machine.home / one for one in ("first", "second", "copy"))
    machine.make(kubeconfigs=[str(first)])
    record.write(LocalCluster.of(machine.options(kubeconfigs=[str(second)])))
    second.write_text(first.read_text())
    copy.write_text(first.read_text())
    found = remove(machine.options(kubeconfigs=[str(copy)]))
    assert [path.name for path in machine.home.iterdir()] == ["copy"]
    assert found["kept"] == [f"kubeconfig {copy}: it has the mark of this owner, but no record says that Muster created it (a copy?)"]


def test_the_record_of_an_older_muster(machine: Machine) -> None:
    """It has only what cannot be changed, and says nothing of kubeconfigs."""
    cluster = machine.make()
    spec.record_file("dev").write_text(json.dumps(cluster.immutable()))
    found = remove(machine.options())
    assert (found["left"], found["kept"]) == ([], [])
    assert not (machine.home / "kube/dev").exists()
    assert not machine.state.exists()


def test_a_kubeconfig_of_another_cluster_is_never_written_over(machine: Machine) -> None:
    cluster = LocalCluster.of(machine.options())
    path = machine.home / "kube/dev"
    path.parent.mkdir()
    for text, taken in (
        ("", False),
        (KUBECONFIG.format(ca="old="), False),
        (KUBECONFIG.format(ca="QQ==").replace("10.1", "10.7"), True),
        ("apiVersion: v1\n", True),
    ):
        path.write_text(text)
        assert bool(preflight.foreign_kubeconfigs(cluster)) == taken
    path.unlink()
    assert preflight.foreign_kubeconfigs(cluster) == []


def test_the_record_keeps_what_cannot_be_changed(machine: Machine) -> None:
    machine.make()
    again = LocalCluster.of(machine.options(pod_subnet="10.7.0.0/16", nodes=3))
    assert record.is_stale(again)
    record.write(again)
    made = record.read("dev") or {}
    assert (made["pod_subnet"], made["nodes"]) == ("10.2.0.0/16", 3)
    assert not record.is_stale(again)


def no_power(_argv: t.Sequence[str]) -> t.NoReturn:
    raise Power


def test_the_network_is_made_after_the_record(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    step = network.Command("bridge", ("false",))
    monkeypatch.setattr(network, "missing_steps", lambda *_args, **_options: [step])
    monkeypatch.setattr(local_network, "run", no_power)
    options = {"cluster": machine.options(), "state": "present"}
    assert local_network.execute(HostContext(options, check=True))["steps"][0].startswith("record of")
    assert not machine.state.exists()
    with pytest.raises(Power):
        local_network.execute(HostContext(options, check=False))
    assert record.read("dev") is not None


def test_a_process_of_a_container_is_not_taken_for_one_of_a_node(machine: Machine) -> None:
    machine.process("kubelet", "system.slice/docker-abc.scope/muster-dev/dev-1/init")
    ours = machine.process("kubelet", "muster-dev/dev-1/init")
    assert host.processes_in_cgroup("muster-dev/dev-1") == {"kubelet": ours}
    assert [one for one in leftovers.leftovers(LocalCluster.of(machine.options()).spec) if one.startswith("process")] == [
        f"process kubelet ({ours})"
    ]


@pytest.mark.parametrize("name", ["audit.log", "audit", "audit.b.json", "a[1].log"])
def test_rotated_logs_are_told_by_their_time(tmp_path: Path, name: str) -> None:
    stem, dot, extension = name.rpartition(".") if "." in name else (name, "", "")
    moment = "2026-01-01T00-00-00.000"
    ours = [name, f"{stem}-{moment}{dot}{extension}"]
    others = [f"{stem}-b{dot}{extension}", f"{stem}-b-{moment}{dot}{extension}", f"{stem}-{moment}{dot}{extension}.gz~",
              f"x{stem}-{moment}{dot}{extension}", f"{stem}-2026{dot}{extension}"]  # fmt: skip
    for one in (*ours, *others):
        (tmp_path / one).touch()
    (tmp_path / f"{stem}-2026-01-02T00-00-00.000{dot}{extension}").mkdir()
    assert [path.name for path in removal.audit_logs(tmp_path / name)] == sorted(ours)


def test_a_process_is_judged_when_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may have gone to somebody else's process since it was found."""
    monkeypatch.undo()
    with subprocess.Popen(["sleep", "60"]) as child:

        def candidate(marked: bool, recorded: bool = True) -> t.Callable[[], Candidate]:
            return lambda: Candidate(name="process", marked=marked, recorded=recorded)

        assert "does not have the mark" in host.kill(child.pid, candidate(marked=False))
        assert "no record says" in host.kill(child.pid, candidate(marked=True, recorded=False))
        assert child.poll() is None
        assert host.kill(child.pid, candidate(marked=True)) == ""
        assert child.wait(timeout=10) == -signal.SIGKILL
    assert host.kill(child.pid, candidate(marked=True)) == ""


def test_a_number_that_went_to_another_process_is_not_hit(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found in the cgroup ends by itself, and its number is somebody else's when the signal would be sent."""
    machine.make()
    straggler = machine.process("straggler", "muster-dev/dev-1/pod")
    opened = host.os.pidfd_open

    def reused(pid: int) -> int:
        if pid == straggler:
            machine.kill(pid)
            machine.killed.remove(pid)
            machine.next_pid = pid - 1
            machine.process("database", "system.slice/database")
        return opened(pid)

    monkeypatch.setattr(host.os, "pidfd_open", reused)
    node.end_processes("dev", "muster-dev/dev-1/pod", FakeClock())
    assert machine.killed == []
    assert (machine.proc / str(straggler) / "comm").read_text() == "database"
