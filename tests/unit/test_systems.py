# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about systems: each has the same parts, and one list names them all. tests/systems adds one and runs it on a cluster."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.reading import load, parse
from systems.sample import ENTRY, FILES, NAME

from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS
from ansible_collections.muster.ml.plugins.module_utils._kube.order import BUILT_IN_GROUPS
from ansible_collections.muster.ml.plugins.module_utils._kube.uses import TRAININGS

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "playbooks" / "vars" / "systems.yml"
KNOWN: list[dict[str, Any]] = load(LIST)["__systems_known"]
NAMES = [system["name"] for system in KNOWN]
# What every system is treated by.
COMMON = [
    *(ROOT / "playbooks").rglob("*.yml"),
    *(ROOT / "playbooks" / "templates").iterdir(),
    ROOT / "site.yml",
    ROOT / "plugins" / "callback" / "summary.py",
    ROOT / "inventories" / "local" / "group_vars" / "all.yml",
]
# Goldens of objects in the namespace of a system.
WRITTEN = {
    "elastic_job_pytorchjob": "elastic",
    "differences/jobset_hosts": "tpu",
    "differences/llm_hub": "llm",
    "jobset_tpu": "tpu",
    "llm_claim": "llm",
    "nats_cluster_operator": "persia",
    "nats_cluster_statefulset": "persia",
    "object_store": "studioml",
    "persia_job_native": "persia",
    "differences/persia_job_operator": "persia",
    "rabbitmq_cluster_one": "studioml",
    "differences/rabbitmq_cluster_three": "studioml",
    "studioml_runner": "studioml",
    "differences/triton_autoscaling": "triton",
    "triton_volume": "triton",
}
ENTRY_POINTS = ("validate", "preflight", "main", "remove")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def roles_of(system: dict[str, Any]) -> list[str]:
    return [need["role"] for need in system["needs"]] + system["uses"] + system["eks"] + system["gke"]


def test_a_system_is_named_once() -> None:
    assert len(NAMES) == len(set(NAMES)) > 1


@pytest.mark.parametrize("system", [*KNOWN, *parse(ENTRY)], ids=lambda system: system["name"])
def test_every_entry_says_the_same_things(system: dict[str, Any]) -> None:
    assert system.keys() == {"name", "title", "kubernetes", "needs", "uses", "eks", "gke", "images", "must", "usual", "writes"}
    assert system["kubernetes"].keys() == {"version", "reason"}
    for need in system["needs"]:
        assert {"role", "when", "owners"} <= need.keys() <= {"role", "when", "owners", "shared"}


