# SPDX-License-Identifier: GPL-3.0-or-later
"""A role takes further options from one mapping; keys that the module would not take, or that the role sets, are refused."""

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

REFUSED: list[tuple[str, str, Any, str]] = [
    ("elastic", "max_restart", 3, "is no option of the module muster.ml.elastic_job that the role passes on. Did you mean max_restarts?"),
    ("elastic", "replica", 3, "is no option of the module muster.ml.elastic_job that the role passes on. Did you mean elastic_replicas?"),
    ("elastic", "kubeconfig", "/else", "is no option of the module muster.ml.elastic_job that the role passes on."),
    ("elastic", "max_restarts", "two", "must be of type int, not two."),
    ("elastic", "tolerations", 3, "must be of type list of dict, not 3."),
    ("elastic", "image_pull_policy", "Alway", "must be one of Always, IfNotPresent, Never, not Alway. Did you mean Always?"),
    ("elastic", "replicas", 3, "is set by the variable elastic_replicas."),
    ("elastic", "name", "other", "is set by the variable elastic_job_name."),
    ("elastic", "storage", {}, "is set by the variable elastic_storage_*."),
    ("elastic", "state", "absent", "is set by the role itself."),
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


@pytest.mark.parametrize(("role", "key", "value", "told"), REFUSED)
def test_a_key_or_value_that_the_module_does_not_take(role: str, key: str, value: object, told: str) -> None:
    variable = f"{role}_options"
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
    assert [name for name in variables() if f"'muster.ml.role_options', '{name}'" not in text] == []


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
