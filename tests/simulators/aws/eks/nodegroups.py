# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed node groups: changed in place where EKS can, never otherwise."""

from __future__ import annotations

from ..api import Refused
from ..journal import JOURNAL
from ..state import Body, Item, needs_policies, now, number, plug, role, subnets, unplug
from .account import VERSIONS, Account, Cluster, Handler, missing, show, update

NODE_POLICIES = ["AmazonEKSWorkerNodePolicy"]
RELEASE = "20261101"  # part of the release version of an image; a newer one is on offer after `release` was injected


def _find(cluster: Cluster, name: str) -> Item:
    found = cluster.nodegroups.get(name)
    return found or missing(f"No node group found for name: {name}.")


def _ready(cluster: Cluster, name: str) -> Item:
    found = _find(cluster, name)
    if found.status not in ("ACTIVE", "DEGRADED"):
        raise Refused(
            "ResourceInUseException", f"Nodegroup cannot be updated as it is currently not in Active State: {name}", 409
        )
    return found


def create(account: Account, params: Body) -> Body:
    cluster, name = account.active(params["clusterName"]), params["nodegroupName"]
    if name in cluster.nodegroups.items:
        raise Refused(
            "ResourceInUseException",
            f"NodeGroup already exists with name {name} and cluster name {cluster.body['name']}",
            409,
        )
    if params.get("version", cluster.body["version"]) != cluster.body["version"]:
        raise Refused(
            "InvalidParameterException", f"Requested Nodegroup version {params['version']} is not that of the cluster"
        )
    pending_reason = "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole {arn}"
    needs_policies(role(params["nodeRole"], "ec2.amazonaws.com", "CreateNodegroup", pending_reason), NODE_POLICIES)
    places = subnets(account.region, params["subnets"])
    if any(s.vpc_id != cluster.body["resourcesVpcConfig"]["vpcId"] for s in places):
        raise Refused("InvalidParameterException", "Subnets are not of the cluster's VPC")
    _consistent(params)
    item = Item(_body(account, cluster, params))
    cluster.nodegroups.items[name] = item
    item.body["__interfaces"] = [plug(account.region, places[0], _groups(cluster), f"node of {name}")]
    _admit_nodes(account, cluster, params["nodeRole"])
    fault = JOURNAL.fault("create_failed", "CreateNodegroup")
    item.start("CREATING", "CREATE_FAILED" if fault else "ACTIVE", lambda: _fail(item, fault.detail) if fault else None)
    return {"nodegroup": _show(item)}


def _groups(cluster: Cluster) -> list[str]:
    return [cluster.body["resourcesVpcConfig"]["clusterSecurityGroupId"]]


def _admit_nodes(account: Account, cluster: Cluster, principal: str) -> None:
    """EKS makes the access entry of managed nodes itself (user guide, "Create access entries")."""
    if cluster.body["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        return
    cluster.entries.setdefault(
        principal,
        {
            "clusterName": cluster.body["name"],
            "principalArn": principal,
            "kubernetesGroups": ["system:nodes"],
            "accessEntryArn": account.arn("access-entry", cluster.body["name"], "role", number()),
            "createdAt": now(),
            "modifiedAt": now(),
            "tags": {},
            "username": "system:node:{{EC2PrivateDNSName}}",
            "type": "EC2_LINUX",
        },
    )


def _fail(item: Item, detail: Body) -> None:
    item.body["health"]["issues"] = [detail]


def _consistent(params: Body) -> None:
    scaling = params.get("scalingConfig", {})
    low, desired, high = (scaling.get(k) for k in ("minSize", "desiredSize", "maxSize"))
    if None not in (low, desired, high) and not low <= desired <= high:
        raise Refused("InvalidParameterException", f"desired capacity {desired} is not between {low} and {high}")
    if params.get("launchTemplate") and any(params.get(k) for k in ("diskSize", "remoteAccess")):
        raise Refused(
            "InvalidParameterException", "Disk size and remote access must be specified within the launch template"
        )
    update_config = params.get("updateConfig", {})
    if "maxUnavailable" in update_config and "maxUnavailablePercentage" in update_config:
        raise Refused("InvalidParameterException", "maxUnavailable and maxUnavailablePercentage exclude each other")


def _body(account: Account, cluster: Cluster, params: Body) -> Body:
    name, version = params["nodegroupName"], cluster.body["version"]
    given = {k: params[k] for k in ("launchTemplate", "remoteAccess", "diskSize") if k in params}
    templated = "launchTemplate" in params
    return {
        "nodegroupName": name,
        "nodegroupArn": account.arn("nodegroup", cluster.body["name"], name, number()),
        "clusterName": cluster.body["name"],
        "version": version,
        "releaseVersion": params.get("releaseVersion", f"{version}.0-{RELEASE}"),
        "createdAt": now(),
        "modifiedAt": now(),
        "capacityType": params.get("capacityType", "ON_DEMAND"),
        "scalingConfig": params.get("scalingConfig", {"minSize": 1, "maxSize": 2, "desiredSize": 2}),
        **({} if templated else {"instanceTypes": ["t3.medium"], "diskSize": 20}),
        **{k: params[k] for k in ("instanceTypes",) if k in params},
        "subnets": params["subnets"],
        "amiType": params.get("amiType", "CUSTOM" if templated else "AL2023_x86_64_STANDARD"),
        "nodeRole": params["nodeRole"],
        "labels": params.get("labels", {}),
        "taints": [{"value": "", **taint} for taint in params.get("taints", [])],
        "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{number()}"}]},
        "health": {"issues": []},
        "updateConfig": params.get("updateConfig", {"maxUnavailable": 1}),
        "nodeRepairConfig": params.get("nodeRepairConfig", {"enabled": False}),
        "tags": params.get("tags", {}),
        **given,
    }


