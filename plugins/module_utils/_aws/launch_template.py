# SPDX-License-Identifier: GPL-3.0-or-later
"""Launch templates of EKS node groups as values: disk, tags and metadata service of the instances."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, Comparison, Plan, creation_plan, without_none
from .api import Api
from .plan import EC2_TAGS, Step, tag_dict, tag_list
from .resource import Immediate

# Everything that a node is made of and that can have tags.
TAGGED = ("instance", "volume", "network-interface")


@dataclasses.dataclass(frozen=True)
class LaunchTemplate(Immediate):
    """A template for nodes. A change is a new version, which a node group takes up when it names that version.

    Nodes get the tags of the template only: EKS passes on none of a node group's tags (CreateNodegroupRequest.tags in botocore).
    """

    LABEL = "Launch template {name}"
    IDENTITY = ("LaunchTemplateId",)
    TAGGING = EC2_TAGS

    name: str
    device_name: str = "/dev/xvda"
    disk_size: int = 100
    disk_type: str = "gp3"
    disk_kms_key_id: str | None = None

    @property
    def data(self) -> Body:
        """The data from which EC2 starts an instance.

        Tokens (IMDSv2) are required; with a hop limit of 1 they stay on the node, so that pods cannot use its role.
        A value of None must be absent, from the live template as well: EC2 adds no key of its own to a disk.
        """
        disk = {
            "VolumeSize": self.disk_size,
            "VolumeType": self.disk_type,
            "Encrypted": True,
            "KmsKeyId": self.disk_kms_key_id,
            "DeleteOnTermination": True,
        }
        tags = tag_list(self.tags or {})
        return {
            "BlockDeviceMappings": [{"DeviceName": self.device_name, "Ebs": disk}],
            "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in TAGGED] if tags else None,
        }

    def read(self, api: Api) -> Body | None:
        """The template with the data of its newest version."""
        found = api.read(self.label, "ec2", "describe_launch_templates", LaunchTemplateNames=[self.name])
        rows = (found or {}).get("LaunchTemplates", [])
        if not rows:
            return None
        request = {"LaunchTemplateId": rows[0]["LaunchTemplateId"], "Versions": ["$Latest"]}
        found = api.read(self.label, "ec2", "describe_launch_template_versions", **request)
        versions = (found or {}).get("LaunchTemplateVersions", [])
        return {**rows[0], "LaunchTemplateData": versions[0]["LaunchTemplateData"] if versions else {}}

    def plan(self, live: Body | None) -> Plan:
        if live is None:
            tags = [{"ResourceType": "launch-template", "Tags": tag_list(self.tags)}] if self.tags else None
            request = {"LaunchTemplateName": self.name, "LaunchTemplateData": without_empty(self.data), "TagSpecifications": tags}
            return creation_plan(Step("create_launch_template", without_none(request), "create", "ec2"))
        compare = Comparison()
        named = live["LaunchTemplateId"]
        steps = self.tag_steps(compare, live, Resources=[named])
        if compare.differs("data", comparable(live["LaunchTemplateData"], self.data), comparable(self.data, self.data)):
            request = {"LaunchTemplateId": named, "LaunchTemplateData": without_empty(self.data)}
            steps.append(Step("create_launch_template_version", request, "new version", "ec2"))
        return compare.plan(steps)

    def deletions(self, live: Body) -> list[Step]:
        return [Step("delete_launch_template", {"LaunchTemplateId": live["LaunchTemplateId"]}, "delete", "ec2")]


def comparable(data: Body, desired: Body) -> Body:
    """Template data without the order of lists, and without what EC2 adds to the parts that DESIRED has, such as a default."""
    shown = {key: value for key, value in data.items() if value not in (None, [], {})}
    for part in shown.keys() & desired.keys():
        shown[part] = _without_additions(shown[part], desired[part])
    if "TagSpecifications" in shown:
        shown["TagSpecifications"] = {row["ResourceType"]: tag_dict(row["Tags"]) for row in shown["TagSpecifications"]}
    return shown


def without_empty(value: t.Any) -> t.Any:
    """Data as it is sent: without what is None, at any depth."""
    if isinstance(value, dict):
        return {key: without_empty(one) for key, one in value.items() if one is not None}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def _without_additions(value: t.Any, desired: t.Any) -> t.Any:
    if isinstance(value, dict) and isinstance(desired, dict):
        known = {key: value[key] for key in value.keys() & desired.keys() if value[key] is not None}
        return {key: _without_additions(one, desired[key]) for key, one in known.items()}
    if isinstance(value, list) and isinstance(desired, list) and len(value) == len(desired):
        return [_without_additions(one, other) for one, other in zip(value, desired, strict=True)]
    return value
