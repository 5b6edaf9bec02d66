# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices of TPUs: every row of Google's tables, every shape that the rules allow, and what is refused."""

import itertools
import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.filter.gke_pool_sizes import gke_pool_sizes
from ansible_collections.muster.ml.plugins.filter.gke_tpu_pools import gke_tpu_pools
from ansible_collections.muster.ml.plugins.filter.tpu_slice import tpu_slice
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp import tpu_slices

LABELS = {"v4": "tpu-v4-podslice", "v5e": "tpu-v5-lite-podslice", "v5p": "tpu-v5p-slice", "v6e": "tpu-v6e-slice", "tpu7x": "tpu7x"}
# Rows of Google's pages "TPU v4", "TPU v5e", "TPU v5p" and "TPU v6e", and of "Plan TPUs in GKE": type, topology, chips, machines and their
# type, name outside GKE. They are written down once more here, and not computed.
ROWS = [
    ("v4", "2x2x1", 4, 1, "ct4p-hightpu-4t", "v4-8"),
    ("v4", "2x2x2", 8, 2, "ct4p-hightpu-4t", "v4-16"),
    ("v4", "2x2x4", 16, 4, "ct4p-hightpu-4t", "v4-32"),
    ("v4", "2x4x4", 32, 8, "ct4p-hightpu-4t", "v4-64"),
    ("v4", "4x4x4", 64, 16, "ct4p-hightpu-4t", "v4-128"),
    ("v4", "4x4x8", 128, 32, "ct4p-hightpu-4t", "v4-256"),
    ("v4", "4x8x8", 256, 64, "ct4p-hightpu-4t", "v4-512"),
    ("v4", "8x8x8", 512, 128, "ct4p-hightpu-4t", "v4-1024"),
    ("v4", "8x8x12", 768, 192, "ct4p-hightpu-4t", "v4-1536"),
    ("v4", "8x8x16", 1024, 256, "ct4p-hightpu-4t", "v4-2048"),
    ("v4", "8x16x16", 2048, 512, "ct4p-hightpu-4t", "v4-4096"),
    ("v5e", "1x1", 1, 1, "ct5lp-hightpu-1t", "v5litepod-1"),
    ("v5e", "2x2", 4, 1, "ct5lp-hightpu-4t", "v5litepod-4"),
    ("v5e", "2x4", 8, 2, "ct5lp-hightpu-4t", "v5litepod-8"),
    ("v5e", "4x4", 16, 4, "ct5lp-hightpu-4t", "v5litepod-16"),
    ("v5e", "4x8", 32, 8, "ct5lp-hightpu-4t", "v5litepod-32"),
    ("v5e", "8x8", 64, 16, "ct5lp-hightpu-4t", "v5litepod-64"),
    ("v5e", "8x16", 128, 32, "ct5lp-hightpu-4t", "v5litepod-128"),
    ("v5e", "16x16", 256, 64, "ct5lp-hightpu-4t", "v5litepod-256"),
    ("v5p", "2x2x1", 4, 1, "ct5p-hightpu-4t", "v5p-8"),
    ("v5p", "2x2x2", 8, 2, "ct5p-hightpu-4t", "v5p-16"),
    ("v5p", "2x2x4", 16, 4, "ct5p-hightpu-4t", "v5p-32"),
    ("v5p", "2x4x4", 32, 8, "ct5p-hightpu-4t", "v5p-64"),
    ("v5p", "4x4x4", 64, 16, "ct5p-hightpu-4t", "v5p-128"),
    ("v5p", "4x4x8", 128, 32, "ct5p-hightpu-4t", "v5p-256"),
    ("v5p", "4x8x8", 256, 64, "ct5p-hightpu-4t", "v5p-512"),
    ("v5p", "8x8x8", 512, 128, "ct5p-hightpu-4t", "v5p-1024"),
    ("v5p", "8x8x16", 1024, 256, "ct5p-hightpu-4t", "v5p-2048"),
    ("v5p", "8x16x16", 2048, 512, "ct5p-hightpu-4t", "v5p-4096"),
    ("v5p", "16x16x16", 4096, 1024, "ct5p-hightpu-4t", "v5p-8192"),
    ("v5p", "16x16x24", 6144, 1536, "ct5p-hightpu-4t", "v5p-12288"),
    ("v6e", "1x1", 1, 1, "ct6e-standard-1t", "v6e-1"),
    ("v6e", "2x2", 4, 1, "ct6e-standard-4t", "v6e-4"),
    ("v6e", "2x4", 8, 2, "ct6e-standard-4t", "v6e-8"),
    ("v6e", "4x4", 16, 4, "ct6e-standard-4t", "v6e-16"),
    ("v6e", "4x8", 32, 8, "ct6e-standard-4t", "v6e-32"),
    ("v6e", "8x8", 64, 16, "ct6e-standard-4t", "v6e-64"),
    ("v6e", "8x16", 128, 32, "ct6e-standard-4t", "v6e-128"),
    ("v6e", "16x16", 256, 64, "ct6e-standard-4t", "v6e-256"),
    # "About Ironwood (TPU7x) in GKE", and system_characteristics.py of AI-Hypercomputer/xpk.
    ("tpu7x", "2x2x1", 4, 1, "tpu7x-standard-4t", "tpu7x-8"),
    ("tpu7x", "2x2x2", 8, 2, "tpu7x-standard-4t", "tpu7x-16"),
    ("tpu7x", "2x2x4", 16, 4, "tpu7x-standard-4t", "tpu7x-32"),
    ("tpu7x", "2x4x4", 32, 8, "tpu7x-standard-4t", "tpu7x-64"),
    ("tpu7x", "4x4x4", 64, 16, "tpu7x-standard-4t", "tpu7x-128"),
    ("tpu7x", "4x8x8", 256, 64, "tpu7x-standard-4t", "tpu7x-512"),
    ("tpu7x", "8x16x16", 2048, 512, "tpu7x-standard-4t", "tpu7x-4096"),
    ("tpu7x", "16x24x24", 9216, 2304, "tpu7x-standard-4t", "tpu7x-18432"),
]


