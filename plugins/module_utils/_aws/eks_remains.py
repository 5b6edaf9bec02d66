# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of an EKS cluster that an account still has: those with our tag, and those that AWS or its add-ons created for it.

They are listed by APIs that no other module here uses, so that mistakes of a removal are found.
"""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body
from .api import Api
from .eks_info import OWNER
from .plan import tag_dict

# Tags of services and controllers that create resources for a cluster, with its name as their value or in their key.
MAKERS = {
    OWNER: "Muster",
    "eks:cluster-name": "EKS, for a node group",
    "aws:eks:cluster-name": "EKS",
    "cluster.k8s.amazonaws.com/name": "add-on vpc-cni",
    "elbv2.k8s.aws/cluster": "a controller of load balancers",
    "kubernetes.io/cluster/{name}": "Kubernetes, for a Service or a volume",
}
LOGS = ("/aws/eks/{name}/", "/aws/containerinsights/{name}/")


def read_remains(api: Api, name: str, *, owned_only: bool = False) -> Body:
    """List the resources that were found, each with its ARN or name, its kind and its creator, in order."""
    label = f"EKS cluster {name}"
    rows = [*_tagged(api, label, name, owned_only), *_of_iam(api, label, name)]
    rows += [] if owned_only else _logs(api, label, name)
    found = {row["id"]: row for row in reversed(rows)}  # Muster comes first where several have made something
    ended = _ended(api, label, list(found))
    return {"remains": [row for identity, row in sorted(found.items()) if identity not in ended]}


def _tagged(api: Api, label: str, name: str, owned_only: bool) -> t.Iterator[Body]:
    """List resources by the Resource Groups Tagging API, which knows those of all other services except IAM."""
    for pattern, maker in list(MAKERS.items())[: 1 if owned_only else None]:
        key = pattern.format(name=name)
        wanted = {"Key": key} if key != pattern else {"Key": key, "Values": [name]}
        rows = api.pages(label, "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=[wanted])
        yield from ({"id": row["ResourceARN"], "kind": kind_of(row["ResourceARN"]), "maker": maker} for row in rows)


def kind_of(arn: str) -> str:
    """Service and kind of resource, as the ARN says them: ``ec2 natgateway``."""
    service, rest = arn.split(":")[2], arn.split(":", 5)[5]
    kind = rest.replace(":", "/").split("/")[0] if "/" in rest or ":" in rest else ""
    return f"{service} {kind}".strip()


def _of_iam(api: Api, label: str, name: str) -> t.Iterator[Body]:
    for row in api.pages(label, "iam", "list_roles", "Roles"):
        if row["RoleName"].startswith(f"{name}-"):
            found = api.read(label, "iam", "get_role", RoleName=row["RoleName"]) or {"Role": {}}
            if tag_dict(found["Role"].get("Tags")).get(OWNER) == name:
                yield {"id": row["Arn"], "kind": "iam role", "maker": MAKERS[OWNER]}
    listed = api.read(label, "iam", "list_open_id_connect_providers") or {}
    for provider in listed.get("OpenIDConnectProviderList", []):
        known = api.read(label, "iam", "get_open_id_connect_provider", OpenIDConnectProviderArn=provider["Arn"]) or {}
        if tag_dict(known.get("Tags")).get(OWNER) == name:
            yield {"id": provider["Arn"], "kind": "iam oidc-provider", "maker": MAKERS[OWNER]}


def _logs(api: Api, label: str, name: str) -> t.Iterator[Body]:
    for pattern in LOGS:
        prefix = pattern.format(name=name)
        for row in api.pages(label, "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix):
            yield {"id": row["logGroupName"], "kind": "logs log-group", "maker": "EKS, which never deletes them"}


def _ended(api: Api, label: str, arns: list[str]) -> set[str]:
    """Instances and NAT gateways are listed for an hour after their end, which a NAT gateway that failed has reached, too."""
    ended = set()
    for kind, operation, key, identity in (
        ("instance", "describe_instances", "InstanceIds", "InstanceId"),
        ("natgateway", "describe_nat_gateways", "NatGatewayIds", "NatGatewayId"),
    ):
        named = {arn.rsplit("/", 1)[-1]: arn for arn in arns if f":{kind}/" in arn}
        if not named:
            continue
        found = api.read(label, "ec2", operation, **{key: sorted(named)}) or {}
        rows = [row for group in found.get("Reservations", []) for row in group["Instances"]] + found.get("NatGateways", [])
        alive = {row[identity] for row in rows if _state(row) not in ("terminated", "deleted", "failed")}
        ended |= {arn for one, arn in named.items() if one not in alive}
    return ended


def _state(row: Body) -> str:
    state = row["State"]
    return str(state["Name"] if isinstance(state, dict) else state)
