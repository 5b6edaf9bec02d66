# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that read a bucket as the role of their service account, with the program that fetches data sets and scripts in them."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from simulators.apiserver import ApiServer, node
from simulators.aws.client import REGION, Simulator, bare_environment
from simulators.aws.play import TOKEN, pod_environment
from simulators.aws.shapes import Maker
from simulators.cluster import ApiClient
from simulators.fetch import SCRIPT, fetch

READ = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::scripts/*"]}
URL = "s3://scripts/train.py"


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@dataclass
class Ground:
    """A cluster with the agent of Pod Identity and a provider of OpenID Connect, a role, and two buckets of which it may read one."""

    aws: Simulator
    api: ApiServer
    folder: Path
    role: str

    def read(self, how: str, account: str = "ml:elastic", url: str = URL, **environment: str) -> subprocess.CompletedProcess[str]:
        given = pod_environment(self.aws, self.api, self.folder, how, account, self.role)
        done, to = fetch(url, self.folder, {**bare_environment(), **given, **environment})
        assert to.exists() is (done.returncode == 0)
        if to.exists():
            assert to.read_text(encoding="utf-8") == SCRIPT
            to.unlink()
        return done


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("pods")
    api = ApiServer(folder, TOKEN)
    credential = folder / "credential.json"
    credential.write_text(json.dumps({"status": {"token": TOKEN}}), encoding="utf-8")
    aws = Simulator(
        folder / "server.log", "--cluster-endpoint", api.url, "--cluster-ca", str(api.ca),
        "--cluster-credential", str(credential), "--polls", "1",
    )  # fmt: skip
    try:
        yield Ground(aws, api, folder, made(aws))
    finally:
        aws.stop()
        api.stop()


def made(aws: Simulator) -> str:
    """ARN of the role of the pods."""
    iam, eks, s3 = (aws.client(service) for service in ("iam", "eks", "s3"))
    maker = Maker(aws, "pods", 99)
    maker.network({})
    maker.cluster(accessConfig={"authenticationMode": "API"})
    issuer = eks.describe_cluster(name="pods")["cluster"]["identity"]["oidc"]["issuer"]
    provider = iam.create_open_id_connect_provider(Url=issuer, ClientIDList=["sts.amazonaws.com"])
    name = issuer.removeprefix("https://")
    of_agent = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    of_token = {
        "Effect": "Allow",
        "Principal": {"Federated": provider["OpenIDConnectProviderArn"]},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {f"{name}:aud": "sts.amazonaws.com", f"{name}:sub": "system:serviceaccount:ml:elastic"}},
    }
    role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=document(of_agent, of_token))["Role"]["Arn"]
    iam.put_role_policy(RoleName="reader", PolicyName="read", PolicyDocument=document(READ))
    eks.create_addon(clusterName="pods", addonName="eks-pod-identity-agent")
    while eks.describe_addon(clusterName="pods", addonName="eks-pod-identity-agent")["addon"]["status"] != "ACTIVE":
        """As above."""
    eks.create_pod_identity_association(clusterName="pods", namespace="ml", serviceAccount="elastic", roleArn=role)
    for bucket in ("scripts", "others"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket=bucket, Key="train.py", Body=SCRIPT.encode())
    return str(role)


@pytest.mark.parametrize("how", ["pod_identity", "irsa"])
def test_a_pod_reads_as_its_role_what_that_may_read(ground: Ground, how: str) -> None:
    ground.aws.clear()
    done = ground.read(how)
    assert done.returncode == 0, done.stdout
    reads = [row for row in ground.aws.ask("requests") if row["operation"] == "GetObject"]
    assert [(row["role"], row["status"]) for row in reads] == [(ground.role, 200)]
    refused = ground.read(how, url="s3://others/train.py")
    assert "403" in refused.stdout
    assert "AccessDenied" in refused.stdout


@pytest.mark.parametrize("how", ["pod_identity", "irsa"])
def test_another_service_account_gets_no_keys(ground: Ground, how: str) -> None:
    done = ground.read(how, "ml:default")
    assert done.returncode != 0
    assert "credentials of the ServiceAccount" in done.stdout


def test_a_token_for_others_is_none(ground: Ground) -> None:
    """Not of this cluster, or for another audience."""
    given = pod_environment(ground.aws, ground.api, ground.folder, "pod_identity", "ml:elastic", ground.role)
    for known in ({}, {"token-of-ml:elastic": ("ml:elastic", "sts.amazonaws.com")}):
        ground.api.pods.clear()
        ground.api.pods.update(known)
        done, _to = fetch(URL, ground.folder, {**bare_environment(), **given})
        assert done.returncode != 0
        assert "credentials of the ServiceAccount: the server answers 400" in done.stdout


def test_a_pod_without_keys_reads_nothing(ground: Ground) -> None:
    done, _to = fetch(URL, ground.folder, {**bare_environment(), "AWS_ENDPOINT_URL": ground.aws.url})
    assert "403" in done.stdout


def test_what_was_not_signed_with_these_keys_is_refused(ground: Ground) -> None:
    pod_environment(ground.aws, ground.api, ground.folder, "pod_identity", "ml:elastic", ground.role)
    keys = ground.aws.keys_of_pod("token-of-ml:elastic")
    for key, secret, token, code in (
        (keys["AccessKeyId"], "another", keys["Token"], "SignatureDoesNotMatch"),
        (keys["AccessKeyId"], keys["SecretAccessKey"], "another", "InvalidToken"),
        (f"{keys['AccessKeyId']}0", keys["SecretAccessKey"], keys["Token"], "InvalidAccessKeyId"),
    ):
        s3 = boto3.session.Session(key, secret, token, REGION).client("s3", endpoint_url=ground.aws.url)
        with pytest.raises(ClientError, match=code):
            s3.get_object(Bucket="scripts", Key="train.py")
    session = boto3.session.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"], REGION)
    s3 = session.client("s3", endpoint_url=ground.aws.url)
    assert s3.get_object(Bucket="scripts", Key="train.py")["Body"].read().decode() == SCRIPT
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.put_object(Bucket="scripts", Key="train.py", Body=b"")


def test_a_simulated_node_has_gpus_once_the_device_plugin_runs_on_it(ground: Ground) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plugin", "namespace": "kube-system", "labels": {"app.kubernetes.io/name": "nvidia-device-plugin"}},
        "spec": {"nodeName": "gpu-0"},
        "status": {"phase": "Pending"},
    }
    ground.api.cluster.add(node("gpu-0", type="kwok"), node("gpu-1", type="kwok"), node("real"), pod)
    client = ApiClient(ground.api.url, ground.api.ca, ground.folder / "credential.json")
    assert client.report_gpus(1) == []
    ground.api.cluster.add(pod | {"status": {"phase": "Running"}})
    assert client.report_gpus(1) == ["gpu-0"]
    assert client.report_gpus(1) == []
    nodes = {one["metadata"]["name"]: one["status"]["allocatable"] for one in client.ask("GET", "/api/v1/nodes")["items"]}
    assert {name: one.get("nvidia.com/gpu") for name, one in nodes.items()} == {"gpu-0": "1", "gpu-1": None, "real": None}
    assert nodes["gpu-0"]["cpu"] == "4"
