# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gke_cluster
short_description: Manage GKE clusters
description:
  - Creates, updates and deletes the control plane of a GKE cluster. Its nodes are in node pools of M(muster.ml.gke_node_pool).
  - Unlike C(google.cloud.gcp_container_cluster) it updates existing clusters, namely their version, release channel, access, private nodes,
    Workload Identity, addons, logging, monitoring, zones, maintenance window and labels, one request at a time as GKE wants it.
  - GKE makes no cluster without nodes. A new cluster has one small node in each zone, which is deleted when the cluster is there.
  - A change that Google does not support is refused before any request is sent.
  - A cluster in status C(ERROR) that has no node pools is deleted and created again if it has the mark of O(owner).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  location:
    description: Region or zone of the control plane, such as V(us-central1) or V(us-central1-a).
    type: str
    required: true
  network:
    description: Name of the network, or its path for one of another project. Required to create a cluster. Cannot be changed.
    type: str
  subnetwork:
    description: Name of the subnetwork, or its path. Required to create a cluster. Cannot be changed.
    type: str
  cluster_secondary_range_name:
    description: Secondary range of the subnetwork for pods. Cannot be changed.
    type: str
  services_secondary_range_name:
    description: Secondary range of the subnetwork for Services. Cannot be changed.
    type: str
  node_locations:
    description: Zones of the nodes. Defaults to the zone of the cluster, or to zones that Google chooses.
    type: list
    elements: str
  release_channel:
    description:
      - Channel from which Google upgrades the cluster by itself. V(UNSPECIFIED) is none.
      - Google ends clusters without a channel in June 2027 and may refuse new ones already (rancher/rancher issue 56879).
    type: str
    choices: [UNSPECIFIED, RAPID, REGULAR, STABLE, EXTENDED]
  version:
    description:
      - Lowest version of the control plane, such as V("1.34") or V("1.34.6-gke.1154000"). A later one is left alone, because Google
        upgrades as well. Defaults to that of the channel for a new cluster.
      - GKE upgrades one minor version at a time. Node pools must be upgraded in between.
    type: str
  private_nodes:
    description: Give nodes of new node pools no public address. They need Cloud NAT to reach the internet.
    type: bool
  private_endpoint:
    description:
      - Give the control plane no public address. It is then reached from its network only, and from networks that are connected with it and
        named in O(master_authorized_networks), which GKE wants to be ranges that no client has on the internet.
    type: bool
  master_ipv4_cidr:
    description: Address range of the control plane, a V(/28) for a cluster with private nodes. Cannot be changed.
    type: str
  master_authorized_networks:
    description:
      - Address ranges that may reach the control plane. With C([]) no client outside of Google's network and the cluster's may.
      - Without this option nothing is changed, and a new cluster can be reached from anywhere.
    type: list
    elements: dict
    suboptions:
      cidr_block:
        description: Address range, such as V(203.0.113.0/24).
        type: str
        required: true
      display_name:
        description: Name of the range, for people.
        type: str
  workload_identity:
    description: Let service accounts of Kubernetes act as those of Google, in the pool C(PROJECT.svc.id.goog).
    type: bool
    default: true
  managed_prometheus:
    description: Run Google's collectors for Prometheus metrics.
    type: bool
  logging_components:
    description: Components whose logs are collected, such as V(SYSTEM_COMPONENTS) and V(WORKLOADS). C([]) for none.
    type: list
    elements: str
  monitoring_components:
    description: Components whose metrics are collected, such as V(SYSTEM_COMPONENTS). C([]) for none.
    type: list
    elements: str
  addons:
    description: Parts that Google installs in the cluster. Parts that are not listed stay as they are.
    type: dict
    suboptions:
      config_connector: {description: "Config Connector.", type: bool}
      dns_cache: {description: "NodeLocal DNSCache.", type: bool}
      gce_persistent_disk_csi_driver: {description: "CSI driver for disks.", type: bool}
      gcp_filestore_csi_driver: {description: "CSI driver for Filestore.", type: bool}
      gcs_fuse_csi_driver: {description: "CSI driver for buckets.", type: bool}
      gke_backup_agent: {description: "Agent of Backup for GKE.", type: bool}
      horizontal_pod_autoscaling: {description: "Autoscaling of pods.", type: bool}
      http_load_balancing: {description: "Ingress by Google's load balancers.", type: bool}
      lustre_csi_driver: {description: "CSI driver for Lustre.", type: bool}
      network_policy: {description: "Calico's part of the control plane.", type: bool}
      parallelstore_csi_driver: {description: "CSI driver for Parallelstore.", type: bool}
      ray_operator: {description: "Operator for Ray.", type: bool}
      stateful_ha: {description: "Controller for StatefulSets of high availability.", type: bool}
  gateway_api:
    description: Serve the Gateway API, with GKE's classes of Gateways. Without this option it stays as it is.
    type: bool
  maintenance_window:
    description:
      - Time at which Google may upgrade the cluster, which is a window every day or one that recurs. With neither, it is any time.
      - Without this option it stays as it is. Exclusions of the window, which other clients set, stay always.
    type: dict
    suboptions:
      daily_start_time:
        description: Start of a window every day, in UTC, such as V("03:00").
        type: str
      start_time:
        description: Start of the first recurring window, such as V(2026-01-03T01:00:00Z).
        type: str
      end_time:
        description: End of the first recurring window.
        type: str
      recurrence:
        description: Rule by which the window recurs, such as V(FREQ=WEEKLY;BYDAY=SA,SU).
        type: str
  deletion_protection:
    description:
      - Refuse deletion of the cluster by this module. It is remembered in the label C(muster-protected).
      - V(false) together with O(state=absent) deletes the cluster all the same.
    type: bool
  service_account:
    description: Service account of the nodes that a new cluster has until it is there. Defaults to that of Compute Engine.
    type: str
  labels:
    description: Labels of the cluster and its machines. Labels that are not listed are removed, except those of Google and O(owner).
    type: dict
  wait_timeout:
    default: 3600
