# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From wanted to there: read, plan, send, wait. The same for every kind of resource.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .api import Api, pauses
from .errors import AwsError, CallRefused, Failed, InvalidInput, WaitTimeout
from .plan import Body, Plan, State, Step, live_tags


class Resource(t.Protocol):
    """One resource as it is wanted. Only ``read`` and ``update_status`` ask AWS; the rest is pure."""

    @property
    def label(self) -> str: ...

    def read(self, api: Api) -> Body | None: ...

    def plan(self, live: Body | None) -> Plan: ...

    def plan_absent(self, live: Body | None) -> Plan: ...

    def state(self, live: Body | None) -> State: ...

    def update_request(self, update: str) -> Body: ...


@dataclasses.dataclass(frozen=True)
class Outcome:
    plan: Plan
    live: Body | None


@dataclasses.dataclass(frozen=True)
class Patience:
    """Whether, and how many seconds in all, to wait for what was asked for."""

    wait: bool
    seconds: float


@dataclasses.dataclass(frozen=True)
class Wish:
    """Whether it is to be, whether to plan only, and the tags by which what is ours is told from what is not."""

    absent: bool
    check: bool
    only_tagged: dict[str, str] = dataclasses.field(default_factory=dict)


def converge(resource: Resource, api: Api, wish: Wish, patience: Patience) -> Outcome:
    """Make it so, or say what would be done. A run that was interrupted is taken up where it is."""
    absent, check = wish.absent, wish.check
    deadline = api.clock.now() + patience.seconds
    live = resource.read(api)
    if live is not None and not wish.only_tagged.items() <= live_tags(live).items():
        if absent:
            return Outcome(Plan(), live)
        raise _not_ours(resource, wish.only_tagged)
    if not check and not resource.state(live).settled:
        live = _until_settled(resource, api, deadline)
    plan = resource.plan_absent(live) if absent else resource.plan(live)
    if check or not plan.changed:
        return Outcome(plan, live)
    _run(resource, api, plan, patience, deadline)
    if plan.later:
        _run(resource, api, resource.plan(resource.read(api)), patience, deadline)
    return Outcome(plan, resource.read(api))


def _not_ours(resource: Resource, tags: dict[str, str]) -> InvalidInput:
    wanted = ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
    return InvalidInput(
        f"{resource.label} exists and does not carry the tag {wanted}: somebody else made it, and it is left as it is",
        hint="Choose another name, or give it the tag if it is to be taken over",
    )


def _run(resource: Resource, api: Api, plan: Plan, patience: Patience, deadline: float) -> None:
    for step in plan.steps:
        answer = _do(resource, api, step)
        if patience.wait or plan.later or step is not plan.steps[-1]:
            _wait(resource, api, step, answer, deadline)


def _do(resource: Resource, api: Api, step: Step) -> Body:
    try:
        return api.write(resource.label, step)
    except CallRefused as refused:
        raise _explained(resource, refused) from refused


def _explained(resource: Resource, refused: CallRefused) -> AwsError:
    """A resource may know better what a refusal means."""
    explain: t.Callable[[CallRefused], AwsError] | None = getattr(resource, "explain", None)
    return explain(refused) if explain else refused


def _wait(resource: Resource, api: Api, step: Step, answer: Body, deadline: float) -> None:
    if step.wait == "update":
        _until_updated(resource, api, step, answer["update"]["id"], deadline)
    if step.wait in ("settled", "update"):
        state = resource.state(_until_settled(resource, api, deadline))
        if state.failure:
            raise Failed(f"{resource.label}: {step.says} failed: {state.failure}", seen=state.seen)
    if step.wait == "gone":
        _until_settled(resource, api, deadline, gone=True)


def _until_settled(resource: Resource, api: Api, deadline: float, *, gone: bool = False) -> Body | None:
    for pause in pauses():
        live = resource.read(api)
        state = resource.state(live)
        if gone and live is None:
            return None
        if gone and state.failure:
            raise Failed(f"{resource.label}: delete failed: {state.failure}", seen=state.seen)
        if state.settled and not gone:
            return live
        if api.clock.now() + pause > deadline:
            raise WaitTimeout(
                f"{resource.label} is not ready in time; it was last seen {state.seen}",
                hint="AWS goes on working on it: run again, or with a longer wait_timeout",
                seen=state.seen,
            )
        api.clock.sleep(pause)
    raise AssertionError("pauses never end")


def _until_updated(resource: Resource, api: Api, step: Step, update: str, deadline: float) -> None:
    for pause in pauses():
        found = api.read(resource.label, "eks", "describe_update", **resource.update_request(update)) or {}
        record = found.get("update", {})
        if record.get("status") == "Successful":
            return
        if record.get("status") in ("Failed", "Cancelled"):
            reasons = "; ".join(reason(issue) for issue in record.get("errors", [])) or "AWS gave no reason"
            raise Failed(f"{resource.label}: {step.says} ended as {record['status']}: {reasons}", update=update)
        if api.clock.now() + pause > deadline:
            raise WaitTimeout(
                f"{resource.label}: {step.says} is not over in time; update {update} is {record.get('status')}",
                hint="AWS goes on working on it: run again, or with a longer wait_timeout",
            )
        api.clock.sleep(pause)


def reason(issue: Body) -> str:
    """An issue or error of EKS in a line: code, message, what it is about."""
    code = issue.get("code") or issue.get("errorCode", "")
    message = issue.get("message") or issue.get("errorMessage", "")
    where = ", ".join(issue.get("resourceIds") or [])
    return f"{code}: {message.rstrip('.')}" + (f" ({where})" if where else "")


def status_state(live: Body | None, ready: t.Container[str], failed: t.Container[str], key: str = "status") -> State:
    """The state of what has a status and, in EKS, health issues that say why."""
    if live is None:
        return State(settled=True, seen="does not exist")
    status = live[key]
    issues = "; ".join(reason(issue) for issue in live.get("health", {}).get("issues", []))
    seen = f"{status} ({issues})" if issues else status
    failure = seen if status in failed else ""
    return State(settled=status in ready or status in failed, seen=seen, failure=failure)
