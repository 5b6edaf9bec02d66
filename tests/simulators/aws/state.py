# SPDX-License-Identifier: GPL-3.0-or-later
"""Things that take their time, and the account around them, which moto keeps: roles, subnets, security groups."""

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moto.backends import get_backend

from ..cluster import ApiClient
from .api import Refused
from .journal import JOURNAL

ACCOUNT = "123456789012"  # the only one moto has by default
GONE = "gone"
Body = dict[str, Any]


@dataclass
class Settings:
    polls: int = 2
    endpoint: str = ""
    certificate_authority: str = ""
    # By which the tokens of pods are judged; without it no pod has a role.
    api_client: ApiClient | None = None
    # The address from which the tests reach the internet, and the one by which machines in a VPC know them; none where no way leads in.
    caller_address: str = "203.0.113.7"
    caller_private_address: str = ""
    # What the caller of the playbooks is about, and may do (None: everything); the roles of services that the account has already.
    phase: str = ""
    # Those of a new account: vCPUs of the families G and VT, and in each region VPCs and public addresses.
    quotas: dict[str, int] = field(default_factory=lambda: {"gpus": 0, "vpcs": 5, "addresses": 5})
    policies: list[Body] | None = None
    service_roles: set[str] = field(default_factory=set)


SETTINGS = Settings()
_numbers = itertools.count(1)


def number() -> str:
    """Part of a name that the service makes up: different every time, alike in every run."""
    return f"{next(_numbers):017x}"


def now() -> float:
    return time.time()


@dataclass
class Item:
    """A resource as its service describes it, and what will become of it.

    Real services take minutes. Here a change is over after its state was read a few times: whoever waits must look
    again, and whoever does not wait finds it unfinished.
    """

    body: Body
    status_key: str = "status"
    left: int = 0
    then: str = ""
    finish: Callable[[], None] | None = None

    @property
    def status(self) -> str:
        return str(self.body[self.status_key])

    def start(self, status: str, then: str, finish: Callable[[], None] | None = None) -> None:
        self.body[self.status_key], self.left, self.then, self.finish = status, SETTINGS.polls, then, finish

    def look(self) -> None:
        """Somebody reads the state."""
        if not self.left:
            return
        self.left -= 1
        if self.left == 0:
            if self.then != GONE:
                self.body[self.status_key] = self.then
            if self.finish:
                self.finish()


@dataclass
class Table:
    """Resources of one kind by their name."""

    items: dict[str, Item] = field(default_factory=dict)

    def get(self, name: str) -> Item | None:
        return self.items.get(name)

    def remove_later(self, name: str, finish: Callable[[], None] | None = None) -> Item:
        item = self.items[name]

        def over() -> None:
            del self.items[name]
            if finish:
                finish()

        item.start("DELETING" if item.status_key == "status" else "deleting", GONE, over)
        return item


def ec2(region: str) -> Any:
    return get_backend("ec2")[ACCOUNT][region]


def role(arn: str, service: str, operation: str, *pending_reasons: str) -> Any:
    """A role that a service is to use: it exists, has got around by now, and trusts the service.

    IAM is eventually consistent: for some seconds other services do not see a new role, then not its trust policy, then not its
    permissions. The messages, one after the other, are the ones that terraform-provider-aws waits for (internal/service/eks/cluster.go,
    addon.go, pod_identity_association.go).
    """
    roles = get_backend("iam")[ACCOUNT]["aws"].roles.values()
    found = next((r for r in roles if r.arn == arn), None)
    unseen = JOURNAL.fault("role_not_visible", operation)
    trusted = found is not None and service in json.dumps(json.loads(found.assume_role_policy_document))
    if not trusted or unseen:
        left = unseen.times if unseen else 0
        raise Refused("InvalidParameterException", pending_reasons[-1 - left % len(pending_reasons)].format(arn=arn))
    return found


def needs_policies(found: Any, names: list[str]) -> None:
    """EKS looks whether its own policies are attached (message: terraform-provider-aws, internal/service/eks/cluster.go)."""
    missing = [n for n in names if not any(arn.endswith(f"/{n}") for arn in found.managed_policies)]
    if missing:
        raise Refused(
            "InvalidParameterException",
            "The provided role doesn't have the Amazon EKS Managed Policies associated with it. "
            f"Please ensure the following policies are attached: {', '.join(missing)}",
        )


def subnets(region: str, ids: list[str]) -> list[Any]:
    known = {s.id: s for s in ec2(region).describe_subnets()}
    for subnet in ids:
        if subnet not in known:
            raise Refused("InvalidParameterException", f"The subnet ID '{subnet}' does not exist")
    return [known[subnet] for subnet in ids]


def plug(region: str, subnet: Any, groups: list[str], description: str, tags: dict[str, str] | None = None) -> str:
    """A network interface of a service in a subnet: as long as it is there, subnet and groups cannot be deleted."""
    interface = ec2(region).create_network_interface(
        subnet, subnet.get_available_subnet_ip(None), group_ids=groups, description=description, tags=tags
    )
    return str(interface.id)


def unplug(region: str, interfaces: list[str]) -> None:
    for interface in interfaces:
        ec2(region).enis.pop(interface, None)