@pytest.mark.parametrize(("kind", "topology", "chips", "hosts", "machine", "name"), ROWS)
def test_every_row_of_the_tables(kind: str, topology: str, chips: int, hosts: int, machine: str, name: str) -> None:
    each = chips // hosts
    found = tpu_slice(kind, topology)
    assert found == {
        "type": kind,
        "accelerator_type": name,
        "topology": topology,
        "chips": chips,
        "chips_per_host": each,
        "hosts": hosts,
        "multi_host": hosts > 1,
        "machine_type": machine,
        "node_selector": {"cloud.google.com/gke-tpu-accelerator": LABELS[kind], "cloud.google.com/gke-tpu-topology": topology},
        "resources": {"google.com/tpu": each},
        "placement_policy": {**({} if kind == "tpu7x" else {"type": "COMPACT"}), "tpu_topology": topology} if hosts > 1 else {},
        "autoscaling": {"enabled": True, "min_node_count": 0, "max_node_count": hosts, "location_policy": "ANY"},
    }
    assert tpu_slice(kind, topology, machine) == found
    assert tpu_slice(LABELS[kind], topology) == found
    # The name has a topology, too, and it is the one of the row.
    assert tpu_slice(name) == tpu_slice(name, topology) == found


@pytest.mark.parametrize(
    ("kind", "machine"), [("v5e", "ct5lp-hightpu-8t"), ("v5litepod-8", "ct5lp-hightpu-8t"), ("v6e", "ct6e-standard-8t")]
)
def test_eight_chips_may_be_in_one_machine(kind: str, machine: str) -> None:
    found = tpu_slice(kind, "2x4", machine)
    assert (found["hosts"], found["machine_type"], found["resources"]) == (1, machine, {"google.com/tpu": 8})
    assert found["placement_policy"] == {}
    assert found["multi_host"] is False


