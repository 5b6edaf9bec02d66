# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the modules that work on AWS: Ansible's and amazon.aws's side of them.

A module file has ARGUMENT_SPEC, ``execute(ctx) -> result`` and a ``main`` that calls ``aws_main``; the action plugin of the same name runs
the same ``execute`` on the controller. Authentication, region and endpoint are those of amazon.aws.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import typing as t

from ansible.module_utils.common.dict_transformations import snake_dict_to_camel_dict
from ansible.module_utils.common.warnings import warn

from ansible_collections.amazon.aws.plugins.module_utils.botocore import (
    HAS_BOTO3,
    check_sdk_version_supported,
    get_aws_connection_info,
    get_aws_region,
)
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule, aws_argument_spec

from .._aws.api import Api
from .._aws.plan import refuse_tags, with_owner_tags
from .._aws.resource import Resource
from .._cloud.converge import ConvergeOptions, WaitOptions, converge
from .._cloud.plan import without_none
from .._cloud.texts import texts
from .._core.errors import InvalidInput
from . import cloud
from .failure import Result, finish
from .host import HostContext
from .options import STATE

HAS_LIBRARIES: bool = HAS_BOTO3
Spec = dict[str, dict[str, t.Any]]
# The keys in these are the user's own words, and keep their spelling.
WORDS = ["labels", "tags", "Tags"]

TAGS: Spec = {
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
    "purge_tags": {"type": "bool", "default": True},
    "only_tagged": {"type": "dict"},
    "adopt": {"type": "bool", "default": False},
}

snake_case_result = functools.partial(cloud.snake_case_result, words=WORDS)
result_of = functools.partial(cloud.result_of, words=WORDS)


def spec_of(kind: type[Resource], *hidden: str, wait: int | None = None, **more: cloud.Option) -> Spec:
    """The options of a module for one resource (see ``cloud.spec_of``)."""
    return cloud.spec_of(kind, {**STATE, **TAGS}, ["tags", "purge_tags", *hidden], wait, more)


class Login:
    """The options of a task in the place of amazon.aws's module, for its functions that read the login.

    amazon.aws makes a session for each client, which takes a tenth of a second to read AWS's descriptions of its services and regions.
    """

    def __init__(self, params: dict[str, t.Any]) -> None:
        self.params = params

    @property
    def region(self) -> str | None:
        region: str | None = get_aws_region(self)
        return region

    def client(self, service: str) -> t.Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        region, endpoint, login = get_aws_connection_info(self)
        # Requests are repeated in one place (_aws/api.py).
        config = Config(user_agent_extra="muster.ml", retries={"total_max_attempts": 1}).merge(login.pop("aws_config", None) or Config())
        try:
            session = _session(login.pop("profile_name", None))
            return session.create_client(service, region_name=region, endpoint_url=endpoint, config=config, **login)
        except (BotoCoreError, ValueError) as error:
            hint = "Set region and profile, or AWS_REGION and AWS_PROFILE in the environment"
            raise InvalidInput(f"No connection to AWS is possible: {error}", hint) from error

    def fail_json(self, msg: str, **_more: t.Any) -> t.NoReturn:
        raise InvalidInput(msg)


def _session(profile: str | None) -> t.Any:
    from botocore.session import Session

    session = Session(profile=profile)
    session.register_component("data_loader", _descriptions(session.get_config_variable("data_path")))
    return session


@functools.cache
def _descriptions(search_path: str | None) -> t.Any:
    """Return the loader that reads AWS's descriptions of its services, and caches them. It has no credentials."""
    from botocore.loaders import create_loader

    return create_loader(search_path)


@functools.cache
def read_early() -> None:
    """Read the descriptions for clients of the usual services before the process forks; nothing is sent."""
    import botocore.exceptions

    login = {"region_name": "us-east-1", "aws_access_key_id": "-", "aws_secret_access_key": "-"}
    # A file of the user that botocore cannot read is an error of the task, not of loading its plugin.
    with contextlib.suppress(botocore.exceptions.BotoCoreError, OSError, ValueError):
        for service in ("ec2", "efs", "eks", "iam", "s3", "sts"):
            _session(None).create_client(service, **login)


@dataclasses.dataclass
class AwsContext(HostContext):
    """A HostContext with the login."""

    login: Login = dataclasses.field(kw_only=True)


