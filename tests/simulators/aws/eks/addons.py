# SPDX-License-Identifier: GPL-3.0-or-later
"""Add-ons: a small catalogue with versions that fit some Kubernetes versions and not others."""

import json

from ..api import Refused
from ..journal import JOURNAL
from ..state import Body, Item, now, number, role
from .account import VERSIONS, Account, Cluster, Handler, associate, missing, show, update

# name: (newest first) version and the Kubernetes versions it is for. Names and the form of versions are real; which
# version fits where is assumed.
CATALOGUE = {
    "vpc-cni": [("v1.21.1-eksbuild.1", VERSIONS), ("v1.19.0-eksbuild.1", VERSIONS[:3])],
    "coredns": [("v1.12.4-eksbuild.1", VERSIONS[2:]), ("v1.11.4-eksbuild.2", VERSIONS[:4])],
    "kube-proxy": [(f"v{v}.0-eksbuild.2", (v,)) for v in reversed(VERSIONS)],
    "eks-pod-identity-agent": [("v1.3.9-eksbuild.3", VERSIONS)],
    "aws-efs-csi-driver": [("v3.4.1-eksbuild.1", VERSIONS), ("v2.1.13-eksbuild.1", VERSIONS)],
    "aws-ebs-csi-driver": [("v1.52.1-eksbuild.1", VERSIONS)],
    "metrics-server": [("v0.8.0-eksbuild.3", VERSIONS)],
}


def _find(cluster: Cluster, name: str) -> Item:
    found = cluster.addons.get(name)
    return found or missing(f"No addon: {name} found in cluster: {cluster.body['name']}")


def _version(cluster: Cluster, name: str, desired: str | None) -> str:
    offered = [v for v, fits in CATALOGUE.get(name, []) if cluster.body["version"] in fits]
    if not offered or (desired and desired not in offered):
        raise Refused("InvalidParameterException", f"Addon version specified is not supported: {name} {desired or ''}")
    return desired or offered[0]


def _checked(params: Body) -> None:
    if text := params.get("configurationValues"):
        try:
            json.loads(text)
        except ValueError as error:
            raise Refused("InvalidParameterException", "ConfigurationValue provided in request is not supported") from error
    if arn := params.get("serviceAccountRoleArn"):
        role(
            arn,
            "sts:AssumeRoleWithWebIdentity",
            "CreateAddon",
            "Role {arn} does not exist or does not trust web identities",
            "Addon {arn} is in CREATE_FAILED state because its role is not usable yet",
        )


def create(account: Account, params: Body) -> Body:
    cluster, name = account.active(params["clusterName"]), params["addonName"]
    if name in cluster.addons.items:
        raise Refused("ResourceInUseException", f"Addon {name} already exists", 409)
    version = _version(cluster, name, params.get("addonVersion"))
    _checked(params)
    body = {
        "addonName": name,
        "clusterName": cluster.body["name"],
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": account.arn("addon", cluster.body["name"], name, number()),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": params.get("tags", {}),
        **{k: params[k] for k in ("serviceAccountRoleArn", "configurationValues") if params.get(k)},
        "podIdentityAssociations": _associate(account, cluster, params, name),
    }
    if params.get("resolveConflicts") == "PRESERVE":  # message: eksctl-io/eksctl#5880
        raise Refused("InvalidParameterException", "Resolve conflicts option preserve is not supported for operation CreateAddon")
    item = Item(body)
    cluster.addons.items[name] = item
    fault = JOURNAL.fault("create_failed", "CreateAddon")
    issue = fault.detail if fault else _conflict(cluster, name, params)

    def failed() -> None:
        if issue:
            body["health"] = {"issues": [issue]}
        else:
            cluster.self_managed.discard(name)
            _weigh(cluster, item)

    item.start("CREATING", "CREATE_FAILED" if issue else "ACTIVE", failed)
    return {"addon": show(item)}


def _conflict(cluster: Cluster, name: str, params: Body) -> Body:
    """Without being told to overwrite, EKS does not take over what is there by itself: "creation of the add-on might fail"
    (CreateAddonRequest.resolveConflicts in botocore 1.44.5), and does here."""
    if name not in cluster.self_managed or params.get("resolveConflicts") == "OVERWRITE":
        return {}
    message = (
        "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. Conflicts:\n"
        f"DaemonSet.apps {name} - .spec.template.spec.containers"
    )
    return {"code": "ConfigurationConflict", "message": message, "resourceIds": []}


# Those with a Deployment, whose pods need a node; the others have one pod on each node there is.
NEED_NODES = ("coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver", "metrics-server")
NO_REPLICAS = {
    "code": "InsufficientNumberOfReplicas",
    "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
    "resourceIds": [],
}