@pytest.mark.parametrize("system", KNOWN, ids=NAMES)
def test_what_must_be_set_is_an_option_of_the_role(system: dict[str, Any]) -> None:
    options = load(ROOT / "roles" / system["name"] / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {*system["must"], *system["usual"]} <= options.keys()
    assert all(options[name].get("default") == "" for name in system["must"])


@pytest.mark.parametrize(("golden", "name"), WRITTEN.items())
def test_the_role_that_init_writes_has_all_kinds_that_a_system_writes(golden: str, name: str) -> None:
    found = load(ROOT / "tests" / "unit" / "goldens" / f"{golden}.yaml")
    objects = found if isinstance(found, list) else [one for one in found.values() if isinstance(one, dict) and "kind" in one]
    writes = json.dumps(next(system["writes"] for system in KNOWN if system["name"] == name))
    plural = [re.sub("y$", "ie", item["kind"].lower()) + "s" for item in objects]
    groups = [item["apiVersion"].rpartition("/")[0] for item in objects]
    assert [one for kind, group in zip(plural, groups, strict=True) if (one := f'"{kind}{group and "."}{group}"') not in writes] == []


@pytest.mark.parametrize("system", KNOWN, ids=NAMES)
def test_a_system_has_all_of_its_parts(system: dict[str, Any]) -> None:
    name = system["name"]
    parts = [
        f"plugins/module_utils/_systems/{name}",
        f"playbooks/{name}.yml",
        f"docs/systems/{name}.md",
        f"tests/acceptance/{name}/claims.yml",
        *(f"roles/{name}/tasks/{entry}.yml" for entry in ENTRY_POINTS),
        *(f"roles/{role}/tasks/{entry}.yml" for role in roles_of(system) for entry in ("main", "remove")),
    ]
    assert [part for part in parts if not (ROOT / part).exists()] == []


def test_the_sample_has_the_parts_of_a_system() -> None:
    parts = {re.sub(r"(?<!/tasks)/[^/]+\.py$", "", name) for name in FILES}
    assert {"plugins/module_utils/_systems/sample", "playbooks/sample.yml", f"docs/systems/{NAME}.md"} <= parts
    assert {f"roles/sample/tasks/{entry}.yml" for entry in ENTRY_POINTS} <= parts


def test_every_workload_of_a_training_counts_as_one_that_uses_things() -> None:
    """Deletion asks what trainings use, and whether they have ended, also for those of other tools."""
    workloads = [w for kind in KINDS.values() for backend in kind.backends for w in backend.workloads]
    # A template without pods of its own, which has no size, is used until it is deleted, as any custom resource.
    custom = {w.group_kind for w in workloads if w.size and w.group_kind[0] not in BUILT_IN_GROUPS}
    assert custom <= TRAININGS.keys(), "add the kind to TRAININGS in plugins/module_utils/_kube/uses.py"
    assert all(workload.pod_sets for workload in workloads if workload.group_kind in custom)


@pytest.mark.parametrize("path", [p for p in COMMON if p != LIST and p.stem not in NAMES], ids=name_of)
def test_only_the_list_names_systems(path: Path) -> None:
    """A condition, a loop or a default with the name of a system is a second list. Comments and options of a system may name it."""
    lines = [line.split("#")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    lists = re.compile(rf"['\"\[, ]({'|'.join(NAMES)})(\.yml)?['\"\], ]")
    assert [line for line in lines if lists.search(f"{line} ") and not line.startswith("muster_systems: ")] == []


@pytest.mark.parametrize("system", [one for one in KNOWN if "efs_csi" in one["eks"]], ids=lambda system: system["name"])
def test_on_eks_every_claim_names_the_class_that_is_there(system: dict[str, Any]) -> None:
    """A new EKS cluster has no driver of EBS, whatever class it has: a claim that names none waits for ever.

    EKS user guide, "Use Amazon EBS storage": the driver "isn't installed when you first create a cluster".
    """
    inventory = load(ROOT / "inventories" / "eks" / "group_vars" / "all.yml")
    there = load(ROOT / "roles" / "efs_csi" / "defaults" / "main.yml")["efs_csi_storage_class_name"]
    roles = {system["name"], *system["uses"], *(need["role"] for need in system["needs"])}
    pages = [load(ROOT / "roles" / role / "defaults" / "main.yml") or {} for role in roles]
    names = [name for page in pages for name in page if name.endswith(("_storage", "_storage_class_name"))]
    assert len(names) > 1
    given = [inventory.get(name) for name in names]
    assert [one["storage_class_name"] if isinstance(one, dict) else one for one in given] == [there] * len(names)


@pytest.mark.parametrize("given", ["elastic, persia", "elastic,persia", ["elastic", "persia"]])
@pytest.mark.parametrize("name", ["muster_systems", "muster_only"])
@pytest.mark.parametrize("groups", [{}, {"muster_clusters": ["one"]}], ids=["one cluster", "several"])
def test_systems_are_a_list_or_text_as_surveys_give_it(groups: dict[str, list[str]], name: str, given: object) -> None:
    """-e muster_systems=elastic gives text, of which each letter would be a system."""
    page = load(ROOT / "playbooks" / "vars" / "systems.yml")
    read = ("asked", "only", "chosen", "of_cluster", "listed")
    variables = {f"__systems_{one}": trust_as_template(page[f"__systems_{one}"]) for one in read}
    templar = Templar(DataLoader(), variables={**variables, "groups": groups, "muster_systems": given, name: given})
    assert sorted(templar.template(trust_as_template("{{ __systems_asked }}"))) == ["elastic", "persia"]
