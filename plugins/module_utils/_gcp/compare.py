# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of desired values with those that Google shows.

Google adds fields and defaults, omits false and empty values, writes names as links and numbers as strings. None of that is a
difference: of an object with fields of Google's, only the desired fields are compared. In a map, whose keys are the user's own, an
additional key is a difference, because it was removed from the option.
"""

from __future__ import annotations

import re
import typing as t

from .._core.errors import InvalidInput

MARK = "muster-owner"
# What the value of a label may be (Compute Engine, "Requirements for labels").
_VALUE = re.compile(r"[a-z0-9_-]{1,63}")
# The fields that are maps with keys of the user's own: those with additionalProperties in Google's discovery documents of the kinds here.
# Some of these names are of lists elsewhere, such as tags of NodeConfig.
MAPS = frozenset({"cleanupPolicies", "labels", "maintenanceExclusions", "metadata", "resourceLabels", "sysctls", "tags"})


def same(live: t.Any, desired: t.Any, field: str = "") -> bool:
    """Whether the live value of FIELD is as desired. Keys that were not asked for, except of a map, and the order of lists do not count."""
    if desired is None:
        return True
    if is_map(field, desired):
        found = live or {}
        return found.keys() == desired.keys() and all(_exactly(found[key], value) for key, value in desired.items())
    if isinstance(desired, dict):
        found = live if isinstance(live, dict) else {}
        return all(same(found.get(key), value, key) for key, value in desired.items())
    if isinstance(desired, (list, tuple)):
        return _same_list(list(live or ()), desired)
    if isinstance(desired, bool):
        return bool(live) == desired
    if not desired and not live:
        return True
    if isinstance(desired, (int, float)):
        return _number(live) == desired
    return same_name(str(live), str(desired))


def is_map(field: str, value: t.Any) -> bool:
    """Whether the keys of the value are the user's own; FIELD may be a path with dots."""
    return isinstance(value, dict) and field.rsplit(".", 1)[-1] in MAPS


def _exactly(live: t.Any, desired: t.Any) -> bool:
    """Compare values of a map: Google has no defaults for them, so that each of their fields counts. Empty ones are not shown."""
    if isinstance(desired, dict):
        found, asked = _shown(live), _shown(desired)
        return found.keys() == asked.keys() and all(_exactly(found[key], value) for key, value in asked.items())
    if isinstance(desired, (list, tuple)):
        return _same_list(list(live or ()), desired, _exactly)
    return str(live) == str(desired)


def _shown(value: t.Any) -> dict[str, t.Any]:
    """The fields that are not empty."""
    found = value if isinstance(value, dict) else {}
    shown = {key: _shown(one) if isinstance(one, dict) else one for key, one in found.items()}
    return {key: one for key, one in shown.items() if one not in (None, False, 0, "", [], {})}


def asked_part(live: t.Any, desired: t.Any, field: str = "") -> t.Any:
    """Return the part of the live value that is compared with the desired one: a diff shows no more."""
    if not isinstance(desired, dict) or not isinstance(live, dict) or is_map(field, desired):
        return live
    return {key: asked_part(live.get(key), value, key) for key, value in desired.items()}


def merged(live: t.Any, desired: t.Any, field: str = "") -> t.Any:
    """The desired value with what else the live one has, for requests that replace the whole; a map is as desired."""
    if not isinstance(desired, dict) or not isinstance(live, dict) or is_map(field, desired):
        return desired
    return {**live, **{key: merged(live.get(key), value, key) for key, value in desired.items()}}


def _same_list(live: list[t.Any], desired: t.Sequence[t.Any], alike: t.Callable[[t.Any, t.Any], bool] = same) -> bool:
    rest = _once(live)
    for item in _once(desired):
        match = next((index for index, row in enumerate(rest) if alike(row, item)), None)
        if match is None:
            return False
        del rest[match]
    return not rest


def _once(items: t.Iterable[t.Any]) -> list[t.Any]:
    """The items, each once: a list of Google's here is a set."""
    rows = list(items)
    return [item for index, item in enumerate(rows) if item not in rows[:index]]


def same_name(one: str, other: str) -> bool:
    """Whether both are the same value, or one is the link of the resource that the other names."""
    longer, shorter = sorted((_below_host(one), _below_host(other)), key=len, reverse=True)
    return longer == shorter or (longer.startswith("projects/") and bool(shorter) and longer.endswith(f"/{shorter}"))


def _number(live: t.Any) -> float | None:
    try:
        return float(live)
    except (TypeError, ValueError):
        return None


def _below_host(link: str) -> str:
    """A link without the address of its API, of which compute has two."""
    start = link.find("/projects/")
    return link[start + 1 :] if link.startswith("https://") and start >= 0 else link


def mark_of(owner: str | None) -> dict[str, str]:
    """The mark of the owner's resources; none without an owner. Also where it is in a description, it is what a label may be."""
    if owner and not _VALUE.fullmatch(owner):
        raise InvalidInput(
            f"{owner} ({len(owner)} characters) cannot be an owner: Google allows lowercase letters, digits, hyphens and underscores in"
            " a label, at most 63",
            hint="Choose another owner; that of the roles is the name of the cluster and its region",
        )
    return {MARK: owner} if owner else {}


def labels_with(live: dict[str, str] | None, asked: dict[str, str] | None, owner: str) -> dict[str, str]:
    """The labels that a resource is to have: those asked for, or else its own; its owner's; and those that Google gave it."""
    current = live or {}
    googles = {key: value for key, value in current.items() if key.startswith("goog-")}
    mine = {MARK: owner} if owner else {key: value for key, value in current.items() if key == MARK}
    return {**googles, **(current if asked is None else asked), **mine}


def text_with(live: str | None, asked: str | None, owner: str) -> str:
    """The description that a resource is to have; it ends in the owner's mark."""
    text, theirs = split_mark(live or "")
    text, owner = text if asked is None else asked, owner or theirs
    return f"{text} ({MARK}={owner})".strip() if owner else text


def split_mark(description: str) -> tuple[str, str]:
    """(the text, the owner) of a description."""
    text, found, owner = description.removesuffix(")").rpartition(f"({MARK}=")
    return (text.rstrip(), owner) if found and description.endswith(")") else (description, "")
