# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps and tags of AWS, as parts of a plan.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud import plan
from .._cloud.plan import Body, Comparison, mark_text
from .._core.errors import InvalidInput


@dataclasses.dataclass(frozen=True)
class Step(plan.Step):
    """A call of boto3; most are EKS's."""

    service: str = "eks"


def with_owner_tags(
    tags: dict[str, str] | None, mark: dict[str, str], *, purge: bool
) -> tuple[dict[str, str] | None, bool]:
    """(tags, whether to remove others), so that a resource has its owner's tags from the beginning and never loses them."""
    other = {key: value for key, value in (tags or {}).items() if mark.get(key, value) != value}
    if other:
        raise InvalidInput(
            f"tags has {mark_text(other)} where only_tagged has {mark_text({key: mark[key] for key in other})}",
            hint="only_tagged marks what is yours, so tags must have the same value",
        )
    return ({**(tags or {}), **mark}, purge and tags is not None) if mark else (tags, purge)


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
