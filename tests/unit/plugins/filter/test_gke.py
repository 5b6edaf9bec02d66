# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the roles that set up Google Cloud."""

import base64
import ipaddress
import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.filter.broker_users import broker_users
from ansible_collections.muster.ml.plugins.filter.gke_gpu_flavour import gke_gpu_flavour
from ansible_collections.muster.ml.plugins.filter.gke_pool_sizes import gke_pool_sizes
from ansible_collections.muster.ml.plugins.filter.gke_ranges import gke_ranges

RANGES = ("pods", "services", "nodes")
MANAGEMENT = {"name": "management", "config": {"machine_type": "e2-standard-4"}}


def test_a_hundred_nodes_fit_into_a_16() -> None:
    found = gke_ranges("10.40.0.0/16", 100)
    assert found == {
        "pods": "10.40.0.0/17",
        "services": "10.40.128.0/20",
        "nodes": "10.40.144.0/25",
        "arithmetic": "pods 10.40.0.0/17 (100 nodes x 256 (110 pods a node)), services 10.40.128.0/20 (4096 Services), "
        "nodes 10.40.144.0/25 (100 nodes + 16 others + 4 of Google), of 10.40.0.0/16; a /16 is the smallest that fits",
    }


@pytest.mark.parametrize(
    ("pods", "block"), [(8, 28), (9, 27), (16, 27), (17, 26), (32, 26), (33, 25), (64, 25), (65, 24), (128, 24), (129, 23), (256, 23)]
)  # fmt: skip
def test_the_block_of_a_node_is_that_of_the_table_of_gke(pods: int, block: int) -> None:
    """https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr, "CIDR ranges for Pods based on max Pods per node"."""
    assert gke_ranges("10.0.0.0/8", 1, max_pods_per_node=pods)["pods"].endswith(f"/{block}")


# Shows row 002.15.
def test_a_range_that_is_too_small_is_refused_with_the_smallest_that_fits() -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        gke_ranges("10.40.16.0/20", 100)
    text = str(caught.value)
    assert "10.40.16.0/20 has 4096 addresses, and 36992 are needed" in text
    assert "100 nodes x 256 (110 pods a node) -> 32768" in text
    assert "The smallest range that fits is a /16, such as 10.40.0.0/16." in text
    assert gke_ranges("10.40.0.0/16", 100)["pods"] == "10.40.0.0/17"


@given(nodes=st.integers(1, 5000), pods=st.integers(8, 256), services=st.integers(1, 40_000), others=st.integers(0, 500))
def test_the_smallest_range_holds_what_was_asked_for_and_no_smaller_one_does(nodes: int, pods: int, services: int, others: int) -> None:
    smallest = int(gke_ranges("10.0.0.0/8", nodes, pods, services, others)["arithmetic"].split("a /")[1].split()[0])
    found = gke_ranges(f"10.0.0.0/{smallest}", nodes, pods, services, others)
    networks = {name: ipaddress.IPv4Network(found[name]) for name in RANGES}
    assert networks["pods"].num_addresses >= nodes * 2 * pods
    assert networks["services"].num_addresses >= services
    assert networks["nodes"].num_addresses >= nodes + others + 4
    assert all(one.subnet_of(ipaddress.IPv4Network(f"10.0.0.0/{smallest}")) for one in networks.values())
    assert not any(networks[a].overlaps(networks[b]) for a, b in (("pods", "services"), ("pods", "nodes"), ("services", "nodes")))
    with pytest.raises(AnsibleFilterError, match="The smallest range that fits"):
        gke_ranges(f"10.0.0.0/{smallest + 1}", nodes, pods, services, others)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"cidr": "10.40.0.1/16"}, "is no range of IPv4 addresses"),
        ({"max_pods_per_node": 7}, "GKE allows 8 to 256 pods on a node, not 7"),
        ({"nodes": 0}, "A cluster of 0 nodes"),
    ],
)
def test_nonsense_is_refused(given_: dict[str, t.Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        gke_ranges(**{"cidr": "10.40.0.0/16", "nodes": 100, **given_})


def test_the_sizes_of_pools_are_added_up() -> None:
    pools = [
        {**MANAGEMENT, "autoscaling": {"enabled": True, "total_min_node_count": 1, "total_max_node_count": 3}},
        {"name": "gpu", "config": {"accelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
         "autoscaling": {"enabled": True, "min_node_count": 0, "max_node_count": 4}, "upgrade_settings": {"max_surge": 2}},
        {"name": "tpu", "config": {"machine_type": "ct5lp-hightpu-4t"}, "node_count": 2, "node_locations": ["us-central1-a"]},
        {"name": "tainted", "config": {"taints": [{"key": "a"}]}, "autoscaling": {"enabled": False, "max_node_count": 9}},
    ]  # fmt: skip
    assert gke_pool_sizes(pools, 3) == {"least": 1 + 0 + 2 + 3, "most": (3 + 1) + (12 + 2) + (2 + 1) + (3 + 1), "general": ["management"]}


def gpu(name: str, driver: str, image: str = "COS_CONTAINERD") -> dict[str, t.Any]:
    accelerators = [{"type": "nvidia-tesla-t4", "count": 1, "gpu_driver_version": driver}]
    return {"name": name, "config": {"image_type": image, "accelerators": accelerators}}


@pytest.mark.parametrize(
    ("pools", "flavour"),
    [
        ([MANAGEMENT], "none"),
        ([MANAGEMENT, gpu("a", "DEFAULT")], "managed"),
        ([MANAGEMENT, gpu("a", "LATEST", "UBUNTU_CONTAINERD")], "managed"),
        ([gpu("a", "INSTALLATION_DISABLED")], "gke_cos"),
        ([gpu("a", "DEFAULT"), gpu("b", "INSTALLATION_DISABLED", "UBUNTU_CONTAINERD")], "gke_ubuntu"),
    ],
)
def test_the_driver_comes_as_the_pools_say(pools: list[dict[str, t.Any]], flavour: str) -> None:
    assert gke_gpu_flavour(pools) == flavour


def test_two_images_without_the_installation_of_gke_are_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="a needs gke_cos, b needs gke_ubuntu"):
        gke_gpu_flavour([gpu("a", "INSTALLATION_DISABLED"), gpu("b", "INSTALLATION_DISABLED", "UBUNTU_CONTAINERD")])


def secret(name: str, **data: str) -> dict[str, t.Any]:
    return {"metadata": {"name": name}, "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}}


def test_users_get_the_passwords_of_their_secrets() -> None:
    users = {"one": {"name": "runner", "tags": ["management"]}, "two": {"name": "experimenter"}}
    assert broker_users(users, [secret("two", password="b"), secret("one", password="a")]) == [
        {"name": "runner", "tags": ["management"], "password": "a"},
        {"name": "experimenter", "password": "b"},
    ]


def test_a_user_without_a_secret_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="Without a password: two"):
        broker_users({"one": {"name": "a"}, "two": {"name": "b"}}, [secret("one", password="a"), secret("two")])
