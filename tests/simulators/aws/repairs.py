# SPDX-License-Identifier: GPL-3.0-or-later
"""What moto 5.2.5 does otherwise than AWS, put right."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import xmltodict
from moto.backends import get_backend
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX
from moto.s3.models import FakeBucket, FakeKey
from moto.s3.responses import S3Response

from .api import Asked, Refused
from .journal import JOURNAL
from .state import ACCOUNT, SETTINGS, ec2

NOT_OVER_TLS = {"Bool": {"aws:SecureTransport": "false"}}


def apply() -> None:
    # AWS calls the tag type of a NAT gateway "natgateway" (EC2 API, ResourceType); amazon.aws asks for it by that name.
    EC2_PREFIX_TO_RESOURCE[EC2_RESOURCE_TO_PREFIX["nat-gateway"]] = "natgateway"
    _rename_zones()
    EC2Backend.create_vpc = _with_open_group(EC2Backend.create_vpc)
    _refuse_while(EC2Backend, "delete_subnet", _interfaces_in_subnet)
    _refuse_while(EC2Backend, "delete_security_group", _users_of_group)
    _refuse_while(EC2Backend, "delete_vpc", _left_in_vpc)
    EC2Backend.delete_nat_gateway = _with_interface(EC2Backend.delete_nat_gateway)
    EC2Backend.create_launch_template = _with_own_tags(EC2Backend.create_launch_template)
    # moto remembers the tags that a template was created with.
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda _self, _tags: None)
    EC2Backend.create_nat_gateway = _may_fail(EC2Backend.create_nat_gateway)
    FakeKey.etag = property(_not_the_md5(FakeKey.etag.fget))
    FakeBucket.get_permission = _over_tls(FakeBucket.get_permission)
    S3Response._bucket_response_put = _with_tags(S3Response._bucket_response_put)


def _rename_zones() -> None:
    """AWS gives the zones of a region other names in each account (EC2 user guide, "Availability Zone IDs").

    Here the names of us-east-1 are such that the first one is that of the zone that EKS refuses.
    """
    zones = RegionsAndZonesBackend.zones["us-east-1"]
    ids = sorted((zone.zone_id for zone in zones), key=lambda one: (one != "use1-az3", one))
    for zone, zone_id in zip(sorted(zones, key=lambda one: str(one.name)), ids, strict=True):
        zone.zone_id = zone_id


def _with_open_group(create: Callable[..., Any]) -> Callable[..., Any]:
    """The default group of a VPC lets in its own members (VPC user guide, "Default security groups for your VPCs"); moto's nobody."""

    def thorough(self: Any, *args: Any, **kwargs: Any) -> Any:
        vpc = create(self, *args, **kwargs)
        group = next(g for g in self.groups[vpc.id].values() if g.name == "default")
        if not group.ingress_rules:
            self.authorize_security_group_ingress(group.id, "-1", "", "", [], source_groups=[{"GroupId": group.id}], vpc_id=vpc.id)
        return vpc

    return thorough


def _with_interface(delete: Callable[..., Any]) -> Callable[..., Any]:
    """A NAT gateway takes its network interface along (VPC user guide, "Delete a NAT gateway"); moto leaves it in the subnet."""

    def thorough(self: Any, nat_gateway_id: str) -> Any:
        gateway = self.nat_gateways.get(nat_gateway_id)
        if gateway is not None:
            self.enis.pop(gateway._eni.id, None)
        return delete(self, nat_gateway_id)

    return thorough


def _may_fail(create: Callable[..., Any]) -> Callable[..., Any]:
    """The fault ``nat_fails``: a gateway that never becomes available. Its address stays (VPC user guide, "Troubleshoot NAT gateways")."""

    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        gateway = create(self, *args, **kwargs)
        if JOURNAL.fault("nat_fails", "CreateNatGateway"):
            gateway.state = "failed"
            self.enis.pop(gateway._eni.id, None)
            for address in self.addresses:
                if address.eni is gateway._eni:
                    address.eni = address.association_id = None
        return gateway

    return careful


def _not_the_md5(etag: Callable[[Any], str]) -> Callable[[Any], str]:
    """What is encrypted with a key of KMS has an ETag that is no MD5 (S3 API, Object, ETag)."""

    def careful(self: Any) -> str:
        found = etag(self)
        return f'"{hashlib.sha1(found.encode(), usedforsecurity=False).hexdigest()}"' if self.encryption == "aws:kms" else found

    return careful


def _with_own_tags(create: Callable[..., Any]) -> Callable[..., Any]:
    """The tags of a template are its own (EC2 API, CreateLaunchTemplate, TagSpecification); moto gives them to the instances, too."""

    def careful(self: Any, name: str, description: str, data: dict[str, Any], tags: Any) -> Any:
        kept = [row for row in data.pop("TagSpecifications", []) if row["ResourceType"] != "launch-template"]
        return create(self, name, description, {**data, **({"TagSpecifications": kept} if kept else {})}, tags)

    return careful


