# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration for kubeadm. Pure: dataclasses in, Kubernetes API objects out."""

from __future__ import annotations

import typing as t

from .node_files import HostTraits
from .spec import ClusterSpec, NodeSpec

Document = dict[str, t.Any]
Options = t.Mapping[str, t.Any]
API = "kubeadm.k8s.io/v1beta4"
AUDIT_POLICY = "/etc/kubernetes/audit-policy.json"
# kubeadm's checks of the host do not fit namespaces, and it would pull images; Muster's preflight and image import replace both.
SKIP_INIT = ["preflight", "show-join-command"]
SKIP_JOIN = ["preflight"]
# Requests per second that the controller manager and the scheduler may send: with their default of 20, hundreds of pods start slowly.
RATES = {"kube-api-qps": "200", "kube-api-burst": "400"}


def init_documents(spec: ClusterSpec, host: HostTraits, options: Options) -> list[Document]:
    """Build the documents for ``kubeadm init`` on the first node. OPTIONS: those of the module's option ``cluster``."""
    node = spec.control_plane
    init = {
        "apiVersion": API,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": 6443},
        "nodeRegistration": node_registration(node),
        "skipPhases": SKIP_INIT,
    }
    return [init, cluster_configuration(spec, options), kubelet_configuration(host), kube_proxy_configuration(spec)]


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


def cluster_configuration(spec: ClusterSpec, options: Options) -> Document:
    return {
        "apiVersion": API,
        "kind": "ClusterConfiguration",
        "clusterName": spec.name,
        "kubernetesVersion": options["kubernetes_version"],
        "imageRepository": options["image_repository"],
        "controlPlaneEndpoint": spec.endpoint,
        "certificateValidityPeriod": "87600h0m0s",
        "networking": {"podSubnet": spec.pod_subnet, "serviceSubnet": spec.service_subnet},
        "etcd": {"local": {"imageTag": options["etcd_version"], "dataDir": "/var/lib/etcd"}},
        "dns": {"imageTag": options["coredns_version"]},
        "apiServer": audited_api_server(options["audit_log"]),
        # Node numbers determine the ranges of pod addresses, so no controller allocates them.
        "controllerManager": {"extraArgs": _args({"allocate-node-cidrs": "false", **RATES})},
        "scheduler": {"extraArgs": _args(RATES)},
    }


def audited_api_server(log: str) -> Document:
    folder = log.rpartition("/")[0]
    return {
        "extraArgs": _args(
            {
                "audit-policy-file": AUDIT_POLICY,
                "audit-log-path": log,
                "audit-log-format": "json",
                "audit-log-maxsize": "100",
                "audit-log-maxbackup": "2",
            }
        ),
        "extraVolumes": [
            {"name": "audit-policy", "hostPath": AUDIT_POLICY, "mountPath": AUDIT_POLICY, "readOnly": True, "pathType": "File"},
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
        # The cluster's images are pinned. Others that were pulled stay too: a machine without a network cannot pull them again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"},
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
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/api*"]},
            {"level": "None", "users": components, "verbs": reads},
            {"level": "None", "userGroups": groups, "verbs": reads},
            {"level": "None", "users": components, "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {"level": "None", "namespaces": ["kube-node-lease"], "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {"level": "Metadata"},
        ],
    }


def _args(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
