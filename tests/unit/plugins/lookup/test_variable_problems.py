# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that no role has, and values that none takes, are refused with the nearest name; those of other projects are left alone."""

import re
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants as C  # noqa: N812  (as everywhere in Ansible)
from ansible.utils.display import Display
from support.docs import collection
from support.places import ROOT

from ansible_collections.muster.ml.plugins.plugin_utils import _specs, _tags
from ansible_collections.muster.ml.plugins.plugin_utils._variables import Given, problems

# By the place where the inventories' test sets them; see there.
ROWS = {name: row for rows in yaml.safe_load((ROOT / "tests/inventories/typos.yml").read_text()).values() for name, row in rows.items()}
TYPOS = {name: row for name, row in ROWS.items() if isinstance(row, str)}
# Of kubespray's and deepops' inventories (group_vars and defaults of roles, autumn of 2026), those that are nearest to ours. All 2,337
# names that are there were judged once, and none was taken for ours.
OTHERS = [
    "etcd_access_addresses", "etcd_data_dir", "etcd_deployment_type", "etcd_image_repo", "etcd_image_tag", "etcd_memory_limit",
    "etcd_metrics", "etcd_retries", "etcd_version", "local_path_provisioner_enabled", "local_release_dir", "kube_network_plugin",
    "prometheus_cfg_dir", "prometheus_container", "prometheus_operator_enabled", "registry_namespace", "kubeconfig_localhost",
    "gcp_pd_csi_enabled", "nvidia_driver_version", "images_dir", "dataset", "namespace", "etcd_url_scheme_of_theirs",
]  # fmt: skip
TAG = "has what the cloud refuses:"


def as_json(kind: str, value: str) -> str:
    """What is said of text in the place of a list or mapping."""
    return f"must be a {kind}, not text. With -e it is written as JSON: -e '{value}'."


VALUES: list[tuple[str, Any, str]] = [
    *((name, row["value"], row["told"]) for name, row in ROWS.items() if name not in TYPOS),
    ("elastic_args", ["--epochs", "10"], ""),
    ("images_registry_password", {"secret": "hunter2"}, ""),
    ("muster_systems", "elastic", ""),
    ("muster_systems", "elastic, persia", ""),
    ("muster_aws_tags", "team=ml", as_json("dict", '{"muster_aws_tags": {"key": "value"}}')),
    ("muster_aws_tags", {"cost_center": 1234, "prod": True}, ""),
    ("muster_aws_tags", {"aws:a": "x"}, f"{TAG} the tag aws:a cannot be set: AWS reserves aws: for its own. Choose another key."),
    ("muster_aws_tags", {"team": None}, f'{TAG} team has no value. Give it a text, a number, true or false; "" for an empty text.'),
    ("muster_aws_tags", {"Team": "a", "team": "b"}, f"{TAG} Team and team are one tag for IAM. Leave out one of them."),
    ("muster_gcp_labels", {"team": True, "cost": 7}, ""),
    (
        "muster_gcp_labels",
        {"Team": "ml"},
        f"{TAG} 'Team' cannot be the key of a label. Use lowercase letters, digits, hyphens and underscores, at most 63; a key begins"
        " with a letter.",
    ),
]


@pytest.mark.parametrize(("name", "meant"), TYPOS.items())
def test_a_typo_is_told_with_its_place_and_the_nearest_name(name: str, meant: str) -> None:
    assert meant.rpartition(" in ")[2] in _specs.names()
    (told,) = problems([Given(name, 1, "group_vars/all.yml:3")])
    assert told.startswith(f"{name} (group_vars/all.yml:3) is not a variable of Muster. Did you mean {meant}?")
    assert problems([Given(name, 1, "-e")], [name]) == problems([Given(name, 1, "-e")], [f"{name[:4]}*"]) == []


@pytest.mark.parametrize("name", ["persia_color", "muster_banana", "elastic_gpu_memory", "studioml_runner_speed"])
def test_a_name_that_is_nowhere_near_is_told_too(name: str) -> None:
    (told,) = problems([Given(name, 1, "-e")])
    assert "Did you mean" not in told
    assert "muster_ignored_variables" in told


