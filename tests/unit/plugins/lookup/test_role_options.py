# SPDX-License-Identifier: GPL-3.0-or-later
"""A role takes further options from one mapping; keys that the module would not take, or that the role sets, are refused."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.docs import collection
from support.places import BIN, ROOT
from support.reading import load

from ansible_collections.muster.ml.plugins.plugin_utils._role_options import Target, free, target
from ansible_collections.muster.ml.plugins.plugin_utils._variables import Given, problems

OF_MODULE = "is no option of the module muster.ml.elastic_job that the role passes on."
OF_STORAGE = "is no option of the storage of module muster.ml.elastic_job that the role passes on."
REFUSED: list[tuple[str, str, Any, str]] = [
    ("elastic_options", "max_restart", 3, f"{OF_MODULE} Did you mean max_restarts?"),
    ("elastic_options", "replica", 3, f"{OF_MODULE} Did you mean elastic_replicas?"),
    ("elastic_options", "kubeconfig", "/else", OF_MODULE),
    ("elastic_options", "max_restarts", "two", "must be of type int, not two."),
    ("elastic_options", "tolerations", 3, "must be of type list of dict, not 3."),
    ("elastic_options", "image_pull_policy", "Alway", "must be one of Always, IfNotPresent, Never, not Alway. Did you mean Always?"),
    ("elastic_options", "replicas", 3, "is set by the variable elastic_replicas."),
    ("elastic_options", "name", "other", "is set by the variable elastic_job_name."),
    ("elastic_options", "storage", {}, "is set by the variable elastic_storage."),
    ("persia_options", "metrics", {}, "is set by the variable persia_metrics_*."),
    ("elastic_options", "state", "absent", "is set by the role itself."),
    ("elastic_storage", "sise", "1Gi", f"{OF_STORAGE} Did you mean size?"),
    ("elastic_storage", "access_modes", {"a": 1}, "must be of type list of str, not {'a': 1}."),
    ("dataset_storage", "class_name", "", OF_STORAGE),
    ("persia_nn_worker_options", "tolerations", "gpu", "must be of type list of dict, not gpu."),
]  # fmt: skip
INVENTORY = """\
elastic_options:
  backoff_limit: "{{ 3 + 4 }}"
"""


def variables() -> dict[str, Target]:
    """Every variable whose keys are options."""
    found = {name: target(name) for role in collection.roles().values() for name in role.options}
    return {name: one for name, one in found.items() if one}


def secrets(options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The options with secrets in them."""
    for name, option in options.items():
        if option.get("no_log") or list(secrets(option.get("options") or {})):
            yield name


@pytest.mark.parametrize(("variable", "key", "value", "told"), REFUSED)
def test_a_key_or_value_that_the_module_does_not_take(variable: str, key: str, value: object, told: str) -> None:
    found = problems([Given(variable, {key: value}, "-e", keys=[Given(key, value, "all.yml:3")])])
    assert found == [f"{variable}.{key} (all.yml:3) {told}"]


@pytest.mark.parametrize("variable", variables())
def test_what_users_may_give(variable: str) -> None:
    """Secrets have variables of their own, and a variable for options is of use."""
    found = free(variable)
    assert found
    assert found.isdisjoint(secrets(variables()[variable].options))


def test_each_variable_is_handed_over_by_the_group_of_all_such_modules() -> None:
    groups = {f"module muster.ml.{name}" for name in collection.groups()["role_options"]}
    assert {one.title for one in variables().values() if one.title.startswith("module")} == groups
    text = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("roles/*/*/*.yml"))
    released = {f"{name}_options" for name in load(ROOT / "roles" / "released_operator" / "files" / "sums.yml")}
    assert "lookup('muster.ml.role_options', __released_operator_spec.name ~ '_options')" in text
    whole = [name for name, one in variables().items() if " of module" not in one.title and name not in released]
    assert [name for name in whole if f"'muster.ml.role_options', '{name}'" not in text] == []


def test_each_secret_of_a_module_has_a_variable_of_its_role() -> None:
    """It is no key of the mapping. The login at a broker is that of all tasks of the role."""
    modules = {name: one for name, one in variables().items() if one.title.startswith("module muster.ml.")}
    assert len(modules) > 10
    for name, one in modules.items():
        spec = import_module(one.title.replace("module muster.ml", "ansible_collections.muster.ml.plugins.modules")).ARGUMENT_SPEC
        hidden = {option for option, row in spec.items() if row.get("no_log")}
        assert hidden - one.taken.keys() - {"login_password"} == set(), name


