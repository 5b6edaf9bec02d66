# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The edge of the modules that work on Google Cloud: Ansible's and google.cloud's side of them.

A module file has ARGUMENT_SPEC and a ``main`` that calls ``gcp_main``. Project, credentials and scopes are those of google.cloud.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.common.dict_transformations import camel_dict_to_snake_dict
from ansible.module_utils.common.warnings import warn

from ansible_collections.google.cloud.plugins.module_utils.gcp_utils import GcpModule, GcpSession

from .._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from .._cloud.plan import Body, Plan, without_none
from .._core.errors import InvalidInput
from .._gcp.api import Api
from .._gcp.compare import MAPS, mark_of
from .._gcp.errors import library_errors, without_secrets
from .._gcp.iam_member import IamMember, converge_member, place
from .._gcp.resource import Resource
from .failure import EXPECTED, failure

Spec = dict[str, dict[str, t.Any]]
R = t.TypeVar("R", bound=Resource)
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
SECONDS = {"timeout": (10.0, 60.0)}

STATE: Spec = {"state": {"type": "str", "choices": ["present", "absent"], "default": "present"}}
OWNER: Spec = {"owner": {"type": "str"}, "adopt": {"type": "bool", "default": False}}


def wait_options(seconds: int) -> Spec:
    return {"wait": {"type": "bool", "default": True}, "wait_timeout": {"type": "int", "default": seconds}}


class HttpSession:
    """google.cloud's session, with one set of credentials for all requests of the module."""

    def __init__(self, module: GcpModule) -> None:
        module.params["scopes"] = module.params.get("scopes") or SCOPES
        ours = GcpSession(module, "muster")
        self._headers = ours._headers()
        with library_errors():
            self._session = ours.session()

    def request(self, verb: str, url: str, *, json: Body | None, params: Body) -> tuple[int, t.Any]:
        with library_errors():
            answer = self._session.request(verb, url, json=json, params=params, headers=self._headers, **SECONDS)
        try:
            return answer.status_code, answer.json() if answer.content else {}
        except ValueError:
            return answer.status_code, without_secrets(answer.text)


def result_of(outcome: Outcome, key: str, *, diff: bool) -> dict[str, t.Any]:
    result: dict[str, t.Any] = {
        "changed": outcome.plan.changed,
        "actions": [str(step) for step in (*outcome.plan.steps, *outcome.plan.later)],
        key: snake_case_result(outcome.live) if outcome.live else {},
    }
    if outcome.kept:
        result["kept"] = outcome.kept
    if diff:
        plan = outcome.plan
        result["diff"] = {"before": snake_case_result(plan.before), "after": snake_case_result(plan.after)}
    return result


def snake_case_result(body: Body) -> Body:
    """A resource as Google describes it, in snake_case, without our internal keys. The user's own words keep their spelling."""
    public = {key: value for key, value in body.items() if not key.startswith("_")}
    result: Body = camel_dict_to_snake_dict(public, ignore_list=sorted(MAPS))
    return result


def from_options(kind: type[R], params: dict[str, t.Any]) -> R:
    """The kind with the options of its fields' names."""
    names = [field.name for field in dataclasses.fields(kind)]
    given = {name: params[name] for name in names if name in params}
    if given.get("labels") is not None:
        given["labels"] = {str(key): str(value) for key, value in given["labels"].items()}
    return kind(**given)


Make = t.Callable[[dict[str, t.Any]], Resource]
Check = t.Callable[[Api, dict[str, t.Any]], None]


def module_of(argument_spec: Spec, *, base: type[GcpModule] = GcpModule, **constraints: t.Any) -> GcpModule:
    """Parse the options. All of google.cloud's need a project; ours say so when there is none."""
    module = base(argument_spec={**argument_spec}, supports_check_mode=True, **constraints)
    if not module.params["project"]:
        missing = InvalidInput("No project is given", hint="Set project, or GCP_PROJECT in the environment")
        module.fail_json(**failure(missing))
    return module


def gcp_main(
    argument_spec: Spec,
    kind: type[Resource] | Make,
    key: str,
    *,
    check: Check | None = None,
    remains: Make | None = None,
    **constraints: t.Any,
) -> None:
    """Parse, converge, report.

    ``kind`` is made from the options of its fields' names, or by a function. ``check`` may ask Google whether the desired state is
    possible, before anything is done. ``remains`` makes what it leaves behind when it is deleted, and what is deleted next.
    """
    module = module_of(argument_spec, **constraints)
    params = module.params
    waiting = WaitOptions(params.get("wait", True), params.get("wait_timeout", 300))
    try:
        mark = mark_of(params.get("owner"))
        options = ConvergeOptions(params.get("state") == "absent", module.check_mode, mark, params.get("adopt", False))
        api = Api(HttpSession(module), project=params["project"], lenient=options.check or options.absent)
        if check and not options.absent:
            check(api, params)
        desired = from_options(kind, params) if isinstance(kind, type) else kind(params)
        outcome = converge(desired, api, options, waiting)
        if remains and options.absent and not outcome.kept:
            outcome = together(outcome, converge(remains(params), api, options, waiting))
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    if outcome.kept:
        warn(outcome.kept)
    module.exit_json(**result_of(outcome, key, diff=module._diff))


def together(first: Outcome, then: Outcome) -> Outcome:
    """Two deletions as one: of a resource, and of what it left."""
    one, other = first.plan, then.plan
    plan = Plan((*one.steps, *other.steps), {**other.before, **one.before}, one.after)
    return Outcome(plan, first.live, then.kept)


def member_main(argument_spec: Spec) -> None:
    """Parse, converge, report, for a member of a policy, which has no state, owner or operation of its own."""
    module = module_of(argument_spec)
    params, check = module.params, module.check_mode
    absent = params["state"] == "absent"
    condition = without_none(params["condition"]) if params["condition"] else None
    try:
        api = Api(HttpSession(module), project=params["project"], lenient=check or absent)
        where = place(params["project"], params["resource"])
        wanted = IamMember(where, params["role"], params["member"], condition, absent)
        outcome = converge_member(wanted, api, check=check)
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    for text in wanted.told(outcome.live):
        warn(text)
    module.exit_json(**{**result_of(outcome, "policy", diff=module._diff), "policy": wanted.shown(outcome.live)})


def info_main(argument_spec: Spec, survey: t.Callable[[Api, dict[str, t.Any]], Body]) -> None:
    """Parse, ask, report: for modules that only read. Where an API is not enabled nothing is there."""
    module = module_of(argument_spec)
    try:
        found = survey(Api(HttpSession(module), project=module.params["project"], lenient=True), module.params)
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    module.exit_json(changed=False, **snake_case_result(found))
