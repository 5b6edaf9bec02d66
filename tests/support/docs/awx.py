# SPDX-License-Identifier: GPL-3.0-or-later
"""Job templates for AWX with their surveys, from the argument specs of the roles: awx/job_templates.yml.

AWX hands every answer over as an extra variable, the default of a question too, and an empty text where none was given
(``_update_unified_job_kwargs`` and ``_survey_element_validation`` in awx/main/models/mixins.py). So a question is asked only for a variable
with a constant default, which it shows; lists and mappings, which a survey has no type for, are given as variables at the launch.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from support.docs import collection
from support.docs.reference import plain
from support.places import ROOT
from support.reading import load

FILE = "awx/job_templates.yml"
HEAD = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# Written by scripts/docs; do not edit. Each entry has options of awx.awx.job_template: docs/operating/awx.md.
---
awx_prompts: &prompts
{prompts}awx_job_templates:
"""
# What is asked at the launch besides; the inventory says the rest.
PROMPTS = ("ask_diff_mode_on_launch", "ask_job_type_on_launch", "ask_limit_on_launch", "ask_tags_on_launch", "ask_variables_on_launch")
# Answers that AWX encrypts and hides; the name of a Secret among them does no harm.
SECRET = re.compile(r"password|secret|token|access_key|credential", re.IGNORECASE)
TYPES = {"bool": "multiplechoice", "float": "float", "int": "integer"}
# Playbooks that are for no single system, what each does, and its variables that differ from run to run.
SHARED: dict[str, tuple[str, tuple[str, ...]]] = {
    "site": ("Create the platform of the inventory and run its systems", ("muster_only",)),
    "status": ("Show what is installed and in what state", ()),
    "doctor": ("Report faults with their causes and next steps", ()),
    "stacks": ("Show where trainings hang", ()),
    "prove": ("Check that the cluster is as the inventory says", ()),
    "teardown": ("Remove what Muster created", ("muster_delete_data",)),
}
Question = dict[str, Any]


def templates() -> str:
    prompts = "".join(f"  {prompt}: true\n" for prompt in PROMPTS)
    return HEAD.format(prompts=prompts) + "".join(template(name) for name in (*SHARED, *systems()))


def systems() -> list[str]:
    return [system["name"] for system in load(ROOT / "playbooks" / "vars" / "systems.yml")["__systems_known"]]


def template(playbook: str) -> str:
    """One entry: a line for each of its fields, and for each question."""
    asked = questions(playbook)
    about = SHARED[playbook][0] if playbook in SHARED else collection.roles()[playbook].summary
    lines = [
        f"  - name: Muster {playbook}",
        f"    description: {about}.",
        f"    playbook: {playbook}.yml",
        "    <<: *prompts",
        f"    survey_enabled: {json.dumps(bool(asked))}",
    ]
    if asked:
        lines += [
            "    survey_spec:",
            f"      name: Muster {playbook}",
            "      description: Variables that differ from run to run.",
            "      spec:",
        ]
        lines += [f"        - {json.dumps(question)}" for question in asked]
    return "".join(f"{line}\n" for line in lines)


def questions(playbook: str) -> list[Question]:
    if playbook not in SHARED:
        return [asked for name, option in collection.roles()[playbook].options.items() if (asked := question(name, option))]
    known = load(ROOT / "playbooks" / "vars" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    given: dict[str, dict[str, Any]] = {"muster_only": {"choices": systems()}, "muster_delete_data": {"default": False}}
    found = [question(name, {**known[name], **given[name]}) for name in SHARED[playbook][1]]
    return [asked for asked in found if asked]


def first_sentence(option: Mapping[str, Any]) -> str:
    text = option.get("description", "")
    return re.split(r"(?<=[.])\s+(?=[A-Z])", plain(text if isinstance(text, str) else text[0]))[0]


def question(name: str, option: Mapping[str, Any]) -> Question | None:
    """The question for a variable; None for what a survey cannot ask."""
    kind, default, choices = option.get("type", "str"), option.get("default"), option.get("choices")
    found: Question = {"variable": name, "question_name": name, "question_description": first_sentence(option)}
    if kind == "list" and choices:
        return {**found, "type": "multiselect", "required": False, "choices": choices}
    if kind not in (*TYPES, "path", "str") or default is None or (isinstance(default, str) and "{{" in default):
        return None
    if kind == "bool":
        default, choices = json.dumps(default), ["true", "false"]
    secret = option.get("no_log") or SECRET.search(f"{name} {found['question_description']}")
    shape = "multiplechoice" if choices else TYPES.get(kind, "password" if secret else "text")
    answers = {"choices": choices} if choices else {}
    return {**found, "type": shape, "required": default != "", "default": default, **answers}