def _weigh(cluster: Cluster, item: Item) -> None:
    """Without nodes such an add-on is degraded, until there are some (terraform-aws-modules/terraform-aws-eks#3001; message:
    aws/containers-roadmap#2328)."""
    if item.status not in ("ACTIVE", "DEGRADED") or item.body["addonName"] not in NEED_NODES:
        return
    there = any(group.body.get("__nodes") for group in cluster.nodegroups.items.values()) or cluster.provides_nodes
    item.body["status"] = "ACTIVE" if there else "DEGRADED"
    item.body["health"] = {"issues": [] if there else [NO_REPLICAS]}


def _associate(account: Account, cluster: Cluster, params: Body, addon: str) -> list[str]:
    """Pod identities that an add-on asks for belong to it and go with it."""
    owner = account.arn("addon", cluster.body["name"], addon)
    rows = [associate(account, cluster, row, ownerArn=owner) for row in params.get("podIdentityAssociations") or []]
    return [row["associationArn"] for row in rows]


def _dissociate(cluster: Cluster, item: Item) -> None:
    for arn in item.body["podIdentityAssociations"]:
        cluster.associations.pop(arn.rsplit("/", 1)[-1], None)


def describe(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    _find(cluster, params["addonName"]).look()
    item = _find(cluster, params["addonName"])
    _weigh(cluster, item)
    return {"addon": show(item)}


def names(account: Account, params: Body) -> Body:
    return {"addons": list(account.cluster(params["clusterName"]).addons.items)}


def change(account: Account, params: Body) -> Body:
    cluster = account.active(params["clusterName"])
    item = _find(cluster, params["addonName"])
    if item.status in ("CREATING", "UPDATING", "DELETING"):
        raise Refused("ResourceInUseException", f"Addon {params['addonName']} is {item.status}", 409)
    version = _version(cluster, params["addonName"], params.get("addonVersion", item.body["addonVersion"]))
    _checked(params)
    after = {"addonVersion": version}
    if "configurationValues" in params:
        after["configurationValues"] = params["configurationValues"]
    # Without it the add-on gets the permissions of the nodes (UpdateAddonRequest.serviceAccountRoleArn in botocore 1.44.5), as after its
    # creation; other parameters that are left out stay as they are.
    after["serviceAccountRoleArn"] = params.get("serviceAccountRoleArn")
    if "podIdentityAssociations" in params:
        _dissociate(cluster, item)
        after["podIdentityAssociations"] = _associate(account, cluster, params, params["addonName"])

    def change_it() -> None:
        item.body.update(after | {"status": "ACTIVE", "health": {"issues": []}})
        if not after["serviceAccountRoleArn"]:
            del item.body["serviceAccountRoleArn"]

    return update(cluster, item, "AddonUpdate", change_it, broken="UPDATE_FAILED")


def delete(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    item, name = _find(cluster, params["addonName"]), params["addonName"]

    def over() -> None:
        """What is in the cluster goes, too, also what the add-on has not made (awslabs/cdk-eks-blueprints#366); not with preserve."""
        _dissociate(cluster, item)
        if not params.get("preserve"):
            cluster.self_managed.discard(name)

    cluster.addons.remove_later(name, over)
    return {"addon": show(item)}


def versions(_account: Account, params: Body) -> Body:
    chosen = [params["addonName"]] if "addonName" in params else list(CATALOGUE)
    desired = params.get("kubernetesVersion")
    rows = []
    for name in chosen:
        fitting = [
            {
                "addonVersion": version,
                "compatibilities": [
                    {"clusterVersion": v, "platformVersions": ["*"], "defaultVersion": version == CATALOGUE[name][0][0]}
                    for v in fits
                    if desired in (None, v)
                ],
            }
            for version, fits in CATALOGUE.get(name, [])
            if desired is None or desired in fits
        ]
        if fitting:
            if not any(c["defaultVersion"] for row in fitting for c in row["compatibilities"]):
                for compatibility in fitting[0]["compatibilities"]:
                    compatibility["defaultVersion"] = True
            rows.append({"addonName": name, "addonVersions": fitting})
    if "addonName" in params and not rows:
        raise Refused("InvalidParameterException", f"Addon {params['addonName']} is not supported for this Kubernetes version")
    return {"addons": rows}


OPERATIONS: dict[str, Handler] = {
    "CreateAddon": create,
    "DescribeAddon": describe,
    "ListAddons": names,
    "UpdateAddon": change,
    "DeleteAddon": delete,
    "DescribeAddonVersions": versions,
}
