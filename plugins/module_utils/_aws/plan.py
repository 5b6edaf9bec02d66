# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans: the requests to AWS, and the changes that a user sees. Pure values, from a comparison of desired and live.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.errors import InvalidInput

Body = dict[str, t.Any]
Wait = t.Literal["none", "stable", "update", "gone"]


@dataclasses.dataclass(frozen=True)
class Step:
    """One request that changes something.

    ``says`` is for people. ``wait`` is what must have finished before the next step: nothing, a change of the resource's state, an update
    that EKS records, or the deletion of the resource.
    """

    operation: str
    request: Body
    says: str
    service: str = "eks"
    wait: Wait = "none"

    def __str__(self) -> str:
        return f"{self.service}:{self.operation} ({self.says})"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The steps, and the fields they change, before and after. The fields must match the steps.

    ``later`` are steps that need something these create, such as an ID: shown in check mode, and planned again once it exists.
    """

    steps: tuple[Step, ...] = ()
    before: Body = dataclasses.field(default_factory=dict)
    after: Body = dataclasses.field(default_factory=dict)
    later: tuple[Step, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    @property
    def replaces(self) -> bool:
        """Whether the resource is deleted before it is created."""
        return any(step.wait == "gone" for step in self.steps)


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a resource. ``seen`` is for messages; ``failure`` is a state that it will not leave by itself."""

    stable: bool
    seen: str
    failure: str = ""


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

    def plan(self, steps: t.Iterable[Step]) -> Plan:
        return Plan(tuple(steps), self.before, self.after)


def creation_plan(step: Step, *more: Step) -> Plan:
    """A plan that creates the resource; the diff shows the whole request."""
    return Plan((step, *more), {}, printable_request(step.request))


def deletion_plan(current: Body, *steps: Step) -> Plan:
    return Plan(steps, printable_request(current), {})


def printable_request(request: Body) -> Body:
    """A request without the token that only makes it unique."""
    return {key: value for key, value in request.items() if key not in ("ClientToken", "clientRequestToken")}


def without_none(body: Body) -> Body:
    """A request without None values, which AWS would refuse as a wrong type."""
    return {key: value for key, value in body.items() if value is not None}


def same_members(current: t.Iterable[t.Any] | None, desired: t.Sequence[t.Any] | None) -> t.Sequence[t.Any] | None:
    """``desired``, or None if it differs from ``current`` only in order, which AWS does not keep."""
    if desired is None or sorted(desired) == sorted(current or ()):
        return None
    return desired


def with_owner_tags(
    tags: dict[str, str] | None, mark: dict[str, str], *, purge: bool
) -> tuple[dict[str, str] | None, bool]:
    """(tags, whether to remove others), so that a resource has its owner's tags from the beginning and never loses them."""
    other = {key: value for key, value in (tags or {}).items() if mark.get(key, value) != value}
    if other:
        raise InvalidInput(
            f"tags has {tags_text(other)} where only_tagged has {tags_text({key: mark[key] for key in other})}",
            hint="only_tagged marks what is yours, so tags must have the same value",
        )
    return ({**(tags or {}), **mark}, purge and tags is not None) if mark else (tags, purge)


def tags_text(tags: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))


@dataclasses.dataclass(frozen=True)
class TagChange:
    """Tags to set and keys to remove."""

    put: dict[str, str]
    remove: list[str]
    before: dict[str, str]
    after: dict[str, str]


def tag_change(current: dict[str, str], desired: dict[str, str] | None, *, purge: bool) -> TagChange | None:
    """The change of tags, or None. Keys that start with ``aws:`` are AWS's own."""
    if desired is None:
        return None
    ours = {key: value for key, value in current.items() if not key.startswith("aws:")}
    put = {key: value for key, value in desired.items() if ours.get(key) != value}
    remove = sorted(ours.keys() - desired.keys()) if purge else []
    if not put and not remove:
        return None
    after = {key: value for key, value in {**ours, **desired}.items() if key not in remove}
    return TagChange(put, remove, ours, after)


def tag_steps(compare: Comparison, change: TagChange | None, put: Step, remove: Step) -> list[Step]:
    """The steps for a change of tags, as given for this kind of resource; also notes the change for the diff."""
    if change is None:
        return []
    compare.differs("tags", change.before, change.after)
    return ([put] if change.put else []) + ([remove] if change.remove else [])


def eks_tag_steps(compare: Comparison, arn: str, change: TagChange | None) -> list[Step]:
    """The same for everything of EKS, which tags by ARN."""
    if change is None:
        return []
    return tag_steps(
        compare,
        change,
        Step("tag_resource", {"resourceArn": arn, "tags": change.put}, f"tags {', '.join(sorted(change.put))}"),
        Step(
            "untag_resource", {"resourceArn": arn, "tagKeys": change.remove}, f"without tags {', '.join(change.remove)}"
        ),
    )


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """Tags in the form of IAM and EFS."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tag_dict(tags: t.Iterable[t.Mapping[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags or ()}


def live_tags(live: Body) -> dict[str, str]:
    """The tags of a resource as its service describes it: EKS has a dictionary, the others lists."""
    tags = live.get("tags")
    return dict(tags) if isinstance(tags, dict) else tag_dict(live.get("Tags"))
