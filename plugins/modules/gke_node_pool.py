# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gke_node_pool
short_description: Manage node pools of GKE clusters
description:
  - Creates, updates and deletes node pools of a GKE cluster, with GPUs, TPUs, spot machines and autoscaling from nothing.
  - Unlike C(google.cloud.gcp_container_node_pool) it updates existing node pools, namely their autoscaling, size, version, machines, disks,
    image, labels, taints, zones, management and upgrade settings, one request at a time as GKE wants it.
  - A node pool in status C(ERROR) never had the nodes that it was made for. It is deleted and created again if it has the mark of O(owner).
  - A change that Google does not support is refused before any request is sent. A zone without machines fails the task.
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
    description: Name of the node pool.
    type: str
    required: true
  cluster_name:
    description: Name of the cluster.
    type: str
    required: true
  location:
    description: Region or zone of the cluster.
    type: str
    required: true
  config:
    description: Machines of the node pool.
    type: dict
    suboptions:
      machine_type:
        description: Type of the machines, such as V(e2-standard-4). A change gives the node pool new nodes.
        type: str
      disk_size_gb:
        description:
          - Size of the boot disks in GB, at least 12, from version 1.36.3-gke.1480000 at least 15.
          - A change gives the node pool new nodes.
        type: int
      disk_type:
        description: Type of the boot disks, such as V(pd-balanced). A change gives the node pool new nodes.
        type: str
      image_type:
        description: Image of the nodes, such as V(COS_CONTAINERD). A change gives the node pool new nodes.
        type: str
      accelerators:
        description: GPUs of each node.
        type: list
        elements: dict
        suboptions:
          type:
            description: Type of the GPU, such as V(nvidia-l4).
            type: str
            required: true
          count:
            description: Number of the GPUs of a node.
            type: int
            required: true
          gpu_driver_version:
            description: Driver that GKE installs. V(INSTALLATION_DISABLED) leaves that to another installer.
            type: str
            choices: [DEFAULT, LATEST, INSTALLATION_DISABLED]
          gpu_partition_size:
            description: Size of the partitions of a GPU, such as V(1g.5gb).
            type: str
          gpu_sharing_config:
            description: Sharing of a GPU between containers.
            type: dict
            suboptions:
              gpu_sharing_strategy:
                description: Kind of sharing.
                type: str
                choices: [TIME_SHARING, MPS]
                required: true
              max_shared_clients_per_gpu:
                description: Largest number of containers on a GPU.
                type: int
                required: true
      labels:
        description: Labels of the nodes in Kubernetes. Labels that are not listed are removed.
        type: dict
      taints:
        description: Taints of the nodes. Taints that are not listed are removed, except those that GKE gives by itself.
        type: list
        elements: dict
        suboptions:
          key:
            description: Key of the taint.
            type: str
            required: true
          value:
            description: Value of the taint.
            type: str
            default: ""
          effect:
            description: Effect of the taint.
            type: str
            choices: [NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE]
            required: true
      tags:
        description: Network tags of the machines, which firewalls use.
        type: list
        elements: str
      metadata:
        description: Metadata of the machines. Cannot be changed, neither can a key be left out later.
        type: dict
      resource_labels:
        description: Labels of the machines in Compute Engine. Labels that are not listed are removed, except those of Google and O(owner).
        type: dict
      spot:
        description: Take spot machines, which Google may end at any time. Cannot be changed.
        type: bool
      service_account:
        description: Service account of the nodes. Cannot be changed.
        type: str
      oauth_scopes:
        description:
          - Scopes of the nodes' service account. Defaults to C(cloud-platform) for a new node pool, so that its roles decide.
          - Cannot be changed.
        type: list
        elements: str
      gvnic:
        description: Use Google's virtual network card.
        type: bool
      workload_metadata:
        description: Metadata server that pods see. V(GKE_METADATA) gives them their own identity (Workload Identity).
        type: str
        choices: [GKE_METADATA, GCE_METADATA]
      reservation_affinity:
        description: Reservation from which machines are taken. Cannot be changed.
        type: dict
        suboptions:
          consume_reservation_type:
            description: Kind of reservation.
            type: str
            choices: [NO_RESERVATION, ANY_RESERVATION, SPECIFIC_RESERVATION, ANY_RESERVATION_THEN_FAIL]
            required: true
          key:
            description: Label by which a specific reservation is found, such as V(compute.googleapis.com/reservation-name).
            type: str
          values:
            description: Values of the label.
            type: list
            elements: str
      other:
        description:
          - Other fields of C(NodeConfig), in the API's form, such as C(kubeletConfig). Fields that are not listed stay as they are.
          - In C(linuxNodeConfig.sysctls) and C(resourceManagerTags.tags), whose keys are your own, those that are not listed are removed.
        type: dict
  autoscaling:
    description: Bounds between which the cluster autoscaler keeps the number of nodes. Mutually exclusive with O(node_count).
    type: dict
    suboptions:
      enabled:
        description: Let the autoscaler change the number of nodes.
        type: bool
        default: true
      min_node_count:
        description: Lowest number of nodes in each zone.
        type: int
      max_node_count:
        description: Highest number of nodes in each zone.
        type: int
      total_min_node_count:
        description: Lowest number of nodes in all zones together. Not for a TPU slice of several machines, which is whole or not there.
        type: int
      total_max_node_count:
        description: Highest number of nodes in all zones together. A TPU slice of several machines needs O(autoscaling.max_node_count).
        type: int
      location_policy:
        description: Zones that new nodes come to. V(BALANCED) spreads them, V(ANY) takes what is there.
        type: str
        choices: [BALANCED, ANY]
  initial_node_count:
    description: Number of nodes in each zone at creation. Defaults to O(node_count), or to the lowest number of O(autoscaling).
    type: int
  node_count:
    description: Number of nodes in each zone. Without this option it is left alone.
    type: int
  node_locations:
    description: Zones of the nodes. Defaults to those of the cluster.
    type: list
    elements: str
  version:
    description:
      - Lowest version of the nodes, at most that of the cluster. A later one is left alone, because Google upgrades as well.
      - A short one, such as V("1.35"), is the version of the cluster if that is one of those.
      - Google takes nodes two minor versions older than the cluster, or one where it upgrades them itself, as in every release channel.
    type: str
  management:
    description: Tasks that Google does by itself.
    type: dict
    suboptions:
      auto_repair:
        description: Replace nodes that are not healthy.
        type: bool
      auto_upgrade:
        description: Upgrade nodes. A cluster with a release channel demands it.
        type: bool
  upgrade_settings:
    description: Pace of upgrades.
    type: dict
    suboptions:
      strategy:
        description: Kind of upgrade.
        type: str
        choices: [SURGE, BLUE_GREEN, SHORT_LIVED]
      max_surge:
        description: Number of additional nodes during an upgrade.
        type: int
      max_unavailable:
        description: Number of nodes that may be unavailable during an upgrade.
        type: int
      blue_green_settings:
        description: Settings of O(upgrade_settings.strategy=BLUE_GREEN), in the API's form.
        type: dict
  placement_policy:
    description: Placement of the machines beside each other. Cannot be changed.
    type: dict
    suboptions:
      type:
        description: Kind of placement. A workload policy, such as TPU7x has, is named by O(placement_policy.policy_name) alone.
        type: str
        choices: [COMPACT]
      policy_name:
        description: Resource policy that is used, instead of one that GKE makes.
        type: str
      tpu_topology:
        description: Shape of a slice of TPUs, such as V(2x4).
        type: str
  max_pods_per_node:
    description: Largest number of pods on a node, which decides how many addresses it takes. Cannot be changed.
    type: int
  queued_provisioning:
    description: Make nodes only for requests of the kind C(ProvisioningRequest), all at once.
    type: bool
  wait_timeout:
    default: 3600
