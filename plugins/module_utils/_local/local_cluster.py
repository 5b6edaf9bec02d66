# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role local_cluster applies to its cluster: DNS, a default StorageClass, NetworkPolicies, simulated nodes. No I/O."""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping, Sequence

from .._manifests.access import cluster_access, namespace_access, rule, service_account
from .._manifests.meta import Manifest, metadata
from .._manifests.pods import READ_ONLY_CONTAINER
from .simulated_nodes import simulated_nodes
from .spec import STATE_ROOT, VOLUMES, ClusterSpec

PROVISIONER = "local-path-provisioner"
NAMESPACE = "local-path-storage"
CONFIG = "local-path-config"
CONFIG_PATH = "/etc/config/"

# kubeadm's default, which asks an outside name server for every unknown name.
COREFILE_FORWARDING = """\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
"""
# Without a name server such a query takes five seconds, also one for a pod that is just being recreated, because a resolver tries the
# name as given last.
COREFILE_ALONE = """\
cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       ttl 30
    }
    prometheus :9153
    reload
    loadbalance
}
.:53 {
    errors
    template ANY ANY . {
       rcode NXDOMAIN
    }
}
"""

# The provisioner creates volumes with short-lived pods that run these scripts, with the folder in $VOL_DIR.
MAKE_VOLUME = """\
#!/bin/sh
set -eu
mkdir -p "$VOL_DIR"
chmod 0777 "$VOL_DIR"
"""
REMOVE_VOLUME = """\
#!/bin/sh
set -eu
rm -rf "$VOL_DIR"
"""
# It makes a volume's folder, so it must run: on no simulated node.
HELPER_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
spec:
  priorityClassName: system-node-critical
  tolerations:
    - operator: Exists
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions:
              - {{key: type, operator: NotIn, values: [kwok]}}
  containers:
    - name: helper-pod
      image: {image}
      imagePullPolicy: IfNotPresent
"""

# What v0.0.37 and the controller library in it (v11) request with this configuration, which is less than its chart grants.
OWN_NAMESPACE = [
    rule([""], ["pods"], ["get", "create", "delete"]),
    rule([""], ["pods/log"], ["get"]),
    rule([""], ["configmaps"], ["get"], CONFIG),
]
ENFORCER = "kube-network-policies"
ENFORCER_HEALTH = 9879
ENFORCER_READS = [
    rule([""], ["pods", "namespaces"], ["list", "watch"]),
    rule(["networking.k8s.io"], ["networkpolicies"], ["list", "watch"]),
]
# kwok acts as the kubelet of these, so no pod of theirs runs.
NOT_SIMULATED: Manifest = {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["kwok"]}]}

EVERYWHERE = [
    rule([""], ["nodes"], ["get"]),
    # To have a claim placed again whose node is gone.
    rule([""], ["persistentvolumeclaims"], ["get", "list", "watch", "update"]),
    rule([""], ["persistentvolumes"], ["get", "list", "watch", "create", "patch", "delete"]),
    rule([""], ["events"], ["create", "patch"]),
    rule(["storage.k8s.io"], ["storageclasses"], ["get", "list", "watch"]),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalClusterObjects:
    """Settings of a local cluster's own objects. Field names are the options' names."""

    name: str
    dns_upstream: Sequence[str] = ()
    default_storage_class: bool = True
    storage_image: str
    network_policy_image: str | None = None
    """Image of the program that enforces NetworkPolicies; without one they are only stored."""
    pod_subnet: str = ""
    simulated_nodes: Sequence[Mapping[str, t.Any]] = ()


def manifests(desired: LocalClusterObjects) -> list[Manifest]:
    """The objects, beside those that kubeadm creates."""
    return [
        dns(desired.dns_upstream),
        *(storage(desired.name, desired.storage_image) if desired.default_storage_class else []),
        *(network_policies(desired) if desired.network_policy_image else []),
        *simulated_nodes(desired.simulated_nodes),
    ]


def dns(upstream: Sequence[str]) -> Manifest:
    """The configuration of CoreDNS, which replaces that of kubeadm."""
    corefile = COREFILE_FORWARDING if upstream else COREFILE_ALONE
    return _config_map("coredns", "kube-system", {"Corefile": corefile})


def storage(cluster: str, image: str) -> list[Manifest]:
    """The default StorageClass local-path: a volume is a folder that all nodes see."""
    account = service_account(PROVISIONER, NAMESPACE, {})
    config = {
        "config.json": json.dumps({"sharedFileSystemPath": f"{STATE_ROOT}/{cluster}/{VOLUMES}"}),
        "setup": MAKE_VOLUME,
        "teardown": REMOVE_VOLUME,
        "helperPod.yaml": HELPER_POD.format(image=image),
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local-path", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        account,
        *namespace_access(account, OWN_NAMESPACE),
        *cluster_access(PROVISIONER, account, EVERYWHERE),
        _config_map(CONFIG, NAMESPACE, config),
        _provisioner(image),
        storage_class,
    ]


def network_policies(desired: LocalClusterObjects) -> list[Manifest]:
    """The DaemonSet that enforces the NetworkPolicies of all namespaces (files/go/kube-network-policies of the role)."""
    account = service_account(ENFORCER, "kube-system", {})
    return [account, *cluster_access(ENFORCER, account, ENFORCER_READS), _enforcer(desired)]


def _enforcer(desired: LocalClusterObjects) -> Manifest:
    pods = ClusterSpec.make(name=desired.name, pod_subnet=desired.pod_subnet).pod_subnet
    labels = {"app": ENFORCER}
    container = {
        "name": ENFORCER,
        "image": desired.network_policy_image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--node=$(NODE)", f"--pods={pods}", f"--health=127.0.0.1:{ENFORCER_HEALTH}"],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        # It starts when its rules are in the kernel. Nothing asks it again: what ends it takes the container with it.
        "startupProbe": {"httpGet": {"host": "127.0.0.1", "port": ENFORCER_HEALTH}, "periodSeconds": 1, "failureThreshold": 120},
        "securityContext": {**READ_ONLY_CONTAINER, "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}},
    }
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NOT_SIMULATED]}}}
    pod = {
        "serviceAccountName": ENFORCER,
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "affinity": affinity,
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(ENFORCER, "kube-system"),
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def _provisioner(image: str) -> Manifest:
    labels = {"app": PROVISIONER}
    container = {
        "name": PROVISIONER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["start", f"--config={CONFIG_PATH}config.json", f"--helper-image={image}", f"--service-account-name={PROVISIONER}"],
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "CONFIG_MOUNT_PATH", "value": CONFIG_PATH},
        ],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, **READ_ONLY_CONTAINER},
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_PATH}],
    }
    pod = {"serviceAccountName": PROVISIONER, "containers": [container], "volumes": [{"name": "config", "configMap": {"name": CONFIG}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(PROVISIONER, NAMESPACE),
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def _config_map(name: str, namespace: str, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, namespace), "data": dict(data)}
