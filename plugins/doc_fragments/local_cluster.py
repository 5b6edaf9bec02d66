# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option that identifies a local cluster; the same as CLUSTER_OPTION in module_utils/_local/cluster.py."""

    DOCUMENTATION = r"""
options:
  cluster:
    description: Settings of the local cluster. Role P(muster.ml.local_cluster#role) sets them from its variables.
    type: dict
    required: true
    suboptions:
      name:
        description: Name of the cluster, at most 9 characters of C(a-z), C(0-9) and C(-). Nodes are named C(NAME-1), C(NAME-2) and so on.
        type: str
        required: true
      nodes:
        description: Number of nodes. The first runs the control plane and pods.
        type: int
        default: 1
      node_subnet:
        description: Address range of the nodes. Defaults to a range that is derived from the name, as for the other two.
        type: str
        default: ''
      pod_subnet:
        description: Address range of pods. Each node gets a /24 of it.
        type: str
        default: ''
      service_subnet:
        description: Address range of Services.
        type: str
        default: ''
      egress:
        description: Let pods and nodes connect to other networks, with the host's address.
        type: bool
        default: false
      dns_upstream:
        description:
          - Name servers for names outside of the cluster. Without any, such lookups fail at once, those of nodes excepted, which ask the
            name servers of the host with O(cluster.egress).
        type: list
        elements: str
        default: []
      snapshotter:
        description: Snapshotter of containerd. V(native) copies files, for a disk that does not support overlayfs.
        type: str
        default: overlayfs
        choices: [overlayfs, native]
      audit_log:
        description: Path on the host for the audit log of the API server, in JSON lines.
        type: path
        default: /var/log/muster/audit.log
      kubernetes_version:
        description: Version of Kubernetes, such as V(v1.36.3).
        type: str
        required: true
      etcd_version:
        description: Tag of the etcd image.
        type: str
        required: true
      coredns_version:
        description: Tag of the CoreDNS image.
        type: str
        required: true
      image_repository:
        description: Repository in the names of Kubernetes' own images. They are imported, never pulled.
        type: str
        default: muster.local/kubernetes
      pause_tag:
        description: Tag of the image that holds the namespaces of a pod.
        type: str
        default: '1'
      simulated_nodes:
        description: Run kwok in the first node, for Node objects with the label C(type=kwok).
        type: bool
        default: false
      kubeconfigs:
        description:
          - Paths for copies of the cluster's kubeconfig. A file that belongs to another cluster is not replaced, and the task fails.
          - The removal deletes these files if they still belong to this cluster.
        type: list
        elements: path
        default: []
"""

    NODE = r"""
options:
  index:
    description: Number of the node, from 1.
    type: int
    required: true
"""
