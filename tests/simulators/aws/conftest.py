# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated account for all tests of a file, and the modules run against it as Ansible would run them."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible.module_utils import _internal
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.muster.ml.plugins.module_utils._aws import api
from simulators.aws.cli import Cli
from simulators.aws.client import REGION, SECRET, Simulator

Result = dict[str, Any]
Run = Callable[..., Result]


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


class Hasty:
    """The system's clock, with pauses of a fiftieth."""

    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 50)


@pytest.fixture
def run(aws: Simulator, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a module in this process: its own ``main``, with arguments as Ansible hands them over."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "BOTO_"))]:
        monkeypatch.delenv(name)
    # A test that imported a filter would make this process a controller, where a module's warnings go to the screen.
    monkeypatch.setattr(_internal, "is_controller", False)
    # The same pauses, but shorter: nothing here takes minutes. botocore's own retries are left one, to see ours.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    monkeypatch.setattr(api, "SYSTEM_CLOCK", Hasty())
    connection = {"region": REGION, "endpoint_url": aws.url, "access_key": "AKIAIOSFODNN7EXAMPLE", "secret_key": SECRET}

    def run_module(module_name: str, /, *, check: bool = False, **options: Any) -> Result:
        module = importlib.import_module(f"ansible_collections.muster.ml.plugins.modules.{module_name}")
        capfd.readouterr()
        warnings._global_warnings.clear()  # Ansible keeps them for the process, and each of its processes runs one module
        # Nothing takes longer here: what does is a mistake, and shall be one at once.
        patience = {"wait_timeout": 60} if "wait_timeout" in module.ARGUMENT_SPEC else {}
        arguments = {**connection, **patience, **options, "_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        printed = capfd.readouterr().out
        result: Result = json.loads(printed)
        result.pop("invocation", None)
        assert SECRET not in json.dumps(result)
        return result

    return run_module


@pytest.fixture
def changes(aws: Simulator, run: Run) -> Run:
    """Run a module as one always should: planned, run, run again. The server's journal says what was really sent."""

    def run_thrice(module_name: str, /, **options: Any) -> Result:
        aws.clear()
        planned = run(module_name, check=True, **options)
        assert aws.attempts() == [], "check mode changed something"
        done = run(module_name, **options)
        assert not done.get("failed"), done["msg"]
        assert planned["changed"] is done["changed"] is True
        assert planned["actions"] == done["actions"], "the plan is not what happened"
        sent = [action.split(" ")[0].replace("_", "").lower() for action in done["actions"]]
        assert [write.lower() for write in aws.writes()] == sent
        aws.clear()
        again = run(module_name, **options)
        assert (again["changed"], again["actions"], aws.attempts()) == (False, [], [])
        return done

    return run_thrice