def place_of(ctx: AwsContext) -> str:
    """The account and region of a task, as a plan names them."""
    return f"AWS account {Api(ctx.login.client, ctx.clock).caller().account}, region {ctx.login.region}"


Make = t.Callable[[dict[str, t.Any]], Resource]
Survey = t.Callable[[Api, dict[str, t.Any]], dict[str, t.Any]]
Check = t.Callable[[Api, dict[str, t.Any]], str]
Execute = t.Callable[[AwsContext], Result]


def full_spec(own: Spec) -> Spec:
    """The options of one module, with those of the login."""
    return {**aws_argument_spec(), **own}


def on_controller(**context: t.Any) -> AwsContext:
    """The context of a task that runs in the process of its action plugin."""
    check_sdk_version_supported(warn=context["warn"])
    return AwsContext(**context, login=Login(context["params"]))


def in_api_case(value: t.Any, *, capitals: bool) -> t.Any:
    """Suboptions with the names of the API, such as minSize, or MinSize with CAPITALS; those that are None are left out."""
    given = [without_none(one) for one in value] if isinstance(value, list) else without_none(value)
    (named,) = snake_dict_to_camel_dict({"given": given}, capitalize_first=capitals).values()
    return named


def converger(
    kind: type[Resource] | Make,
    key: str,
    *,
    nested: t.Sequence[str] = (),
    capitals: bool = False,
    check: Check | None = None,
    with_caller: bool = False,
    only_removes: bool = False,
) -> Execute:
    """The ``execute`` of a module for one resource.

    ``kind`` is made from the options of its fields' names, or by a function. ``nested`` are options with suboptions that it takes in the
    case of the API (see ``in_api_case``).
    ``check`` may ask AWS whether the desired state is possible, before anything is done; a text that it returns is a warning.
    ``with_caller`` adds ``account`` and ``partition`` of the caller to the options that ``kind`` gets. ``only_removes`` is for a module
    that deletes and has no option ``state``; without either, the resource is to be there.
    """

    def execute(ctx: AwsContext) -> Result:
        params = {**ctx.params, "region": ctx.login.region}
        api = Api(ctx.login.client, ctx.clock)
        mark = texts("only_tagged", params.get("only_tagged") or {})
        absent = only_removes or params.get("state") == "absent"
        asked = None if absent or params.get("tags") is None else texts("tags", params["tags"])
        tags, purge = with_owner_tags(asked, mark, purge=params.get("purge_tags", True))
        params.update(tags=tags, purge_tags=purge, **(dataclasses.asdict(api.caller()) if with_caller else {}))
        notice = check(api, params) if check and not absent else ""
        given = {name: in_api_case(params[name], capitals=capitals) for name in nested if params[name] is not None}
        make = functools.partial(cloud.from_options, kind) if isinstance(kind, type) else kind
        resource: Resource = make({**params, **given})
        if not absent:
            refuse_tags(resource.label, tags or {}, resource.TAGGING.service)
        options = ConvergeOptions(absent, ctx.check, mark, params.get("adopt", False), ctx.requests)
        outcome = converge(resource, api, options, WaitOptions(params.get("wait", True), params.get("wait_timeout", 120)))
        degraded = outcome.live is not None and outcome.live.get("status") == "DEGRADED"
        seen = f"{resource.label} is {resource.state(outcome.live).seen}" if degraded else ""
        for text in filter(None, (notice, seen, outcome.kept)):
            ctx.warn(text)
        return result_of(outcome, key, resource.label, diff=ctx.diff)

    return execute


def surveyor(survey: Survey) -> Execute:
    """The ``execute`` of a module that only reads."""
    return lambda ctx: {"changed": False, **snake_case_result(survey(Api(ctx.login.client, ctx.clock), ctx.params))}


def aws_main(argument_spec: Spec, execute: Execute, **constraints: t.Any) -> None:
    """Parse, execute, report. ``constraints`` are those of AnsibleModule, such as mutually_exclusive."""
    module = AnsibleAWSModule(argument_spec={**argument_spec}, supports_check_mode=True, **constraints)
    # amazon.aws's module.warn passes a warning on in a way that Ansible warns about.
    given = {"check": module.check_mode, "diff": module._diff, "warn": warn}
    finish(module, full_spec(argument_spec), constraints, lambda params: execute(AwsContext(params, **given, login=Login(params))))
