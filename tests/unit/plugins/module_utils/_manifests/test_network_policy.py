# SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkPolicies select the pods of their system and no option of a training. tests/policies tries on a cluster who may connect."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import Manifest
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import spec as elastic_spec
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import spec
from ansible_collections.muster.ml.tests.unit.fakes.policies import ELASTIC, PERSIA, SYSTEMS, labels_of

MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


def policy_of(objects: list[Manifest]) -> Manifest:
    (found,) = [item for item in objects if item["kind"] == "NetworkPolicy"]
    return t.cast("Manifest", found["spec"])


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_pod_has_the_policy(system: str) -> None:
    objects = SYSTEMS[system]()
    policy, labels = policy_of(objects), labels_of(system, objects)
    assert labels
    assert policy["policyTypes"] == ["Ingress"]
    for own in labels:
        assert policy["podSelector"]["matchLabels"].items() <= own.items()


@pytest.mark.parametrize("system", sorted(SYSTEMS.keys() - {"StudioML's runner"}))
def test_it_is_an_option_who_else(system: str) -> None:
    assert "NetworkPolicy" not in {item["kind"] for item in SYSTEMS[system](network_policy=False)}
    policy = policy_of(SYSTEMS[system](network_policy_from=[MONITORING]))
    assert [MONITORING in rule["from"] for rule in policy["ingress"] if "from" in rule].count(True) == 1


@pytest.mark.parametrize("wrong", [{"namespace_selector": {}}, {}])
def test_nobody_is_let_in_by_a_mistake(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="network_policy_from"):
        SYSTEMS["elastic training"](network_policy_from=[wrong])


def test_trainings_that_are_there_are_not_other_ones_for_it() -> None:
    for make, given in ((spec.from_params, PERSIA), (elastic_spec.from_params, ELASTIC)):
        parts = make({**given, "network_policy": False}).parts
        assert parts == make({**given, "network_policy_from": [MONITORING]}).parts
        assert not [name for name in parts if "network" in name]