"""

EXAMPLES = r"""
- name: Create spot machines with a GPU and its driver, from nothing
  muster.ml.gke_node_pool:
    project: my-project
    auth_kind: application
    cluster_name: training
    location: us-central1
    name: gpu
    config:
      machine_type: g2-standard-8
      accelerators:
        - {type: nvidia-l4, count: 1, gpu_driver_version: DEFAULT}
      spot: true
      taints:
        - {key: nvidia.com/gpu, value: present, effect: NO_SCHEDULE}
    autoscaling: {total_min_node_count: 0, total_max_node_count: 4}
    owner: training

- name: Create a slice of 8 TPUs
  muster.ml.gke_node_pool:
    project: my-project
    auth_kind: application
    cluster_name: training
    location: us-central1
    name: tpu
    node_locations: [us-central1-a]
    config: {machine_type: ct5lp-hightpu-4t}
    placement_policy: {type: COMPACT, tpu_topology: 2x4}
    node_count: 2
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "GKE node pool cpu of cluster training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["container:projects.locations.clusters.nodePools.setAutoscaling (autoscaling)"]
node_pool:
  description: Node pool as GKE describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {status: RUNNING, version: 1.35.1-gke.1000000}
  contains:
    status:
      description: Status of the node pool.
      type: str
    version:
      description: Version of the nodes.
      type: str
