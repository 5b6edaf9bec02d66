# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of all AWS resources: marked by tags, in the account that their ARN names, with updates that EKS records."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud import resource as cloud
from .._cloud.errors import CallRefused
from .._cloud.plan import GONE, Body, CloudStep, Comparison, State, camel
from .._core.errors import Failed, InvalidInput, MusterError
from .api import BUSY, IN_USE, Api
from .plan import EKS_TAGS, Step, Tagging, changed_tags, live_tags


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource(cloud.CloudResource[Api]):
    """The first key of IDENTITY is the ARN, with the account."""

    CLOUD = "AWS"
    MARK = "tag"
    TAGGING: t.ClassVar[Tagging] = EKS_TAGS
    NAMED: t.ClassVar[t.Mapping[str, str]] = {}
    """The parameters that name it in requests, with the fields that they are."""
    STATUS: t.ClassVar[str] = "status"
    tags: dict[str, str] | None = None
    """None keeps those that it has."""
    purge_tags: bool = True

    @property
    def desired_tags(self) -> dict[str, str] | None:
        """The tags that it is to have; None keeps those that it has."""
        return self.tags

    @property
    def named(self) -> Body:
        return {parameter: getattr(self, field) for parameter, field in self.NAMED.items()}

    def described(self, api: Api, operation: str, key: str) -> Body | None:
        """The value of KEY in the description by EKS; None if it does not exist."""
        found: Body | None = (api.read(self.label, "eks", operation, **self.named) or {}).get(key)
        return found

    def going(self, live: Body) -> bool:
        return live.get(self.STATUS) in ("DELETING", "deleting")

    def refuse_change(self, hint: str, **options: tuple[t.Any, t.Any]) -> None:
        """Refuse desired values that differ from the live ones; options are (live, desired)."""
        for option, (live, desired) in options.items():
            if desired is not None and desired != live:
                service = self.TAGGING.service.upper()
                raise InvalidInput(f"{self.label} has {option} {live}; {service} cannot change it to {desired}", hint=hint)

    def explain(self, refused: CallRefused) -> MusterError:
        hint = self.hint(refused)
        return CallRefused(str(refused), code=refused.code, hint=hint) if hint else refused

    def hint(self, refused: CallRefused) -> str:  # noqa: ARG002
        """The hint for a refusal of which this kind knows more."""
        return ""

    def requested(self, *names: str) -> Body:
        """The fields of these names by the names of the API, without those that are None or empty."""
        return {camel(name): value for name in names if (value := getattr(self, name)) not in (None, [], {})}

    def changes(self, compare: Comparison, live: Body, *names: str) -> Body:
        """The fields of these names that differ from the live ones, by the names of the API."""
        asked = {name: getattr(self, name) for name in names}
        return {camel(name): value for name, value in asked.items() if compare.differs(name, live.get(camel(name)), value)}

    def tag_steps(self, compare: Comparison, live: Body, **named: t.Any) -> list[Step]:
        """The steps that change its tags; NAMED is the resource in the requests."""
        change = changed_tags(compare, live_tags(live), self.desired_tags, purge=self.purge_tags)
        return self.TAGGING.steps(change, named)

    def marks(self, live: Body) -> dict[str, str]:
        return live_tags(live)

    def under_way(self, api: Api, step: CloudStep, answer: Body) -> str | None:  # noqa: ARG002  # most changes show in its state
        return None

    def passes(self, refused: CallRefused) -> bool:
        return refused.code in IN_USE

    def recorded(self, api: Api, live: Body) -> bool:
        return self.account_of(live) in ("", api.caller().account)

    def account_of(self, live: Body) -> str:
        """The account in its ARN; empty if the ARN has none."""
        arn = str(live.get(self.IDENTITY[0], "")) if self.IDENTITY else ""
        return arn.split(":")[4] if arn.count(":") >= 5 else ""


class Updated(Resource):
    """An EKS cluster or a part of one. EKS makes one change at a time, and keeps a record of each, its update."""

    BUSY = ("is busy with another change", "Wait until that has ended, or run again later")

    def under_way(self, api: Api, step: CloudStep, answer: Body) -> str | None:
        """The update that the step started."""
        if step.wait != "update":
            return None
        update = answer["update"]["id"]
        named = {"name" if parameter == "clusterName" else parameter: value for parameter, value in self.named.items()}
        found = api.read(self.label, "eks", "describe_update", **named, updateId=update) or {}
        record = found.get("update", {})
        if record.get("status") in ("Failed", "Cancelled"):
            reasons = "; ".join(reason(issue) for issue in record.get("errors", [])) or "AWS gave no reason"
            told = f"{self.label}: {step.says} ended as {record['status']}: {reasons}"
            raise Failed(told, self.advice(codes_of(record.get("errors", []))), details={"update": update})
        return None if record.get("status") == "Successful" else f"update {update} is {record.get('status')}"

    def passes(self, refused: CallRefused) -> bool:
        return refused.cause == BUSY


class Immediate(Resource):
    """A resource that is ready as soon as AWS has answered."""

    def state(self, live: Body | None) -> State:
        return State(stable=True, seen="there") if live else GONE


def reason(issue: Body) -> str:
    """An issue or error of EKS as one line: code, message, resources."""
    (code,) = codes_of([issue])
    message = issue.get("message") or issue.get("errorMessage", "")
    where = ", ".join(issue.get("resourceIds") or [])
    return f"{code}: {message.rstrip('.')}" + (f" ({where})" if where else "")


def codes_of(issues: t.Iterable[Body]) -> tuple[str, ...]:
    return tuple(str(one.get("code") or one.get("errorCode", "")) for one in issues)


def status_state(live: Body | None, ready: t.Container[str], failed: t.Container[str], key: str = "status") -> State:
    """The state of a resource with a status and, in EKS, health issues that explain it."""
    if live is None:
        return State(stable=True, seen="does not exist")
    status = live[key]
    rows = live.get("health", {}).get("issues", [])
    issues = "; ".join(reason(issue) for issue in rows)
    seen = f"{status} ({issues})" if issues else status
    failure = seen if status in failed else ""
    return State(stable=status in ready or status in failed, seen=seen, failure=failure, codes=codes_of(rows))