def play(folder: Path, task: Mapping[str, Any], *words: str, **defaults: Any) -> str:
    """What Ansible says of a task of a role with the inventory above."""
    (folder / "hosts.yml").write_text("all: {hosts: {localhost: {ansible_connection: local}}}")
    (folder / "group_vars").mkdir(exist_ok=True)
    (folder / "group_vars" / "all.yml").write_text(INVENTORY)
    of_play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": [task]}
    (folder / "play.yml").write_text(yaml.safe_dump([of_play]))
    command = [BIN / "ansible-playbook", "-i", folder / "hosts.yml", "play.yml", *words]
    environment = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def task_of_role(**options: Any) -> dict[str, Any]:
    """The task of role elastic, with some options in place of the role's variables."""
    task: dict[str, Any] = load(ROOT / "roles" / "elastic" / "tasks" / "configure.yml")[0]
    given = {"name": "digits", "image": "example.com/torch:1", "script": "/train.py", "replicas": 2, "namespace": "ml"}
    variables = load(ROOT / "roles" / "elastic" / "vars" / "main.yml")
    defaults = {"__elastic_defaults": variables["__elastic_defaults"], "__elastic_asked": {}}
    return {"vars": defaults, "module_defaults": task["module_defaults"], "muster.ml.elastic_job": {**given, **options}}


def test_options_reach_the_module_beside_the_defaults_of_a_play(tmp_path: Path) -> None:
    """What a play says of the module, such as the kubeconfig of a cluster, stays in force."""
    told = play(tmp_path, task_of_role(), **{"muster.ml.elastic_job": {"kubeconfig": "/nowhere"}})
    assert "The kubeconfig /nowhere does not exist." in told
    assert "[WARNING]" not in told
    told = play(tmp_path, task_of_role(backend="pytorchjob"))
    assert "backoff_limit: with backend pytorchjob, lost pods are created again and not counted." in told


def test_a_wrong_key_is_told_with_its_place_before_the_module_runs(tmp_path: Path) -> None:
    told = play(tmp_path, task_of_role(), "-e", '{"elastic_options": {"max_restart": 1}}')
    assert "elastic_options.max_restart (set by -e) is no option" in told
    assert "Did you mean max_restarts?" in told


def test_operators_are_installed_by_the_sums_of_their_releases(tmp_path: Path) -> None:
    """Options of the user replace the sum as everything that the role says."""
    shared = ROOT / "roles" / "released_operator"
    sums = load(shared / "files" / "sums.yml")
    pages = [load(ROOT / "roles" / role / part / "main.yml") for role in sums for part in ("defaults", "vars")]
    variables = {name: value for page in [*pages, load(shared / "vars" / "main.yml")] for name, value in page.items()}
    task = {
        "ansible.builtin.debug": {"msg": "{{ item }} {{ __released_operator_options | to_json }}"},
        "loop": [*sums],
        "vars": {
            **{name: value for name, value in variables.items() if name != "kueue_options"},
            "__released_operator_spec": "{{ lookup('ansible.builtin.vars', '__' ~ item ~ '_operator') }}",
            "role_path": str(shared),
        },
    }
    told = play(tmp_path, task, "-e", '{"kueue_options": {"manifest_sha256": "mine", "resources": {}}}')
    found = {name: json.loads(json.loads(f'"{text}"')) for name, text in re.findall(r'"msg": "(\w+) (.*)"', told)}
    assert {name: options.pop("manifest_sha256") for name, options in found.items()} == {**sums, "kueue": "mine"}, told
    assert (found["kueue"]["resources"], found["lws"]["resources"]["limits"]) == ({}, {"memory": "1Gi"})
    assert {name: (options["image"], options["namespace"]) for name, options in found.items()} == {
        name: (variables[f"{name}_image"], variables[f"{name}_namespace"]) for name in sums
    }


def test_keys_of_a_claim_replace_those_of_the_role_one_by_one(tmp_path: Path) -> None:
    roles = ("elastic", "persia", "tpu", "triton")
    pages = [load(ROOT / "roles" / role / part / "main.yml") for role in roles for part in ("defaults", "vars")]
    task = {
        "ansible.builtin.debug": {"msg": {role: f"{{{{ __{role}_storage }}}}" for role in roles}},
        "vars": {name: value for page in pages for name, value in page.items() if not name.endswith("_storage") or name.startswith("__")},
    }
    given = {
        "elastic_storage": {"size": "50Gi"},
        "persia_storage": {"storage_class_name": "nfs", "access_modes": ["ReadWriteOnce"]},
        "tpu_storage": {"claim_name": "theirs", "size": "", "storage_class_name": ""},
        "triton_storage": {"claim_name": "models", "mount_path": "/models", "size": ""},
    }
    shared = {"mount_path": "/workspace/shared", "access_modes": ["ReadWriteMany"]}
    told = play(tmp_path, task, "-e", json.dumps(given))
    assert json.loads(told[told.index("{") : told.rindex("}") + 1])["msg"] == {
        "elastic": {**shared, "claim_name": "digits-storage", "size": "50Gi"},
        "persia": {**shared, "claim_name": "fair-storage", "size": "10Gi", **given["persia_storage"]},
        "tpu": {**shared, "claim_name": "theirs"},
        "triton": {"claim_name": "models", "mount_path": "/models"},
    }
