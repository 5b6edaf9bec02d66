# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a network: deleted when nothing uses them any more."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.ec2 import NetworkPart
from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError, WaitTimeout
from ansible_collections.muster.ml.tests.unit.fakes.aws import ACCOUNT, Refusal
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

Body = dict[str, t.Any]
OURS = {"muster.ml/owner": "m"}
TAGS = [{"Key": "muster.ml/owner", "Value": "m"}]
GATEWAY = {"InternetGatewayId": "igw-1", "OwnerId": ACCOUNT, "Tags": TAGS, "Attachments": [{"VpcId": "vpc-1"}]}


class Ec2:
    """One account with one gateway. It refuses so many deletions, of what is ``in_use``, or for another reason."""

    def __init__(self, gateway: Body | None, in_use: int = 0, code: str = "DependencyViolation") -> None:
        self.gateway, self.in_use, self.code = gateway, in_use, code
        self.done: list[str] = []

    def get_caller_identity(self) -> Body:
        return {"Account": ACCOUNT, "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/ops/me"}

    def describe_internet_gateways(self, **request: t.Any) -> Body:
        if self.gateway is None:
            raise Refusal("InvalidInternetGatewayID.NotFound")
        assert request == {"InternetGatewayIds": ["igw-1"]}
        return {"InternetGateways": [self.gateway]}

    def detach_internet_gateway(self, **request: t.Any) -> Body:
        if self.in_use:
            self.in_use -= 1
            raise Refusal(self.code, "has some mapped public address(es)")
        self.done.append(f"detach {request['InternetGatewayId']} from {request['VpcId']}")
        return {}

    def delete_internet_gateway(self, **request: t.Any) -> Body:
        self.done.append(f"delete {request['InternetGatewayId']}")
        self.gateway = None
        return {}


def delete(ec2: Ec2, *, seconds: float = 600, check: bool = False, part: str = "igw-1") -> Outcome:
    options = ConvergeOptions(absent=True, check=check, mark=OURS)
    return converge(NetworkPart(part), Api(lambda _: ec2, FakeClock()), options, WaitOptions(wait=True, seconds=seconds))


def test_what_is_in_use_is_waited_for() -> None:
    ec2 = Ec2(GATEWAY, in_use=5)
    outcome = delete(ec2)
    assert (outcome.live, ec2.done) == (None, ["detach igw-1 from vpc-1", "delete igw-1"])


def test_what_stays_in_use_is_named() -> None:
    ec2 = Ec2(GATEWAY, in_use=10**6)
    with pytest.raises(WaitTimeout, match=r"Internet gateway igw-1 is still in use after 30 s\. .*mapped public address"):
        delete(ec2, seconds=30)
    assert ec2.done == []


def test_another_refusal_ends_it() -> None:
    with pytest.raises(MusterError, match="UnauthorizedOperation"):
        delete(Ec2(GATEWAY, in_use=1, code="UnauthorizedOperation"))


def test_a_plan_and_a_second_run_change_nothing() -> None:
    ec2 = Ec2(GATEWAY)
    assert len(delete(ec2, check=True).plan.steps) == 2
    assert ec2.done == []
    assert not delete(Ec2(None)).plan.changed


@pytest.mark.parametrize(("change", "why"), [({"Tags": []}, "muster.ml/owner=m"), ({"OwnerId": "999999999999"}, "was kept")])
def test_what_is_somebody_elses_is_kept(change: Body, why: str) -> None:
    ec2 = Ec2({**GATEWAY, **change})
    assert why in delete(ec2).kept
    assert ec2.done == []


def test_another_id_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'i-1' is not the id"):
        delete(Ec2(None), part="i-1")
