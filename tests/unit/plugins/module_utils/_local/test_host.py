# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of the host, and judged."""

from __future__ import annotations

import dataclasses
import io
import os
import stat
import tarfile
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import CommandFailed, Forbidden, InvalidInput, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import (
    archive,
    health,
    host,
    node,
    oci_nodes,
    preflight,
    simulation,
    spec,
    system_images,
)
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.simulated_nodes import simulated_nodes
from ansible_collections.muster.ml.plugins.modules import local_node
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

GIB = 1 << 30
OPTIONS = {key: spec.get("default") for key, spec in CLUSTER_OPTION["options"].items()} | {
    "name": "dev",
    "kubernetes_version": "v1.36.3",
    "etcd_version": "3.6.8",
    "coredns_version": "v1.14.2",
    "node_subnet": "10.1.0.0/24",
    "pod_subnet": "10.2.0.0/16",
    "service_subnet": "10.3.0.0/16",
}
CLUSTER = LocalCluster.of(OPTIONS)


@pytest.mark.parametrize("option", ["kubernetes_version", "etcd_version", "coredns_version", "pause_tag"])
@pytest.mark.parametrize("tag", ["http://", "", "1 2", "-1"])
def test_a_version_that_cannot_be_the_tag_of_an_image_is_refused(option: str, tag: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^cluster\.{option} is {tag or 'empty'}, which cannot be the tag"):
        LocalCluster.of({**OPTIONS, option: tag})


FACTS = preflight.HostFacts(
    root=True,
    architecture="amd64",
    memory=8 * GIB,
    free_state=50 * GIB,
    free_cache=50 * GIB,
    controllers=frozenset(preflight.CONTROLLERS_V1),
    cgroup_version=1,
    routes={"192.0.2.0/24": "eth0", "10.1.0.0/24": "mu-dev", "unreachable": "x"},
    packages_missing=(),
)


def whats(facts: preflight.HostFacts, others: dict[str, dict[str, t.Any]] | None = None) -> str:
    return " | ".join(problem.what for problem in preflight.find_problems(CLUSTER, facts, others or {}))


def test_a_good_host_has_no_problem() -> None:
    assert whats(FACTS) == ""
    version2 = dataclasses.replace(FACTS, cgroup_version=2, controllers=frozenset({"cpu", "cpuset", "io", "memory", "pids"}))
    assert whats(version2) == ""


def test_everything_is_said_at_once() -> None:
    bad = dataclasses.replace(
        FACTS, root=False, architecture="s390x", memory=GIB, free_state=GIB, controllers=frozenset({"cpu"}),
        kernel_missing=("a bridge.",), routes={"10.2.5.0/24": "docker0"}, inotify_instances=3,
    )  # fmt: skip
    said = whats(bad)
    for part in (
        "need root",
        "s390x",
        "1.0 GiB of memory",
        "1.0 GiB are free",
        "blkio, cpuacct",
        "a bridge.",
        "Only 3 inotify instances are free",
        "10.2.5.0/24 (docker0)",
    ):
        assert part in said
    assert all(problem.fix for problem in preflight.find_problems(CLUSTER, bad, {}))


def test_inotify_instances_are_counted_and_given_back() -> None:
    def opened() -> int:
        return sum("inotify" in str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())

    before = opened()
    assert preflight.inotify_instances(3) == 3
    assert opened() == before


def test_only_root_looks_into_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    monkeypatch.setattr("ansible_collections.muster.ml.plugins.module_utils._local.spec.STATE_ROOT", str(tmp_path))
    preflight.require_root(CLUSTER)
    (tmp_path / "dev").mkdir()
    with pytest.raises(Forbidden, match=r"dev belongs to root\. .*muster_become"):
        preflight.require_root(CLUSTER)


def test_neighbours_are_left_alone() -> None:
    other = {"audit_log": "/var/log/muster/audit.log", "node_subnet": "10.9.0.0/24", "pod_subnet": "10.2.0.0/16"}
    said = whats(FACTS, {"other": other, "dev": other})
    assert "pod_subnet 10.2.0.0/16 overlaps pod_subnet 10.2.0.0/16 of the local cluster other" in said
    assert "The local cluster other writes its audit log" in said
    assert "cluster dev" not in said


def test_what_cannot_change_is_refused() -> None:
    made = {**CLUSTER.immutable(), "audit_log": "/x", "something_older": 1}
    (problem,) = preflight.changed_immutable(CLUSTER, made)
    assert "made with audit_log '/x', not '" in problem.what
    assert preflight.changed_immutable(CLUSTER, CLUSTER.immutable()) == []


@pytest.mark.parametrize(
    ("mountinfo", "expected"),
    [
        ("30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", (2, ("/sys/fs/cgroup",))),
        (
            "30 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 1 0:2 / /sys/fs/cgroup/unified rw shared:3 - cgroup2 c rw",
            (1, ("/sys/fs/cgroup/cpu",)),
        ),
    ],
)
def test_the_cgroup_version_in_charge(mountinfo: str, expected: tuple[int, tuple[str, ...]]) -> None:
    assert host.cgroup_mounts(mountinfo) == expected


def test_removal_looks_at_every_hierarchy() -> None:
    hybrid = "30 1 0:1 / /c/cpu rw - cgroup cgroup rw,cpu\n31 1 0:2 / /c/unified rw shared:3 - cgroup2 c rw"
    assert host.all_cgroup_mounts(hybrid) == ("/c/cpu", "/c/unified")


def test_capabilities() -> None:
    assert host.capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n") >> host.CAP_SYS_RESOURCE & 1 == 0
    assert host.capabilities("CapEff:\t000001ffffffffff\n") >> host.CAP_SYS_RESOURCE & 1 == 1


def test_a_missing_program_is_an_expected_failure() -> None:
    with pytest.raises(CommandFailed, match="no-such-program is not installed"):
        host.run(["no-such-program"])
    with pytest.raises(CommandFailed, match="exited with 3: cause"):
        host.run(["sh", "-c", "echo cause >&2; exit 3"])


def test_waiting_ends_with_what_was_last_seen(clock: FakeClock) -> None:
    with pytest.raises(WaitTimeout, match=r"the node is not ready after 1 s\. Last seen: no socket\."):
        host.wait_until(lambda: "no socket", timeout=1, what="the node", clock=clock)
    answers = ["not yet", None]
    host.wait_until(lambda: answers.pop(0), timeout=1, what="x", clock=clock)


def ready(name: str, status: str = "True") -> dict[str, t.Any]:
    conditions = [{"type": "Ready", "status": status, "message": "m"}]
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}, "conditions": conditions}}


