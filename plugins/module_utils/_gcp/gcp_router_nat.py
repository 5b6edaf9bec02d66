# SPDX-License-Identifier: GPL-3.0-or-later
"""Routers with Cloud NAT as values."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, Plan, camelled, without_none
from .links import network_link
from .plan import Step
from .resource import Change, Described

FIELDS = ("enable_dynamic_port_allocation", "enable_endpoint_independent_mapping")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpRouterNat(Described):
    """A Cloud Router with one NAT. NATs of other names in it have other owners: they stay, and keep the router."""

    NOUN = "router"
    SERVICE, COLLECTION = "compute", "routers"
    PARENT = "projects/{project}/regions/{region}"
    HINTS: t.ClassVar = {"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": "Remove the VPN tunnels and attachments of the router first"}
    CHANGES = (Change(("description", "nat")),)

    region: str
    network: str
    nat: dict[str, t.Any] | None = None

    @property
    def nat_name(self) -> str:
        return str((self.nat or {}).get("name") or self.name)

    def body(self) -> Body:
        return {"name": self.name, "network": network_link(self.project, self.network), "nat": self._nat()}

    def _nat(self) -> Body:
        """The NAT for all subnetworks, with addresses that Google chooses."""
        return {
            "name": self.nat_name,
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
            **camelled(without_none(self.nat or {}), FIELDS),
        }

    def seen(self, live: Body) -> Body:
        return {**live, "nat": self._ours(live)}

    def _ours(self, live: Body) -> Body | None:
        return next((nat for nat in live.get("nats") or () if nat["name"] == self.nat_name), None)

    def _others(self, live: Body) -> list[Body]:
        return [nat for nat in live.get("nats") or () if nat["name"] != self.nat_name]

    def creation(self) -> Step:
        step = super().creation()
        nat = step.request["nat"]
        request = {key: value for key, value in step.request.items() if key != "nat"}
        return dataclasses.replace(step, request={**request, "nats": [nat]})

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        """The body of a patch, which replaces all NATs of the router: other NATs, and fields that other clients set, are sent again."""
        step = super().change_step(change, fields, live)
        if "nat" not in fields:
            return step
        nat = {**(self._ours(live) or {}), **fields["nat"]}
        rest = {key: value for key, value in step.request.items() if key != "nat"}
        return dataclasses.replace(step, request={**rest, "nats": [*self._others(live), nat]})

    def plan_absent(self, live: Body | None) -> Plan:
        """The router goes; if it has more than our NAT, only that goes."""
        foreign = self._foreign(live) if live else ""
        if live is None or not foreign:
            return super().plan_absent(live)
        others = self._others(live)
        step = self.step("patch", f"delete NAT {self.nat_name}", {"nats": others}, verb="PATCH")
        kept = f"{self.label} was kept: it {foreign}"
        return Plan((step,), {"nats": live["nats"]}, {"nats": others}, kept=kept)

    def used_by(self, live: Body) -> str:
        return self._foreign(live) if not self._ours(live) else ""

    def _foreign(self, live: Body) -> str:
        names = [f"NAT {nat['name']}" for nat in self._others(live)]
        names += [f"peer {peer['name']}" for peer in live.get("bgpPeers") or ()]
        return f"holds {', '.join(names)}, which this module did not make" if names else ""
