# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks as values."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body
from .._core.errors import InvalidInput
from .plan import Step
from .resource import Change, Described


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpNetwork(Described):
    """A VPC network; its subnetworks are resources of their own."""

    NOUN = "network"
    SERVICE, COLLECTION = "compute", "networks"
    CHANGES = (Change(("autoCreateSubnetworks",), "switchToCustomMode", "POST", "/switchToCustomMode"), Change(("routingConfig", "mtu")))
    FREED = True
    FIXED_HINT = "Leave the option out, or make a network of another name; without owner the name alone decides"

    auto_create_subnetworks: bool = False
    routing_mode: t.Literal["REGIONAL", "GLOBAL"] | None = None
    mtu: int | None = None

    def body(self) -> Body:
        return {
            "name": self.name,
            "autoCreateSubnetworks": self.auto_create_subnetworks,
            "routingConfig": self.routing_mode and {"routingMode": self.routing_mode},
            "mtu": self.mtu,
        }

    def seen(self, live: Body) -> Body:
        if live.get("IPv4Range"):
            raise InvalidInput(
                f"{self.label} is a legacy network, which has no subnetworks", hint="Choose another name, or delete it first"
            )
        return live

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        step = super().change_step(change, fields, live)
        if change.method != "switchToCustomMode":
            return step
        if self.auto_create_subnetworks:
            raise InvalidInput(
                f"{self.label} makes its subnetworks by hand; Google cannot turn that back", hint="Set auto_create_subnetworks: false"
            )
        return dataclasses.replace(step, request={}, says="subnetworks by hand")
