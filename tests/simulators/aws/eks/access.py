# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may use a cluster (access entries) and as whom its pods may use AWS (pod identity associations)."""

import re

from moto.backends import get_backend

from ..api import Refused
from ..journal import JOURNAL
from ..state import ACCOUNT, Body, now, role
from .account import Account, Cluster, Handler, admit, associate, missing, show

POLICIES = ("AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy")
NO_ROLE = "Role provided in the request does not exist."  # as terraform-provider-aws, pod_identity_association.go, knows it


# What EKS says of principals and names. Sources: terraform-provider-aws, access_entry.go (which also repeats the first: a new role is not
# seen at once); aws-samples/appmod-blueprints#319; hashicorp/terraform-provider-aws#36447; aws-ia/terraform-aws-eks-blueprints#1920. The
# last is quoted in several public reports.
INVALID = "The specified principalArn is invalid: invalid principal."
FORMAT = "The principalArn parameter format is not valid"
LINKED = "The caller is not allowed to modify access entries with a principalArn value of a Service Linked Role"
USERNAME = "The username must not begin with system:"
GROUP = "The kubernetes group name {} is invalid, it cannot start with system:"


def _refuse_principal(principal: str) -> None:
    if not re.fullmatch(r"arn:[\w-]+:iam::\d{12}:(role|user)/.+", principal):
        raise Refused("InvalidParameterException", FORMAT)
    if ":role/aws-service-role/" in principal:
        raise Refused("InvalidParameterException", LINKED)
    iam = get_backend("iam")[ACCOUNT]["aws"]
    known = {one.arn for one in (*iam.roles.values(), *iam.users.values())}
    if JOURNAL.fault("role_not_visible", "CreateAccessEntry") or principal not in known:
        raise Refused("InvalidParameterException", INVALID)


def _refuse_names(params: Body) -> None:
    if params.get("username", "").startswith("system:"):
        raise Refused("InvalidParameterException", USERNAME)
    for group in params.get("kubernetesGroups", []):
        if group.startswith("system:"):
            raise Refused("InvalidParameterException", GROUP.format(group))


def _with_entries(account: Account, name: str) -> Cluster:
    cluster = account.active(name)
    if cluster.body["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise Refused(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.",
        )
    return cluster


def _entry(cluster: Cluster, principal: str) -> Body:
    found = cluster.entries.get(principal)
    return found or missing(f"The specified principalArn could not be found: {principal}")


def create_entry(account: Account, params: Body) -> Body:
    cluster, principal = _with_entries(account, params["clusterName"]), params["principalArn"]
    if principal in cluster.entries:
        raise Refused("ResourceInUseException", "The specified access entry resource is already in use on this cluster.", 409)
    _refuse_principal(principal)
    _refuse_names(params)
    kind = params.get("type", "STANDARD")
    if kind != "STANDARD" and params.get("kubernetesGroups"):
        raise Refused("InvalidParameterException", f"Kubernetes groups cannot be given for type {kind}")
    given = {k: params[k] for k in ("kubernetesGroups", "tags") if k in params}
    user = params.get("username", f"{principal}/{{{{SessionName}}}}")
    return {"accessEntry": show(admit(account, cluster, principal, username=user, type=kind, **given))}


def describe_entry(account: Account, params: Body) -> Body:
    return {"accessEntry": show(_entry(account.cluster(params["clusterName"]), params["principalArn"]))}


def entries(account: Account, params: Body) -> Body:
    return {"accessEntries": list(account.cluster(params["clusterName"]).entries)}


def update_entry(account: Account, params: Body) -> Body:
    entry = _entry(_with_entries(account, params["clusterName"]), params["principalArn"])
    _refuse_names(params)
    entry.update({k: params[k] for k in ("kubernetesGroups", "username") if k in params})
    return {"accessEntry": show(entry)}


