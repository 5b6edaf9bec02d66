# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources that an EKS cluster will run, and their approximate price per hour.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

# On-demand list prices in US dollars, written down once and never read from AWS: they show the order of magnitude.
AS_OF = "June 2025"
HOURS = 730  # of a month, as AWS counts
CONTROL_PLANE = {"STANDARD": 0.10, "EXTENDED": 0.60}
ADDRESS = 0.005  # a public IPv4 address
# The same in both regions.
_US = {
    "nat": 0.045, "gp3": 0.08,  # the second a GiB and month
    "t3.medium": 0.0416, "t3.large": 0.0832,
    "m5.large": 0.096, "m5.xlarge": 0.192, "m6i.large": 0.096, "m6i.xlarge": 0.192, "m6i.2xlarge": 0.384,
    "g4dn.xlarge": 0.526, "g4dn.2xlarge": 0.752,
    "g5.xlarge": 1.006, "g5.2xlarge": 1.212, "g5.4xlarge": 1.624, "g5.12xlarge": 5.672, "g5.48xlarge": 16.288,
    "g6.xlarge": 0.8048, "g6.2xlarge": 0.9776, "g6.4xlarge": 1.3232, "g6.12xlarge": 4.6016,
}  # fmt: skip
PRICES = {"us-east-1": _US, "us-west-2": _US}


@dataclasses.dataclass(frozen=True)
class Item:
    """A resource with its price per hour: at first and at most, as far as the table has one."""

    what: str
    least: float | None
    most: float | None
    note: str = ""

    def __str__(self) -> str:
        if self.least is None or self.most is None:
            price = "no price known here"
        elif self.least == self.most:
            price = f"{self.least:.2f}"
        else:
            price = f"{self.least:.2f}, up to {self.most:.2f}"
        return f"{self.what}: {price}" + (f" ({self.note})" if self.note else "")


def nodegroup_items(group: dict[str, t.Any], prices: dict[str, float], disk_size: int) -> list[Item]:
    """The nodes of a group with their disks. A spot instance costs at most what the same costs on demand."""
    sizes = group.get("scaling_config") or {}
    least = int(sizes.get("desired_size") or sizes.get("min_size", 1))
    most = max(least, int(sizes.get("max_size", 2)))
    kinds = list(group.get("instance_types") or ["t3.medium"])
    known = [prices[kind] for kind in kinds if kind in prices]
    whole = bool(known) and len(known) == len(kinds)
    spot = group.get("capacity_type") == "SPOT"
    disk = int(group.get("disk_size") or disk_size)
    count = f"{least}" if least == most else f"{least} to {most}"
    what = f"{count} x {' or '.join(kinds)}, node group {group['name']}"
    gib = prices.get("gp3")
    return [
        Item(
            what,
            least * min(known) if whole else None,
            most * max(known) if whole else None,
            "spot, often less than half of this price on demand" if spot else "",
        ),
        Item(
            f"{count} disks of {disk} GiB",
            least * disk * gib / HOURS if gib else None,
            most * disk * gib / HOURS if gib else None,
        ),
    ]


def items(region: str, *, support_type: str | None, nat_gateways: int, nodegroups: list[dict[str, t.Any]], disk_size: int) -> list[Item]:
    """Resources with a price by the hour. Without ``support_type`` the control plane has another owner and is not counted."""
    prices = PRICES.get(region, {})
    found = []
    if support_type is not None:
        price = CONTROL_PLANE[support_type] if prices else None
        note = "six times as much once its version is in extended support" if support_type == "EXTENDED" else ""
        found.append(Item("control plane", CONTROL_PLANE["STANDARD"] if prices else None, price, note))
    if nat_gateways:
        price = nat_gateways * (prices["nat"] + ADDRESS) if prices else None
        word = "NAT gateway with its public address" if nat_gateways == 1 else "NAT gateways with their public addresses"
        found.append(Item(f"{nat_gateways} {word}", price, price, "and 0.045 a GB through it" if prices else ""))
    return found + [item for group in nodegroups for item in nodegroup_items(group, prices, disk_size)]


def told(region: str, found: list[Item]) -> list[str]:
    """The lines for the user."""
    known = region in PRICES
    head = f"list prices of {region} in US dollars as of {AS_OF}, look up today's" if known else f"no prices of {region} are known"
    lines = [f"What will run and cost by the hour ({head}):", *(f"  {item}" for item in found)]
    lines.append("  file system, bucket, backups, logs, traffic: by size and use")
    priced = [item for item in found if item.least is not None and item.most is not None]
    if priced:
        least, most = (sum(t.cast(float, getattr(item, key)) for item in priced) for key in ("least", "most"))
        rest = "" if len(priced) == len(found) else ", without what has no price"
        month = f"{least * HOURS:.0f} a month" + (f", up to {most * HOURS:.0f}" if most != least else "")
        hour = f"{least:.2f} an hour" + (f", up to {most:.2f}" if most != least else "")
        lines.append(f"  together about {hour}{rest}; {month}")
    return lines
