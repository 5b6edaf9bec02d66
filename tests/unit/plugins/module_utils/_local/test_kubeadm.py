# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm and the node's programs are told."""

import configparser
import dataclasses
import json
import os
import subprocess
import tomllib
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._local import kubeadm, node_files
from ansible_collections.muster.ml.plugins.module_utils._local.spec import ClusterSpec

SPEC = ClusterSpec.make(name="dev", nodes=2, node_subnet="10.1.0.0/24", pod_subnet="10.2.0.0/16", service_subnet="10.3.0.0/16")
HOST = node_files.HostTraits(
    python="/usr/bin/python3",
    cgroup_version=1,
    cgroup_mounts=("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"),
    may_raise_limits=True,
    cni_bin_dirs=("/usr/lib/cni",),
)
BOUND = dataclasses.replace(HOST, may_raise_limits=False)
SETTINGS = node_files.NodeSettings(pause_image="muster.local/kubernetes/pause:1")
OPTIONS = {
    "kubernetes_version": "v1.36.3", "etcd_version": "3.6.8", "coredns_version": "v1.14.2", "image_repository": "muster.local/kubernetes",
    "audit_log": "/var/log/muster/audit.log",
}  # fmt: skip


def documents(host: node_files.HostTraits = HOST) -> dict[str, dict[str, object]]:
    return {one["kind"]: one for one in kubeadm.init_documents(SPEC, host, OPTIONS)}


def test_the_first_node_runs_pods_too() -> None:
    registration = documents()["InitConfiguration"]["nodeRegistration"]
    assert registration["taints"] == []  # type: ignore[index]
    assert registration["criSocket"] == "unix:///run/muster/dev/dev-1/containerd.sock"  # type: ignore[index]


def test_the_audit_log_is_bounded_and_reaches_the_host() -> None:
    server = documents()["ClusterConfiguration"]["apiServer"]
    flags = {one["name"]: one["value"] for one in server["extraArgs"]}  # type: ignore[index]
    assert flags["audit-log-path"] == "/var/log/muster/audit.log"
    assert (flags["audit-log-maxsize"], flags["audit-log-maxbackup"]) == ("100", "2")
    assert {one["hostPath"] for one in server["extraVolumes"]} == {"/var/log/muster", kubeadm.AUDIT_POLICY}  # type: ignore[index]


def test_controllers_may_send_more_requests_than_by_default() -> None:
    flags = {
        program: {one["name"]: one["value"] for one in documents()["ClusterConfiguration"][program]["extraArgs"]}  # type: ignore[index]
        for program in ("controllerManager", "scheduler")
    }
    rate = {"kube-api-qps": "200", "kube-api-burst": "400"}
    assert flags == {"controllerManager": {"allocate-node-cidrs": "false", **rate}, "scheduler": rate}


def test_every_write_of_muster_is_in_the_audit_log() -> None:
    """No rule before the last may drop a write of somebody who is not the system itself."""
    for rule in kubeadm.audit_policy()["rules"][:-1]:
        assert rule["level"] == "None"
        narrowed = {"users", "userGroups", "nonResourceURLs"} & set(rule)
        assert narrowed or rule["namespaces"] == ["kube-node-lease"]
    assert kubeadm.audit_policy()["rules"][-1] == {"level": "Metadata"}


def test_without_the_capability_nobody_touches_oom_scores() -> None:
    assert "oomScoreAdj" not in documents()["KubeletConfiguration"]
    assert documents(BOUND)["KubeletConfiguration"]["oomScoreAdj"] == 0
    for host, desired in ((HOST, False), (BOUND, True)):
        config = tomllib.loads(node_files.containerd_config(SPEC, SPEC.node(1), host, SETTINGS))
        assert config["plugins"]["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is desired


def test_containerd_knows_its_socket_and_never_pulls_the_pause_image() -> None:
    config = tomllib.loads(node_files.containerd_config(SPEC, SPEC.node(2), HOST, SETTINGS))
    # More than one folder, as containerd's default has, is read as the name of one.
    assert ":" not in config["plugins"]["io.containerd.cri.v1.images"]["registry"]["config_path"]
    assert config["version"] == 3
    assert config["grpc"]["address"] == "/run/muster/dev/dev-2/containerd.sock"
    assert config["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == SETTINGS.pause_image
    # Released plugins come before those of the host.
    assert config["plugins"]["io.containerd.cri.v1.runtime"]["cni"]["bin_dirs"] == ["/var/lib/muster/dev/bin", *HOST.cni_bin_dirs]


def test_images_made_here_are_never_collected() -> None:
    assert documents()["KubeletConfiguration"]["imageGCHighThresholdPercent"] == 100


def test_each_node_hands_out_its_own_addresses() -> None:
    config = json.loads(node_files.cni_config(SPEC.node(2)))
    assert config["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.2.1.0/24"}]]
    # On a bridge, pods would be neighbours of each other, and the kernel's table of 1,024 for the whole machine soon be full.
    assert config["plugins"][0]["type"] == "ptp"


