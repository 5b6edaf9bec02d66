# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks with the answers of the surveys in awx, as AWX hands them over: in a file that -e names, and all of them as text."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from simulators.apiserver import ApiServer, node
from support.docs import awx
from support.places import ROOT

from inventories.conftest import Theirs

TEMPLATES = {template["playbook"]: template for template in yaml.safe_load((ROOT / awx.FILE).read_text("utf-8"))["awx_job_templates"]}
# What has no default that can be used as it is.
GIVEN = {
    "llm": {"llm_model": "example/chat"},
    "persia": {"persia_image": "registry.example.com/persia-cpu:0.1.dev251"},
    # The manifest of JobSet is downloaded otherwise.
    "tpu": {"tpu_image": "registry.example.com/jax-cpu:0.10.2", "jobset_manage": "false"},
    "triton": {"triton_model_repository": "gs://example-models/production"},
}


def answers(playbook: str, **given: Any) -> dict[str, Any]:
    """The defaults of all questions and GIVEN, as text; lists, which a multiple choice gives, as lists."""
    asked = TEMPLATES[f"{playbook}.yml"].get("survey_spec", {}).get("spec", [])
    found = {question["variable"]: question["default"] for question in asked if "default" in question} | GIVEN.get(playbook, {}) | given
    return {name: value if isinstance(value, list) else str(value) for name, value in found.items()}


@pytest.fixture
def project(theirs: Theirs) -> Iterator[Theirs]:
    """A project of AWX: an inventory, and a playbook for each template that imports ours."""
    server = ApiServer(None, "token", node("node-1"))
    shutil.copytree(ROOT / "inventories" / "existing", theirs.folder / "inventory")
    path = theirs.write("kubeconfig", server.kubeconfig())
    theirs.write("inventory/host_vars/localhost.yml", {"muster_kubeconfig": str(path)})
    for name in TEMPLATES:
        theirs.write(name, [{"import_playbook": f"muster.ml.{name.removesuffix('.yml')}"}])
    yield theirs
    server.stop()


@pytest.mark.parametrize("system", awx.systems())
def test_answers_of_a_survey_run_a_system(system: str, project: Theirs) -> None:
    project.write("answers.yml", answers(system))
    assert project.play(f"{system}.yml", "--check", "-e", "@answers.yml") == 0, project.output
    assert project.recap()["localhost"]["changed"] > 0


def test_a_choice_of_systems_is_a_list(project: Theirs) -> None:
    project.write("answers.yml", answers("site", muster_only=["elastic"]))
    assert project.play("site.yml", "--check", "-e", "@answers.yml") == 0, project.output


def test_a_list_that_is_text_is_refused_with_its_form(project: Theirs) -> None:
    """What a text question would give; variables of a launch are YAML, and so lists."""
    project.write("answers.yml", answers("elastic", elastic_args='["--epochs", "3"]'))
    assert project.play("elastic.yml", "--check", "-e", "@answers.yml") != 0
    assert "elastic_args" in project.told
    assert "must be a list, not text" in project.told
