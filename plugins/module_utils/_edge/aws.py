# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The edge of the modules that work on AWS: Ansible's and amazon.aws's side of them.

A module file has ARGUMENT_SPEC, ``resource(params)`` and a ``main`` that calls ``aws_main``. Authentication, region and
endpoint are those of amazon.aws.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict
from ansible.module_utils.common.warnings import warn

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule

from .._aws.api import Api
from .._aws.plan import with_owner_tags
from .._aws.resource import Resource
from .._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from .failure import EXPECTED, failure

Spec = dict[str, dict[str, t.Any]]
# The keys in these are the user's own words, and keep their spelling.
WORDS = ["labels", "tags", "Tags"]

STATE: Spec = {"state": {"type": "str", "choices": ["present", "absent"], "default": "present"}}
TAGS: Spec = {
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
    "purge_tags": {"type": "bool", "default": True},
    "only_tagged": {"type": "dict"},
    "adopt": {"type": "bool", "default": False},
}


def wait_options(seconds: int) -> Spec:
    return {"wait": {"type": "bool", "default": True}, "wait_timeout": {"type": "int", "default": seconds}}


def snake_case_result(body: dict[str, t.Any]) -> dict[str, t.Any]:
    """A resource as AWS describes it, in snake_case, without our internal keys."""
    public = {key: value for key, value in body.items() if not key.startswith("_")}
    result: dict[str, t.Any] = camel_dict_to_snake_dict(public, ignore_list=WORDS)
    return result


def result_of(outcome: Outcome, key: str, *, diff: bool) -> dict[str, t.Any]:
    result: dict[str, t.Any] = {
        "changed": outcome.plan.changed,
        "actions": [str(step) for step in (*outcome.plan.steps, *outcome.plan.later)],
        key: snake_case_result(outcome.live) if outcome.live else {},
    }
    if outcome.kept:
        result["kept"] = outcome.kept
    if diff:
        result["diff"] = {
            "before": snake_case_result(outcome.plan.before),
            "after": snake_case_result(outcome.plan.after),
        }
    return result


Make = t.Callable[[dict[str, t.Any]], Resource]
Survey = t.Callable[[Api, dict[str, t.Any]], dict[str, t.Any]]
Check = t.Callable[[Api, dict[str, t.Any]], str]


def aws_main(
    argument_spec: Spec,
    make: Make,
    key: str,
    *,
    check: Check | None = None,
    with_caller: bool = False,
    only_removes: bool = False,
    **constraints: t.Any,
) -> None:
    """Parse, converge, report.

    ``check`` may ask AWS whether the desired state is possible, before anything is done; a text that it returns is a warning.
    ``with_caller`` adds ``account`` and ``partition`` of the caller to the options that ``make`` gets. ``only_removes`` is for a module
    that deletes and has no option ``state``; without either, the resource is to be there.
    """
    module = AnsibleAWSModule(argument_spec={**argument_spec}, supports_check_mode=True, **constraints)
    params = {**module.params, "region": module.region}
    api = Api(module.client)
    wait_options = WaitOptions(params.get("wait", True), params.get("wait_timeout", 120))
    mark = params.get("only_tagged") or {}
    absent = only_removes or params.get("state") == "absent"
    options = ConvergeOptions(absent, module.check_mode, mark, params.get("adopt", False))
    try:
        tags, purge = with_owner_tags(params.get("tags"), mark, purge=params.get("purge_tags", True))
        params.update(tags=tags, purge_tags=purge, **(dataclasses.asdict(api.caller()) if with_caller else {}))
        notice = check(api, params) if check and not options.absent else ""
        resource = make(params)
        outcome = converge(resource, api, options, wait_options)
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    degraded = outcome.live is not None and outcome.live.get("status") == "DEGRADED"
    seen = f"{resource.label} is {resource.state(outcome.live).seen}" if degraded else ""
    for text in filter(None, (notice, seen, outcome.kept)):
        warn(text)  # not module.warn, because amazon.aws passes that on in a way that Ansible warns about
    module.exit_json(**result_of(outcome, key, diff=module._diff))


def info_main(argument_spec: Spec, survey: Survey) -> None:
    """Parse, ask, report: for modules that only read."""
    module = AnsibleAWSModule(argument_spec={**argument_spec}, supports_check_mode=True)
    try:
        found = survey(Api(module.client), module.params)
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    module.exit_json(changed=False, **snake_case_result(found))