def _over_tls(judge: Callable[..., Any]) -> Callable[..., Any]:
    """moto leaves out the conditions of a bucket's policy. Clients of S3 use TLS, so what refuses others does not meet them."""

    def careful(self: Any, action: str, resource: str) -> Any:
        whole = self.policy
        if whole is not None:
            policy = json.loads(whole)
            kept = [row for row in policy["Statement"] if row.get("Condition") != NOT_OVER_TLS]
            self.policy = json.dumps({**policy, "Statement": kept}).encode() if kept else None
        try:
            return judge(self, action, resource)
        finally:
            self.policy = whole

    return careful


def _with_tags(put: Callable[..., Any]) -> Callable[..., Any]:
    """A bucket has the tags of the request that makes it (S3 API, CreateBucketConfiguration); moto drops them."""

    def thorough(self: Any, request: Any, bucket_name: str, querystring: dict[str, Any]) -> Any:
        done = put(self, request, bucket_name, querystring)
        if not querystring and self.body:
            given = (xmltodict.parse(self.body)["CreateBucketConfiguration"].get("Tags") or {}).get("Tag", [])
            tags = {tag["Key"]: tag["Value"] or "" for tag in (given if isinstance(given, list) else [given])}
            if tags:
                self.backend.put_bucket_tagging(bucket_name, tags)
        return done

    return thorough


# How EC2 says that a quota is used up (VPC user guide, "Amazon VPC quotas"; EC2 API, "Error codes").
QUOTAS: dict[str, tuple[str, str, str, Callable[[Any], int]]] = {
    "CreateVpc": ("vpcs", "VpcLimitExceeded", "The maximum number of VPCs has been reached.", lambda found: len(found.vpcs)),
    "AllocateAddress": (
        "addresses",
        "AddressLimitExceeded",
        "The maximum number of addresses has been reached.",
        lambda found: len(found.addresses),
    ),
}


def guard(asked: Asked) -> None:
    """Quotas, and the fault ``dependency``: something that the account's owner cannot see still uses what is to be deleted."""
    if quota := QUOTAS.get(asked.operation):
        name, code, message, count = quota
        if count(ec2(asked.region)) >= SETTINGS.quotas[name]:
            raise Refused(code, message)
    if fault := JOURNAL.fault("dependency", asked.operation):
        raise Refused("DependencyViolation", fault.detail.get("message", "resource has a dependent object"))


def _provider(params: dict[str, Any]) -> Any:
    return get_backend("iam")[ACCOUNT]["aws"].get_open_id_connect_provider(params["OpenIDConnectProviderArn"])


def _add_client(params: dict[str, Any]) -> None:
    clients = _provider(params).client_id_list
    if params["ClientID"] not in clients:  # "This operation is idempotent" (IAM API, AddClientIDToOpenIDConnectProvider)
        clients.append(params["ClientID"])


def _remove_client(params: dict[str, Any]) -> None:
    clients = _provider(params).client_id_list
    if params["ClientID"] in clients:
        clients.remove(params["ClientID"])


# What moto's IAM lacks.
IAM_OPERATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "AddClientIDToOpenIDConnectProvider": _add_client,
    "RemoveClientIDFromOpenIDConnectProvider": _remove_client,
}


def _refuse_while(backend: type, name: str, users: Callable[..., list[str]]) -> None:
    """Deleting what is in use is a DependencyViolation (EC2 API, error codes); moto deletes it."""
    delete = getattr(backend, name)

    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = users(self, *args, **kwargs)
        if found:
            target = kwargs.get("group_id") or (args[0] if args else "it")
            raise DependencyViolationError(f"{target} has dependencies and cannot be deleted: {', '.join(found)}")
        return delete(self, *args, **kwargs)

    setattr(backend, name, careful)


def _interfaces_in_subnet(self: Any, subnet_id: str) -> list[str]:
    gateways = [g.id for g in self.nat_gateways.values() if g.subnet_id == subnet_id and g.state == "available"]
    return [e.id for e in self.enis.values() if e.subnet.id == subnet_id] + gateways


def _users_of_group(self: Any, name: str | None = None, group_id: str | None = None) -> list[str]:
    interfaces = [e.id for e in self.enis.values() if group_id in [g.id for g in e.group_set]]
    others = [g for groups in self.groups.values() for g in groups.values() if g.id != group_id]
    return interfaces + [g.id for g in others if any(group_id in _named(rule) for rule in [*g.ingress_rules, *g.egress_rules])]


def _named(rule: Any) -> list[str]:
    """The security group that a rule lets in, if it is not a range of addresses."""
    return [(rule.source_group or {}).get("GroupId", "")]


def _left_in_vpc(self: Any, vpc_id: str) -> list[str]:
    groups = [g.id for g in self.groups.get(vpc_id, {}).values() if g.name != "default"]
    gateways = [g.id for g in self.internet_gateways.values() if g.vpc and g.vpc.id == vpc_id]
    return groups + gateways
