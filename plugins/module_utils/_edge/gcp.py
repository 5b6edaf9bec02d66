# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the modules that work on Google Cloud: Ansible's and google.cloud's side of them.

A module file has ARGUMENT_SPEC, ``execute(ctx) -> result`` and a ``main`` that calls ``gcp_main``; the action plugin of the same name runs
the same ``execute`` on the controller. Project, credentials and scopes are those of google.cloud.
"""

from __future__ import annotations

import functools
import os
import typing as t

from ansible.module_utils.basic import env_fallback

from ansible_collections.google.cloud.plugins.module_utils.gcp_utils import HAS_GOOGLE_LIBRARIES, HAS_REQUESTS, GcpSession

from .._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from .._cloud.errors import without_secrets
from .._cloud.plan import Body, Plan
from .._core.errors import InvalidInput, Unauthorized
from .._gcp.api import Api
from .._gcp.compare import MAPS, mark_of
from .._gcp.errors import library_errors
from .._gcp.labels import texts
from .._gcp.resource import Resource
from . import cloud
from .failure import Result
from .host import HostContext, host_main
from .options import STATE

HAS_LIBRARIES: bool = HAS_GOOGLE_LIBRARIES and HAS_REQUESTS
Spec = dict[str, dict[str, t.Any]]
R = t.TypeVar("R", bound=Resource)
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
SECONDS = {"timeout": (10.0, 60.0)}

OWNER: Spec = {"owner": {"type": "str"}, "adopt": {"type": "bool", "default": False}}


def _login(name: str, kind: str = "str", **more: t.Any) -> Spec:
    return {name: {"type": kind, "fallback": (env_fallback, [f"GCP_{name.upper()}"]), **more}}


AUTH: Spec = {
    **_login("project"),
    **_login("auth_kind", required=True, choices=["machineaccount", "serviceaccount", "accesstoken", "application"]),
    **_login("service_account_email"),
    **_login("service_account_file", "path"),
    **_login("service_account_contents", "jsonarg", no_log=True),
    **_login("access_token", no_log=True),
    **_login("scopes", "list", elements="str"),
    **_login("env_type"),
}
"""The options of google.cloud's GcpModule, which adds them itself and is an AnsibleModule; a test compares them."""


snake_case_result = functools.partial(cloud.snake_case_result, words=sorted(MAPS))
result_of = functools.partial(cloud.result_of, words=sorted(MAPS))


def full_spec(own: Spec) -> Spec:
    """The options of one module, with those of the login."""
    return {**AUTH, **own}


def spec_of(kind: type[Resource], *hidden: str, wait: int | None = 300, **more: cloud.Option) -> Spec:
    """The options of a module for one resource (see ``cloud.spec_of``)."""
    return cloud.spec_of(kind, {**STATE, **OWNER}, ["project", "owner", *hidden], wait, more)


class Options:
    """The options of a task in the place of google.cloud's module, for its session."""

    def __init__(self, params: dict[str, t.Any]) -> None:
        self.params = {**params, "scopes": params.get("scopes") or SCOPES}

    def fail_json(self, msg: str) -> t.NoReturn:
        raise Unauthorized(f"There are no credentials for Google: {msg}.")


class HttpSession:
    """google.cloud's session, with one set of credentials for all requests of the module."""

    def __init__(self, params: dict[str, t.Any]) -> None:
        session = GcpSession(Options(params), "muster")
        self._headers = session._headers()
        with library_errors():
            self._session = session.session()

    def request(self, verb: str, url: str, *, json: Body | None, params: Body) -> tuple[int, t.Any]:
        with library_errors():
            answer = self._session.request(verb, url, json=json, params=params, headers=self._headers, **SECONDS)
        try:
            return answer.status_code, answer.json() if answer.content else {}
        except ValueError:
            return answer.status_code, without_secrets(answer.text)


def from_options(kind: type[R], params: dict[str, t.Any]) -> R:
    """The kind with the options of its fields' names; the values of its labels are text."""
    labels = params.get("labels")
    return cloud.from_options(kind, params if labels is None else {**params, "labels": texts(labels)})


