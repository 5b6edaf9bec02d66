# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate judges every request of the whole suite by AWS's own descriptions. Here it is shown to see what it has to."""

from typing import Any
from urllib.parse import urlencode

import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.serialize import create_serializer

from simulators.aws import api, wire
from simulators.aws.client import REGION, SECRET, Simulator

TAG = {"Key": "a", "Value": "b"}
TRUST = '{"Version": "2012-10-17", "Statement": []}'
# service, operation, parameters that fit; each protocol of AWS, with structures in lists in structures
FITTING: list[tuple[str, str, dict[str, Any]]] = [
    ("ec2", "RunInstances", {"MinCount": 1, "MaxCount": 2, "BlockDeviceMappings": [{"Ebs": {"Encrypted": True, "VolumeSize": 100}}],
                             "TagSpecifications": [{"ResourceType": "volume", "Tags": [TAG, {"Key": "c", "Value": ""}]}]}),
    ("ec2", "DescribeSubnets", {"Filters": [{"Name": "vpc-id", "Values": ["vpc-1", "vpc-2"]}], "SubnetIds": ["subnet-1"]}),
    ("ec2", "AuthorizeSecurityGroupIngress", {"GroupId": "sg-1", "IpPermissions": [
        {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "x"}]}]}),
    ("iam", "CreateRole", {"RoleName": "r", "AssumeRolePolicyDocument": TRUST, "Tags": [TAG]}),
    ("iam", "CreateOpenIDConnectProvider", {"Url": "https://x", "ClientIDList": ["sts.amazonaws.com"], "Tags": [TAG]}),
    ("s3", "PutBucketEncryption", {"Bucket": "abc", "ServerSideEncryptionConfiguration": {"Rules": [
        {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": True}]}}),
    ("s3", "PutBucketTagging", {"Bucket": "abc", "Tagging": {"TagSet": [TAG]}, "ExpectedBucketOwner": "123456789012"}),
    ("s3", "DeleteObjects", {"Bucket": "abc", "Delete": {"Objects": [{"Key": "k", "VersionId": "1"}, {"Key": "l"}], "Quiet": True}}),
    ("s3", "ListObjectsV2", {"Bucket": "abc", "MaxKeys": 7}),
    ("s3", "PutObject", {"Bucket": "abc", "Key": "x/y", "Body": b"text", "Metadata": {"a": "b"}}),
    ("eks", "ListNodegroups", {"clusterName": "c", "maxResults": 5}),
    ("eks", "CreateNodegroup", {"clusterName": "c", "nodegroupName": "n", "subnets": ["s"], "nodeRole": "r", "tags": {"a": "b"},
                                "scalingConfig": {"minSize": 0, "maxSize": 4}}),
    ("efs", "CreateFileSystem", {"CreationToken": "t", "Encrypted": True, "Tags": [TAG]}),
]  # fmt: skip


@pytest.mark.parametrize(("service", "operation", "params"), FITTING, ids=[f"{row[0]}:{row[1]}" for row in FITTING])
def test_what_is_read_is_what_was_sent(service: str, operation: str, params: dict[str, Any]) -> None:
    model = botocore.session.get_session().get_component("data_loader").load_service_model(service, "service-2")
    described = api.description(service).operation_model(operation)
    sent = create_serializer(model["metadata"]["protocol"]).serialize_to_request(params, described)
    query = "&".join(f"{key}={value}" for key, value in dict(sent["query_string"] or {}).items())
    if described.service_model.protocol in ("ec2", "query"):
        read: Any = wire.from_form(described, urlencode(sent["body"]))
    else:
        path, _mark, more = sent["url_path"].partition("?")
        headers = {key.lower(): value for key, value in sent["headers"].items()}
        body = sent["body"] if isinstance(sent["body"], bytes) else b""
        asked = api.understand(service, REGION, sent["method"], path, "&".join(filter(None, (more, query))), headers, body)
        assert asked is not None
        assert asked.operation == operation
        read = asked.params
    assert {key: value for key, value in read.items() if key not in ("ClientToken", "clientRequestToken")} == params
    assert api.unfit(service, operation, read) == []


UNFIT: list[tuple[str, str, dict[str, Any], str]] = [
    ("ec2", "run_instances", {"MinCount": 1, "MaxCount": 1, "InstanceType": "m6i.huge"}, "InstanceType is 'm6i.huge'"),
    ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": "mine"}, "InstanceTenancy is 'mine'"),
    ("ec2", "run_instances", {"MinCount": "many", "MaxCount": 1}, "Invalid type for parameter MinCount"),
    ("iam", "create_role", {"RoleName": "a b", "AssumeRolePolicyDocument": TRUST}, "regular expression pattern"),
    ("iam", "create_role", {"RoleName": "r" * 65, "AssumeRolePolicyDocument": TRUST}, "length less than or equal to 64"),
    ("iam", "create_role", {"RoleName": "r"}, "Missing required parameter"),
    ("iam", "tag_role", {"RoleName": "r", "Tags": [TAG] * 51}, "Tags has 51"),
    ("s3", "put_bucket_versioning", {"Bucket": "abc", "VersioningConfiguration": {"Status": "On"}}, "Status is 'On'"),
    ("eks", "create_cluster", {"name": "-x", "roleArn": "a", "resourcesVpcConfig": {}}, "regular expression pattern"),
    ("eks", "create_nodegroup", {"clusterName": "c", "nodegroupName": "n", "nodeRole": "r"}, "Missing required parameter"),
    ("efs", "create_file_system", {"CreationToken": "t" * 65}, "length less than or equal to 64"),
    ("ssm", "get_parameter", {"Name": "x" * 3000}, "length less than or equal to 2048"),
]  # fmt: skip


@pytest.mark.parametrize(("service", "call", "params", "words"), UNFIT, ids=[f"{row[0]}:{row[1]}:{row[3]}" for row in UNFIT])
def test_what_does_not_fit_is_refused(aws: Simulator, service: str, call: str, params: dict[str, Any], words: str) -> None:
    """Sent as by a client that checks nothing."""
    session = boto3.session.Session("AKIAIOSFODNN7EXAMPLE", SECRET, region_name=REGION)
    client = session.client(service, endpoint_url=aws.url, config=Config(parameter_validation=False))
    with pytest.raises(ClientError, match=words):
        getattr(client, call)(**params)
