# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and addresses of a local cluster."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._local.spec import ClusterSpec


def test_ranges_follow_from_the_name() -> None:
    one, other = ClusterSpec.make(name="muster"), ClusterSpec.make(name="prove")
    assert one == ClusterSpec.make(name="muster")
    assert not any(mine.overlaps(theirs) for mine in one.subnets.values() for theirs in other.subnets.values())


def test_what_is_asked_for_wins() -> None:
    spec = ClusterSpec.make(name="a", pod_subnet="172.20.0.0/16", node_subnet="", service_subnet=None)
    assert spec.pod_subnet == "172.20.0.0/16"
    assert spec.node_subnet.startswith("10.")


def test_nodes_have_addresses_and_pods_of_their_own() -> None:
    spec = ClusterSpec.make(name="dev", nodes=3, node_subnet="10.1.0.0/24", pod_subnet="10.2.0.0/16")
    assert [node.name for node in spec.all_nodes] == ["dev-1", "dev-2", "dev-3"]
    assert [node.address for node in spec.all_nodes] == ["10.1.0.2", "10.1.0.3", "10.1.0.4"]
    assert [node.pod_cidr for node in spec.all_nodes] == ["10.2.0.0/24", "10.2.1.0/24", "10.2.2.0/24"]
    assert (spec.gateway, spec.endpoint) == ("10.1.0.1", "10.1.0.2:6443")


@pytest.mark.parametrize("name", ["a", "muster", "must-test", "a1-b2-c3"])
def test_interfaces_fit_the_kernel(name: str) -> None:
    spec = ClusterSpec.make(name=name, nodes=50)
    assert max(len(node.interface) for node in spec.all_nodes) <= 15


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "far-too-long"}, "cannot name network interfaces"),
        ({"name": "Upper"}, "cannot name network interfaces"),
        ({"name": "dev-1"}, "cannot name network interfaces"),
        ({"name": "end-"}, "cannot name network interfaces"),
        ({"name": "a", "nodes": 0}, "local_cluster_nodes is 0"),
        ({"name": "a", "nodes": 51}, "local_cluster_nodes is 51"),
        ({"name": "a", "nodes": 6, "node_subnet": "10.1.0.0/29"}, "too few addresses"),
        ({"name": "a", "nodes": 3, "pod_subnet": "10.2.0.0/23"}, "cannot give each of 3 nodes"),
        ({"name": "a", "pod_subnet": "10.2.0.0/25"}, "cannot give each"),
        ({"name": "a", "pod_subnet": "10.2.0.1/16"}, "is no IPv4 range"),
        ({"name": "a", "pod_subnet": "fd00::/64"}, "is no IPv4 range"),
        ({"name": "a", "pod_subnet": "10.2.0.0/16", "service_subnet": "10.2.8.0/24"}, "overlap"),
    ],
)
def test_nonsense_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        ClusterSpec.make(**options)  # type: ignore[arg-type]
    assert caught.value.hint
