# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances of a node group, as EC2 shows them: what they get comes from the launch template, and from nowhere else.

"Tags don't propagate to any other cluster or Amazon Web Services resources" (CreateNodegroupRequest.tags in botocore 1.44.5). EKS marks
instances with tags of its own (EKS user guide, "Tag your resources", "eks:cluster-name").
"""

import functools
from typing import Any

import botocore.session
import xmltodict
from botocore.serialize import create_serializer
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import Client

from ..api import Refused, description
from ..state import Body, ec2

# What a launch template of a node group may not have (LaunchTemplateSpecification in botocore 1.44.5).
FORBIDDEN = ("IamInstanceProfile", "InstanceMarketOptions", "HibernationOptions", "InstanceInitiatedShutdownBehavior")
IMAGE = "ami-12c6146b"  # one of moto's


def template(region: str, desired: Body) -> tuple[Body, Body]:
    """(the template as EKS shows it, its data) or a refusal."""
    known: list[Any] = list(ec2(region).launch_templates.values())
    found = next((t for t in known if desired.get("id") == t.id or desired.get("name") == t.name), None)
    if found is None:
        named = desired.get("id") or desired.get("name")
        raise Refused("InvalidParameterException", f"Launch template {named} was not found")
    # The API takes both words, and shows the number (aws_eks_node_group of terraform-provider-aws, argument launch_template.version).
    words = {"$Latest": found.latest_version_number, "$Default": found.default_version_number}
    version = desired.get("version") or "$Default"
    number = int(words.get(version, version))
    versions = {version.number: version for version in found.versions}
    if number not in versions:
        raise Refused("InvalidParameterException", f"Launch template {found.id} has no version {number}")
    data: Body = versions[number].data
    wrong = [name for name in FORBIDDEN if data.get(name)]
    wrong += ["SubnetId"] if any("SubnetId" in one for one in data.get("NetworkInterfaces", [])) else []
    if wrong:
        raise Refused("InvalidRequestException", f"Launch template {found.id} must not specify {', '.join(wrong)}")
    return {"id": found.id, "name": found.name, "version": str(number)}, data


def start(region: str, body: Body, data: Body, subnet: str) -> list[str]:
    """As many instances as are desired."""
    count = body["scalingConfig"].get("desiredSize", 0)
    if not count:
        return []
    device = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": body.get("diskSize", 20), "VolumeType": "gp2", "DeleteOnTermination": True}}
    tags: dict[str, list[Body]] = {spec["ResourceType"]: spec["Tags"] for spec in data.get("TagSpecifications", [])}
    own = {"eks:cluster-name": body["clusterName"], "eks:nodegroup-name": body["nodegroupName"]}
    instance = [*tags.get("instance", []), *({"Key": key, "Value": value} for key, value in own.items())]
    answer = _moto(
        region,
        "RunInstances",
        ImageId=data.get("ImageId") or IMAGE,
        MinCount=count,
        MaxCount=count,
        SubnetId=subnet,
        InstanceType=body.get("instanceTypes", ["t3.medium"])[0],
        BlockDeviceMappings=data.get("BlockDeviceMappings") or [device],
        MetadataOptions=data.get("MetadataOptions") or {"HttpTokens": "optional", "HttpPutResponseHopLimit": 2},
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": instance},
            *({"ResourceType": kind, "Tags": rows} for kind, rows in tags.items() if kind == "volume"),
        ],
    )
    rows = answer["RunInstancesResponse"]["instancesSet"]["item"]
    return [row["instanceId"] for row in (rows if isinstance(rows, list) else [rows])]


def stop(region: str, instances: list[str]) -> None:
    backend = ec2(region)
    if instances:
        _moto(region, "TerminateInstances", InstanceIds=instances)
    for name in [name for name, nic in backend.enis.items() if nic.instance and nic.instance.id in instances]:
        backend.enis.pop(name)


@functools.cache
def _client() -> Client:
    return Client(DomainDispatcherApplication(create_backend_app))


def _moto(region: str, operation: str, **params: Any) -> Body:
    """What EKS asks of EC2 itself: it is no request of the account's owner, so it does not pass the gate."""
    model = botocore.session.get_session().get_component("data_loader")
    serializer = create_serializer(model.load_service_model("ec2", "service-2")["metadata"]["protocol"])
    request = serializer.serialize_to_request(params, description("ec2").operation_model(operation))
    scope = f"Credential=AKIA/20260101/{region}/ec2/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"}
    answer = _client().post("/", data=request["body"], headers=headers)
    if answer.status_code != 200:
        raise Refused("SimulatorBroken", answer.get_data(as_text=True), 418)
    parsed: Body = xmltodict.parse(answer.get_data(as_text=True))
    return parsed
