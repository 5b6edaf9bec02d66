# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that lists what has a tag, over all services except IAM (Resource Groups Tagging API, GetResources).

It is regional, and shows instances and NAT gateways for a while after their end (the same page of its guide, "What are tags?": the
answer "might include resources that were deleted").
"""

from collections.abc import Iterator

from moto.backends import get_backend
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE

from . import efs, eks
from .api import Asked, Refused
from .state import ACCOUNT, Body, ec2

Tagged = tuple[str, dict[str, str]]
# Where an ARN has another word than moto (service authorization reference, "Resource types defined by Amazon EC2").
KINDS = {"eipalloc": "elastic-ip", "nat": "natgateway"}


def answer(asked: Asked) -> Body:
    if asked.operation != "GetResources":
        raise Refused("NotSimulated", f"{asked.operation} is not simulated", 501)
    filters = asked.params.get("TagFilters", [])
    rows = [
        {"ResourceARN": arn, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        for arn, tags in _all(asked.region)
        if all(_fits(tags, one) for one in filters)
    ]
    return {"PaginationToken": "", "ResourceTagMappingList": rows}


def _fits(tags: dict[str, str], desired: Body) -> bool:
    return desired["Key"] in tags and (not desired.get("Values") or tags[desired["Key"]] in desired["Values"])


def _all(region: str) -> Iterator[Tagged]:
    there = _there(region)
    for identity, tags in ec2(region).tags.items():
        prefix = str(identity).split("-", 1)[0]
        if tags and identity in there:
            kind = KINDS.get(prefix) or EC2_PREFIX_TO_RESOURCE[prefix]
            yield f"arn:aws:ec2:{region}:{ACCOUNT}:{kind}/{identity}", dict(tags)
    yield from eks.tagged(region)
    yield from efs.tagged(region)
    backend = get_backend("s3")[ACCOUNT]["aws"]
    for bucket in list(backend.buckets.values()):
        if bucket.region_name == region:
            yield bucket.arn, backend.tagger.get_tag_dict_for_resource(bucket.arn)


def _there(region: str) -> set[str]:
    """moto keeps the tags of some kinds after their end. Instances and gateways that have ended are shown on AWS, too."""
    backend = ec2(region)
    tables = [backend.enis, backend.volumes, backend.vpcs, backend.internet_gateways, backend.route_tables]
    tables += [backend.launch_templates, backend.nat_gateways, *backend.subnets.values(), *backend.groups.values()]
    addresses = {address.allocation_id for address in backend.addresses}
    instances = {one.id for group in backend.reservations.values() for one in group.instances}
    return addresses | instances | {identity for table in tables for identity in table}