def delete_entry(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    _entry(cluster, params["principalArn"])
    del cluster.entries[params["principalArn"]]
    cluster.policies.pop(params["principalArn"], None)
    return {}


def associate_policy(account: Account, params: Body) -> Body:
    cluster = _with_entries(account, params["clusterName"])
    if JOURNAL.fault("entry_not_visible", "AssociateAccessPolicy"):  # terraform-provider-aws, access_policy_association.go, repeats it
        missing(f"The specified principalArn could not be found: {params['principalArn']}")
    _entry(cluster, params["principalArn"])
    arn, scope = params["policyArn"], params["accessScope"]
    if arn.rsplit("/", 1)[-1] not in POLICIES:
        raise Refused("InvalidParameterException", f"The policyArn parameter format is not valid: {arn}")
    if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
        raise Refused("InvalidParameterException", "Namespaces go with the scope type namespace and with no other")
    association = {"policyArn": arn, "accessScope": {"namespaces": [], **scope}, "associatedAt": now(), "modifiedAt": now()}
    cluster.policies.setdefault(params["principalArn"], {})[arn] = association
    return {"clusterName": params["clusterName"], "principalArn": params["principalArn"], "associatedAccessPolicy": association}


def associated_policies(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    _entry(cluster, params["principalArn"])
    found = list(cluster.policies.get(params["principalArn"], {}).values())
    return {"clusterName": params["clusterName"], "principalArn": params["principalArn"], "associatedAccessPolicies": found}


def disassociate_policy(account: Account, params: Body) -> Body:
    cluster = _with_entries(account, params["clusterName"])
    _entry(cluster, params["principalArn"])
    if params["policyArn"] not in cluster.policies.get(params["principalArn"], {}):
        missing(f"The policy {params['policyArn']} is not associated")
    del cluster.policies[params["principalArn"]][params["policyArn"]]
    return {}


def create_association(account: Account, params: Body) -> Body:
    cluster = account.active(params["clusterName"])
    place = (params["namespace"], params["serviceAccount"])
    if any((a["namespace"], a["serviceAccount"]) == place for a in cluster.associations.values()):
        raise Refused("ResourceInUseException", f"Association already exists for {'/'.join(place)}", 409)
    role(params["roleArn"], "pods.eks.amazonaws.com", "CreatePodIdentityAssociation", NO_ROLE)
    sessions = params.get("disableSessionTags", False)
    return {"association": show(associate(account, cluster, params, disableSessionTags=sessions))}


def _association(account: Account, params: Body) -> Body:
    found = account.cluster(params["clusterName"]).associations.get(params["associationId"])
    return found or missing(f"Pod identity association {params['associationId']} not found")


def describe_association(account: Account, params: Body) -> Body:
    return {"association": show(_association(account, params))}


def associations(account: Account, params: Body) -> Body:
    found = [
        {k: a[k] for k in ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")}
        for a in account.cluster(params["clusterName"]).associations.values()
        if params.get("namespace") in (None, a["namespace"]) and params.get("serviceAccount") in (None, a["serviceAccount"])
    ]
    return {"associations": found}


def update_association(account: Account, params: Body) -> Body:
    association = _association(account, params)
    given = {k: params[k] for k in ("roleArn", "disableSessionTags", "targetRoleArn") if k in params}
    if not given:
        raise Refused("InvalidParameterException", "At least one of the attributes must be changed")
    if "roleArn" in given:
        role(given["roleArn"], "pods.eks.amazonaws.com", "UpdatePodIdentityAssociation", NO_ROLE)
    association.update(given)
    return {"association": show(association)}


def delete_association(account: Account, params: Body) -> Body:
    association = _association(account, params)
    del account.cluster(params["clusterName"]).associations[params["associationId"]]
    return {"association": show(association)}


OPERATIONS: dict[str, Handler] = {
    "CreateAccessEntry": create_entry,
    "DescribeAccessEntry": describe_entry,
    "ListAccessEntries": entries,
    "UpdateAccessEntry": update_entry,
    "DeleteAccessEntry": delete_entry,
    "AssociateAccessPolicy": associate_policy,
    "ListAssociatedAccessPolicies": associated_policies,
    "DisassociateAccessPolicy": disassociate_policy,
    "CreatePodIdentityAssociation": create_association,
    "DescribePodIdentityAssociation": describe_association,
    "ListPodIdentityAssociations": associations,
    "UpdatePodIdentityAssociation": update_association,
    "DeletePodIdentityAssociation": delete_association,
}