@pytest.mark.parametrize(
    ("nodes", "pods", "gap"),
    [
        ([], [], "Node dev-1 has not registered"),
        ([{"metadata": {"name": "dev-1"}}], [], "Node dev-1 is not Ready: no condition yet"),
        ([ready("dev-1", "False")], [], "Node dev-1 is not Ready: m"),
        ([ready("dev-1")], [ready("dns", "False")], "no pod of CoreDNS is Ready"),
        ([ready("dev-1"), ready("gpu-0", "False")], [ready("a", "False"), ready("b")], None),
    ],
)
def test_what_a_cluster_lacks(nodes: list[dict[str, t.Any]], pods: list[dict[str, t.Any]], gap: str | None) -> None:
    assert health.why_not_ready(["dev-1"], "v1.36.3", nodes, pods) == gap
    assert gap or health.why_not_ready(["dev-1"], "v1.37.0", nodes, pods) == "Node dev-1 has kubelet v1.36.3, not v1.37.0"


def test_an_image_is_the_same_every_time_and_has_its_files(tmp_path: Path) -> None:
    program = tmp_path / "etcd"
    program.write_bytes(b"x" * 1000)
    files = (
        archive.ImageFile(src=str(program), dest="/usr/local/bin/etcd"),
        archive.ImageFile(dest="/bin/sh", link="/usr/local/bin/etcd"),
        archive.ImageFile(dest="/etc/protocols", text="udp 17 UDP\n", mode=0o644),
    )
    image = archive.Image(name="muster.local/etcd:1", files=files, entrypoint=("/usr/local/bin/etcd",))
    first, second = io.BytesIO(), io.BytesIO()
    archive.write_image(image, first)
    program.touch()
    archive.write_image(image, second)
    assert first.getvalue() == second.getvalue()
    first.seek(0)
    with tarfile.open(fileobj=first) as outer:
        (layer,) = [name for name in outer.getnames() if name.endswith(".tar")]
        data = outer.extractfile(layer)
        assert data is not None
        with tarfile.open(fileobj=io.BytesIO(data.read())) as inner:
            assert {"usr/local/bin/etcd", "bin/sh", "tmp"} <= set(inner.getnames())
            assert inner.getmember("usr/local/bin/etcd").mode == 0o755
            assert inner.getmember("bin/sh").linkname == "/usr/local/bin/etcd"
            text = inner.extractfile("etc/protocols")
            assert text is not None
            assert text.read() == b"udp 17 UDP\n"


