# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewall rules as values."""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from .._cloud.plan import Body
from .._core.errors import InvalidInput
from .api import Api
from .compare import split_mark
from .labels import refuse_tags
from .links import network_link, ranges_of
from .resource import Change, Described

# Google knows protocols by name or number, and shows either.
NUMBERS = {"1": "icmp", "4": "ipip", "6": "tcp", "17": "udp", "50": "esp", "51": "ah", "94": "ipip", "132": "sctp"}
Rules = t.Sequence[dict[str, t.Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpFirewall(Described):
    """A rule for incoming traffic. Its lists are spelled out, so that whatever is more open than asked for is a difference."""

    NOUN = "firewall"
    SERVICE, COLLECTION = "compute", "firewalls"
    CHANGES = (Change(("description", "priority", "allowed", "sourceRanges", "targetTags", "disabled"), also=("name",)),)

    network: str
    priority: int = 1000
    allowed: Rules | None = None
    source_ranges: t.Sequence[str] | None = None
    target_tags: t.Sequence[str] | None = None
    disabled: bool = False

    def validate(self) -> None:
        refuse_tags(self.label, self.target_tags or ())
        if not self.allowed:
            raise InvalidInput(f"{self.label} needs allowed, with at least one protocol")
        if not self.source_ranges:
            raise InvalidInput(
                f"{self.label} has no source_ranges, which for Google means every address",
                hint="Name the ranges that are to be admitted, in CIDR notation; 0.0.0.0/0 admits every address",
            )

    def body(self) -> Body:
        return {
            "name": self.name,
            "network": network_link(self.project, self.network),
            "direction": "INGRESS",
            "priority": self.priority,
            "allowed": _rules(self.allowed),
            "sourceRanges": ranges_of("source_ranges", self.source_ranges),
            "targetTags": self.target_tags,
            "disabled": self.disabled,
        }

    def seen(self, live: Body) -> Body:
        if not live.get("allowed"):
            raise InvalidInput(
                f"{self.label} exists and is not allowed; Google cannot change what a rule does to traffic", hint=self.FIXED_HINT
            )
        return {**live, "allowed": _merged(live["allowed"]), "sourceRanges": [_spelled(row) for row in live.get("sourceRanges") or ()]}


def read_rules(api: Api, project: str, network: str, owner: str | None) -> list[Body]:
    """The rules of a network, or those of an owner in it."""
    path, label = f"projects/{project}/global/firewalls", f"firewall rules of network {network}"
    rows = api.pages(label, "compute", path, "items", filter=f'network eq ".*/networks/{network}"')
    return [row for row in rows if not owner or split_mark(row.get("description") or "")[1] == owner]


def _rules(rules: Rules | None) -> list[Body] | None:
    if not rules:
        return None
    return _merged([{"IPProtocol": rule["ip_protocol"], "ports": rule.get("ports")} for rule in rules])


def _merged(rules: Rules) -> list[Body]:
    """One row for each protocol, as several admit the same as one. No ports are all ports: that must be said, as a list that is left out
    is not asked for."""
    found: dict[str, list[str]] = {}
    for rule in rules:
        name = str(rule["IPProtocol"]).lower()
        protocol, ports = NUMBERS.get(name, name), [str(port) for port in rule.get("ports") or ()]
        whole = not ports or found.get(protocol) == []
        found[protocol] = [] if whole else list(dict.fromkeys([*found.get(protocol, ()), *ports]))
    return [{"IPProtocol": protocol, "ports": ports} for protocol, ports in found.items()]


def _spelled(text: str) -> str:
    return str(ipaddress.ip_network(text, strict=False))
