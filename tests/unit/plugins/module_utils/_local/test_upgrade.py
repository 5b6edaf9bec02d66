# SPDX-License-Identifier: GPL-3.0-or-later

"""An upgrade of a local cluster: refusals, the words of the plan, kubeadm's commands, and what an interrupted one leaves."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._local import host, membership, node, record, spec, upgrade
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.modules import kubeadm_node, local_node

ETCD_GAP = kubeadm_node.etcd_gap
OLD = {"kubernetes_version": "v1.35.4", "etcd_version": "3.6.6", "coredns_version": "v1.13.1"}
NEW = {"kubernetes_version": "v1.36.3", "etcd_version": "3.6.8", "coredns_version": "v1.14.2"}
STATIC = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
OPTIONS = {key: one.get("default") for key, one in CLUSTER_OPTION["options"].items()} | {"name": "dev", "nodes": 2}
TRAITS = node.HostTraits(python="python3", cgroup_version=2, cgroup_mounts=(), may_raise_limits=True, cni_bin_dirs=())


class Upgraded:
    """A cluster of two nodes with the old versions, and the commands that were run in its nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(spec, "STATE_ROOT", str(tmp_path))
        monkeypatch.setattr(membership, "namespace_command", self._run)
        monkeypatch.setattr(membership, "_pid", lambda _node: 1)
        monkeypatch.setattr(membership, "processes_in", lambda _netns: [])
        monkeypatch.setattr(kubeadm_node, "etcd_gap", lambda *_of: None)
        self.proxies = 0
        monkeypatch.setattr(kubeadm_node, "connect", lambda *_of: self)
        monkeypatch.setattr(kubeadm_node, "ends_soon", lambda *_args: False)
        self.commands: list[str] = []
        self.fails = ""
        self.leaves_etcd = False
        self.old, self.new = (LocalCluster.of({**OPTIONS, **versions}) for versions in (OLD, NEW))
        self.first, self.second = self.new.spec.all_nodes
        for one in (self.first, self.second):
            node.marker(one).parent.mkdir(parents=True)
            node.marker(one).touch()
        upgrade.static_pods(self.first).mkdir(parents=True)
        for name in STATIC:
            (upgrade.static_pods(self.first) / f"{name}.yaml").touch()
        record.write(self.old)

    def _run(self, one: spec.NodeSpec, _pid: int, argv: list[str], **_options: object) -> str:
        words = " ".join(word for word in argv[1:] if not word.startswith("--"))
        self.commands.append(f"{one.name}: {words}")
        self.leaves_etcd = "--etcd-upgrade=false" in argv
        if self.fails and self.fails in words:
            raise KeyboardInterrupt
        return ""

    def get(self, ref: Ref) -> dict[str, t.Any]:
        """The addons: the proxy's DaemonSet, whose pods are replaced from one answer to the next, and DNS."""
        self.proxies += ref.kind == "DaemonSet"
        new = min(self.proxies, 3) if ref.kind == "DaemonSet" else 2
        of_set = {"desiredNumberScheduled": 3, "updatedNumberScheduled": new, "numberAvailable": 3, "numberReady": 3}
        status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": new, "availableReplicas": 2, "readyReplicas": 2, **of_set}
        metadata = {"name": ref.name, "namespace": ref.namespace, "generation": 1}
        return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": {"replicas": 2}, "status": status}

    def run(self, index: int, *, check: bool = False) -> dict[str, t.Any]:
        params = {"cluster": self.new.options, "index": index, "state": "present", "wait_timeout": 9}
        return kubeadm_node.execute(HostContext(params=params, check=check))

    def pending(self) -> list[str]:
        return [upgrade.pending(self.new, one) for one in self.new.spec.all_nodes]


@pytest.fixture
def upgraded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Upgraded:
    return Upgraded(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("have", "desired", "said"),
    [
        ("v1.36.1", "v1.36.3", None),
        ("v1.35.9", "v1.36.0", None),
        ("v1.36.3", "v1.36.3", None),
        ("v1.34.2", "v1.36.3", "skips a minor version.*has Kubernetes 1.35"),
        ("v1.36.3", "v2.0.0", "skips a minor version"),
        ("v1.36.3", "v1.36.1", "v1.36.1 is older.*with, or a newer one"),
        ("v1.36.10", "v1.36.9", "is older"),
    ],
)
def test_one_minor_version_at_a_time_and_never_back(upgraded: Upgraded, have: str, desired: str, said: str | None) -> None:
    why = upgrade.why_not("Cluster dev", {"kubernetes_version": have}, {"kubernetes_version": desired})
    text = f"{why.what} {why.fix}" if why else None
    assert text is None if said is None else re.search(said, text or "")


