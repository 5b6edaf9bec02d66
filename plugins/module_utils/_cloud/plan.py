# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans: the requests to a cloud, and the changes that a user sees. Pure values, from a comparison of desired and live."""

from __future__ import annotations

import dataclasses
import re
import typing as t

Body = dict[str, t.Any]
Wait = t.Literal["none", "stable", "update", "gone"]


@dataclasses.dataclass(frozen=True)
class CloudStep:
    """One request that changes something.

    ``says`` is for messages. ``wait`` is what must have finished before the next step: nothing, a change of the resource's state, an update
    that the cloud keeps a record of, or the deletion of the resource.
    """

    operation: str
    request: Body
    says: str
    service: str
    wait: Wait = "none"

    def __str__(self) -> str:
        return f"{self.service}:{self.operation} ({self.says})"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The steps, and the fields they change, before and after: there are steps if and only if a field changes.

    ``later`` are steps that need something these create, such as an ID: shown in check mode, and planned again once it exists.
    ``kept`` names what stays although the rest is deleted, with the reason.
    """

    steps: tuple[CloudStep, ...] = ()
    before: Body = dataclasses.field(default_factory=dict)
    after: Body = dataclasses.field(default_factory=dict)
    later: tuple[CloudStep, ...] = ()
    kept: str = ""

    def __post_init__(self) -> None:
        if bool(self.steps) != (self.before != self.after):
            raise AssertionError(f"steps and the difference do not go together: {', '.join(map(str, self.steps))}, {[*self.after]}")

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    @property
    def replaces(self) -> bool:
        """Whether the resource is deleted before it is created."""
        return any(step.wait == "gone" for step in self.steps)


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a resource. ``seen`` is for messages; ``failure`` is a state that it will not leave by itself.

    ``codes`` are the cloud's, which say why. ``usable``: not stable, as the cloud works on it, which may take hours; what is as desired
    need not be waited for.
    """

    stable: bool
    seen: str
    failure: str = ""
    usable: bool = False
    codes: tuple[str, ...] = ()


GONE = State(stable=True, seen="does not exist")


class Comparison:
    """Collects differences. A desired value of None accepts any live value."""

    def __init__(self) -> None:
        self.before: Body = {}
        self.after: Body = {}

    def differs(self, field: str, current: t.Any, desired: t.Any) -> bool:
        if desired is None or current == desired:
            return False
        self.before[field], self.after[field] = current, desired
        return True

    def plan(self, steps: t.Iterable[CloudStep]) -> Plan:
        return Plan(tuple(steps), self.before, self.after)


def camel(option: str) -> str:
    """The API's name of an option that has the same words."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), option)


def camelled(options: t.Mapping[str, t.Any], names: t.Iterable[str]) -> Body:
    """Return the options that are given, by their names in the API."""
    return {camel(name): options[name] for name in names if options.get(name) is not None}


def creation_plan(step: CloudStep, *more: CloudStep) -> Plan:
    """A plan that creates the resource; the diff shows the whole request."""
    return Plan((step, *more), {}, printable_request(step.request))


def deletion_plan(current: Body, *steps: CloudStep) -> Plan:
    return Plan(steps, printable_request(current), {})


def printable_request(request: Body) -> Body:
    """A request without the token that only makes it unique."""
    return {key: value for key, value in request.items() if key not in ("ClientToken", "clientRequestToken")}


def without_none(body: Body) -> Body:
    """A request without None values, which a cloud would refuse as a wrong type."""
    return {key: value for key, value in body.items() if value is not None}


def same_members(current: t.Iterable[t.Any] | None, desired: t.Sequence[t.Any] | None) -> t.Sequence[t.Any] | None:
    """``desired``, or None if it differs from ``current`` only in order or in what is named twice, which clouds do not keep."""
    if desired is None or set(desired) == set(current or ()):
        return None
    return desired


def found_of(mark: dict[str, str], marks: dict[str, str]) -> dict[str, str]:
    """Return the tags or labels that a resource has in place of the mark."""
    return {key: marks[key] for key in mark if key in marks}


def whose(found: dict[str, str]) -> str:
    """Return the owner of a resource that has FOUND in place of our mark, as a clause."""
    return f"it has {mark_text(found)}" if found else "another owner created it"


def mark_text(mark: dict[str, str]) -> str:
    """Tags or labels as a message shows them."""
    return ", ".join(f"{key}={value}" for key, value in sorted(mark.items()))
