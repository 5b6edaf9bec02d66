# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconcile one resource: read, plan, send, wait. The same for every cloud and every kind of resource."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .._core.clock import Deadline
from .._core.deletion import Candidate, why_kept
from .._core.errors import NEW_PLAN, Failed, InvalidInput, WaitTimeout
from .._core.waiting import Pause, growing_interval, last_answer, wait_for
from .errors import CallRefused
from .plan import Body, CloudStep, Plan, found_of, mark_text, whose
from .resource import A, CloudApi, CloudResource


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The plan that was executed, or would be, and the live resource. ``kept`` names resources that were not deleted, with the reason."""

    plan: Plan
    live: Body | None
    kept: str = ""


@dataclasses.dataclass(frozen=True)
class WaitOptions:
    """Whether to wait for the desired state, and for how many seconds in all."""

    wait: bool
    seconds: float


@dataclasses.dataclass(frozen=True)
class ConvergeOptions:
    """Present or absent, plan only or not, the tags or labels of our resources, and whether to adopt one without an owner."""

    absent: bool
    check: bool
    mark: dict[str, str] = dataclasses.field(default_factory=dict)
    adopt: bool = False
    requests: frozenset[str] | None = None
    """The requests that a reviewed plan has; None: any."""


def converge(resource: CloudResource[A], api: A, options: ConvergeOptions, wait_options: WaitOptions) -> Outcome:
    """Reconcile the live with the desired resource, or only plan to. The next run continues an interrupted one."""
    deadline = Deadline(wait_options.seconds, api.clock)
    go = _absent if options.absent else _present
    return go(resource, api, options, wait_options, deadline)


def _present(resource: CloudResource[A], api: A, options: ConvergeOptions, wait_options: WaitOptions, deadline: Deadline) -> Outcome:
    live = resource.read(api)
    _refuse_others(resource, options, live)
    state = resource.state(live)
    if not options.check and not state.stable and (not state.usable or resource.plan(live).changed):
        live = _until_stable(resource, api, deadline)
        _refuse_others(resource, options, live)
    plan = resource.plan(live)
    if live is not None and plan.replaces:
        _refuse_to_delete(resource, api, options, live)
    state = resource.state(live)
    if state.failure and not plan.changed:
        raise Failed(f"{resource.label} is {state.seen}", resource.advice(state.codes), details={"seen": state.seen})
    if options.check or not plan.changed:
        return Outcome(plan, live)
    _refuse_unplanned(resource, options, (*plan.steps, *plan.later))
    rest = plan.steps
    if live is None and (plan.later or len(plan.steps) > 1):
        _run(resource, api, plan.steps[:1], wait_options, deadline, live, more=True)
        made = _until_seen(resource, api, options)
        rest = resource.plan(made).steps if plan.later else plan.steps[1:]
        _refuse_unplanned(resource, options, rest)
    _run(resource, api, rest, wait_options, deadline, live)
    return Outcome(plan, resource.read(api) if live else _until_seen(resource, api, options))


def _absent(resource: CloudResource[A], api: A, options: ConvergeOptions, wait_options: WaitOptions, deadline: Deadline) -> Outcome:
    live = resource.read(api)
    kept = _why_kept(resource, api, options, live)
    if not kept and not options.check and not resource.state(live).stable:
        live = _until_stable(resource, api, deadline)
        kept = _why_kept(resource, api, options, live)
    if kept:
        return Outcome(Plan(), live, kept)
    plan = resource.plan_absent(live)
    if options.check or live is None or not plan.changed:
        return Outcome(plan, live, plan.kept)
    _refuse_unplanned(resource, options, plan.steps)
    _run(resource, api, plan.steps[:-1], wait_options, deadline, live, more=True)
    if len(plan.steps) > 1:
        # The steps before may have taken minutes. Meanwhile another client may have created a resource of this name, or changed its owner.
        now = resource.read(api)
        if now is None:
            return Outcome(plan, None, plan.kept)
        if resource.identity(now) != resource.identity(live):
            raise Failed(f"{resource.label} was created again by another client while it was being deleted, and is left as it is")
        _refuse_to_delete(resource, api, options, now)
    _run(resource, api, plan.steps[-1:], wait_options, deadline, live)
    return Outcome(plan, resource.read(api), plan.kept)


def _refuse_unplanned(resource: CloudResource[A], options: ConvergeOptions, steps: Sequence[CloudStep]) -> None:
    """Refuse what the reviewed plan does not have, because the resource has changed since it was compared with the plan."""
    new = [str(step) for step in steps if options.requests is not None and str(step) not in options.requests]
    if new:
        raise InvalidInput(
            f"{resource.label} has changed since it was compared with the plan, which does not have {'; '.join(new)}",
            hint=f"{NEW_PLAN}, and read it again",
        )


def is_ours(resource: CloudResource[A], options: ConvergeOptions, live: Body) -> bool:
    """Whether it has the mark of our resources; without a mark any resource of the name is ours."""
    return options.mark.items() <= resource.marks(live).items()


def _why_kept(resource: CloudResource[A], api: A, options: ConvergeOptions, live: Body | None) -> str:
    """Return why it must not be deleted, as a sentence; empty if it may be, or does not exist. All deletions in clouds are judged here."""
    if live is None:
        return ""
    unknown = live.get("_unknown", "")
    candidate = Candidate(
        name=resource.label,
        marked=bool(unknown) or is_ours(resource, options, live),
        recorded=bool(unknown) or resource.recorded(api, live),
        needed=resource.used_by(live),
        unknown=unknown,
    )
    # Only an object of ours is searched for data.
    if not _judged(resource, candidate) and not resource.delete_data:
        try:
            candidate = dataclasses.replace(candidate, data=resource.data_at_risk(api, live))
        except CallRefused as refused:
            candidate = dataclasses.replace(candidate, unknown=str(refused))
    why = _judged(resource, candidate)
    if options.mark and not candidate.marked:
        found = mark_text(found_of(options.mark, resource.marks(live)))
        why += f" ({mark_text(options.mark)})" + (f", but {found}" if found else "")
    return f"{resource.label} was kept: it {why}" if why else ""


def _judged(resource: CloudResource[A], candidate: Candidate) -> str:
    return why_kept(candidate, delete_data=resource.delete_data)


def _refuse_to_delete(resource: CloudResource[A], api: A, options: ConvergeOptions, live: Body) -> None:
    if kept := _why_kept(resource, api, options, live):
        raise InvalidInput(kept)


def _refuse_others(resource: CloudResource[A], options: ConvergeOptions, live: Body | None) -> None:
    """Refuse to change a resource that has another owner, or may have one."""
    if live is None:
        return
    if unknown := live.get("_unknown"):
        raise InvalidInput(
            f"{resource.label} exists and is left as it is: {unknown}", hint="Give the caller the permission, or choose another name"
        )
    if is_ours(resource, options, live):
        return
    found = found_of(options.mark, resource.marks(live))
    theirs = {key: value for key, value in found.items() if value != options.mark[key]}
    if options.adopt and not theirs:
        return
    mark = mark_text(options.mark)
    raise InvalidInput(
        f"{resource.label} exists and does not carry the {resource.MARK} {mark}: {whose(found)}, and it is left as it is",
        hint=f"Choose another name; or, to take it over, {resource.taking_over(mark, theirs)}",
    )


def _until_seen(resource: CloudResource[A], api: A, options: ConvergeOptions) -> Body:
    """The resource that was just created, with its mark, which a cloud may take a moment to show.

    If it never shows them, the resource existed already: S3 in us-east-1 calls the creation of such a bucket a success."""

    def observe() -> tuple[Body | None, str | None]:
        live = resource.read(api)
        seen = live is not None and (is_ours(resource, options, live) or live.get("_unknown"))
        return live, None if seen else f"it does not appear with its {resource.MARK}s"

    live = last_answer(observe, deadline=Deadline(api.retry_timeout, api.clock), pause=_pause(api))
    if live is None:
        raise WaitTimeout(f"{resource.label} was created and does not appear", hint="Run again")
    _refuse_others(resource, dataclasses.replace(options, adopt=False), live)
    return live


def _run(
    resource: CloudResource[A],
    api: A,
    steps: Sequence[CloudStep],
    wait_options: WaitOptions,
    deadline: Deadline,
    before: Body | None,
    *,
    more: bool = False,
) -> None:
    """Send the steps. ``more``: others follow, which need these to have finished."""
    for step in steps:
        waits = wait_options.wait or more or step is not steps[-1]
        _do(resource, api, step, deadline, finish=waits and step.wait != "none")
        if waits:
            _wait(resource, api, step, deadline, before)


def _do(resource: CloudResource[A], api: A, step: CloudStep, deadline: Deadline, *, finish: bool) -> None:
    """Send a step, and retry it while a refusal passes (see ``passes``), such as one because the resource is still in use.

    ``finish``: the operation that it starts must end as well, as the cloud may refuse the step only there.
    """

    told = ""

    def observe() -> tuple[None, str | None]:
        nonlocal told
        try:
            answer = api.write(resource.label, step)
            resource.examine(step, answer)
            if finish:
                _until_finished(resource, api, step, answer, deadline)
        except CallRefused as refused:
            if not resource.passes(refused):
                raise resource.explain(refused) from refused
            told = resource.busy(refused)
            return None, told
        except WaitTimeout:
            if not told:
                raise
            return None, told  # the reason of the last try, which this one would have had, too
        return None, None

    goal, hint = resource.BUSY
    wait_for(observe, goal=f"{resource.label} {goal}", deadline=deadline, pause=_pause(api), hint=hint)


def _wait(resource: CloudResource[A], api: A, step: CloudStep, deadline: Deadline, before: Body | None) -> None:
    if step.wait in ("stable", "update"):
        state = resource.state(_until_stable(resource, api, deadline, exists=True))
        if state.failure:
            told = f"{resource.label}: {step.says} failed: {state.failure}"
            raise Failed(told, resource.advice(state.codes), details={"seen": state.seen})
    if step.wait == "gone":
        _until_stable(resource, api, deadline, leaving=before)


def _until_stable(
    resource: CloudResource[A], api: A, deadline: Deadline, *, leaving: Body | None = None, exists: bool = False
) -> Body | None:
    """The resource once its state no longer changes by itself. ``leaving``: the one being deleted, as another may get its name.

    ``exists``: it was just created or changed, so that an answer without it is an old one.
    """

    def observe() -> tuple[Body | None, str | None]:
        live = resource.read(api)
        state = resource.state(live)
        if exists and live is None:
            return None, "it does not appear yet"
        if leaving and (live is None or resource.identity(live) != resource.identity(leaving)):
            return None, None
        if leaving and state.failure:
            raise Failed(f"{resource.label}: delete failed: {state.failure}", details={"seen": state.seen})
        return live, None if state.stable and not leaving else state.seen

    goal = f"{resource.label} is not {'gone' if leaving else 'ready'}"
    return wait_for(observe, goal=goal, deadline=deadline, pause=_pause(api), hint=_goes_on(resource))


def _until_finished(resource: CloudResource[A], api: A, step: CloudStep, answer: Body, deadline: Deadline) -> None:
    def observe() -> tuple[None, str | None]:
        return None, resource.under_way(api, step, answer)

    goal = f"{resource.label}: {step.says} has not finished"
    wait_for(observe, goal=goal, deadline=deadline, pause=_pause(api), hint=_goes_on(resource))


def _pause(api: CloudApi) -> Pause:
    return growing_interval(1.0, 15.0, api.clock)


def _goes_on(resource: CloudResource[A]) -> str:
    return f"{resource.CLOUD} continues to work on it: run again, or with a longer wait_timeout"