@pytest.mark.parametrize(("kind", "largest"), [("v4", 4096), ("v5p", 6144), ("tpu7x", 9216)])
def test_shapes_with_three_sides_are_exactly_those_of_the_rules(kind: str, largest: int) -> None:
    sides = range(4, largest // 16 + 1, 4)
    ruled = {f"{a}x{b}x{c}" for a, b, c in itertools.product(sides[:16], sides[:32], sides) if a <= b <= c and a * b * c <= largest}
    known = tpu_slices.GENERATIONS[kind].shapes
    assert set(known) == {"2x2x1", "2x2x2", "2x2x4", "2x4x4"} | ruled
    for topology in known:
        found = tpu_slice(kind, topology)
        assert found["hosts"] * found["chips_per_host"] == found["chips"] <= largest
        assert found["resources"] == {"google.com/tpu": 4}
        assert found["machine_type"] == {"v4": "ct4p-hightpu-4t", "v5p": "ct5p-hightpu-4t", "tpu7x": "tpu7x-standard-4t"}[kind]


def test_the_table_has_no_other_shapes_with_two_sides() -> None:
    for kind in ("v5e", "v6e"):
        assert set(tpu_slices.GENERATIONS[kind].shapes) == {row[1] for row in ROWS if row[0] == kind}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("v5e", "3x3"), "v5e has no slice with topology 3x3 (9 chips). The nearest are 2x4 or 4x4"),
        (("v5e", "1x2"), "no slice with topology 1x2 (2 chips). The nearest are 1x1 or 2x2"),
        (("v5e", "4x2"), "no slice with topology 4x2 (8 chips). The nearest is 2x4 (topologies are AxB"),
        (("v5e", "2x2x2"), "The nearest is 2x4 (topologies are AxB"),
        (("v6e", "2x8"), "The nearest is 4x4"),
        (("v6e", "16x32"), "(512 chips). The nearest is 16x16"),
        (("v4", "2x4"), "v4 has no slice with topology 2x4 (8 chips). The nearest is 2x2x2 (topologies are AxBxC"),
        (("v4", "1x1x1"), "(1 chip). The nearest is 2x2x1"),
        (("v4", "4x4x6"), "(96 chips). The nearest are 4x4x4 or 4x4x8"),
        (("v4", "8x4x4"), "The nearest is 4x4x8"),
        (("v4", "16x16x24"), "(6144 chips). The nearest is 16x16x16"),
        (("v5p", "16x24x24"), "(9216 chips). The nearest is 16x16x24"),
        (("v5p", "6x8x8"), "(384 chips). The nearest is 4x8x12"),
        (("v5p", "2x2x3"), "(12 chips). The nearest are 2x2x2 or 2x2x4"),
        (("v5e", "4"), "(4 chips). The nearest is 2x2"),
        (("v5e", "2*4"), "'2*4' is no topology. Write the sides of the grid, such as 2x4."),
        (("v4", "0x2x2"), "'0x2x2' is no topology. Write the sides of the grid, such as 2x2x2."),
        (("v5e", ""), "'' is no topology"),
        (("v5e", None), "TPU type v5e does not say how large the slice is. Give topology, such as 2x4 or 4x4."),
        (("v5p", None), "Give topology, such as 2x2x2 or 2x2x4."),
        (("v7", "2x2"), "TPU type 'v7' is not known. Types are v4, v5e, v5p, v6e, tpu7x, and names of slices such as v4-16"),
        (("v5e-x", None), "TPU type 'v5e-x' is not known"),
        (("v4-0", None), "v4-0 cannot be"),
        (("v4-9", None), "v4-9 cannot be: a chip of v4 has 2 TensorCores"),
        (("v4-24", None), "There is no v4-24. The nearest are v4-16 (2x2x2) or v4-32 (2x2x4)."),
        (("v5litepod-2", None), "The nearest are v5litepod-1 (1x1) or v5litepod-4 (2x2)."),
        (("v5litepod-512", None), "The nearest are v5litepod-256 (16x16)."),
        (("v4-16", "2x2x4"), "v4-16 has 8 chips, and topology 2x2x4 has 16. Leave out one of them: v4-16 is 2x2x2"),
        (("v5e", "4x4", "ct5lp-hightpu-8t"), "does not fit a slice of v5e with topology 4x4. It has 4 x ct5lp-hightpu-4t."),
        (("v5e", "2x4", "ct5lp-hightpu-1t"), "It has 2 x ct5lp-hightpu-4t or 1 x ct5lp-hightpu-8t."),
        (("v6e", "2x4", "ct5lp-hightpu-4t"), "It has 2 x ct6e-standard-4t or 1 x ct6e-standard-8t."),
        (("v4", "2x2x1", "ct5p-hightpu-4t"), "It has 1 x ct4p-hightpu-4t."),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_refused_with_the_nearest_right_ones(asked: tuple[str, ...], words: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        tpu_slice(*asked)
    assert words in str(caught.value)


def pools(*rows: dict[str, t.Any], zones: int = 1) -> list[dict[str, t.Any]]:
    return gke_tpu_pools(rows, zones)


def test_a_row_says_only_type_and_topology() -> None:
    (made,) = pools({"name": "tpu", "tpu": {"type": "v5e", "topology": "2x4"}})
    assert made == {
        "name": "tpu",
        "config": {"machine_type": "ct5lp-hightpu-4t"},
        "placement_policy": {"type": "COMPACT", "tpu_topology": "2x4"},
        "autoscaling": {"enabled": True, "min_node_count": 0, "max_node_count": 2, "location_policy": "ANY"},
    }
    assert gke_pool_sizes([made], 1) == {"least": 0, "most": 3, "general": []}


def test_several_slices_are_pools_with_a_number() -> None:
    row = {"name": "tpu", "tpu": {"type": "v6e", "topology": "4x4"}, "config": {"spot": True}, "node_locations": ["a"]}
    (alone,) = pools(row)
    for slices in (1, 3, "2"):
        made = pools({**row, "tpu": {**t.cast(t.Any, row["tpu"]), "slices": slices}})
        assert made == [{**alone, "name": f"tpu-{number}"} for number in range(int(slices))]
    assert pools({"name": "tpu", "tpu": {"type": "v4-16", "topology": "", "slices": 1}})[0]["autoscaling"]["max_node_count"] == 2


@pytest.mark.parametrize("slices", [0, -1, "many", 1.5])
def test_a_number_of_slices_that_is_none_is_refused(slices: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"tpu\.slices is .*, and has to be a number from 1 on"):
        pools({"name": "tpu", "tpu": {"type": "v5e", "topology": "4x4", "slices": slices}})


def test_what_else_a_row_says_stays() -> None:
    row = {
        "name": "tpu", "tpu": {"type": "v4-16"}, "config": {"spot": True}, "node_count": 2, "node_locations": ["us-central2-b"],
        "placement_policy": {"policy_name": "mine"}, "queued_provisioning": True,
    }  # fmt: skip
    assert pools(row, zones=3) == [
        {
            "name": "tpu",
            "config": {"spot": True, "machine_type": "ct4p-hightpu-4t"},
            "node_count": 2,
            "node_locations": ["us-central2-b"],
            "placement_policy": {"type": "COMPACT", "tpu_topology": "2x2x2", "policy_name": "mine"},
            "queued_provisioning": True,
        }
    ]


def test_a_pool_of_single_machines_has_as_many_as_it_says() -> None:
    row = {"name": "tpu", "tpu": {"type": "v5e", "topology": "2x4"}, "config": {"machine_type": "ct5lp-hightpu-8t"}}
    (made,) = pools({**row, "autoscaling": {"total_max_node_count": 6, "max_node_count": None}}, zones=3)
    assert "placement_policy" not in made
    assert made["autoscaling"]["total_max_node_count"] == 6
    (fixed,) = pools({**row, "node_count": 5}, zones=3)
    assert (fixed["node_count"], "autoscaling" in fixed) == (5, False)


def test_other_pools_stay_as_they_are() -> None:
    rows = [{"name": "gpu", "config": {"machine_type": "g2-standard-8"}}, {"name": "old", "state": "absent"}]
    assert pools(*rows, zones=3) == rows


SLICE = {"type": "v5e", "topology": "4x4"}


@pytest.mark.parametrize(
    ("more", "zones", "words"),
    [
        ({"tpu": {"type": "v5e", "topology": "3x3"}}, 1, "Node pool tpu: v5e has no slice with topology 3x3 (9 chips). The nearest"),
        ({"tpu": {"topology": "2x4"}}, 1, "Node pool tpu: tpu needs type, and topology unless the type has a number. Write {type"),
        ({"tpu": {**SLICE, "hosts": 4}}, 1, "tpu needs type"),
        ({"tpu": "v5e"}, 1, "tpu needs type"),
        ({}, 3, "a slice is in one zone, and the pool has 3. Name one zone in node_locations."),
        ({"node_locations": ["a", "b"]}, 1, "a slice is in one zone, and the pool has 2"),
        ({"node_count": 2}, 1, "node_count is 2, and a slice of v5e with topology 4x4 has 4 x ct5lp-hightpu-4t. It is 4."),
        ({"initial_node_count": 1}, 1, "initial_node_count is 1, and a slice of v5e with topology 4x4 has 4 x ct5lp-hightpu-4t. It is 0"),
        ({"autoscaling": {"max_node_count": 16}}, 1, "autoscaling.max_node_count is 16"),
        ({"autoscaling": {"min_node_count": 1}}, 1, "autoscaling.min_node_count is 1"),
        ({"autoscaling": {"total_max_node_count": 4}}, 1, "autoscaling has total_max_node_count. Use min_node_count: 0"),
        ({"placement_policy": {"tpu_topology": "2x4"}}, 1, "tpu has topology 4x4, and placement_policy 2x4"),
        ({"config": {"machine_type": "e2-standard-4"}}, 1, "Machine type e2-standard-4 does not fit"),
    ],
)  # fmt: skip
def test_a_pool_that_is_no_slice_is_refused(more: dict[str, t.Any], zones: int, words: str) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        pools({"name": "tpu", "tpu": SLICE, **more}, zones=zones)
    assert words in str(caught.value)


def test_the_error_is_one_of_ours() -> None:
    with pytest.raises(InvalidInput):
        tpu_slices.node_pool({"name": "tpu", "tpu": {}}, 1)