def _show(item: Item) -> Body:
    return {key: value for key, value in show(item).items() if not key.startswith("__")}


def describe(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    _find(cluster, params["nodegroupName"]).look()
    return {"nodegroup": _show(_find(cluster, params["nodegroupName"]))}


def names(account: Account, params: Body) -> Body:
    return {"nodegroups": list(account.cluster(params["clusterName"]).nodegroups.items)}


def update_config(account: Account, params: Body) -> Body:
    cluster = account.active(params["clusterName"])
    item = _ready(cluster, params["nodegroupName"])
    after = _configured(show(item), params)
    _consistent(after)
    if after == show(item):
        raise Refused("InvalidParameterException", "No changes needed for the nodegroup")
    return update(cluster, item, "ConfigUpdate", lambda: item.body.update(after | {"status": "ACTIVE"}))


def _configured(body: Body, params: Body) -> Body:
    labels, taints = params.get("labels", {}), params.get("taints", {})
    body["labels"] |= labels.get("addOrUpdateLabels", {})
    for key in labels.get("removeLabels", []):
        body["labels"].pop(key, None)

    def identity(taint: Body) -> tuple[str, str]:
        return taint["key"], taint["effect"]

    kept = {identity(t): t for t in body["taints"]}
    for taint in taints.get("removeTaints", []):
        if kept.get(identity(taint)) != taint:
            raise Refused("InvalidParameterException", f"Taint {taint} is not on the nodegroup")
        del kept[identity(taint)]
    kept |= {identity(t): t for t in taints.get("addOrUpdateTaints", [])}
    body["taints"] = list(kept.values())
    body["scalingConfig"] |= params.get("scalingConfig", {})
    for whole in ("updateConfig", "nodeRepairConfig"):
        body[whole] = params.get(whole, body[whole])
    return body


def update_version(account: Account, params: Body) -> Body:
    cluster = account.active(params["clusterName"])
    item = _ready(cluster, params["nodegroupName"])
    if template := params.get("launchTemplate"):
        return update(cluster, item, "ConfigUpdate", lambda: item.body.update(launchTemplate=_template(item, template)))
    desired = params.get("version", item.body["version"])
    if VERSIONS.index(desired) > VERSIONS.index(cluster.body["version"]):
        raise Refused(
            "InvalidParameterException",
            f"Nodegroup version {desired} is newer than the cluster's {cluster.body['version']}",
        )
    if VERSIONS.index(desired) < VERSIONS.index(item.body["version"]):
        raise Refused("InvalidParameterException", "Nodegroup version cannot be rolled back")
    release = params.get("releaseVersion", f"{desired}.0-{RELEASE}")
    return update(cluster, item, "VersionUpdate", lambda: item.body.update(version=desired, releaseVersion=release))


def _template(item: Item, desired: Body) -> Body:
    """The same template, another version: "the launch template ID or name must match"."""
    before: Body | None = item.body.get("launchTemplate")
    if not before:
        raise Refused("InvalidParameterException", "The nodegroup was not deployed with a launch template")
    for key in ("id", "name"):
        if key in desired and key in before and desired[key] != before[key]:
            raise Refused("InvalidParameterException", "Launch template id or name does not match")
    return {**before, **desired}


def delete(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    item = _find(cluster, params["nodegroupName"])
    interfaces = item.body["__interfaces"]
    cluster.nodegroups.remove_later(params["nodegroupName"], lambda: unplug(account.region, interfaces))
    return {"nodegroup": _show(item)}


OPERATIONS: dict[str, Handler] = {
    "CreateNodegroup": create,
    "DescribeNodegroup": describe,
    "ListNodegroups": names,
    "UpdateNodegroupConfig": update_config,
    "UpdateNodegroupVersion": update_version,
    "DeleteNodegroup": delete,
}