def test_kube_proxy_knows_protocols_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_images, "_with_libraries", lambda _program: ())
    image = system_images.build_image("muster.local/kubernetes/kube-proxy:v1.36.3", {"kube-proxy": "/x/kube-proxy"})
    (protocols,) = [file for file in image.files if file.dest == "/etc/protocols"]
    assert {"tcp 6", "udp 17", "sctp 132"} <= {line.rpartition(" ")[0] for line in protocols.text.splitlines()}


def test_an_image_with_another_text_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"kube-proxy": "/x/kube-proxy", "coredns": "/x/coredns"}
    before = system_images.content_ids(CLUSTER, CLUSTER.spec.node(2), programs)
    other = archive.ImageFile(dest="/etc/protocols", text="udp 17 UDP\n")
    monkeypatch.setattr(system_images, "TEXTS", {"kube-proxy": (other,)})
    after = system_images.content_ids(CLUSTER, CLUSTER.spec.node(2), programs)
    assert [name.rpartition("/")[2] for name in before if before[name] != after[name]] == ["kube-proxy:v1.36.3"]


def test_there_are_images_only_of_programs_that_the_cluster_has() -> None:
    without = system_images.content_ids(CLUSTER, CLUSTER.spec.node(2), {"kube-proxy": "/x/kube-proxy"})
    assert [name.rpartition("/")[2] for name in without] == ["pause:1", "kube-proxy:v1.36.3"]


def test_a_program_comes_with_its_libraries() -> None:
    ldd = "\tlinux-vdso.so.1 (0x1)\n\tlibnftables.so.1 => /lib/x/libnftables.so.1 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n"
    files = archive.library_files("/usr/sbin/nft", "/usr/sbin/nft", ldd)
    assert [file.dest for file in files] == ["/usr/sbin/nft", "/lib/x/libnftables.so.1", "/lib64/ld-linux-x86-64.so.2"]


def test_programs_are_the_clusters_own(tmp_path: Path) -> None:
    cached, bin_dir = tmp_path / "cache" / "kubelet", tmp_path / "bin"
    cached.parent.mkdir()
    cached.write_text("one")
    desired = {"kubelet": str(cached)}
    assert node.link_programs(bin_dir, desired, check=True) == ["kubelet"]
    assert not bin_dir.exists()
    assert node.link_programs(bin_dir, desired, check=False) == ["kubelet"]
    assert node.link_programs(bin_dir, desired, check=False) == []
    cached.unlink()
    assert (bin_dir / "kubelet").read_text() == "one"
    assert node.link_programs(bin_dir, desired, check=False) == []


@pytest.mark.parametrize(("replaced", "action"), [([], "unchanged"), (["kubectl", "kubelet", "runc"], "reloaded")])
def test_new_programs_are_no_reason_to_restart_a_node(replaced: list[str], action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_node.host, "traits", lambda: None)
    monkeypatch.setattr(LocalCluster, "files", lambda *_of: {})
    monkeypatch.setattr(local_node.node, "init_process", lambda _one: object())
    monkeypatch.setattr(local_node.node, "stale_files", lambda _one, _files: [])
    monkeypatch.setattr(local_node.node, "link_programs", lambda *_of, **_how: replaced)
    context = HostContext(params={}, check=True)
    assert local_node.present(CLUSTER, CLUSTER.spec.node(1), {}, context) == action