"""

import typing as t

from ansible.module_utils.common.dict_transformations import snake_dict_to_camel_dict

from ansible_collections.muster.ml.plugins.module_utils._cloud.plan import without_none
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import NUMBER, STRINGS, TAINTS, WORDS, YES, group, rows, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, from_options, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_node_config import node_config
from ansible_collections.muster.ml.plugins.module_utils._gcp.gke_node_pool import GkeNodePool

SHARING = group(
    gpu_sharing_strategy=text("TIME_SHARING", "MPS", required=True), max_shared_clients_per_gpu={"type": "int", "required": True},
)  # fmt: skip
ACCELERATORS = rows(
    type=text(required=True), count={"type": "int", "required": True},
    gpu_driver_version=text("DEFAULT", "LATEST", "INSTALLATION_DISABLED"), gpu_partition_size=text(), gpu_sharing_config=SHARING,
)  # fmt: skip
RESERVATIONS = ("NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION", "ANY_RESERVATION_THEN_FAIL")
RESERVATION = group(consume_reservation_type=text(*RESERVATIONS, required=True), key=text(no_log=False), values=STRINGS)
CONFIG = group(
    machine_type=text(), disk_size_gb=NUMBER, disk_type=text(), image_type=text(), accelerators=ACCELERATORS, labels=WORDS, taints=TAINTS,
    tags=STRINGS, metadata=WORDS, resource_labels=WORDS, spot=YES, service_account=text(), oauth_scopes=STRINGS, gvnic=YES,
    workload_metadata=text("GKE_METADATA", "GCE_METADATA"), reservation_affinity=RESERVATION, other=WORDS,
)  # fmt: skip
AUTOSCALING = group(
    enabled={"type": "bool", "default": True}, min_node_count=NUMBER, max_node_count=NUMBER, total_min_node_count=NUMBER,
    total_max_node_count=NUMBER, location_policy=text("BALANCED", "ANY"),
)  # fmt: skip
UPGRADES = group(
    strategy=text("SURGE", "BLUE_GREEN", "SHORT_LIVED"), max_surge=NUMBER, max_unavailable=NUMBER, blue_green_settings=WORDS,
)  # fmt: skip
PLACEMENT = group(type=text("COMPACT"), policy_name=text(), tpu_topology=text())
ARGUMENT_SPEC = spec_of(
    GkeNodePool, wait=3600, config=CONFIG, autoscaling=AUTOSCALING, management=group(auto_repair=YES, auto_upgrade=YES),
    upgrade_settings=UPGRADES, placement_policy=PLACEMENT,
)  # fmt: skip
NESTED = ("autoscaling", "management", "upgrade_settings", "placement_policy")


def resource(params: dict[str, t.Any]) -> GkeNodePool:
    """The node pool that the options describe."""
    given = dict(params)
    for name in NESTED:
        if given[name] is not None:
            given[name] = snake_dict_to_camel_dict(without_none(given[name]))
    if given["config"] is not None:
        given["config"] = node_config(given["config"])
    return from_options(GkeNodePool, given)


execute = converger(resource, "node_pool")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
