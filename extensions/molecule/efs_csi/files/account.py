# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated AWS account (tests/simulators/aws) with a cluster, its nodes, a file system and a role, all made by boto3, for this scenario.

account.py start STATE     says as JSON what there is, and what environment leads there
account.py show STATE      the add-on and its identities, as boto3 reads them
account.py stop STATE
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import boto3

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "tests"))

from simulators.aws.client import REGION, SECRET, Simulator

CLUSTER, ADDON = "training", "aws-efs-csi-driver"
# The simulator goes on with each look, and not with time.
AT_ONCE = {"Delay": 0}


def client(url: str, service: str) -> Any:
    session = boto3.session.Session("AKIAIOSFODNN7EXAMPLE", SECRET, region_name=REGION)
    return session.client(service, endpoint_url=url)


def role(url: str, name: str, service: str, policy: str) -> str:
    """One that a service may take, and accounts of the cluster by its identity provider."""
    iam = client(url, "iam")
    provider = {"Federated": "arn:aws:iam::123456789012:oidc-provider/of-the-cluster"}
    statements = [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]},
        {"Effect": "Allow", "Principal": provider, "Action": "sts:AssumeRoleWithWebIdentity"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
    return str(made)


def start(state: Path) -> dict[str, Any]:
    stop(state)
    simulator = Simulator(state.with_suffix(".log"))
    url = simulator.url
    control = role(url, "control", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
    driver = role(url, "efs-csi", "pods.eks.amazonaws.com", "service-role/AmazonEFSCSIDriverPolicy")
    subnets = [row["SubnetId"] for row in client(url, "ec2").describe_subnets()["Subnets"][:2]]
    eks = client(url, "eks")
    eks.create_cluster(name=CLUSTER, roleArn=control, resourcesVpcConfig={"subnetIds": subnets})
    eks.get_waiter("cluster_active").wait(name=CLUSTER, WaiterConfig=AT_ONCE)
    node = role(url, "node", "ec2.amazonaws.com", "AmazonEKSWorkerNodePolicy")
    eks.create_nodegroup(clusterName=CLUSTER, nodegroupName="nodes", nodeRole=node, subnets=subnets)
    eks.get_waiter("nodegroup_active").wait(clusterName=CLUSTER, nodegroupName="nodes", WaiterConfig=AT_ONCE)
    files = client(url, "efs").create_file_system(CreationToken=CLUSTER, Encrypted=True)["FileSystemId"]
    environment = {name: value for name, value in simulator.environment().items() if name.startswith("AWS_")}
    found = {
        "pid": simulator._process.pid,
        "url": url,
        "cluster": CLUSTER,
        "role_arn": driver,
        "file_system_id": files,
        "environment": environment,
    }
    state.write_text(json.dumps(found), encoding="utf-8")
    return found


def show(state: Path) -> dict[str, Any]:
    eks = client(json.loads(state.read_text(encoding="utf-8"))["url"], "eks")
    if ADDON not in eks.list_addons(clusterName=CLUSTER)["addons"]:
        return {"addon": None}
    addon = eks.describe_addon(clusterName=CLUSTER, addonName=ADDON)["addon"]
    rows = eks.list_pod_identity_associations(clusterName=CLUSTER)["associations"]
    associations = [
        eks.describe_pod_identity_association(clusterName=CLUSTER, associationId=row["associationId"])["association"] for row in rows
    ]
    return {"addon": addon, "associations": associations}


def stop(state: Path) -> dict[str, Any]:
    if state.exists():
        pid = json.loads(state.read_text(encoding="utf-8"))["pid"]
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and "simulators.aws.server" in command.read_text():
            os.kill(pid, signal.SIGTERM)
        state.unlink()
    return {}


if __name__ == "__main__":
    done = {"start": start, "show": show, "stop": stop}[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(json.dumps(done, default=str) + "\n")
