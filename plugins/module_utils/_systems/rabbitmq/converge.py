# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply a document of definitions to the broker: read, plan, write the differences, and verify the result.

Objects are read and written one by one, and not by ``GET`` and ``POST /api/definitions``. Seen at 3.10.8 and 4.0.5: these need the tag
administrator; the import skips a queue that exists with other arguments, removes the password of a user that comes without one, and
writes what precedes an object that it refuses; it deletes nothing; and the export of 3.10 has no descriptions of vhosts.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..._core.clock import Deadline
from ..._core.errors import NotFound, Rejected, Unauthorized
from ..._core.sensitive import printable
from ..._core.waiting import growing_interval, wait_for
from .api import NOT_EMPTY, ManagementApi
from .document import KINDS, VHOST_LIMITS, Document, live_row, references
from .plan import ApiRequest, RequestPlan, Wanted, plan, vhost_data

_SETTLES = 10.0
"""Seconds that the broker may take until it shows what it accepted (a vhost starts its message stores)."""
_QUEUE = "name,vhost,type,durable,auto_delete,arguments,messages"

Warn = t.Callable[[str], None]


def converge(wanted: Wanted, api: ManagementApi, *, check: bool, warn: Warn) -> dict[str, t.Any]:
    """Bring the broker to the desired state; a second call sends no write. Returns the result of the module."""
    _log_in(api, wanted)
    live = read(api, wanted)
    made = plan(wanted, live, api.user)
    _find(api, wanted, live, made, check=check, warn=warn)
    if not check:
        made = _sent(api, made)
        if made.steps and not any(step.locks_out for step in made.steps):
            _settle(api, wanted)
    for reason in made.kept:
        warn(reason)
    says = [step.says for step in made.steps]
    diff = {"before": made.before, "after": made.after}
    return t.cast("dict[str, t.Any]", printable({"changed": bool(says), "actions": says, "kept": made.kept, "diff": diff}))


def read(api: ManagementApi, wanted: Wanted) -> Document:
    """Return the live objects of the kinds and vhosts that a plan needs."""
    live: Document = {name: {} for name in KINDS}
    vhosts, needed = set(), {"vhosts"}
    for document in (wanted.present, wanted.absent):
        for name, rows in document.items():
            for row in rows.values():
                needed |= {name, *(other for other, _key in references(name, row))}
                vhosts.add(row.get("vhost"))
    if wanted.purge_permissions:
        needed |= {"permissions", "topic_permissions"}
    for name in (name for name in KINDS if name in needed):
        kind = KINDS[name]
        places: list[tuple[str, ...]] = [()]
        if kind.by_vhost:
            places = [key for key in live["vhosts"] if key[0] in vhosts]
        if name == "parameters":
            places = [(VHOST_LIMITS,)]
        for place in places:
            found = api.get(kind.path, *place, **({"columns": _QUEUE} if name == "queues" else {})) or []
            rows_found = [live_row(name, row) for row in found]
            live[name] |= {kind.key_of(row): row for row in rows_found}
    for key in wanted.absent["vhosts"].keys() & live["vhosts"].keys():
        live["vhosts"][key]["queues"] = _queues(api, key[0])
    return live


def _queues(api: ManagementApi, vhost: str) -> list[str]:
    return [row["name"] for row in api.get("queues", vhost, columns="name") or []]


def _log_in(api: ManagementApi, wanted: Wanted) -> None:
    """Determine the password with which the task's own user can log in: an earlier run may have changed it."""
    password = wanted.present["users"].get((api.user,), {}).get("password")
    if password is None:
        return
    try:
        api.get("whoami")
    except Unauthorized as exc:
        api.log_in(password)
        try:
            api.get("whoami")
        except Unauthorized as again:
            raise exc from again


def _find(api: ManagementApi, wanted: Wanted, live: Document, made: RequestPlan, *, check: bool, warn: Warn) -> None:
    """Refuse a plan that needs an object which does not exist, before anything is written.

    In check mode it is a warning: an earlier task of the same run may be about to create the object.
    """
    missing: dict[str, None] = {}
    for name, row in (need for step in made.steps for need in step.needs):
        key = KINDS[name].key_of(row)
        if key not in live[name] and key not in wanted.present[name]:
            missing[KINDS[name].label_of(row)] = None
    for label in missing:
        if not check:
            raise NotFound(
                f"There is no {label} at {api.address}, or user {api.user} may not see it.", "Create it first, or name it in the same task."
            )
        warn(f"There is no {label} at {api.address} yet; a run needs it.")


def _sent(api: ManagementApi, made: RequestPlan) -> RequestPlan:
    """Send the requests. Return the plan as carried out, without deletions that the broker refused to protect data."""
    done = dataclasses.replace(made, steps=[])
    for step in made.steps:
        why = _refusal(api, step)
        if why:
            done.kept.append(f"{step.label} was kept: it {why}; delete_data: true deletes it.")
            del done.before[step.label]
        else:
            done.steps.append(step)
    return done


def _refusal(api: ManagementApi, step: ApiRequest) -> str:
    """Send one request. Return the reason why the object of a deletion is kept; empty otherwise."""
    if step.label and step.path[0] == "vhosts":
        # Checked again: the plan expects that its queues were deleted before, and the broker may have kept one.
        why = vhost_data(_queues(api, step.path[1]))
        if why:
            return why
    try:
        api.call(step.method, step.path, step.body, query=step.query)
    except Rejected as exc:
        if "if-empty" in step.query and exc.cause == NOT_EMPTY:
            return "holds messages"
        raise
    if step.password:
        api.log_in(step.password)
    return ""


def _settle(api: ManagementApi, wanted: Wanted) -> None:
    """Wait until the broker shows what it accepted; WaitTimeout names what it does not show."""
    present = dataclasses.replace(wanted, absent={name: {} for name in KINDS})

    def observe() -> tuple[None, str | None]:
        live = read(api, present)
        left = plan(present, live, api.user).steps
        starting = [
            f"vhost {key[0]} is {', '.join(live['vhosts'][key]['state'])}"
            for key in wanted.present["vhosts"]
            if key in live["vhosts"] and set(live["vhosts"][key]["state"]) - {"running"}
        ]
        return None, "; ".join([*(f"still to do: {step.says}" for step in left), *starting]) or None

    wait_for(
        observe, goal=f"The broker at {api.address} accepted every request, and is not as desired",
        deadline=Deadline(_SETTLES, api.clock), pause=growing_interval(0.1, 1.0, api.clock),
        hint="Another client may have changed it, or this version of RabbitMQ ignores the field.",
    )  # fmt: skip
