# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The edge of the modules that work on AWS: Ansible's and amazon.aws's side of them.

A module file has ARGUMENT_SPEC, ``resource(params)`` and a ``main`` that calls ``aws_main``. Authentication, region and
endpoint are those of amazon.aws.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule

from .._aws.api import Api
from .._aws.converge import Outcome, Patience, Resource, Wish, converge
from .._aws.errors import AwsError

Spec = dict[str, dict[str, t.Any]]
# Keys that are a user's own words: left as they are written.
WORDS = ["labels", "tags", "Tags"]

STATE: Spec = {"state": {"type": "str", "choices": ["present", "absent"], "default": "present"}}
TAGS: Spec = {
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
    "purge_tags": {"type": "bool", "default": True},
    "only_tagged": {"type": "dict"},
}


def waiting(seconds: int) -> Spec:
    return {"wait": {"type": "bool", "default": True}, "wait_timeout": {"type": "int", "default": seconds}}


def shown(body: dict[str, t.Any]) -> dict[str, t.Any]:
    """A resource as AWS describes it, in Ansible's spelling, without our own notes."""
    public = {key: value for key, value in body.items() if not key.startswith("_")}
    result: dict[str, t.Any] = camel_dict_to_snake_dict(public, ignore_list=WORDS)
    return result


def result_of(outcome: Outcome, key: str, *, diff: bool) -> dict[str, t.Any]:
    result: dict[str, t.Any] = {
        "changed": outcome.plan.changed,
        "actions": [str(step) for step in (*outcome.plan.steps, *outcome.plan.later)],
        key: shown(outcome.live) if outcome.live else {},
    }
    if diff:
        result["diff"] = {"before": shown(outcome.plan.before), "after": shown(outcome.plan.after)}
    return result


Make = t.Callable[[dict[str, t.Any]], Resource]
Survey = t.Callable[[Api, dict[str, t.Any]], dict[str, t.Any]]
Check = t.Callable[[Api, dict[str, t.Any]], None]


def aws_main(argument_spec: Spec, make: Make, key: str, *, check: Check | None = None, **constraints: t.Any) -> None:
    """Parse, converge, report. ``check`` may ask AWS whether what is wanted can be, before anything is done."""
    module = AnsibleAWSModule(argument_spec={**argument_spec}, supports_check_mode=True, **constraints)
    params = {**module.params, "region": module.region}
    api = Api(module.client)
    patience = Patience(params.get("wait", True), params.get("wait_timeout", 120))
    wish = Wish(params["state"] == "absent", module.check_mode, params.get("only_tagged") or {})
    try:
        if check and not wish.absent:
            check(api, params)
        outcome = converge(make(params), api, wish, patience)
    except AwsError as error:
        module.fail_json(msg=str(error), **error.details)
    module.exit_json(**result_of(outcome, key, diff=module._diff))


def info_main(argument_spec: Spec, survey: Survey) -> None:
    """Parse, ask, report: for modules that only read."""
    module = AnsibleAWSModule(argument_spec={**argument_spec}, supports_check_mode=True)
    try:
        found = survey(Api(module.client), module.params)
    except AwsError as error:
        module.fail_json(msg=str(error), **error.details)
    module.exit_json(changed=False, **shown(found))
