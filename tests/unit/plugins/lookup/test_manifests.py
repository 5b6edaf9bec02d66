# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookup manifests: what it finds, and that its options are the roles' variables."""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.muster.ml.plugins.lookup import manifests as lookup

ROOT = Path(__file__).resolve().parents[4]
NAMES = [
    "efs_csi",
    "gpu_drivers",
    "jobset",
    "kueue",
    "local_cluster",
    "namespace",
    "nats_operator",
    "persia_operator",
    "prometheus",
    "s3_artifacts",
    "traefik",
    "training_operator",
]
OWN = {"_terms", "crds"}
# What a role makes itself: an image from its pinned versions, the ARN of the IAM role that it created.
NO_VARIABLE = {"local_cluster": {"storage_image"}, "s3_artifacts": {"role_arn"}}
OPERATOR = {"namespace": "ml", "image": "natsio/nats-operator:0.8.3"}

Options = dict[str, dict[str, t.Any]]


def documented() -> Options:
    options: Options = yaml.safe_load(lookup.DOCUMENTATION)["options"]
    return {name: option for name, option in options.items() if name not in OWN}


def fields(name: str) -> set[str]:
    return {field.name for field in dataclasses.fields(lookup.options_of(lookup.find(name)))}


def compared(option: dict[str, t.Any]) -> dict[str, t.Any]:
    return {key: option[key] for key in ("type", "elements", "choices") if key in option}


def test_a_builder_is_found_by_the_name_of_its_role() -> None:
    assert list(lookup.builders()) == NAMES


def test_every_option_is_documented() -> None:
    assert set().union(*map(fields, NAMES)) == documented().keys()


@pytest.mark.parametrize("name", NAMES)
def test_an_option_is_a_variable_of_the_role(name: str) -> None:
    spec = yaml.safe_load((ROOT / "roles" / name / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    variables = spec["argument_specs"]["main"]["options"]
    names = fields(name) - NO_VARIABLE.get(name, set())
    assert {n: compared(variables[f"{name}_{n}"]) for n in names} == {n: compared(documented()[n]) for n in names}


def test_the_kinds_of_an_operator() -> None:
    found = [kind["spec"]["names"]["kind"] for name in NAMES for kind in lookup.kinds(name)]
    assert found == [
        "JobSet",
        "AdmissionCheck",
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "ProvisioningRequestConfig",
        "ResourceFlavor",
        "Workload",
        "WorkloadPriorityClass",
        "NatsCluster",
        "NatsServiceRole",
        "PersiaJob",
        "BackendTLSPolicy",
        "Gateway",
        "GatewayClass",
        "GRPCRoute",
        "HTTPRoute",
        "ReferenceGrant",
        "PyTorchJob",
    ]


def test_an_option_that_is_none_is_left_out() -> None:
    assert lookup.build("nats_operator", {**OPERATOR, "replicas": None}) == lookup.build("nats_operator", OPERATOR)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("nats", {}, f"No role with manifests is called 'nats'. There are {', '.join(NAMES)}."),
        ("nats_operator", {"imag": "a"}, "nats_operator has no option imag. Its options are namespace, image,"),
        ("gpu_drivers", {"scope": "cluster"}, "gpu_drivers has no option scope. Its options are flavour,"),
        ("nats_operator", {"image": "a"}, "nats_operator needs the option namespace."),
        ("nats_operator", {**OPERATOR, "resources": {"limits": {"memory": "1 GB"}}}, "Write 1G"),
    ],
)
def test_a_mistake_is_one_message(name: str, given: dict[str, t.Any], message: str) -> None:
    with pytest.raises(AnsibleError) as caught:
        lookup.build(name, given)
    assert message in str(caught.value)
