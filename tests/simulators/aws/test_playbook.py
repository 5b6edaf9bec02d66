# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/eks.yml with the roles eks_network, eks_cluster, eks_nodegroups, efs_filesystem and s3_artifacts: one account's life.

The tests stand on each other, in order: plan, a node group that fails, the run that mends it, again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from simulators.aws.apiserver import ApiServer
from simulators.aws.client import REGION, SECRET, Simulator

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "k8s-aws-v1.canary-token-of-the-cluster"
OWNER = {"Key": "muster.ml/owner", "Value": "muster"}
SYSTEM = {"name": "system", "instance_types": ["m6i.large"], "scaling_config": {"min_size": 2, "max_size": 4}}
GPU = {
    "name": "gpu",
    "ami_type": "AL2023_x86_64_NVIDIA",
    "instance_types": ["g5.2xlarge"],
    "capacity_type": "SPOT",
    "scaling_config": {"min_size": 0, "max_size": 4},
    "labels": {"pool": "gpu"},
    "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
}


@dataclass
class Play:
    """Runs our playbooks against the simulated account, as a user would."""

    aws: Simulator
    folder: Path
    settings: dict[str, Any]
    outputs: list[str] = field(default_factory=list)

    def __call__(self, playbook: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        programs = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        environment = {
            **self.aws.environment(),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
        }
        done = subprocess.run(
            ["ansible-playbook", "-i", "inventories/eks", f"playbooks/{playbook}.yml", "--diff", *options,
             "-e", json.dumps(self.settings | settings)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
        (self.folder / f"{len(self.outputs)}.log").write_text(output, encoding="utf-8")
        self.outputs.append(output)
        return done


def recap(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    line = [line for line in done.stdout.splitlines() if " failed=" in line][-1]
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("eks")


@pytest.fixture(scope="module")
def api_server(folder: Path) -> Iterator[ApiServer]:
    server = ApiServer(folder, TOKEN, nodes=2)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def aws(folder: Path, api_server: ApiServer) -> Iterator[Simulator]:
    simulator = Simulator(
        folder / "server.log", "--cluster-endpoint", api_server.url, "--cluster-ca", str(api_server.ca)
    )
    yield simulator
    simulator.stop()


@pytest.fixture(scope="module")
def play(aws: Simulator, folder: Path) -> Play:
    """With an `aws` on the path that hands out the token which the API server knows: only AWS itself could make a real one."""
    command = folder / "bin" / "aws"
    command.parent.mkdir()
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": TOKEN},
    }
    wanted = f"--region {REGION} eks get-token --cluster-name muster --output json"
    command.write_text(
        f'#!/bin/sh\n[ "$*" = "{wanted}" ] || exit 64\necho \'{json.dumps(credential)}\'\n', encoding="utf-8"
    )
    command.chmod(0o755)
    script = folder / "train.py"
    script.write_text("print('epoch 0')\n", encoding="utf-8")
    settings = {
        "muster_kubeconfig": str(folder / "kubeconfig"),
        "eks_cluster_public_access_cidrs": ["203.0.113.0/24"],
        "eks_nodegroups_groups": [SYSTEM, GPU],
        "eks_network_delete_delay": 1,
        "s3_artifacts_uploads": [{"src": str(script), "object": "elastic/train.py"}],
    }
    return Play(aws, folder, settings)


def test_a_plan_for_an_empty_account_lists_everything_and_writes_nothing(play: Play, aws: Simulator) -> None:
    done = play("eks", "--check")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    assert aws.attempts() == []
    assert recap(done)["changed"] >= 20
    for name in (
        "VPC",
        "NAT gateways",
        "Cluster",
        "Node groups",
        "File system",
        "Bucket",
        "Role that reads the bucket",
    ):
        assert f": {name}]" in done.stdout
    assert not Path(play.settings["muster_kubeconfig"]).exists()


def test_nodes_that_cannot_start_end_the_run_with_their_reason(play: Play, aws: Simulator) -> None:
    issue = {"code": "InsufficientFreeAddresses", "message": "no addresses in us-west-2a", "resourceIds": ["subnet-1"]}
    aws.fault("create_failed", "CreateNodegroup", **issue)
    aws.fault("role_not_visible", "CreateCluster", times=2)
    aws.fault("throttle", "CreateSubnet", times=2)
    aws.fault("throttle", "CreateAddon", times=2)
    done = play("eks")
    assert done.returncode != 0
    assert recap(done)["failed"] == 1
    assert (
        "EKS node group system of cluster muster: create failed: CREATE_FAILED (InsufficientFreeAddresses"
        in done.stdout
    )
    assert aws.ask("faults") == []


def test_the_next_run_mends_it(play: Play, aws: Simulator) -> None:
    done = play("eks")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    eks = aws.client("eks")
    groups = {n: eks.describe_nodegroup(clusterName="muster", nodegroupName=n)["nodegroup"] for n in ("system", "gpu")}
    assert {group["status"] for group in groups.values()} == {"ACTIVE"}
    assert groups["gpu"]["amiType"] == "AL2023_x86_64_NVIDIA"
    addons = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"}
    assert set(eks.list_addons(clusterName="muster")["addons"]) == addons
    assert Path(play.settings["muster_kubeconfig"]).stat().st_mode & 0o777 == 0o600


def test_again_nothing_is_changed(play: Play, aws: Simulator) -> None:
    aws.clear()
    done = play("eks")
    assert (done.returncode, recap(done)["changed"], aws.attempts()) == (0, 0, []), done.stdout[-3000:]


def test_doors_are_closed(aws: Simulator) -> None:
    ec2, iam, eks = aws.client("ec2"), aws.client("iam"), aws.client("eks")
    config = eks.describe_cluster(name="muster")["cluster"]["resourcesVpcConfig"]
    groups = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [config["vpcId"]]}])["SecurityGroups"]
    closed = next(g for g in groups if g["GroupName"] == "default")
    assert (closed["IpPermissions"], closed["IpPermissionsEgress"]) == ([], [])
    efs = next(g for g in groups if g["GroupName"] == "muster-efs")
    assert [(r["FromPort"], r["ToPort"], r["IpRanges"], [p["GroupId"] for p in r["UserIdGroupPairs"]])
            for r in efs["IpPermissions"]] == [(2049, 2049, [], [config["clusterSecurityGroupId"]])]  # fmt: skip
    assert efs["IpPermissionsEgress"] == []
    attached = iam.list_attached_role_policies(RoleName="muster-eks-node")["AttachedPolicies"]
    assert not [p["PolicyName"] for p in attached if "S3" in p["PolicyName"]]
    assert iam.list_role_policies(RoleName="muster-eks-node")["PolicyNames"] == []
    bucket = aws.client("s3").list_buckets()["Buckets"][0]["Name"]
    assert all(aws.client("s3").get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    allowed = iam.get_role_policy(RoleName="muster-artifacts-read", PolicyName="read")["PolicyDocument"]["Statement"]
    assert sorted(action for row in allowed for action in row["Action"]) == ["s3:GetObject", "s3:ListBucket"]


def test_no_output_showed_a_secret(play: Play) -> None:
    assert play.outputs
    for output in play.outputs:
        assert SECRET not in output
        assert TOKEN not in output
        assert "X-Amz-Signature" not in output
