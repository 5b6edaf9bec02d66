# SPDX-License-Identifier: GPL-3.0-or-later
"""Run kubeadm inside running nodes."""

from __future__ import annotations

from pathlib import Path

from .._core.errors import CommandFailed, Failed
from . import kubeadm, record
from .cluster import LocalCluster, namespace_command
from .node import init_process, write_if_changed
from .node_files import kubeadm_documents
from .spec import NodeSpec


def initialise(cluster: LocalCluster, node: NodeSpec, *, timeout: float) -> None:
    """Create the control plane, whose options cannot be changed afterwards."""
    record.write(cluster)
    config = Path(node.state_dir) / "kubeadm-init.yaml"
    _kubeadm(node, ["init", "--config", str(config)], timeout)
    _done(node)


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
    _done(node)


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


def _done(node: NodeSpec) -> None:
    write_if_changed(Path(node.state_dir) / "initialised", "", 0o644)
