# SPDX-License-Identifier: GPL-3.0-or-later
"""Subnetworks as values."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, camelled
from .._cloud.texts import is_within
from .._core.errors import InvalidInput
from .errors import RANGE_IN_USE
from .links import network_link, range_of
from .plan import Step
from .resource import Change, Described


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpSubnetwork(Described):
    """A subnetwork with its secondary ranges. Only the patch needs the fingerprint, which the other changes move: it comes first."""

    NOUN = "subnetwork"
    SERVICE, COLLECTION = "compute", "subnetworks"
    PARENT = "projects/{project}/regions/{region}"
    CHANGES = (
        Change(("secondaryIpRanges",), also=("fingerprint",)),
        Change(("ipCidrRange",), "expandIpCidrRange", "POST", "/expandIpCidrRange"),
        Change(("privateIpGoogleAccess",), "setPrivateIpGoogleAccess", "POST", "/setPrivateIpGoogleAccess"),
    )
    FREED = True
    HINTS: t.ClassVar = {
        RANGE_IN_USE: "A secondary range goes only when no cluster uses it: delete the cluster first, or leave the range in the list"
    }
    FIXED_HINT = "Leave the option out, or make a subnetwork of another name; without owner the name alone decides"

    region: str
    network: str
    ip_cidr_range: str | None = None
    secondary_ip_ranges: t.Sequence[dict[str, str]] | None = None
    private_ip_google_access: bool = True

    def validate(self) -> None:
        names = [row["range_name"] for row in self.secondary_ip_ranges or ()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInput(f"{self.label}: secondary_ip_ranges has {', '.join(twice)} twice")

    def body(self) -> Body:
        return {
            "name": self.name,
            "network": network_link(self.project, self.network),
            "ipCidrRange": self.ip_cidr_range and range_of("ip_cidr_range", self.ip_cidr_range),
            "secondaryIpRanges": self._ranges(),
            "privateIpGoogleAccess": self.private_ip_google_access,
        }

    def _ranges(self) -> list[Body] | None:
        if self.secondary_ip_ranges is None:
            return None
        return [
            {**camelled(row, row), "ipCidrRange": range_of(f"secondary range {row['range_name']}", row["ip_cidr_range"])}
            for row in self.secondary_ip_ranges
        ]

    def creation(self) -> Step:
        if not self.ip_cidr_range:
            raise InvalidInput(f"{self.label} does not exist, and to create it ip_cidr_range is needed")
        return super().creation()

    def seen(self, live: Body) -> Body:
        """Ranges that grow are the only ones that Google changes in place."""
        now = str(live.get("ipCidrRange", ""))  # a subnetwork for IPv6 only (stackType IPV6_ONLY) has none
        wanted = range_of("ip_cidr_range", self.ip_cidr_range) if self.ip_cidr_range else now
        if now and not is_within(now, [wanted]):
            raise InvalidInput(
                f"{self.label} has ipCidrRange {now}; Google can only widen it, and {wanted} does not hold all of it",
                hint="Give a range that holds the present one, or make a subnetwork of another name",
            )
        return live
