# SPDX-License-Identifier: GPL-3.0-or-later
"""What a local cluster is given: DNS, storage, NetworkPolicies, simulated nodes."""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._local.local_cluster import LocalClusterObjects, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
GIVEN: dict[str, t.Any] = {"name": "muster", "storage_image": "muster.local/kubernetes/local-path-provisioner:v1.36.3"}


def test_dns_storage_and_policies(golden: Golden) -> None:
    enforced = LocalClusterObjects(**GIVEN, network_policy_image="muster.local/kubernetes/kube-network-policies:v1.36.3")
    golden("local_cluster_default", manifests(enforced))


def test_name_servers_and_simulated_nodes_without_storage(golden: Golden) -> None:
    nodes = {"name_prefix": "gpu", "count": 2, "labels": {"pool": "gpu"}, "capacity": {"nvidia.com/gpu": 8}}
    desired = LocalClusterObjects(**GIVEN, default_storage_class=False, dns_upstream=["192.0.2.53"], simulated_nodes=[nodes])
    golden("local_cluster_simulated", manifests(desired))
