# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gke_cluster_info
short_description: Read a GKE cluster with its node pools
description:
  - Returns a GKE cluster and its node pools. A cluster that does not exist is no error.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.attributes.info
  - muster.ml.gcp.support
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  location:
    description: Region or zone of the cluster.
    type: str
    required: true
  owner:
    description: Name of the owner whose mark is looked for. Without it any owner will do.
    type: str
  leftovers:
    description: Look also for what workloads of the cluster made in the project. The cluster need not exist any more.
    type: bool
    default: false
  network:
    description: Network of the cluster, whose network endpoint groups are looked for with O(leftovers=true).
    type: str
"""

EXAMPLES = r"""
- name: Read the cluster and its node pools
  muster.ml.gke_cluster_info:
    project: my-project
    auth_kind: application
    name: training
    location: us-central1
  register: gke
"""

RETURN = r"""
exists:
  description: True if the cluster exists.
  returned: success
  type: bool
  sample: true
owned:
  description: True if the cluster has the label C(muster-owner) with the value of O(owner).
  returned: success
  type: bool
  sample: true
status:
  description: Status of the cluster. Empty if it does not exist.
  returned: success
  type: str
  sample: RUNNING
endpoint:
  description: Address of the API server. Empty if the cluster does not exist.
  returned: success
  type: str
  sample: 203.0.113.10
certificate_authority:
  description: Certificate authority of the API server, in base64. Empty if the cluster does not exist.
  returned: success
  type: str
  sample: LS0tLS1CRUdJTg==
version:
  description: Version of the control plane. Empty if the cluster does not exist.
  returned: success
  type: str
  sample: 1.35.1-gke.1000000
workload_pool:
  description: Pool of Workload Identity. Empty if the cluster has none.
  returned: success
  type: str
  sample: my-project.svc.id.goog
cluster:
  description: Cluster as GKE describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, status: RUNNING, location: europe-west4}
node_pools:
  description: Node pools of the cluster as GKE describes them, in snake_case, each with its C(owner).
  returned: success
  type: list
  elements: dict
  sample: [{name: cpu, status: RUNNING, initial_node_count: 1, owner: team}]
leftovers:
  description:
    - Disks of claims and load balancers of Services that carry the label C(goog-k8s-cluster-name) of the cluster, firewall rules for its
      nodes, and network endpoint groups of clusters in O(network), by name and location, with a title for people.
    - GKE tries to delete them with the cluster or some minutes later, and does not promise it.
  returned: with O(leftovers=true)
  type: dict
  sample:
    disks: [{"title": "disk pvc-1f2e", "name": "pvc-1f2e", "location": "us-central1-a"}]
    load_balancers: []
    firewalls: []
    network_endpoint_groups: []
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import gcp_main, surveyor
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_info import read_cluster, read_leftovers

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "location": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "leftovers": {"type": "bool", "default": False},
    "network": {"type": "str"},
}


def survey(api: Api, params: dict[str, t.Any]) -> dict[str, t.Any]:
    """The cluster that the options name."""
    where = params["project"], params["location"], params["name"]
    found = read_cluster(api, *where, params["owner"])
    return {**found, "leftovers": read_leftovers(api, *where, params["network"])} if params["leftovers"] else found


execute = surveyor(survey)


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