@pytest.mark.parametrize(
    ("upstream", "stale", "action"),
    [([], ["own/etc/kubernetes/resolv.conf"], "reloaded"), (["192.0.2.53"], ["own/etc/kubernetes/resolv.conf"], "restarted"),
     ([], ["init.sh"], "restarted")],
)  # fmt: skip
def test_another_network_of_the_host_restarts_no_node(
    upstream: list[str], stale: list[str], action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, ran = LocalCluster.of({**OPTIONS, "dns_upstream": upstream}), []
    monkeypatch.setattr(local_node.node, "init_process", lambda _one: host.Process(7, (7, 1), "sh"))
    monkeypatch.setattr(local_node.node, "stale_files", lambda _one, _files: stale)
    monkeypatch.setattr(local_node.record, "write", lambda _cluster: None)
    monkeypatch.setattr(local_node, "namespace_command", lambda _one, pid, argv: ran.append((pid, argv)))
    for name in (
        "link_programs",
        "outdated_services",
        "write_files",
        "reload_services",
        "stop",
        "make_mount_points",
        "make_cgroups",
        "start",
    ):
        monkeypatch.setattr(local_node.node, name, lambda *_of, **_how: [])
    assert local_node.present(cluster, cluster.spec.node(1), {}, HostContext(params={}, check=False)) == action
    assert ran == ([(7, [f"{cluster.spec.node(1).state_dir}/resolver.sh"])] if action == "reloaded" else [])


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["nameserver 127.0.0.53\noptions edns0\n", "# systemd\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n"], ("192.0.2.1",)),
        (["nameserver 192.0.2.9 \n", "nameserver 192.0.2.1\n"], ("192.0.2.9",)),
        ([None, None, "nameserver\t192.0.2.3\n"], ("192.0.2.3",)),
        (["search example\nnameserver 127.0.0.1\n"], ()),
        ([f"nameserver 192.0.2.{number}\n" * 2 for number in (1, 2)], ("192.0.2.1", "192.0.2.1")),
        (["".join(f"nameserver 192.0.2.{number}\n" for number in range(5))], ("192.0.2.0", "192.0.2.1", "192.0.2.2")),
        ([], ()),
    ],
)
def test_name_servers_are_those_that_nodes_reach(
    files: list[str | None], found: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / str(number) for number in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        if text is not None:
            path.write_text(text)
    monkeypatch.setattr(host, "RESOLVERS", paths)
    assert host.name_servers() == found


def test_files_are_replaced_at_once_and_never_more_open_than_asked(tmp_path: Path) -> None:
    path = tmp_path / "a" / "secret"
    assert node.write_if_changed(path, "one", 0o600)
    assert not node.write_if_changed(path, "one", 0o600)
    assert node.write_if_changed(path, "two", 0o600)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two", 0o600)
    assert [one.name for one in path.parent.iterdir()] == ["secret"]


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, full = tmp_path / "kubelet.conf", os.open("/dev/full", os.O_WRONLY)
    path.write_text("old")
    node.draft_of(path).touch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", lambda *_given: full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            node.write_if_changed(path, "new", 0o600)
    assert caught.value.filename == str(path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("kubelet.conf", "old")]


# ctr 2.3.7 of containerd, importing into a node whose disk was full.
FULL_NODE = """time="2026-11-27T03:38:33Z" level=warning msg="DEPRECATION: The support for cgroup v1 is deprecated since containerd v2.2."
ctr: failed to ingest "./blobs/sha256/d6c3edee": failed to copy: write /var/lib/containerd/content/ingest/data: no space left on device
"""


def test_an_import_into_a_full_node_names_image_node_and_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(_argv: t.Sequence[str], **_more: t.Any) -> t.NoReturn:
        raise host.failure(["ctr"], 1, FULL_NODE)

    monkeypatch.setattr(oci_nodes, "run", failing)
    with pytest.raises(CommandFailed) as caught:
        oci_nodes.Node("muster", "muster-1").import_archive("muster.local/tools:1", tmp_path)
    assert str(caught.value).startswith('Importing muster.local/tools:1 into muster-1 failed: failed to ingest "./blobs/sha256/d6c3edee"')
    assert str(caught.value).endswith(": no space left on device. Free space on the disk of /var/lib/muster, and run again.")


def test_packages_that_nobody_installs_are_a_problem() -> None:
    (problem,) = preflight.package_problems(["runc", "nftables"])
    assert problem.fix.startswith("Install them (apt-get install runc nftables) or set local_cluster_install_packages")
    assert preflight.package_problems([]) == []


def test_simulated_nodes_say_what_they_are() -> None:
    group = {"name_prefix": "gpu", "count": 2, "labels": {"a": "b"}, "capacity": {"nvidia.com/gpu": 8}}
    nodes = simulated_nodes([group])
    assert [one["metadata"]["name"] for one in nodes] == ["gpu-0", "gpu-1"]
    metadata = nodes[0]["metadata"]
    assert metadata["labels"]["type"] == "kwok"
    assert '"nvidia.com/gpu": "8"' in metadata["annotations"][simulation.CAPACITY_ANNOTATION]
    assert "kwok.x-k8s.io/node" in metadata["annotations"][simulation.TAINTS_ANNOTATION]
    assert simulated_nodes([]) == []


def test_groups_of_simulated_nodes_have_names_of_their_own() -> None:
    with pytest.raises(InvalidInput, match="name_prefix"):
        simulated_nodes([{"name_prefix": "a", "count": 1}, {"name_prefix": "a", "count": 2}])


def test_simulated_nodes_are_tainted_before_they_are_ready() -> None:
    tainted, ready_stage = simulation.stages()[:2]
    assert tainted["spec"]["next"]["patches"][0]["root"] == "spec"
    assert ready_stage["spec"]["selector"]["matchExpressions"][0]["values"] == ["fake"]
    assert simulation.stages_id() in CLUSTER_WITH_KWOK.settings().extra_programs[0][1]


def test_a_simulated_pod_of_a_job_ends_unless_it_is_endless() -> None:
    (completed,) = [stage for stage in simulation.stages() if stage["metadata"]["name"] == "pod-completed"]
    endless = {"key": '.metadata.annotations["muster.ml/simulated-endless"]', "operator": "DoesNotExist"}
    assert endless in completed["spec"]["selector"]["matchExpressions"]


CLUSTER_WITH_KWOK = LocalCluster.of({**OPTIONS, "simulated_nodes": True})


def test_only_root_reaches_the_volumes_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "STATE_ROOT", str(tmp_path))
    one = CLUSTER.spec.node(1)
    volumes = tmp_path / CLUSTER.spec.name / "volumes"
    volumes.mkdir(parents=True)  # as the kubelet makes it for the first volume
    assert node.stale_files(one, {}) == ["volumes"]
    node.write_files(one, {})
    assert stat.S_IMODE(volumes.stat().st_mode) == 0o700
    assert node.stale_files(one, {}) == []
    assert "volumes" in local_node.RELOADABLE


