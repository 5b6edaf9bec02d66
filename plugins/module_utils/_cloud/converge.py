# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconcile one resource: read, plan, send, wait. The same for every cloud and every kind of resource."""

from __future__ import annotations

import dataclasses
import functools
import typing as t
from collections.abc import Sequence

from .._core.clock import Deadline
from .._core.deletion import Candidate, why_kept
from .._core.errors import NEW_PLAN, Failed, InvalidInput, WaitTimeout
from .._core.waiting import Pause, growing_interval, last_answer, wait_for
from .errors import CallRefused
from .plan import Body, CloudStep, Plan, found_of, mark_text, whose
from .resource import A, CloudResource


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
    work = _Work(resource, api, options, wait_options.wait, Deadline(wait_options.seconds, api.clock))
    return work.absent() if options.absent else work.present()


@dataclasses.dataclass(frozen=True)
class _Work(t.Generic[A]):
    """One resource that is reconciled until the deadline."""

    resource: CloudResource[A]
    api: A
    options: ConvergeOptions
    wait: bool
    deadline: Deadline

    def present(self) -> Outcome:
        live = self.resource.read(self.api)
        self._refuse_others(live, adopt=self.options.adopt)
        state = self.resource.state(live)
        if not self.options.check and not state.stable and (not state.usable or self.resource.plan(live).changed):
            live = self._until_stable()
            self._refuse_others(live, adopt=self.options.adopt)
        plan = self.resource.plan(live)
        if live is not None and plan.replaces:
            self._refuse_to_delete(live)
        state = self.resource.state(live)
        if state.failure and not plan.changed:
            raise Failed(f"{self.resource.label} is {state.seen}", self.resource.advice(state.codes), details={"seen": state.seen})
        if self.options.check or not plan.changed:
            return Outcome(plan, live)
        self._refuse_unplanned((*plan.steps, *plan.later))
        rest = plan.steps
        if live is None and (plan.later or len(plan.steps) > 1):
            self._run(plan.steps[:1], live, more=True)
            made = self._until_seen()
            rest = self.resource.plan(made).steps if plan.later else plan.steps[1:]
            self._refuse_unplanned(rest)
        self._run(rest, live)
        return Outcome(plan, self.resource.read(self.api) if live else self._until_seen())

    def absent(self) -> Outcome:
        live = self.resource.read(self.api)
        kept = self._why_kept(live)
        if not kept and not self.options.check and not self.resource.state(live).stable:
            live = self._until_stable()
            kept = self._why_kept(live)
        if kept:
            return Outcome(Plan(), live, kept)
        plan = self.resource.plan_absent(live)
        if self.options.check or live is None or not plan.changed:
            return Outcome(plan, live, plan.kept)
        self._refuse_unplanned(plan.steps)
        self._run(plan.steps[:-1], live, more=True)
        if len(plan.steps) > 1:
            # The steps before may have taken minutes. Meanwhile another client may have created a resource of this name, or changed
            # its owner.
            now = self.resource.read(self.api)
            if now is None:
                return Outcome(plan, None, plan.kept)
            if self.resource.identity(now) != self.resource.identity(live):
                raise Failed(f"{self.resource.label} was created again by another client while it was being deleted, and is left as it is")
            self._refuse_to_delete(now)
        self._run(plan.steps[-1:], live)
        return Outcome(plan, self.resource.read(self.api), plan.kept)

    def _refuse_unplanned(self, steps: Sequence[CloudStep]) -> None:
        """Refuse what the reviewed plan does not have, because the resource has changed since it was compared with the plan."""
        new = [str(step) for step in steps if self.options.requests is not None and str(step) not in self.options.requests]
        if new:
            raise InvalidInput(
                f"{self.resource.label} has changed since it was compared with the plan, which does not have {'; '.join(new)}",
                hint=f"{NEW_PLAN}, and read it again",
            )

    def _is_ours(self, live: Body) -> bool:
        """Whether it has the mark of our resources; without a mark any resource of the name is ours."""
        return self.options.mark.items() <= self.resource.marks(live).items()

    def _why_kept(self, live: Body | None) -> str:
        """Return why it must not be deleted, as a sentence; empty if it may be, or does not exist.

        All deletions in clouds are judged here.
        """
        if live is None:
            return ""
        unknown = live.get("_unknown", "")
        candidate = Candidate(
            name=self.resource.label,
            marked=bool(unknown) or self._is_ours(live),
            recorded=bool(unknown) or self.resource.recorded(self.api, live),
            needed=self.resource.used_by(live),
            unknown=unknown,
        )
        judged = functools.partial(why_kept, delete_data=self.resource.delete_data)
        # Only an object of ours is searched for data.
        if not judged(candidate) and not self.resource.delete_data:
            try:
                candidate = dataclasses.replace(candidate, data=self.resource.data_at_risk(self.api, live))
            except CallRefused as refused:
                candidate = dataclasses.replace(candidate, unknown=str(refused))
        why = judged(candidate)
        if self.options.mark and not candidate.marked:
            found = mark_text(found_of(self.options.mark, self.resource.marks(live)))
            why += f" ({mark_text(self.options.mark)})" + (f", but {found}" if found else "")
        return f"{self.resource.label} was kept: it {why}" if why else ""

    def _refuse_to_delete(self, live: Body) -> None:
        if kept := self._why_kept(live):
            raise InvalidInput(kept)

    def _refuse_others(self, live: Body | None, *, adopt: bool) -> None:
        """Refuse to change a resource that has another owner, or may have one. ``adopt``: take one without an owner."""
        if live is None:
            return
        if unknown := live.get("_unknown"):
            raise InvalidInput(
                f"{self.resource.label} exists and is left as it is: {unknown}",
                hint="Give the caller the permission, or choose another name",
            )
        if self._is_ours(live):
            return
        found = found_of(self.options.mark, self.resource.marks(live))
        theirs = {key: value for key, value in found.items() if value != self.options.mark[key]}
        if adopt and not theirs:
            return
        mark = mark_text(self.options.mark)
        raise InvalidInput(
            f"{self.resource.label} exists and does not carry the {self.resource.MARK} {mark}: {whose(found)}, and it is left as it is",
            hint=f"Choose another name; or, to take it over, {self.resource.taking_over(mark, theirs)}",
        )

    def _until_seen(self) -> Body:
        """The resource that was just created, with its mark, which a cloud may take a moment to show.

        If it never shows them, the resource existed already: S3 in us-east-1 calls the creation of such a bucket a success."""

        def observe() -> tuple[Body | None, str | None]:
            live = self.resource.read(self.api)
            seen = live is not None and (self._is_ours(live) or live.get("_unknown"))
            return live, None if seen else f"it does not appear with its {self.resource.MARK}s"

        live = last_answer(observe, deadline=Deadline(self.api.retry_timeout, self.api.clock), pause=self._pause())
        if live is None:
            raise WaitTimeout(f"{self.resource.label} was created and does not appear", hint="Run again")
        self._refuse_others(live, adopt=False)
        return live

    def _run(self, steps: Sequence[CloudStep], before: Body | None, *, more: bool = False) -> None:
        """Send the steps. ``more``: others follow, which need these to have finished."""
        for step in steps:
            waits = self.wait or more or step is not steps[-1]
            self._do(step, finish=waits and step.wait != "none")
            if waits:
                self._wait(step, before)

    def _do(self, step: CloudStep, *, finish: bool) -> None:
        """Send a step, and retry it while a refusal passes (see ``passes``), such as one because the resource is still in use.

        ``finish``: the operation that it starts must end as well, as the cloud may refuse the step only there.
        """

        told = ""

        def observe() -> tuple[None, str | None]:
            nonlocal told
            try:
                answer = self.api.write(self.resource.label, step)
                self.resource.examine(step, answer)
                if finish:
                    self._until_finished(step, answer)
            except CallRefused as refused:
                if not self.resource.passes(refused):
                    raise self.resource.explain(refused) from refused
                told = self.resource.busy(refused)
                return None, told
            except WaitTimeout:
                if not told:
                    raise
                return None, told  # the reason of the last try, which this one would have had, too
            return None, None

        goal, hint = self.resource.BUSY
        wait_for(observe, goal=f"{self.resource.label} {goal}", deadline=self.deadline, pause=self._pause(), hint=hint)

    def _wait(self, step: CloudStep, before: Body | None) -> None:
        if step.wait in ("stable", "update"):
            state = self.resource.state(self._until_stable(exists=True))
            if state.failure:
                told = f"{self.resource.label}: {step.says} failed: {state.failure}"
                raise Failed(told, self.resource.advice(state.codes), details={"seen": state.seen})
        if step.wait == "gone":
            self._until_stable(leaving=before)

    def _until_stable(self, *, leaving: Body | None = None, exists: bool = False) -> Body | None:
        """The resource once its state no longer changes by itself. ``leaving``: the one being deleted, as another may get its name.

        ``exists``: it was just created or changed, so that an answer without it is an old one.
        """

        def observe() -> tuple[Body | None, str | None]:
            live = self.resource.read(self.api)
            state = self.resource.state(live)
            if exists and live is None:
                return None, "it does not appear yet"
            if leaving and (live is None or self.resource.identity(live) != self.resource.identity(leaving)):
                return None, None
            if leaving and state.failure:
                raise Failed(f"{self.resource.label}: delete failed: {state.failure}", details={"seen": state.seen})
            return live, None if state.stable and not leaving else state.seen

        goal = f"{self.resource.label} is not {'gone' if leaving else 'ready'}"
        return wait_for(observe, goal=goal, deadline=self.deadline, pause=self._pause(), hint=self._goes_on())

    def _until_finished(self, step: CloudStep, answer: Body) -> None:
        def observe() -> tuple[None, str | None]:
            return None, self.resource.under_way(self.api, step, answer)

        goal = f"{self.resource.label}: {step.says} has not finished"
        wait_for(observe, goal=goal, deadline=self.deadline, pause=self._pause(), hint=self._goes_on())

    def _pause(self) -> Pause:
        return growing_interval(1.0, 15.0, self.api.clock)

    def _goes_on(self) -> str:
        return f"{self.resource.CLOUD} continues to work on it: run again, or with a longer wait_timeout"