@pytest.mark.parametrize("index", [1, 2])
def test_only_the_first_node_runs_extra_programs(index: int) -> None:
    settings = dataclasses.replace(SETTINGS, extra_programs=(("kwok", "/bin/kwok"),))
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(node_files.supervisor_config(SPEC, SPEC.node(index), settings))
    assert ("program:kwok" in parser) is (index == 1)
    assert parser["program:kubelet"]["autorestart"] == "true"


def test_the_node_enters_every_cgroup_before_its_namespaces() -> None:
    lines = node_files.start_script(SPEC.node(1), HOST).splitlines()
    assert "echo $$ > /sys/fs/cgroup/memory/muster-dev/dev-1/init/cgroup.procs" in lines
    assert lines[-1].startswith("exec nsenter --net=/run/netns/muster-dev-1 unshare --mount")
    assert "--kill-child" in lines[-1]


@pytest.mark.parametrize(
    ("settings", "host", "asked"),
    [
        ({}, ("192.0.2.1",), "10.1.0.1"),
        ({"egress": True}, (), "10.1.0.1"),
        ({"egress": True}, ("192.0.2.1", "192.0.2.2"), "192.0.2.1\nnameserver 192.0.2.2"),
        ({"egress": True, "dns_upstream": ("192.0.2.53",)}, ("192.0.2.1",), "192.0.2.53"),
        ({"dns_upstream": ("192.0.2.53",)}, (), "192.0.2.53"),
    ],
)
def test_names_outside_are_asked_of_who_is_reached(settings: dict[str, t.Any], host: tuple[str, ...], asked: str) -> None:
    traits, chosen = dataclasses.replace(HOST, name_servers=host), dataclasses.replace(SETTINGS, **settings)
    assert node_files.resolver_config(SPEC, traits, chosen) == f"nameserver {asked}\n"
    assert node_files.node_files(SPEC, SPEC.node(1), traits, chosen)[node_files.RESOLVER][1] == f"nameserver {asked}\n"


@pytest.mark.parametrize("target", ["run/systemd/resolve/stub-resolv.conf", "run/NetworkManager/resolv.conf", "", "missing"])
def test_a_node_has_its_own_name_servers_whatever_the_hosts_file_is(tmp_path: Path, target: str) -> None:
    """In the node /run is its own, so a link into the host's leads nowhere. cp stands for mount."""
    for folder in ("etc/kubernetes", "run", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/kubernetes/resolv.conf").write_text("nameserver 10.1.0.1\n")
    resolver = tmp_path / "etc/resolv.conf"
    if target.startswith("run"):
        resolver.symlink_to(f"../{target}")
    elif not target:
        resolver.write_text("nameserver 127.0.0.53\n")
    for name, command in {"mount": 'exec cp "$3" "$4"', "umount": "exit 32"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = node_files.RESOLVER_SCRIPT.replace("/etc/", f"{tmp_path}/etc/").replace("/run/", f"{tmp_path}/run/")
    for _time in range(2):
        subprocess.run(["sh", "-c", script], check=True, env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    assert resolver.exists() is (target != "missing")
    assert target == "missing" or resolver.read_text() == "nameserver 10.1.0.1\n"


def test_a_join_holds_its_token_and_the_authority() -> None:
    (join,) = kubeadm.join_documents(SPEC, SPEC.node(2), token="abc.def", ca_hash="sha256:00")
    assert join["discovery"]["bootstrapToken"]["apiServerEndpoint"] == "10.1.0.2:6443"
    assert join["nodeRegistration"]["name"] == "dev-2"