def test_the_plan_says_what_is_upgraded_and_what_stops(upgraded: Upgraded) -> None:
    found = upgraded.run(1, check=True)
    assert found["changed"]
    assert found["actions"] == [
        "dev-1 is upgraded in place, kubernetes v1.35.4 -> v1.36.3, etcd 3.6.6 -> 3.6.8, coredns v1.13.1 -> v1.14.2: "
        "the API does not answer for up to two minutes; containers of pods run on"
    ]
    assert "the kubelet restarts" in upgraded.run(2, check=True)["actions"][0]
    assert upgraded.commands == []


def test_the_control_plane_is_first_and_a_second_run_does_nothing(upgraded: Upgraded) -> None:
    record.write(upgraded.new)
    with pytest.raises(Failed, match="dev-2 is upgraded after the control plane only"):
        upgraded.run(2)
    assert [upgraded.run(index)["changed"] for index in (1, 2, 1, 2)] == [True, True, False, False]
    config = "dev-1: init phase"
    assert upgraded.commands == [
        f"{config} upload-config all",
        "dev-1: upgrade apply v1.36.3",
        "dev-2: upgrade node",
    ]
    assert upgraded.pending() == ["", ""]
    assert upgraded.proxies == 3, "the kubelets are restarted once DNS and the proxy are new on all nodes"


def test_an_interrupted_upgrade_is_finished_by_the_next_run(upgraded: Upgraded) -> None:
    record.write(upgraded.new)
    upgraded.fails = "upgrade apply"
    with pytest.raises(KeyboardInterrupt):
        upgraded.run(1)
    # kubeadm had moved the old manifest away, and not yet the new one there.
    (upgrade.static_pods(upgraded.first) / "kube-apiserver.yaml").unlink()
    upgraded.fails, upgraded.commands[:] = "", []
    assert upgraded.run(1)["changed"]
    assert upgraded.commands[0] == "dev-1: init phase control-plane apiserver"
    assert upgraded.commands[-1] == "dev-1: upgrade apply v1.36.3"
    assert upgraded.pending()[0] == ""
    assert upgraded.pending()[1].startswith("dev-2 is upgraded in place")


