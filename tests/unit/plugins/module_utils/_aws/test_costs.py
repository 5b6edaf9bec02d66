# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told about costs before anything is made."""

from __future__ import annotations

from ansible_collections.muster.ml.plugins.filter.eks_costs import eks_costs

SYSTEM = {"name": "system", "instance_types": ["m6i.large"], "scaling_config": {"min_size": 2, "max_size": 4}}
GPU = {
    "name": "gpu",
    "instance_types": ["g5.2xlarge", "g6.2xlarge"],
    "capacity_type": "SPOT",
    "scaling_config": {"min_size": 0, "max_size": 4},
    "disk_size": 200,
}


def test_the_shipped_inventory() -> None:
    assert eks_costs([SYSTEM, GPU], "us-west-2", 100, nat_gateways=1, support_type="STANDARD") == [
        "What will run and cost by the hour (list prices of us-west-2 in US dollars as of June 2025, look up today's):",
        "  control plane: 0.10",
        "  1 NAT gateway with its public address: 0.05 (and 0.045 a GB through it)",
        "  2 to 4 x m6i.large, node group system: 0.19, up to 0.38",
        "  2 to 4 disks of 100 GiB: 0.02, up to 0.04",
        "  0 to 4 x g5.2xlarge or g6.2xlarge, node group gpu: 0.00, up to 4.85 (spot, often less than half of this price on demand)",
        "  0 to 4 disks of 200 GiB: 0.00, up to 0.09",
        "  file system, bucket, backups, logs, traffic: by size and use",
        "  together about 0.36 an hour, up to 5.51; 266 a month, up to 4025",
    ]


def test_another_region_has_quantities_only() -> None:
    lines = eks_costs([SYSTEM], "eu-north-1", 100, nat_gateways=2, support_type="EXTENDED")
    assert lines[0] == "What will run and cost by the hour (no prices of eu-north-1 are known):"
    assert "  2 NAT gateways with their public addresses: no price known here" in lines
    assert not [line for line in lines if "together" in line]


def test_what_has_no_price_is_not_counted() -> None:
    odd = {"name": "odd", "instance_types": ["p5.48xlarge"], "scaling_config": {"min_size": 1, "max_size": 1}}
    lines = eks_costs([odd], "us-east-1", 100)
    assert "  1 x p5.48xlarge, node group odd: no price known here" in lines
    assert lines[-1] == "  together about 0.01 an hour, without what has no price; 8 a month"
    assert not [line for line in lines if "control plane" in line]
