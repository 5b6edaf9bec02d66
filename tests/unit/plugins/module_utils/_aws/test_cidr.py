# SPDX-License-Identifier: GPL-3.0-or-later
"""Address ranges: as they are meant, and those that EKS refuses."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import EksCluster, public_ranges, ranges_of
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.tests.unit.plugins.module_utils._aws.test_plans import CLUSTER


def test_a_range_is_the_network_that_it_means() -> None:
    given = ["203.0.113.9/24", "203.0.113.0/24", " 198.51.100.7 "]
    assert ranges_of("x", given) == ["198.51.100.7/32", "203.0.113.0/24"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("203.0.113.0/33", "Write a range as"),
        ("10.0.0.0/8", "no request from the internet comes from 10.0.0.0/8"),
        ("192.168.178.20", "192.168.178.20/32"),
    ],
)
def test_what_nobody_comes_from_is_refused(given: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        public_ranges("public_access_cidrs", [given])


def test_everybody_is_a_range_that_a_user_may_name() -> None:
    assert public_ranges("public_access_cidrs", ["0.0.0.0/0"]) == ["0.0.0.0/0"]


def test_another_spelling_is_no_change() -> None:
    config = {**CLUSTER["resourcesVpcConfig"], "publicAccessCidrs": ["203.0.113.0/24"]}
    live = {**CLUSTER, "resourcesVpcConfig": config}
    assert not EksCluster("c", public_access_cidrs=["203.0.113.9/24"]).plan(live).changed
