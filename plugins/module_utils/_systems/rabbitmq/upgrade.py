# SPDX-License-Identifier: GPL-3.0-or-later
"""The upgrade paths between releases of RabbitMQ, and the feature flags that an upgrade needs."""

from __future__ import annotations

import re
import typing as t

from ..._core.errors import InvalidInput
from .api import ManagementApi

Release: t.TypeAlias = "tuple[int, int, int | None]"
"""Major, minor and patch; None where a tag names a series."""

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])")
# Docs/upgrade.md, "RabbitMQ Version Upgradability", of rabbitmq/rabbitmq-website 0acf2a4 (2026-08-21). Downgrades are not supported.
_HOPS: t.Final = {
    (4, 2): [(4, 3)],
    (4, 1): [(4, 2)],
    (4, 0): [(4, 1), (4, 2)],
    (3, 13): [(4, 0), (4, 1), (4, 2)],
    **{(3, minor): [(3, minor + 1)] for minor in range(7, 13)},
}
_LEAST_PATCH = {(3, 11): 18, (3, 7): 18}
"""Series -> its first patch release from which the next series can be reached."""
_KHEPRI = "khepri_db"


def release_of(tag: str) -> Release | None:
    """The release in a tag or in the broker's version; None if there is none."""
    found = _RELEASE.match(tag)
    return (int(found[1]), int(found[2]), int(found[3]) if found[3] else None) if found else None


def check_hop(was: Release, to: Release) -> None:
    """Refuse a release outside of the upgrade paths: the nodes would not start, or lose their data."""
    series, patch = was[:2], was[2] or 0
    if to[:2] == series and (to[2] is None or to[2] >= patch):
        return
    least = _LEAST_PATCH.get(series, 0)
    following = [(*series, least)] if patch < least else _HOPS.get(series, [])
    if to[:2] in following:
        return
    reached = " or ".join(".".join(map(str, one)) for one in following) or f"later releases of {series[0]}.{series[1]} only"
    raise InvalidInput(
        f"image: the broker runs RabbitMQ {_text(was)}, which cannot become {_text(to)}: from it there is an upgrade to {reached}.",
        "Take an image of that first, or make another broker and move what clients need.",
    )


def enable_flags(api: ManagementApi, was: Release, to: Release, *, check: bool) -> None:
    """Enable the stable feature flags, without which nodes of the next series do not start. None can be disabled again."""
    flags = api.get("feature-flags") or []
    if was[:2] == (3, 13) and any(flag["name"] == _KHEPRI and flag["state"] == "enabled" for flag in flags):
        raise InvalidInput(
            f"image: the broker runs RabbitMQ {_text(was)} with feature flag {_KHEPRI}, from which there is no upgrade to {_text(to)}.",
            "Make another broker and move what clients need.",
        )
    for flag in flags:
        if flag["stability"] == "stable" and flag["state"] == "disabled" and not check:
            api.call("PUT", ("feature-flags", flag["name"], "enable"), {})


def _text(release: Release) -> str:
    return ".".join(str(part) for part in release if part is not None)
