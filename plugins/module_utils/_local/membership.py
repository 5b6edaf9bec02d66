# SPDX-License-Identifier: GPL-3.0-or-later
"""Run kubeadm inside running nodes."""

from __future__ import annotations

import typing as t
from pathlib import Path

from .._core.clock import Clock
from .._core.errors import CommandFailed, Failed
from . import kubeadm, record
from .cluster import LocalCluster, namespace_command
from .host import processes_in, wait_until
from .network import NETNS_DIR
from .node import init_process, marker, write_if_changed
from .node_files import kubeadm_documents
from .spec import NodeSpec
from .upgrade import new_etcd, pending, static_pods

# Static pod -> the phase of kubeadm init that writes it.
STATIC_PODS = {
    "etcd": ["etcd", "local"],
    **{f"kube-{one}": ["control-plane", one] for one in ("apiserver", "controller-manager", "scheduler")},
}


def initialise(cluster: LocalCluster, node: NodeSpec, *, timeout: float) -> None:
    """Create the control plane, whose options cannot be changed afterwards."""
    record.write(cluster)
    config = Path(node.state_dir) / "kubeadm-init.yaml"
    _kubeadm(node, ["init", "--config", str(config)], timeout)
    _done(cluster, node)


def join(cluster: LocalCluster, node: NodeSpec, *, timeout: float) -> None:
    """Add a worker, with a token that is valid for some minutes and never shown."""
    said = namespace_command(
        cluster.spec.control_plane, _pid(cluster.spec.control_plane),
        ["kubeadm", "token", "create", "--ttl", "15m", "--print-join-command"], timeout=timeout,
    )  # fmt: skip
    words = said.split()
    token, ca_hash = words[words.index("--token") + 1], words[words.index("--discovery-token-ca-cert-hash") + 1]
    config = Path(node.state_dir) / "kubeadm-join.yaml"
    documents = kubeadm.join_documents(cluster.spec, node, token=token, ca_hash=ca_hash)
    write_if_changed(config, kubeadm_documents(documents), 0o600)
    try:
        _kubeadm(node, ["join", "--config", str(config)], timeout)
    finally:
        config.unlink()
    _done(cluster, node)


def upgrade(cluster: LocalCluster, node: NodeSpec, api_gap: t.Callable[[], str | None], *, timeout: float, clock: Clock) -> None:
    """Upgrade the node as kubeadm documents it. What was interrupted is done again; what is there already is left.

    API_GAP returns why the API server does not answer, or None.
    """
    if node.index > 1 and (first := pending(cluster, cluster.spec.control_plane)):
        raise Failed(f"Node {node.name} is upgraded after the control plane only.", hint=f"Run again when this is done: {first}.")

    def left() -> str | None:
        pids = [one.pid for one in processes_in(NETNS_DIR / node.netns) if one.name == "kubeadm"]
        return f"kubeadm of an earlier run is at work (processes {pids})" if pids else None

    wait_until(left, timeout=timeout, what=f"node {node.name}", clock=clock)
    if node.index == 1:
        config = f"--config={node.state_dir}/kubeadm-init.yaml"
        missing = [words for name, words in STATIC_PODS.items() if not (static_pods(node) / f"{name}.yaml").is_file()]
        for words in missing:
            _kubeadm(node, ["init", "phase", *words, config], timeout)
        wait_until(api_gap, timeout=timeout, what=f"the API server of {cluster.spec.name}", clock=clock)
        _kubeadm(node, ["init", "phase", "upload-config", "all", config], timeout)
        # kubeadm restarts an etcd that is new already, too (upgradeComponent in phases/upgrade/staticpods.go, 1.36), and fails if it is
        # away for longer than a minute.
        options = ["--yes", "--skip-phases=preflight", *(["--etcd-upgrade=false"] if new_etcd(cluster) else [])]
        _kubeadm(node, ["upgrade", "apply", cluster.options["kubernetes_version"], *options], timeout)
    else:
        _kubeadm(node, ["upgrade", "node", "--skip-phases=preflight"], timeout)
    _done(cluster, node)


def write_admin_kubeconfig(cluster: LocalCluster, *, timeout: float) -> None:
    """Write the kubeconfig of administrators, with a new key and a certificate of one year."""
    node = cluster.spec.control_plane
    options = {
        "config": f"{node.state_dir}/kubeadm-init.yaml",
        "client-name": "kubernetes-admin",
        "org": "kubeadm:cluster-admins",
        "validity-period": "8760h",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    text = namespace_command(node, _pid(node), ["kubeadm", "kubeconfig", "user", *flags], timeout=timeout)
    write_if_changed(cluster.admin_kubeconfig, text, 0o600)


def _kubeadm(node: NodeSpec, arguments: list[str], timeout: float) -> None:
    log = Path(node.state_dir) / "log" / "kubeadm.log"
    try:
        said = namespace_command(node, _pid(node), ["kubeadm", *arguments], timeout=timeout)
    except CommandFailed as exc:
        # Its output contains bootstrap tokens.
        lines = [line for line in exc.message.splitlines() if "token" not in line.lower()]
        raise CommandFailed(
            f"kubeadm {arguments[0]} failed in {node.name}: " + "\n".join(lines[-15:]),
            hint=f"The kubelet's and containerd's own logs are in {log.parent}. Run again when the cause is gone.",
        ) from exc
    kept = [line for line in said.splitlines() if "token" not in line.lower()]
    write_if_changed(log, "\n".join(kept) + "\n", 0o600)


def _pid(node: NodeSpec) -> int:
    found = init_process(node)
    if found is None:
        raise Failed(f"Node {node.name} does not run.", hint=f"See {node.state_dir}/log and run again.")
    return found.pid


def _done(cluster: LocalCluster, node: NodeSpec) -> None:
    write_if_changed(marker(node), " ".join(record.versions(cluster.options).values()), 0o644)
