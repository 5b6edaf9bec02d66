# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a desired object to the broker: read, plan, write what differs, and ask the broker whether it is so.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..._core.clock import Deadline
from ..._core.deletion import why_kept
from ..._core.errors import Forbidden, NotFound, Rejected
from ..._core.sensitive import printable
from ..._core.waiting import growing_interval, wait_for
from .api import ManagementApi
from .plan import Live, Plan, Resource, Step

_SETTLES = 10.0
"""Seconds that the broker may take until it shows what it accepted (a vhost starts its message stores)."""

Warn = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What was done, or would be in check mode, and the object after it."""

    plan: Plan
    live: Live | None
    kept: str = ""

    def result(self, key: str, *, diff: bool) -> dict[str, t.Any]:
        """The result of the module; KEY holds the object."""
        found: dict[str, t.Any] = {
            "changed": bool(self.plan.steps),
            "actions": [step.says for step in self.plan.steps],
            key: self.live or {},
        }
        if self.kept:
            found["kept"] = self.kept
        if diff:
            found["diff"] = {"before": self.plan.before, "after": self.plan.after}
        return t.cast("dict[str, t.Any]", printable(found))


def converge(resource: Resource, api: ManagementApi, *, absent: bool, check: bool, warn: Warn) -> Outcome:
    """Bring one object to its desired state; a second call sends no write."""
    live = resource.read(api)
    if absent:
        return _delete(resource, api, live, check=check, warn=warn)
    plan = resource.plan(live)
    _find_vhosts(api, plan, check=check, warn=warn)
    if check or not plan.steps:
        return Outcome(plan, live)
    for step in plan.steps:
        _send(api, step)
    if any(step.locks_out for step in plan.steps):
        return Outcome(plan, live)
    return Outcome(plan, _settled(resource, api))


def _delete(resource: Resource, api: ManagementApi, live: Live | None, *, check: bool, warn: Warn) -> Outcome:
    if live is None:
        return Outcome(Plan(), None)
    plan = resource.plan_absent(live)
    why = ""
    if plan.candidate:
        why = why_kept(plan.candidate, data_option=resource.data_option, delete_data=resource.delete_data)
    if not why and not check:
        why = _refusal(api, plan, resource.data_option)
    if why:
        kept = f"{resource.label} was kept: it {why}."
        warn(kept)
        return Outcome(Plan(), live, kept)
    return Outcome(plan, live if check else None)


def _refusal(api: ManagementApi, plan: Plan, data_option: str) -> str:
    """Send the steps of a deletion; why the broker itself keeps the object, empty if it is gone."""
    for step in plan.steps:
        try:
            _send(api, step)
        except Rejected as exc:
            if step.kept_if and step.kept_if in exc.message:
                return f"holds messages; {data_option} deletes it"
            raise
    return ""


def _send(api: ManagementApi, step: Step) -> None:
    api.call(step.method, step.path, step.body, query=step.query)
    if step.password:
        api.log_in(step.password)


def _find_vhosts(api: ManagementApi, plan: Plan, *, check: bool, warn: Warn) -> None:
    """Refuse what needs a vhost that is not there before anything is written. In a plan the same run may be about to create it."""
    for vhost in dict.fromkeys(step.vhost for step in plan.steps if step.vhost):
        try:
            if api.get("vhosts", vhost) is not None:
                continue
        except Forbidden:  # who may declare a queue may not list vhosts; the broker refuses the queue if there is none
            continue
        if not check:
            raise NotFound(
                f"There is no vhost {vhost} at {api.address}.", "Create it first, with muster.ml.rabbitmq_vhost."
            )
        warn(f"There is no vhost {vhost} at {api.address} yet; a run needs it.")


def _settled(resource: Resource, api: ManagementApi) -> Live | None:
    """The object once the broker shows it as desired; WaitTimeout names what it does not show."""

    def observe() -> tuple[Live | None, str | None]:
        live = resource.read(api)
        left = resource.plan(live)
        missing = f"still differs: {', '.join(left.after) or 'it is not there'}" if left.steps else None
        return live, missing or resource.unready(live)

    return wait_for(
        observe, goal=f"The broker accepted every request, and {resource.label} is not as desired",
        deadline=Deadline(_SETTLES, api.clock), pause=growing_interval(0.1, 1.0, api.clock),
        hint="Another client may have changed it, or this version of RabbitMQ ignores the field.",
    )  # fmt: skip