def test_an_etcd_that_a_killed_run_has_replaced_is_waited_for_and_left(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubeadm 1.36.3 restarted such an etcd, which was away for 138 s, and failed: "could not retrieve the list of etcd endpoints"."""
    record.write(upgraded.new)
    told = []
    for row in ("3.6.6 3.6.6 True", "3.6.8 3.6.6 True", "3.6.8 3.6.8 False", "3.6.8 3.6.8 True"):
        file, image, is_ready = row.split()
        (upgrade.static_pods(upgraded.first) / "etcd.yaml").write_text(f"    image: muster.local/kubernetes/etcd:{file}\n")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]}
        pod = {"metadata": {}, "spec": {"containers": [{"image": f"muster.local/kubernetes/etcd:{image}"}]}, "status": status}
        monkeypatch.setattr(upgraded, "get", lambda _ref, pod=pod: pod)
        told.append(ETCD_GAP(upgraded, upgraded.new))  # type: ignore[arg-type]
    assert told == [None, "etcd: its pod is of the old version", "etcd: Running: not ready", None]
    upgraded.fails = "upgrade apply"
    with pytest.raises(KeyboardInterrupt):
        upgraded.run(1)
    assert upgraded.leaves_etcd


def test_half_an_upgrade_goes_neither_back_nor_past_the_next_version(upgraded: Upgraded) -> None:
    record.write(upgraded.new)
    upgraded.run(1)
    made = record.read("dev") or {}
    back = upgrade.problems(upgraded.old, made)
    assert [problem.what.partition(" has")[0] for problem in back] == ["Cluster dev", "dev-1"]
    later = LocalCluster.of({**OPTIONS, **NEW, "kubernetes_version": "v1.37.0"})
    assert [problem.what for problem in upgrade.problems(later, made)] == [
        "dev-2 has Kubernetes v1.35.4, and v1.37.0 skips a minor version, which kubeadm does not."
    ]
    assert upgrade.problems(upgraded.new, made) == []


def test_kubelets_wait_for_the_control_plane(upgraded: Upgraded) -> None:
    programs = {"kubelet": "/c/1/kubelet", "kubeadm": "/c/1/kubeadm", "kubectl": "/c/1/kubectl"}
    record.write(upgraded.new)
    assert upgrade.for_node(upgraded.new, programs).keys() == {"kubeadm"}
    upgraded.run(1)
    assert upgrade.for_node(upgraded.new, programs) == programs


def test_a_kubeadm_of_a_killed_run_is_waited_for(upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [[host.Process(7, (7, 1), "kubeadm")], []]
    monkeypatch.setattr(membership, "processes_in", lambda _netns: seen.pop(0))
    monkeypatch.setattr(host, "fixed_interval", lambda *_args: lambda *_more, **_options: None)
    upgraded.run(1)
    assert seen == []


def test_services_that_run_a_replaced_file_are_restarted_without_the_node(
    upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whichever node of several found that the shared program was replaced. A pod with the node's network is no service (process 9)."""
    done: list[object] = []
    monkeypatch.setattr(host, "traits", lambda: TRAITS)
    there = [host.Process(7, (7, 1), "init"), host.Process(8, (8, 2), "containerd"), host.Process(9, (9, 3, 1), "containerd")]
    monkeypatch.setattr(node, "processes_in", lambda _netns: there)
    monkeypatch.setattr(node, "init_process", lambda _one: host.Process(7, (7, 1), "init"))
    monkeypatch.setattr(node, "run", lambda argv, **_options: done.append(argv[-2:]))
    monkeypatch.setattr(node, "PROC", tmp_path)
    monkeypatch.setattr(node, "stale_files", lambda *_of: [])
    answers = iter([None, {}, {}])
    monkeypatch.setattr(local_node, "stored_images", lambda *_of: next(answers))
    for pid in (8, 9):
        (tmp_path / f"{pid}").mkdir()
        (tmp_path / f"{pid}/exe").touch()
    (tmp_path / "containerd").touch()
    programs = {"containerd": str(tmp_path / "containerd")}
    params = {"cluster": upgraded.old.options, "index": 2, "state": "present", "program_paths": programs}
    for _run in range(2):
        local_node.execute(HostContext(params=params, check=False))
    assert done[1::2] == [["restart", "containerd"]] * 2
    (tmp_path / "8/exe").unlink()
    (tmp_path / "8/exe").symlink_to(upgraded.old.bin_dir / "containerd")
    assert local_node.execute(HostContext(params=params, check=False))["action"] == "unchanged"


@pytest.mark.parametrize(("old", "asked"), [("v1.35.4", 4), ("v1.36.1", 1)])
def test_an_api_server_that_a_newer_kubelet_replaces_is_waited_for(
    upgraded: Upgraded, monkeypatch: pytest.MonkeyPatch, old: str, asked: int
) -> None:
    """Upgraded to 1.36.3, a real cluster of 1.35.4 stopped its API server seconds after the kubelet's restart. 1.36.1 would leave it."""
    seen: list[dict[str, int]] = [{"kubelet": 8, "kube-apiserver": 5}] * 2 + [{"kubelet": 9}, {"kubelet": 9, "kube-apiserver": 6}]
    answers = iter(seen)
    versions = {"exe": f"Kubernetes {old}\n", "kubelet": "Kubernetes v1.36.3\n"}
    monkeypatch.setattr(upgrade, "run", lambda argv: versions[Path(argv[0]).name])
    monkeypatch.setattr(upgrade, "processes_in_cgroup", lambda _cgroup: next(answers))
    monkeypatch.setattr(host, "traits", lambda: TRAITS)
    monkeypatch.setattr(node, "init_process", lambda _one: host.Process(7, (7, 1), "init"))
    monkeypatch.setattr(node, "stale_files", lambda *_of: [])
    monkeypatch.setattr(node, "outdated_services", lambda *_of: ["kubelet"])
    monkeypatch.setattr(node, "run", lambda *_of, **_options: "")
    monkeypatch.setattr(local_node, "stored_images", lambda *_of: {})
    params = {"cluster": upgraded.new.options, "index": 1, "state": "present", "program_paths": {}}
    local_node.execute(HostContext(params=params, check=False))
    assert len(list(answers)) == len(seen) - asked
