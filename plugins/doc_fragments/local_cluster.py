# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option that says which local cluster, the twin of CLUSTER_OPTION in module_utils/_local/cluster.py."""

    DOCUMENTATION = r"""
options:
  cluster:
    description: The local cluster. Role P(muster.ml.local_cluster#role) puts this together from its variables.
    type: dict
    required: true
    suboptions:
      name:
        description: Name, at most 9 of C(a-z), C(0-9) and C(-). Nodes are called C(NAME-1), C(NAME-2) and so on.
        type: str
        required: true
      nodes:
        description: Number of nodes. The first has the control plane and runs pods too.
        type: int
        default: 1
      node_subnet:
        description: Addresses of the nodes. Empty for a range that follows from the name, as with the other two.
        type: str
        default: ''
      pod_subnet:
        description: Addresses of pods; each node gets a /24 of it.
        type: str
        default: ''
      service_subnet:
        description: Addresses of Services.
        type: str
        default: ''
      egress:
        description: Whether pods and nodes may reach outside, with the host's address.
        type: bool
        default: false
      dns_upstream:
        description: Name servers for names outside of the cluster. Without one, such names fail at once.
        type: list
        elements: str
        default: []
      snapshotter:
        description: How containerd lays out root file systems. V(native) copies, for a disk that overlay cannot use.
        type: str
        default: overlayfs
        choices: [overlayfs, native]
      audit_log:
        description: File on the host that the API server writes its audit log to, one JSON object a line.
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
        description: First part of the names of Kubernetes' own images. They are imported, never pulled.
        type: str
        default: muster.local/kubernetes
      pause_tag:
        description: Tag of the image that holds the namespaces of a pod.
        type: str
        default: '1'
      api_qps:
        description: Requests a second that the controller manager and the scheduler may send.
        type: int
        default: 200
      simulated_nodes:
        description: Whether kwok runs in the first node, for Node objects with the label C(type=kwok).
        type: bool
        default: false
      kubeconfigs:
        description:
          - Files that the cluster's kubeconfig is copied to. A file there that is of another cluster is refused.
          - Removal takes them away as long as they are still of this cluster.
        type: list
        elements: path
        default: []
"""
