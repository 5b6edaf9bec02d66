# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup manifests: what it finds, and that its options are the roles' variables."""

import dataclasses
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError
from support.released import manifest, written

from ansible_collections.muster.ml.plugins.lookup import manifests as lookup
from ansible_collections.muster.ml.plugins.plugin_utils import _role_options

ROOT = Path(__file__).resolve().parents[4]
NAMES = [
    "efs_csi",
    "gpu_drivers",
    "inference_gateway",
    "jobset",
    "kueue",
    "local_cluster",
    "lws",
    "namespace",
    "nats_operator",
    "persia_operator",
    "prometheus",
    "s3_artifacts",
    "traefik",
    "trainer",
    "training_operator",
]
OWN = {"_terms", "part"}
# What a role makes itself: an image from its pinned versions, the ARN of the IAM role that it created.
NO_VARIABLE = {"local_cluster": {"storage_image", "network_policy_image"}, "s3_artifacts": {"identity", "namespace", "role_arn"}}
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
def test_an_option_is_a_variable_of_the_role_or_a_key_of_one(name: str) -> None:
    spec = yaml.safe_load((ROOT / "roles" / name / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    variables = spec["argument_specs"]["main"]["options"]
    names = fields(name) - NO_VARIABLE.get(name, set())
    others = names & _role_options.free(f"{name}_options") if f"{name}_options" in variables else set()
    names -= others
    assert {n: compared(variables[f"{name}_{n}"]) for n in names} == {n: compared(documented()[n]) for n in names}


def kinds(objects: list[dict[str, t.Any]]) -> list[str]:
    return [one["kind"] for one in objects]


@pytest.fixture
def jobset(tmp_path: Path) -> dict[str, str]:
    released = manifest("jobset", {"jobsets.jobset.x-k8s.io": "JobSet"})
    return {"namespace": "jobset-system", "image": "example.com/jobset:v1", **written(tmp_path, released)}


def test_a_released_manifest_in_parts(jobset: dict[str, str]) -> None:
    crds, others, everything = (lookup.build("jobset", jobset, part) for part in ("crds", "objects", "all"))
    assert kinds(crds) == ["CustomResourceDefinition"]
    assert "Deployment" in kinds(others)
    assert everything == [*crds, *others]


@pytest.mark.parametrize("part", ["crds", "objects"])
def test_a_manifest_with_another_digest_is_refused(jobset: dict[str, str], part: str) -> None:
    with pytest.raises(AnsibleError, match=r"not the 0000 that was expected\. .*Nothing was changed"):
        lookup.build("jobset", {**jobset, "manifest_sha256": "0000"}, part)


def test_a_manifest_is_read_only_where_it_is_needed(tmp_path: Path) -> None:
    """Where another program installed the CustomResourceDefinitions, nothing is fetched."""
    absent = {"namespace": "a", "image": "a", "manifest": str(tmp_path / "absent"), "manifest_sha256": "0"}
    assert "Deployment" in kinds(lookup.build("traefik", absent, "objects"))
    flavors = lookup.build("kueue", {**absent, "resource_flavors": [{"name": "any"}]}, "queues")
    assert kinds(flavors) == ["ResourceFlavor"]
    with pytest.raises(AnsibleError, match="absent cannot be read"):
        lookup.build("traefik", absent, "crds")


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
