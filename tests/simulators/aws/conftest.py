# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated account for all tests of a file, and the modules run against it as Ansible would run them."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.muster.ml.plugins.module_utils._edge.aws import AwsContext
from simulators.aws.cli import Cli
from simulators.aws.client import REGION, SECRET, Simulator
from simulators.modules import Run, runner, thrice


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """An empty account."""
    simulator = Simulator(tmp_path_factory.mktemp("aws") / "server.log")
    yield simulator
    simulator.stop()


@pytest.fixture(scope="module")
def aws_cli(aws: Simulator) -> Cli:
    return Cli(aws)


@pytest.fixture(scope="module")
def ground(aws: Simulator) -> dict[str, Any]:
    """What has to be there before a cluster can be: subnets in two zones and roles, made by boto3."""
    ec2, iam = aws.client("ec2"), aws.client("iam")
    found = ec2.describe_subnets()["Subnets"]
    made = {"vpc": found[0]["VpcId"], "subnets": [row["SubnetId"] for row in found[:3]]}
    for name, principal, policy in (
        ("control", {"Service": "eks.amazonaws.com"}, "AmazonEKSClusterPolicy"),
        ("node", {"Service": "ec2.amazonaws.com"}, "AmazonEKSWorkerNodePolicy"),
        ("pod", {"Service": "pods.eks.amazonaws.com"}, "AmazonS3ReadOnlyAccess"),
        ("web", {"Federated": "arn:aws:iam::123456789012:oidc-provider/issuer"}, "AmazonS3ReadOnlyAccess"),
        ("other-pod", {"Service": "pods.eks.amazonaws.com"}, "AmazonS3ReadOnlyAccess"),
    ):
        asks = "sts:AssumeRoleWithWebIdentity" if "Federated" in principal else "sts:AssumeRole"
        statement = {"Effect": "Allow", "Principal": principal, "Action": [asks, "sts:TagSession"]}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        made[name] = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
    return made


@pytest.fixture
def run(aws: Simulator, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a module with the simulated account."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "BOTO_"))]:
        monkeypatch.delenv(name)
    # botocore's own retries are left one, to see ours.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    connection = {"region": REGION, "endpoint_url": aws.url, "access_key": "AKIAIOSFODNN7EXAMPLE", "secret_key": SECRET}
    return runner(capfd, monkeypatch, AwsContext, SECRET, **connection)


@pytest.fixture
def changes(aws: Simulator, run: Run) -> Run:
    return thrice(aws, run, lambda action: action.split(" ")[0].replace("_", "").lower())