def test_an_image_that_was_pulled_gets_its_name_in_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, name = CLUSTER.spec.node(1), "muster.local/kubernetes/pause:1"
    tarred, said = tmp_path / "pause.tar", []
    with tarfile.open(tarred, "w") as tar:
        index = b'{"manifests": [{"annotations": {"io.containerd.image.name": "registry.k8s.io/pause:3.10.2"}}]}'
        entry = tarfile.TarInfo("./index.json")
        entry.size = len(index)
        tar.addfile(entry, io.BytesIO(index))
    monkeypatch.setattr(oci_nodes, "run", lambda argv, **_more: said.append(argv[6:]))
    system_images.import_image(CLUSTER, node, name, {"pause": str(tarred)})
    pinned = "io.cri-containerd.pinned=pinned"
    tagged = ["tag", "--force", "registry.k8s.io/pause:3.10.2", name]
    assert said == [["import", "--label", pinned, str(tarred)], tagged, ["label", name, pinned]]
    pulled, built = (system_images.content_ids(CLUSTER, node, programs)[name] for programs in ({"pause": str(tarred)}, {}))
    assert pulled != built


def test_an_image_that_a_node_lost_is_imported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet deletes images without the label when the disk is nearly full, as it did up to 0.1.0, and the record stays."""
    monkeypatch.setattr(spec, "STATE_ROOT", str(tmp_path))
    monkeypatch.setattr(spec, "RUN_ROOT", str(tmp_path))
    one = CLUSTER.spec.node(1)
    desired = system_images.content_ids(CLUSTER, one, {})
    for name, content in desired.items():
        system_images.record(one, name, content)
    kept = {name: oci_nodes.StoredImage("sha256:1", pinned=True) for name in desired}
    monkeypatch.setattr(oci_nodes.Node, "stored", lambda _node: kept)
    assert not system_images.missing_images(CLUSTER, one, {}), "the record has to do while containerd does not run"
    Path(one.containerd_socket).parent.mkdir(parents=True)
    Path(one.containerd_socket).touch()
    assert not system_images.missing_images(CLUSTER, one, {})
    (lost, *_more) = kept
    kept[lost] = kept[lost]._replace(pinned=False)
    assert system_images.missing_images(CLUSTER, one, {}) == [lost]
    del kept[lost]
    assert system_images.missing_images(CLUSTER, one, {}) == [lost]


def test_what_is_released_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.shutil, "which", lambda _program, **_more: None)
    monkeypatch.setattr(preflight, "CNI_BIN_DIRS", ())
    needed = set(preflight.missing_packages())
    assert needed - set(preflight.missing_packages({"runc", "ptp", "pause"})) == {"runc", "containernetworking-plugins", "catatonit"}