Make = t.Callable[[dict[str, t.Any]], Resource]
Check = t.Callable[[Api, dict[str, t.Any]], None]
Survey = t.Callable[[Api, dict[str, t.Any]], Body]
Execute = t.Callable[[HostContext], Result]


def api_of(ctx: HostContext, *, lenient: bool) -> Api:
    """The project of a task. All options of google.cloud need one; ours say so when there is none."""
    if not ctx.params["project"]:
        raise InvalidInput("No project is given", hint="Set project, or GCP_PROJECT in the environment")
    return Api(HttpSession(ctx.params), ctx.clock, project=ctx.params["project"], lenient=lenient)


on_controller = HostContext
"""The context of a task that runs in the process of its action plugin."""


def converger(kind: type[Resource] | Make, key: str, *, check: Check | None = None, remains: Make | None = None) -> Execute:
    """The ``execute`` of a module for one resource.

    ``kind`` is made from the options of its fields' names, or by a function. ``check`` may ask Google whether the desired state is
    possible, before anything is done. ``remains`` makes what it leaves behind when it is deleted, and what is deleted next.
    """

    def execute(ctx: HostContext) -> Result:
        params = dict(ctx.params)
        waiting = WaitOptions(params.get("wait", True), params.get("wait_timeout", 300))
        mark = mark_of(params.get("owner"))
        options = ConvergeOptions(params.get("state") == "absent", ctx.check, mark, params.get("adopt", False), ctx.requests)
        api = api_of(ctx, lenient=options.check or options.absent)
        if check and not options.absent:
            check(api, params)
        desired = from_options(kind, params) if isinstance(kind, type) else kind(params)
        outcome = converge(desired, api, options, waiting)
        if remains and options.absent and not outcome.kept:
            outcome = together(outcome, converge(remains(params), api, options, waiting))
        if outcome.kept:
            ctx.warn(outcome.kept)
        return result_of(outcome, key, desired.label, diff=ctx.diff)

    return execute


def place_of(ctx: HostContext) -> str:
    """The project of a task, as a plan names it."""
    return f"Google project {ctx.params.get('project')}"


def together(first: Outcome, then: Outcome) -> Outcome:
    """Two deletions as one: of a resource, and of what it left."""
    one, other = first.plan, then.plan
    plan = Plan((*one.steps, *other.steps), {**other.before, **one.before}, one.after)
    return Outcome(plan, first.live, then.kept)


def surveyor(survey: Survey) -> Execute:
    """The ``execute`` of a module that only reads. An API that is not enabled has no resources."""
    return lambda ctx: {"changed": False, **snake_case_result(survey(api_of(ctx, lenient=True), ctx.params))}


def gcp_main(argument_spec: Spec, execute: Execute, **constraints: t.Any) -> None:
    """Parse, execute, report. ``constraints`` are those of AnsibleModule, such as required_if."""
    host_main(full_spec(argument_spec), execute, **constraints)


# What google.cloud's modules take from the environment, by their auth_kind.
KINDS = {
    "application": (),
    "accesstoken": ("access_token",),
    "serviceaccount": ("service_account_file", "service_account_contents"),
    "machineaccount": ("service_account_email",),
}


def credentials_of(auth_kind: str | None) -> t.Any:
    """Credentials for the libraries of Google, as google.cloud's modules would have them without an option."""
    token = "accesstoken" if os.environ.get("GCP_ACCESS_TOKEN") else "application"
    kind = auth_kind or os.environ.get("GCP_AUTH_KIND") or token
    if kind not in KINDS:
        raise InvalidInput(f"auth_kind: '{kind}' is unknown.", f"One of {', '.join(KINDS)}.")
    given = {name: os.environ.get(f"GCP_{name.upper()}") for name in KINDS[kind]}
    with library_errors():
        return GcpSession(Options({"auth_kind": kind, **given}), "muster")._credentials()
