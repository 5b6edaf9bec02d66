# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps and tags of AWS, as parts of a plan."""

from __future__ import annotations

import dataclasses
import typing as t
import unicodedata

from .._cloud import plan
from .._cloud.plan import Body, Comparison, mark_text
from .._core.errors import InvalidInput


@dataclasses.dataclass(frozen=True)
class Step(plan.CloudStep):
    """A call of boto3; most are EKS's."""

    service: str = "eks"


RESERVED = "aws:"
MOST = 50
"""Tags of a resource without those of AWS (TagMap of EKS, tagListType of IAM in botocore)."""
LONGEST_KEY, LONGEST_VALUE = 128, 256
_SIGNS = "_.:/=+-@"


def refuse_tags(label: str, tags: t.Mapping[str, str], service: str) -> None:
    """Refuse tags that the service refuses, before anything is sent. LABEL: the resource, or the variable, that has them.

    Lengths and characters are those of tagKeyType and tagValueType of IAM, and of TagKey and TagValue of EFS in botocore, which are the
    standard set of the other services ("Tag naming limits and requirements", Tagging AWS Resources user guide). EC2 takes any character
    (EC2 user guide, "Tag your Amazon EC2 resources"), and IAM no two keys that differ in case only ("Duplicate tag keys found. Please note
    that Tag keys are case insensitive").
    """
    for key, value in tags.items():
        if key.lower().startswith(RESERVED):
            raise InvalidInput(f"{label}: the tag {key} cannot be set: AWS reserves {RESERVED} for its own", hint="Choose another key")
        if not 1 <= len(key) <= LONGEST_KEY or len(value) > LONGEST_VALUE:
            raise InvalidInput(
                f"{label}: the tag {key} has a key of {len(key)} and a value of {len(value)} characters",
                hint=f"AWS takes keys of 1 to {LONGEST_KEY} and values of at most {LONGEST_VALUE}",
            )
        wrong = sorted({one for one in key + value if not (one in _SIGNS or unicodedata.category(one)[0] in "LNZ")})
        if wrong and service != "ec2":
            raise InvalidInput(
                f"{label}: the tag {key!r} with the value {value!r} has {', '.join(map(repr, wrong))}",
                hint=f"AWS takes letters, digits, spaces and {' '.join(_SIGNS)} in tags",
            )
    folded = [key.lower() for key in tags]
    if service == "iam" and (twice := [key for key in tags if folded.count(key.lower()) > 1]):
        raise InvalidInput(f"{label}: {' and '.join(twice)} are one tag for IAM", hint="Leave out one of them")
    if len(tags) > MOST:
        raise InvalidInput(f"{label} would have {len(tags)} tags", hint=f"AWS takes {MOST} at most, the owner's among them")


def with_owner_tags(tags: dict[str, str] | None, mark: dict[str, str], *, purge: bool) -> tuple[dict[str, str] | None, bool]:
    """(tags, whether to remove others), so that a resource has its owner's tags from the beginning and never loses them."""
    other = {key: value for key, value in (tags or {}).items() if mark.get(key, value) != value}
    if other:
        raise InvalidInput(
            f"tags has {mark_text(other)} where only_tagged has {mark_text({key: mark[key] for key in other})}",
            hint="only_tagged marks what is yours, so tags must have the same value",
        )
    return ({**(tags or {}), **mark}, purge and tags is not None) if mark else (tags, purge)


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """Tags in the form of IAM and EFS."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def tag_dict(tags: t.Iterable[t.Mapping[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value") or "" for tag in tags or ()}


def live_tags(live: Body) -> dict[str, str]:
    """The tags of a resource as its service describes it: EKS has a dictionary, the others lists."""
    tags = live.get("tags")
    return dict(tags) if isinstance(tags, dict) else tag_dict(live.get("Tags"))


def changed_tags(
    compare: Comparison, current: dict[str, str], desired: dict[str, str] | None, *, purge: bool
) -> tuple[dict[str, str], list[str]]:
    """(tags to set, keys to remove), noted for the diff. Keys that start with ``aws:`` are AWS's own."""
    if desired is None:
        return {}, []
    ours = {key: value for key, value in current.items() if not key.startswith(RESERVED)}
    put = {key: value for key, value in desired.items() if ours.get(key) != value}
    remove = sorted(ours.keys() - desired.keys()) if purge else []
    compare.differs("tags", ours, {key: value for key, value in {**ours, **desired}.items() if key not in remove})
    return put, remove


@dataclasses.dataclass(frozen=True)
class Tagging:
    """The operations by which a service tags, and their parameters for tags and keys with the form that it wants of both."""

    service: str = "eks"
    put: str = "tag_resource"
    remove: str = "untag_resource"
    tags: str = "tags"
    keys: str = "tagKeys"
    form: t.Callable[[dict[str, str]], t.Any] = dict
    form_of_keys: t.Callable[[list[str]], t.Any] = list

    def steps(self, change: tuple[dict[str, str], list[str]], named: Body) -> list[Step]:
        """The steps for a change of tags; NAMED is the resource in the requests."""
        tags, keys = change
        put = Step(self.put, {**named, self.tags: self.form(tags)}, f"tags {', '.join(sorted(tags))}", self.service)
        remove = {**named, self.keys: self.form_of_keys(keys)}
        gone = Step(self.remove, remove, f"without tags {', '.join(keys)}", self.service)
        return [put] * bool(tags) + [gone] * bool(keys)


EKS_TAGS = Tagging()
EFS_TAGS = Tagging("efs", tags="Tags", keys="TagKeys", form=tag_list)
OIDC_TAGS = Tagging("iam", "tag_open_id_connect_provider", "untag_open_id_connect_provider", "Tags", "TagKeys", form=tag_list)
EC2_TAGS = Tagging("ec2", "create_tags", "delete_tags", "Tags", "Tags", tag_list, lambda keys: [{"Key": key} for key in keys])
