# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed node groups: changed in place where EKS can, never otherwise.

Where the launch template has an image (amiType CUSTOM), version, release and any other AMI type are refused: CreateNodegroupRequest and
UpdateNodegroupVersionRequest in botocore 1.44.5; messages: terraform-aws-modules/terraform-aws-eks#3459 (creation), eksctl-io/eksctl#5748
and #5999 (version), pulumi/pulumi-aws-native#1747 (release), aws-samples/eks-cluster-upgrade#123 (no template; the release is the image).
"""

import re

from ..api import Refused
from ..journal import JOURNAL
from ..state import SETTINGS, Body, Item, needs_policies, now, number, plug, role, subnets, unplug
from . import images, nodes
from .account import VERSIONS, Account, Cluster, Handler, admit, missing, show, update
from .account import account as account_of

NODE_POLICIES = ["AmazonEKSWorkerNodePolicy"]
# What EKS says of a label (message: aws-controllers-k8s/community#2208), and of one of its own (eksctl-io/eksctl#4007).
NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
UNFIT_NAME = (
    "Invalid value: {0} : field must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + NAME + "')"
)
RESERVED = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")


def _refuse_words(labels: dict[str, str], taints: list[Body]) -> None:
    """Labels and taints that are none of Kubernetes, and labels with a reserved prefix."""
    for word in (*labels.values(), *(key.rpartition("/")[2] for key in (*labels, *(taint["key"] for taint in taints)))):
        if not re.fullmatch(NAME, word):
            raise Refused("InvalidParameterException", UNFIT_NAME.format(word))
    if any(prefix in key for key in labels for prefix in RESERVED):
        raise Refused("InvalidParameterException", f"Label cannot contain reserved prefixes [{', '.join(RESERVED)}]")


def _find(cluster: Cluster, name: str) -> Item:
    found = cluster.nodegroups.get(name)
    return found or missing(f"No node group found for name: {name}.")


def _ready(cluster: Cluster, name: str) -> Item:
    found = _find(cluster, name)
    if found.status not in ("ACTIVE", "DEGRADED"):
        raise Refused("ResourceInUseException", f"Nodegroup cannot be updated as it is currently not in Active State: {name}", 409)
    return found


def create(account: Account, params: Body) -> Body:
    cluster, name = account.active(params["clusterName"]), params["nodegroupName"]
    if name in cluster.nodegroups.items:
        raise Refused("ResourceInUseException", f"NodeGroup already exists with name {name} and cluster name {cluster.body['name']}", 409)
    if params.get("version", cluster.body["version"]) != cluster.body["version"]:
        raise Refused("InvalidParameterException", f"Requested Nodegroup version {params['version']} is not that of the cluster")
    pending_reason = "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole {arn}"
    needs_policies(role(params["nodeRole"], "ec2.amazonaws.com", "CreateNodegroup", pending_reason), NODE_POLICIES)
    places = subnets(account.region, params["subnets"])
    if any(s.vpc_id != cluster.body["resourcesVpcConfig"]["vpcId"] for s in places):
        raise Refused("InvalidParameterException", "Subnets are not of the cluster's VPC")
    _consistent(params)
    _refuse_words(params.get("labels", {}), params.get("taints", []))
    chosen, data = nodes.template(account.region, params["launchTemplate"]) if "launchTemplate" in params else ({}, {})
    if data.get("InstanceType") and params.get("instanceTypes"):
        raise Refused("InvalidParameterException", "Cannot specify instance types in launch template and API request")
    _refuse_versions(params, data)
    item = Item(_body(account, cluster, params, chosen, data))
    cluster.nodegroups.items[name] = item
    item.body["__interfaces"] = [plug(account.region, places[0], _groups(cluster), f"node of {name}")]
    item.body["__data"], item.body["__subnet"] = data, places[0].id
    _admit_nodes(account, cluster, params["nodeRole"])
    fault = JOURNAL.fault("create_failed", "CreateNodegroup")
    issue = fault.detail if fault else _beyond_quota(item.body)

    def over() -> None:
        if issue:
            item.body["health"]["issues"] = [issue]
        else:
            _replace_nodes(account, item)

    item.start("CREATING", "CREATE_FAILED" if issue else "ACTIVE", over)
    return {"nodegroup": _show(item)}


def _beyond_quota(body: Body) -> Body:
    """A new account may start no instance of the families G and VT (klothoplatform/klotho#311, with the message; on spot
    aws-deepracer-community/deepracer-on-the-spot#55 and NixOS/nixops-aws#41)."""
    wanted = body["scalingConfig"].get("desiredSize", 0)
    if not wanted or not any(kind.startswith(("g", "vt")) for kind in body.get("instanceTypes", [])) or SETTINGS.quotas["gpus"]:
        return {}
    reason = "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded"
    if body["capacityType"] == "ON_DEMAND":
        reason = (
            "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit "
            "of 0 allows for the instance bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit"
        )
    name = body["resources"]["autoScalingGroups"][0]["name"]
    return {"code": "AsgInstanceLaunchFailures", "message": f"{reason}. Launching EC2 instance failed.", "resourceIds": [name]}


def _replace_nodes(account: Account, item: Item) -> None:
    """Nodes keep what they were started with, so every other version, image or template means other nodes."""
    nodes.stop(account.region, item.body.get("__nodes", []))
    item.body["__nodes"] = nodes.start(account.region, item.body, item.body["__data"], item.body["__subnet"])


def _groups(cluster: Cluster) -> list[str]:
    return [cluster.body["resourcesVpcConfig"]["clusterSecurityGroupId"]]


def _admit_nodes(account: Account, cluster: Cluster, principal: str) -> None:
    """EKS makes the access entry of managed nodes itself (user guide, "Create access entries")."""
    if cluster.body["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        return
    groups, user = ["system:nodes"], "system:node:{{EC2PrivateDNSName}}"
    admit(account, cluster, principal, kubernetesGroups=groups, username=user, type="EC2_LINUX")


def _consistent(params: Body) -> None:
    scaling = params.get("scalingConfig", {})
    low, desired, high = (scaling.get(k) for k in ("minSize", "desiredSize", "maxSize"))
    if None not in (low, desired, high) and not low <= desired <= high:
        raise Refused("InvalidParameterException", f"desired capacity {desired} is not between {low} and {high}")
    if params.get("launchTemplate") and any(params.get(k) for k in ("diskSize", "remoteAccess")):
        raise Refused("InvalidParameterException", "Disk size and remote access must be specified within the launch template")
    update_config = params.get("updateConfig", {})
    if high is not None and update_config.get("maxUnavailable", 1) > high:  # hashicorp/terraform-provider-aws#26535
        text = "max-unavailable must be within the range 1 and max size of the node group"
        raise Refused("InvalidParameterException", text)
    if "maxUnavailable" in update_config and "maxUnavailablePercentage" in update_config:
        raise Refused("InvalidParameterException", "maxUnavailable and maxUnavailablePercentage exclude each other")


def _refuse_versions(params: Body, data: Body) -> None:
    if not data.get("ImageId"):
        if params.get("amiType") == "CUSTOM":
            text = "AMI Type CUSTOM needs a launch template with an image id"  # assumed: the wording
            raise Refused("InvalidParameterException", text)
        return
    beside = "when specifying an image id"
    if params.get("amiType", "CUSTOM") != "CUSTOM":
        text = f"You cannot specify an AMI Type other than CUSTOM, {beside} in your Launch template"
        raise Refused("InvalidParameterException", text)
    for name, words in (("version", "a kubernetes version"), ("releaseVersion", "a release version")):  # assumed: the second
        if name in params:
            raise Refused("InvalidParameterException", f"You cannot specify {words} to use {beside} to use within the launch template.")


def _body(account: Account, cluster: Cluster, params: Body, chosen: Body, data: Body) -> Body:
    name, version = params["nodegroupName"], cluster.body["version"]
    given = {k: params[k] for k in ("remoteAccess", "diskSize") if k in params}
    templated = bool(chosen)
    return {
        "nodegroupName": name,
        "nodegroupArn": account.arn("nodegroup", cluster.body["name"], name, number()),
        "clusterName": cluster.body["name"],
        "version": version,
        "releaseVersion": data.get("ImageId") or images.chosen(version, params.get("releaseVersion")),
        "createdAt": now(),
        "modifiedAt": now(),
        "capacityType": params.get("capacityType", "ON_DEMAND"),
        "scalingConfig": params.get("scalingConfig", {"minSize": 1, "maxSize": 2, "desiredSize": 2}),
        # With a template the disk is the template's, and not shown here (CreateNodegroupRequest.diskSize, .instanceTypes).
        **({"launchTemplate": chosen} if templated else {"diskSize": 20}),
        **({} if data.get("InstanceType") else {"instanceTypes": ["t3.medium"]}),
        **{k: params[k] for k in ("instanceTypes",) if k in params},
        "subnets": params["subnets"],
        "amiType": params.get("amiType", "CUSTOM" if data.get("ImageId") else "AL2023_x86_64_STANDARD"),
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
    _refuse_words(after["labels"], after["taints"])
    if after == show(item):
        raise Refused("InvalidParameterException", "No changes needed for the nodegroup")
    resized = after["scalingConfig"].get("desiredSize") != item.body["scalingConfig"].get("desiredSize")

    def change() -> None:
        item.body.update(after | {"status": "ACTIVE"})
        if resized:
            _replace_nodes(account, item)

    return update(cluster, item, "ConfigUpdate", change)


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
    """Without a version the nodes get that of the cluster, whatever else is asked for (UpdateNodegroupVersionRequest.version)."""
    cluster = account.active(params["clusterName"])
    item = _ready(cluster, params["nodegroupName"])
    after = _templated(account, item, params["launchTemplate"]) if "launchTemplate" in params else {}
    image = after["__data"].get("ImageId") if after else item.body["__data"].get("ImageId")
    if image:
        _refuse_versions_of_image(params)
    desired = params.get("version", cluster.body["version"])
    if VERSIONS.index(desired) > VERSIONS.index(cluster.body["version"]):
        raise Refused("InvalidParameterException", f"Nodegroup version {desired} is newer than the cluster's {cluster.body['version']}")
    if VERSIONS.index(desired) < VERSIONS.index(item.body["version"]):
        raise Refused("InvalidParameterException", "Nodegroup version cannot be rolled back")
    release = image or images.chosen(desired, params.get("releaseVersion"))
    after |= {"version": desired, "releaseVersion": release}

    def change() -> None:
        item.body.update(after)
        _replace_nodes(account, item)

    return update(cluster, item, "VersionUpdate", change)


def _refuse_versions_of_image(params: Body) -> None:
    for name, field in (("version", "kubernetesVersion"), ("releaseVersion", "releaseVersion")):
        if name in params:
            text = f"You cannot specify the field {field} when using custom AMIs."
            raise Refused("InvalidParameterException", text)
    if "launchTemplate" not in params:
        text = "Launch template details can't be null for Custom ami type node group"
        raise Refused("InvalidParameterException", text)


def _templated(account: Account, item: Item, desired: Body) -> Body:
    """The same template, another version (UpdateNodegroupVersionRequest.launchTemplate)."""
    before: Body | None = item.body.get("launchTemplate")
    if not before:
        raise Refused(
            "InvalidParameterException", "You cannot specify a launch template for a nodegroup that was not created with a launch template"
        )
    chosen, data = nodes.template(account.region, desired)
    if chosen["id"] != before["id"]:
        raise Refused("InvalidParameterException", "Launch template id or name does not match")
    return {"launchTemplate": chosen, "__data": data}


def _leave_interface(account: Account, cluster: Cluster, item: Item) -> None:
    """A node that ends while vpc-cni gives an interface back leaves it detached.

    Sources: github.com/aws/amazon-vpc-cni-k8s, issues 608 and 1223; its tags: pull requests 624 and 2854. On AWS it happens to some nodes,
    here to one of every group.
    """
    for node in item.body.get("__nodes", [])[:1]:
        tags = {
            "node.k8s.amazonaws.com/instance_id": node,
            "cluster.k8s.amazonaws.com/name": cluster.body["name"],
            "eks:eni:owner": "amazon-vpc-cni",
        }
        place = subnets(account.region, [item.body["__subnet"]])[0]
        plug(account.region, place, _groups(cluster), f"aws-K8S-{node}", tags)


def hang(region: str, vpc: str) -> None:
    """A file system of a VPC has lost its last mount target: whatever has mounted it there waits for ever.

    Their pods do not end then (kubernetes/kubernetes#72048; rook/rook#6327), so neither does the drain of their nodes. That EKS gives the
    deletion up with this issue is assumed; on AWS it may only take very long.
    """
    for cluster in account_of(region).clusters.values():
        if cluster.body["resourcesVpcConfig"]["vpcId"] == vpc:
            for item in cluster.nodegroups.items.values():
                item.body["__hangs"] = bool(item.body.get("__nodes"))


def delete(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["clusterName"])
    item = _find(cluster, params["nodegroupName"])
    interfaces = item.body["__interfaces"]
    if item.body.get("__hangs"):
        issue = {"code": "PodEvictionFailure", "message": "Reached max retries while trying to evict pods from nodes",
                 "resourceIds": item.body["__nodes"]}  # fmt: skip
        item.start("DELETING", "DELETE_FAILED", lambda: item.body["health"]["issues"].append(issue))
        return {"nodegroup": _show(item)}

    def over() -> None:
        _leave_interface(account, cluster, item)
        nodes.stop(account.region, item.body.get("__nodes", []))
        unplug(account.region, interfaces)

    cluster.nodegroups.remove_later(params["nodegroupName"], over)
    return {"nodegroup": _show(item)}


OPERATIONS: dict[str, Handler] = {
    "CreateNodegroup": create,
    "DescribeNodegroup": describe,
    "ListNodegroups": names,
    "UpdateNodegroupConfig": update_config,
    "UpdateNodegroupVersion": update_version,
    "DeleteNodegroup": delete,
}
