# SPDX-License-Identifier: GPL-3.0-or-later
"""A local cluster as its modules get it: the option ``cluster``, and values derived from it."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t
from pathlib import Path

from .._core.errors import InvalidInput
from . import host, kubeadm, record, spec
from .node import marker
from .node_files import HostTraits, NodeSettings, Snapshotter, kubeadm_documents, node_files
from .simulation import stages_id, stages_text
from .spec import STATE_ROOT, VOLUMES, ClusterSpec, NodeSpec, record_file

# Options of the control plane that cannot be changed in place, so a difference is refused.
FIXED = ("node_subnet", "pod_subnet", "service_subnet", "audit_log")
_TAGS = (*record.VERSIONS, "pause_tag")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
"""The grammar of the tag of an image (OCI distribution specification, "Pulling manifests")."""

# The option ``cluster`` of every module of the local cluster; the same as the documentation fragment local_cluster.
CLUSTER_OPTION: dict[str, t.Any] = {
    "type": "dict",
    "required": True,
    "options": {
        "name": {"type": "str", "required": True},
        "nodes": {"type": "int", "default": 1},
        "node_subnet": {"type": "str", "default": ""},
        "pod_subnet": {"type": "str", "default": ""},
        "service_subnet": {"type": "str", "default": ""},
        "egress": {"type": "bool", "default": False},
        "dns_upstream": {"type": "list", "elements": "str", "default": []},
        "snapshotter": {"type": "str", "default": "overlayfs", "choices": list(t.get_args(Snapshotter))},
        "audit_log": {"type": "path", "default": "/var/log/muster/audit.log"},
        "kubernetes_version": {"type": "str", "required": True},
        "etcd_version": {"type": "str", "required": True},
        "coredns_version": {"type": "str", "required": True},
        "image_repository": {"type": "str", "default": "muster.local/kubernetes"},
        "pause_tag": {"type": "str", "default": "1"},
        "simulated_nodes": {"type": "bool", "default": False},
        "kubeconfigs": {"type": "list", "elements": "path", "default": []},
    },
}


@dataclasses.dataclass(frozen=True)
class LocalCluster:
    """The option ``cluster`` as typed values."""

    spec: ClusterSpec
    options: dict[str, t.Any]

    @classmethod
    def of(cls, options: dict[str, t.Any]) -> LocalCluster:
        for key in _TAGS:
            if options[key] is not None and not _TAG.fullmatch(options[key]):
                raise InvalidInput(
                    f"cluster.{key} is {options[key] or 'empty'}, which cannot be the tag of an image.",
                    hint="Use letters, digits, dots, hyphens and underscores, such as 1.36.3.",
                )
        subnets = {key: options[key] for key in ("node_subnet", "pod_subnet", "service_subnet")}
        return cls(ClusterSpec.make(name=options["name"], nodes=options["nodes"], **subnets), options)

    @property
    def bin_dir(self) -> Path:
        return Path(self.spec.state_dir) / "bin"

    @property
    def supervisor_dir(self) -> Path:
        return Path(self.spec.state_dir) / "supervisor"

    @property
    def volumes_dir(self) -> Path:
        """The folder for volumes of the default StorageClass; every node sees it."""
        return Path(self.spec.state_dir) / VOLUMES

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig that is copied for users, readable by root. kubeadm's own admin.conf never leaves the node."""
        return Path(self.spec.control_plane.state_dir) / "admin.kubeconfig"

    def as_recorded(self, made: t.Mapping[str, t.Any]) -> LocalCluster:
        """The cluster as it was created, whatever the options say now."""
        return LocalCluster.of({**self.options, **made})

    def immutable(self) -> dict[str, t.Any]:
        values = {**self.options, **{key: str(value) for key, value in self.spec.subnets.items()}}
        return {key: values[key] for key in FIXED}

    def settings(self) -> NodeSettings:
        return NodeSettings(
            pause_image=f"{self.options['image_repository']}/pause:{self.options['pause_tag']}",
            snapshotter=self.options["snapshotter"],
            egress=self.options["egress"],
            dns_upstream=tuple(self.options["dns_upstream"]),
            extra_programs=(("kwok", kwok_command(self.bin_dir, self.spec.control_plane)),) if self.options["simulated_nodes"] else (),
        )

    def files(self, node: NodeSpec, traits: HostTraits) -> dict[str, tuple[int, str]]:
        """Every file of a node, kubeadm's input included."""
        files = node_files(self.spec, node, traits, self.settings())
        if node.index == 1:
            documents = kubeadm.init_documents(self.spec, traits, self.options)
            policy = json.dumps(kubeadm.audit_policy(), indent=2) + "\n"
            files["kubeadm-init.yaml"] = (0o600, kubeadm_documents(documents))
            files[f"own{kubeadm.AUDIT_POLICY}"] = (0o600, policy)
            if self.options["simulated_nodes"]:
                files["kwok.yaml"] = (0o644, stages_text())
        return files


def kwok_command(bin_dir: Path, node: NodeSpec) -> str:
    """Run kwok as the kubelet of every Node that is labelled as simulated, and of no other.

    The stages' id is part of the command so that supervisord restarts kwok when they change.
    """
    arguments = [
        f"--config={node.state_dir}/kwok.yaml",
        "--kubeconfig=/etc/kubernetes/admin.conf",
        "--manage-nodes-with-label-selector=type=kwok",
        "--node-lease-duration-seconds=40",
    ]
    wait = f": {stages_id()}; until [ -s /etc/kubernetes/admin.conf ]; do sleep 0.5; done"
    return f"/bin/sh -c '{wait}; exec {bin_dir}/kwok {' '.join(arguments)}'"


def known_clusters() -> dict[str, dict[str, t.Any]]:
    """Name -> options at creation, of every cluster on this host."""
    names = (path.parent.name for path in sorted(Path(spec.STATE_ROOT).glob(f"*/{record_file('').name}")))
    return {name: made for name in names if (made := record.read(name)) is not None}


def is_initialised(node: NodeSpec) -> bool:
    return marker(node).exists()


def namespace_command(node: NodeSpec, pid: int, argv: t.Sequence[str], **options: t.Any) -> str:
    """Run a program in the namespaces of a node, which are those of its pid 1."""
    path = f"{STATE_ROOT}/{node.cluster}/bin:{host.SYSTEM_PATH}"
    enter = ["nsenter", "-t", str(pid), "-m", "-n", "-p", "-u", "-i", "env", f"PATH={path}", "HOME=/root"]
    return host.run([*enter, *argv], **options)
