# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration for kubeadm. Pure: dataclasses in, Kubernetes API objects out.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .node_files import HostTraits
from .spec import ClusterSpec, NodeSpec

Document = dict[str, t.Any]
API = "kubeadm.k8s.io/v1beta4"
# kubeadm's checks of the host do not fit namespaces, and it would pull images; Muster's preflight and image import replace both.
SKIP_INIT = ["preflight", "show-join-command"]
SKIP_JOIN = ["preflight"]
# Kinds whose objects the controller manager works on concurrently, as its flags call them.
SYNCED = ("deployment", "endpoint", "job", "replicaset", "service-endpoint", "statefulset")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """Versions and names of the images that are imported into the nodes."""

    kubernetes: str
    etcd: str
    coredns: str
    repository: str = "muster.local/kubernetes"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AuditSettings:
    log_path: str
    policy_path: str
    max_size_mb: int = 100
    max_backups: int = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rates:
    """The speed of controllers: requests per second of each program, and objects of one kind at a time."""

    api_qps: int
    concurrent_syncs: int

    def client_flags(self) -> dict[str, str]:
        return {"kube-api-qps": str(self.api_qps), "kube-api-burst": str(self.api_qps * 2)}

    def controller_flags(self) -> dict[str, str]:
        return {f"concurrent-{kind}-syncs": str(self.concurrent_syncs) for kind in SYNCED}


def init_documents(spec: ClusterSpec, host: HostTraits, release: Release, audit: AuditSettings, rates: Rates) -> list[Document]:
    """Build the documents for ``kubeadm init`` on the first node."""
    node = spec.control_plane
    init = {
        "apiVersion": API,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": 6443},
        "nodeRegistration": node_registration(node),
        "skipPhases": SKIP_INIT,
    }
    return [
        init,
        cluster_configuration(spec, release, audit, rates),
        kubelet_configuration(host),
        kube_proxy_configuration(spec),
    ]


def join_documents(spec: ClusterSpec, node: NodeSpec, *, token: str, ca_hash: str) -> list[Document]:
    """Build the documents for ``kubeadm join`` on the other nodes."""
    discovery = {"bootstrapToken": {"apiServerEndpoint": spec.endpoint, "token": token, "caCertHashes": [ca_hash]}}
    return [
        {
            "apiVersion": API,
            "kind": "JoinConfiguration",
            "discovery": discovery,
            "nodeRegistration": node_registration(node),
            "skipPhases": SKIP_JOIN,
        }
    ]


def node_registration(node: NodeSpec) -> Document:
    return {
        "name": node.name,
        "criSocket": f"unix://{node.containerd_socket}",
        # No taint, because the first node runs pods, too.
        "taints": [],
        "imagePullPolicy": "IfNotPresent",
        # As flags, because the configuration object is the same for all nodes.
        "kubeletExtraArgs": _args({"node-ip": node.address, "cgroup-root": f"/{node.cgroup}"}),
    }


def cluster_configuration(spec: ClusterSpec, release: Release, audit: AuditSettings, rates: Rates) -> Document:
    # Node numbers determine the ranges of pod addresses, so no controller allocates them.
    controllers = {"allocate-node-cidrs": "false", **rates.client_flags(), **rates.controller_flags()}
    return {
        "apiVersion": API,
        "kind": "ClusterConfiguration",
        "clusterName": spec.name,
        "kubernetesVersion": release.kubernetes,
        "imageRepository": release.repository,
        "controlPlaneEndpoint": spec.endpoint,
        "certificateValidityPeriod": "87600h0m0s",
        "networking": {"podSubnet": spec.pod_subnet, "serviceSubnet": spec.service_subnet},
        "etcd": {"local": {"imageTag": release.etcd, "dataDir": "/var/lib/etcd"}},
        "dns": {"imageTag": release.coredns},
        "apiServer": audited_api_server(audit),
        "controllerManager": {"extraArgs": _args(controllers)},
        "scheduler": {"extraArgs": _args(rates.client_flags())},
    }


def audited_api_server(audit: AuditSettings) -> Document:
    folder = audit.log_path.rpartition("/")[0]
    return {
        "extraArgs": _args(
            {
                "audit-policy-file": audit.policy_path,
                "audit-log-path": audit.log_path,
                "audit-log-format": "json",
                "audit-log-maxsize": str(audit.max_size_mb),
                "audit-log-maxbackup": str(audit.max_backups),
            }
        ),
        "extraVolumes": [
            {
                "name": "audit-policy",
                "hostPath": audit.policy_path,
                "mountPath": audit.policy_path,
                "readOnly": True,
                "pathType": "File",
            },
            {"name": "audit-log", "hostPath": folder, "mountPath": folder, "pathType": "DirectoryOrCreate"},
        ],
    }


def kubelet_configuration(host: HostTraits) -> Document:
    document: Document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "serializeImagePulls": False,
        "maxPods": 220,
        # Images built on this machine cannot be pulled again, so the kubelet must never delete them.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "2%", "imagefs.available": "2%"},
        "containerLogMaxSize": "10Mi",
        "resolvConf": "/etc/kubernetes/resolv.conf",
    }
    if not host.may_raise_limits:
        document["oomScoreAdj"] = 0
    return document


def kube_proxy_configuration(spec: ClusterSpec) -> Document:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": spec.pod_subnet,
        # The limit of tracked connections belongs to the host; a network namespace cannot set it.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def audit_policy() -> Document:
    """Log the metadata of every request of users and tools, and of the system's writes except its heartbeats."""
    groups = ["system:nodes", "system:serviceaccounts:kube-system"]
    reads = ["get", "list", "watch"]
    components = ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {
                "level": "None",
                "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/api*"],
            },
            {"level": "None", "users": components, "verbs": reads},
            {"level": "None", "userGroups": groups, "verbs": reads},
            {
                "level": "None",
                "users": components,
                "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
            },
            {
                "level": "None",
                "namespaces": ["kube-node-lease"],
                "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
            },
            {"level": "Metadata"},
        ],
    }


def _args(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