def test_variables_of_other_projects_are_left_alone() -> None:
    assert problems([Given(name, 1, "-e") for name in OTHERS]) == []


@pytest.mark.parametrize(("name", "value", "told"), VALUES)
def test_a_value_that_no_role_takes(name: str, value: object, told: str) -> None:
    found = problems([Given(name, value, "-e")])
    assert found == ([f"{name} (-e) {told}"] if told else found)
    assert "hunter2" not in str(found)
    assert problems([Given(name, value, "-e", constant=False)]) == []


def test_every_default_is_taken() -> None:
    given = [
        Given(name, option["default"], "-e", constant="{{" not in str(option["default"]))
        for role in collection.roles().values()
        for name, option in role.options.items()
        if option.get("default") is not None
    ]
    assert len(given) > 400
    assert problems(given) == []


def test_every_variable_of_roles_and_playbooks_is_known() -> None:
    roles = {name for role in collection.roles().values() for name in role.options}
    shared = re.compile(r"muster_|(eks|gke)_manage_|images_|init_")
    groups = {"muster_clusters", "muster_gcp_brokers"}  # of inventories
    read = {name for name in collection.variables() if shared.match(name)} - groups - roles
    settings = _specs.options("").keys()
    assert read <= settings
    assert settings - read <= {"eks_manage_efs", "eks_manage_s3"}
    assert _specs.names().keys() == roles | settings


def command(monkeypatch: pytest.MonkeyPatch, playbooks: list[str], tags: str, skipped: str = "") -> None:
    given = {"args": playbooks, "tags": tags.split(","), "skip_tags": skipped.split(",")}
    monkeypatch.setattr(_tags, "context", types.SimpleNamespace(CLIARGS=given))


def test_every_tag_is_known() -> None:
    assert _tags.tags() == collection.tags() | {"never", "tagged", "untagged"}


@pytest.mark.parametrize("playbook", ["muster.ml.site", str(ROOT / "site.yml"), str(ROOT / "playbooks/teardown.yml")])
@pytest.mark.parametrize(
    ("tags", "skipped", "told"),
    [
        ("elastc,persia", "", ["elastc (--tags) is not a tag of Muster. Did you mean elastic?"]),
        ("all", "persa", ["persa (--skip-tags) is not a tag of Muster. Did you mean persia?"]),
        ("elastic-install", "", ["elastic-install (--tags) is not a tag of Muster. Did you mean elastic_install?"]),
        ("nginx", "", ["nginx (--tags) is not a tag of Muster. Each role has its name as a tag, and each of its phases ROLE_PHASE."]),
        ("", "", ["Nothing (--tags) is not a tag of Muster. Each role has its name as a tag, and each of its phases ROLE_PHASE."]),
        ("elastic,", "gke_needs,", []),
        ("tagged,untagged", "never", []),
        ("all", "of_ansible_cfg", []),
    ],
)
def test_a_tag_that_nothing_has(playbook: str, tags: str, skipped: str, told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C, "TAGS_SKIP", ["of_ansible_cfg"])
    command(monkeypatch, [playbook], tags, skipped)
    assert _tags.tag_problems(["elastc"]) == told


@pytest.mark.parametrize(
    ("tags", "own", "ignored", "warned"),
    [
        ("gpu", [], [], "gpu (--tags) is not a tag of Muster. Did you mean tpu? If it is yours, name it in muster_ignored_variables."),
        ("gpu", ["gpu"], [], ""),
        ("gpu", [], ["g*"], ""),
        ("nginx,elastic", [], [], ""),
    ],
)
def test_another_playbook_has_tags_of_its_own(
    tags: str, own: list[str], ignored: list[str], warned: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of import_playbook are known for each task; those of its other plays are not."""
    warnings: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda _self, text: warnings.append(text))
    (tmp_path / "site.yml").touch()
    command(monkeypatch, ["muster.ml.site", str(tmp_path / "site.yml")], tags)
    with _tags.TaskContext(types.SimpleNamespace(tags=["always", *own])):
        assert _tags.tag_problems(ignored) == []
    assert warnings == [text for text in [warned] if text]