"""

EXAMPLES = r"""
- name: Create a cluster with private nodes, whose API only the office can reach
  muster.ml.gke_cluster:
    project: my-project
    auth_kind: application
    name: training
    location: us-central1
    network: training
    subnetwork: training
    cluster_secondary_range_name: pods
    services_secondary_range_name: services
    release_channel: REGULAR
    private_nodes: true
    master_authorized_networks:
      - {cidr_block: 203.0.113.0/24, display_name: office}
    addons: {gcs_fuse_csi_driver: true}
    owner: training

- name: Upgrade the cluster, with all other settings unchanged
  muster.ml.gke_cluster:
    project: my-project
    auth_kind: application
    name: training
    location: us-central1
    version: "1.36"
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "GKE cluster training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["container:projects.locations.clusters.update (version 1.34.6-gke.1154000 to 1.35)"]
cluster:
  description: Cluster as GKE describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {endpoint: 203.0.113.10, current_master_version: 1.35.1-gke.1000000, status: RUNNING}
  contains:
    endpoint:
      description: Address of the API server.
      returned: when the cluster is there
      type: str
    current_master_version:
      description: Version of the control plane.
      type: str
    status:
      description: Status of the cluster.
      type: str
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import YES, group, rows, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_cluster import ADDONS, DISABLED_ADDONS, GkeCluster

WINDOW = {
    **group(**{name: text() for name in ("daily_start_time", "start_time", "end_time", "recurrence")}),
    "mutually_exclusive": [("daily_start_time", "recurrence")],
    "required_together": [("start_time", "end_time", "recurrence")],
}
ARGUMENT_SPEC = spec_of(
    GkeCluster, wait=3600, master_authorized_networks=rows(cidr_block=text(required=True), display_name=text()),
    addons=group(**dict.fromkeys((*ADDONS, *DISABLED_ADDONS), YES)), maintenance_window=WINDOW,
)  # fmt: skip
execute = converger(GkeCluster, "cluster")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
