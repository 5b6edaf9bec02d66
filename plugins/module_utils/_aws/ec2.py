# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a network that EC2 deletes only when nothing uses them any more."""

from __future__ import annotations

import dataclasses

from .._cloud.plan import Body, Plan
from .._core.errors import InvalidInput
from .api import Api
from .plan import Step
from .resource import Immediate


@dataclasses.dataclass(frozen=True)
class Kind:
    """The names of a kind in EC2: in messages, in operations, in lists, and the key of its ID."""

    label: str
    word: str
    listed: str
    key: str


KINDS = {
    "eni": Kind("Network interface", "network_interface", "NetworkInterfaces", "NetworkInterfaceId"),
    "igw": Kind("Internet gateway", "internet_gateway", "InternetGateways", "InternetGatewayId"),
    "sg": Kind("Security group", "security_group", "SecurityGroups", "GroupId"),
    "subnet": Kind("Subnet", "subnet", "Subnets", "SubnetId"),
    "vpc": Kind("VPC", "vpc", "Vpcs", "VpcId"),
}


@dataclasses.dataclass(frozen=True)
class NetworkPart(Immediate):
    """One part, by its ID. amazon.aws creates them; only their deletion has to wait."""

    id: str

    @property
    def _kind(self) -> Kind:
        prefix = self.id.partition("-")[0]
        if prefix not in KINDS:
            known = ", ".join(f"{name}-..." for name in KINDS)
            raise InvalidInput(f"id: '{self.id}' is not the id of a part of a network.", hint=f"It begins as {known}.")
        return KINDS[prefix]

    @property
    def label(self) -> str:
        return f"{self._kind.label} {self.id}"

    def read(self, api: Api) -> Body | None:
        kind = self._kind
        found = api.read(self.label, "ec2", f"describe_{kind.word}s", **{f"{kind.key}s": [self.id]})
        row = next(iter((found or {}).get(kind.listed, [])), None)
        # Network interfaces have a name of their own for their tags.
        return {**row, "Tags": row["TagSet"]} if row and "TagSet" in row else row

    def identity(self, live: Body) -> tuple[str, ...]:
        return (live[self._kind.key],)

    def account_of(self, live: Body) -> str:
        return str(live.get("OwnerId", ""))

    def plan(self, live: Body | None) -> Plan:
        raise AssertionError(f"{self.label} can only be deleted, not changed ({live})")

    def deletions(self, live: Body) -> list[Step]:
        named = {self._kind.key: self.id}
        detach = [
            Step("detach_internet_gateway", {**named, "VpcId": one["VpcId"]}, f"detach from {one['VpcId']}", "ec2")
            for one in live.get("Attachments", [])
        ]
        return [*detach, Step(f"delete_{self._kind.word}", named, "delete", "ec2")]
