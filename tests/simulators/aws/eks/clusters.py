# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters: made, changed one thing at a time, upgraded one version at a time, deleted when nothing hangs on them."""

import datetime as dt
from contextlib import suppress
from typing import Any

from moto.backends import get_backend
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from ..api import Refused
from ..state import ACCOUNT, GONE, SETTINGS, Body, ec2, needs_policies, now, number, plug, role, subnets, unplug
from . import doors
from .account import SELF_MANAGED, VERSIONS, Account, Cluster, Handler, admit, missing, show, update

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
UNSUPPORTED_ZONES = ("use1-az3", "usw1-az2", "cac1-az3")
MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
ROLE_UNSEEN = (
    "roleArn, {arn}, does not exist",
    "Error in role params",
    "Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct",
    "Role could not be assumed because the trusted entity is not correct",
    "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policy is attached: "
    "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy",
    "IAM role's policy must include the `ec2:DescribeSubnets` action",
)


def create(account: Account, params: Body) -> Body:
    name = params["name"]
    if name in account.clusters:
        raise Refused("ResourceInUseException", f"Cluster already exists with name: {name}", 409)
    version = params.get("version", VERSIONS[-1])
    if version not in VERSIONS:
        raise Refused("InvalidParameterException", f"unsupported Kubernetes version {version}")
    found = role(params["roleArn"], "eks.amazonaws.com", "CreateCluster", *ROLE_UNSEEN)
    needs_policies(found, ["AmazonEKSClusterPolicy"])
    _refuse_half_auto_mode(params)
    cluster = Cluster(_body(account, params, version))
    cluster.self_managed = set(SELF_MANAGED) if params.get("bootstrapSelfManagedAddons", True) else set()
    network(account, cluster, params["resourcesVpcConfig"])
    access = cluster.body["accessConfig"]
    if params.get("accessConfig", {}).get("bootstrapClusterCreatorAdminPermissions", True):
        _admit_creator(account, cluster)
    access.pop("bootstrapClusterCreatorAdminPermissions", None)
    account.clusters[name] = cluster
    _keep_logs(account, cluster)
    cluster.start("CREATING", "ACTIVE")
    shown = show(cluster)
    for later in ("endpoint", "certificateAuthority", "identity"):  # known only when the cluster is active
        shown.pop(later)
    return {"cluster": shown}


def _refuse_half_auto_mode(params: Body) -> None:
    """Compute, storage and load balancing of Auto Mode go together, and without self-managed add-ons (EKS user guide, "Create an EKS Auto
    Mode cluster"; message assumed)."""
    parts = (
        params.get("computeConfig", {}).get("enabled", False),
        params.get("storageConfig", {}).get("blockStorage", {}).get("enabled", False),
        params.get("kubernetesNetworkConfig", {}).get("elasticLoadBalancing", {}).get("enabled", False),
    )
    if any(parts) and (not all(parts) or params.get("bootstrapSelfManagedAddons", True)):
        raise Refused(
            "InvalidParameterException",
            "For EKS Auto Mode, compute, block storage and elastic load balancing must all be enabled, and self-managed add-ons disabled",
        )


def _body(account: Account, params: Body, version: str) -> Body:
    issuer = f"https://oidc.eks.{account.region}.amazonaws.com/id/{number().upper():0>32}"
    services = params.get("kubernetesNetworkConfig", {}).get("serviceIpv4Cidr", "10.100.0.0/16")
    return {
        "name": params["name"],
        "arn": account.arn("cluster", params["name"]),
        "createdAt": now(),
        "version": version,
        "endpoint": SETTINGS.endpoint,
        "roleArn": params["roleArn"],
        "kubernetesNetworkConfig": {**params.get("kubernetesNetworkConfig", {}), "serviceIpv4Cidr": services, "ipFamily": "ipv4"},
        **{key: params[key] for key in ("computeConfig", "storageConfig") if key in params},
        "logging": {"clusterLogging": logging(params.get("logging", {}))},
        "identity": {"oidc": {"issuer": issuer}},
        "certificateAuthority": {"data": SETTINGS.certificate_authority},
        "platformVersion": "eks.1",
        "tags": params.get("tags", {}),
        "encryptionConfig": _with_keys(account, params.get("encryptionConfig", [])),
        "health": {"issues": []},
        # CONFIG_MAP is what the API does without being asked (AccessConfig: the console's default differs).
        "accessConfig": {"authenticationMode": "CONFIG_MAP", **params.get("accessConfig", {})},
        "upgradePolicy": params.get("upgradePolicy", {"supportType": "EXTENDED"}),
        "deletionProtection": params.get("deletionProtection", False),
    }


def logging(desired: Body) -> list[Body]:
    """Log types in the two lists that EKS answers with: enabled and not."""
    on = {t for row in desired.get("clusterLogging", []) if row.get("enabled") for t in row.get("types", [])}
    rows = [{"types": [t for t in LOG_TYPES if t in on], "enabled": True}]
    rows.append({"types": [t for t in LOG_TYPES if t not in on], "enabled": False})
    return [row for row in rows if row["types"]]


def _keep_logs(account: Account, cluster: Cluster) -> None:
    """Logs go to a group of this name, which EKS makes where it has to, and never deletes (EKS user guide, "Send control plane logs to
    CloudWatch Logs")."""
    backend, name = get_backend("logs")[ACCOUNT][account.region], f"/aws/eks/{cluster.body['name']}/cluster"
    if any(row["enabled"] for row in cluster.body["logging"]["clusterLogging"]) and name not in backend.groups:
        backend.create_log_group(name, {})


def network(account: Account, cluster: Cluster, desired: Body) -> None:
    """Interfaces in at least two zones, and a security group that EKS makes and takes away again."""
    found = subnets(account.region, desired["subnetIds"])
    _refuse_unsupported_zones(account, cluster, found)
    if len({s.availability_zone for s in found}) < 2:
        raise Refused("InvalidParameterException", "Subnets specified must be in at least two different AZs")
    vpc = found[0].vpc_id
    if any(s.vpc_id != vpc for s in found):
        raise Refused("InvalidParameterException", "Subnets specified must be in the same VPC")
    before = cluster.body.get("resourcesVpcConfig", {})
    if before and before["vpcId"] != vpc:
        raise Refused("InvalidParameterException", "Provided subnets belong to a different VPC than the cluster")
    group = before.get("clusterSecurityGroupId") or _security_group(account, cluster, vpc)
    groups = desired.get("securityGroupIds", before.get("securityGroupIds", []))
    unplug(account.region, cluster.interfaces)
    description = f"Amazon EKS {cluster.body['name']}"
    cluster.interfaces = [plug(account.region, s, [group, *groups], description) for s in found]
    cluster.body["resourcesVpcConfig"] = {
        "subnetIds": desired["subnetIds"],
        "securityGroupIds": groups,
        "clusterSecurityGroupId": group,
        "vpcId": vpc,
        **_endpoint(desired, before),
    }


def _refuse_unsupported_zones(account: Account, cluster: Cluster, found: list[Any]) -> None:
    """EKS has no control plane in these zones (EKS user guide, "Amazon EKS networking requirements for VPC and subnets"; message:
    github.com/eksctl-io/eksctl/issues/817)."""
    unfit = [s for s in found if s.availability_zone_id in UNSUPPORTED_ZONES]
    if unfit:
        zones = RegionsAndZonesBackend.zones[account.region]
        fit = ", ".join(sorted(str(z.name) for z in zones if z.zone_id not in UNSUPPORTED_ZONES))
        raise Refused(
            "UnsupportedAvailabilityZoneException",
            f"Cannot create cluster '{cluster.body['name']}' because {unfit[0].availability_zone}, the targeted availability "
            "zone, does not currently have sufficient capacity to support the cluster. Retry and choose from these "
            f"availability zones: {fit}",
        )


def _endpoint(desired: Body, before: Body) -> Body:
    """Who may reach the API server; public for everybody is what EKS does without being asked."""
    asked = {**before, **desired}
    public = asked.get("endpointPublicAccess", True)
    private = asked.get("endpointPrivateAccess", False)
    if not public and not private:
        raise Refused("InvalidParameterException", "Private and public endpoint access cannot be false")
    cidrs = doors.public_ranges(asked.get("publicAccessCidrs") or ["0.0.0.0/0"])
    return {"endpointPublicAccess": public, "endpointPrivateAccess": private, "publicAccessCidrs": cidrs if public else []}


def _security_group(account: Account, cluster: Cluster, vpc: str) -> str:
    name = cluster.body["name"]
    group = ec2(account.region).create_security_group(
        f"eks-cluster-sg-{name}-{number()[-9:]}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes",
        vpc_id=vpc,
        tags={"aws:eks:cluster-name": name, f"kubernetes.io/cluster/{name}": "owned"},
    )
    return str(group.id)


def _admit_creator(account: Account, cluster: Cluster) -> None:
    principal = f"arn:aws:iam::{ACCOUNT}:root"
    admit(account, cluster, principal, username=principal)
    scope = {"type": "cluster", "namespaces": []}
    cluster.policies[principal] = {ADMIN: {"policyArn": ADMIN, "accessScope": scope, "associatedAt": now()}}


def describe(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["name"])
    cluster.look()
    shown = show(account.cluster(params["name"]))
    if not doors.reachable(account, cluster):
        # On AWS the name is always the same and leads nowhere for this caller. Here a name that cannot be resolved stands for it.
        shown["endpoint"] = f"https://{cluster.body['name'].upper()}.gr7.{account.region}.eks.amazonaws.com"
    return {"cluster": shown}


def names(account: Account, _params: Body) -> Body:
    return {"clusters": list(account.clusters)}


def delete(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["name"])
    if cluster.body["deletionProtection"]:
        raise Refused("InvalidRequestException", "Cannot delete the cluster: deletion protection is enabled")
    if cluster.nodegroups.items:
        raise Refused("ResourceInUseException", "Cluster has nodegroups attached", 409)

    def over() -> None:
        unplug(account.region, cluster.interfaces)
        # EKS leaves its group behind where something else is in it (github.com/aws/aws-k8s-tester/pull/416).
        with suppress(DependencyViolationError):
            ec2(account.region).delete_security_group(group_id=cluster.body["resourcesVpcConfig"]["clusterSecurityGroupId"])
        del account.clusters[params["name"]]

    cluster.start("DELETING", GONE, over)
    return {"cluster": show(cluster)}


def update_version(account: Account, params: Body) -> Body:
    cluster = account.active(params["name"])
    now_at, desired = cluster.body["version"], params["version"]
    if desired not in VERSIONS or VERSIONS.index(desired) != VERSIONS.index(now_at) + 1:
        raise Refused("InvalidParameterException", f"Unsupported Kubernetes minor version update from {now_at} to {desired}")
    behind = [n for n, g in cluster.nodegroups.items.items() if g.body["version"] != now_at]
    if behind:
        raise Refused(
            "InvalidParameterException",
            f"Nodegroups {', '.join(behind)} must be updated to match cluster version {now_at} before updating cluster version",
        )
    if not params.get("force") and (blocking := insights(cluster)):
        raise Refused(
            "InvalidStateException",
            f"Amazon EKS detected upgrade readiness issues. Call the ListInsights API to view detected upgrade blocking issues: {blocking}",
        )
    return update(cluster, cluster, "VersionUpdate", lambda: cluster.body.update(version=desired))


def insights(cluster: Cluster) -> list[str]:
    """What keeps a cluster from its next version: kube-proxy may be three minor versions older than the API server, not more
    (kubernetes.io/releases/version-skew-policy; EKS user guide, "Kubernetes version upgrades and cluster insights"; message:
    UpdateClusterVersionRequest.force in botocore 1.44.5)."""
    proxy = cluster.addons.get("kube-proxy")
    if proxy is None:
        return []
    runs = int(proxy.body["addonVersion"].split(".")[1])
    return ["kube-proxy version skew"] if int(cluster.body["version"].split(".")[1]) + 1 - runs > 3 else []


def update_config(account: Account, params: Body) -> Body:
    """One kind of change a request ("Only one type of update can be allowed", aws-controllers-k8s/eks-controller tests)."""
    cluster = account.active(params["name"])
    vpc = params.get("resourcesVpcConfig", {})
    places = {k: v for k, v in vpc.items() if k == "subnetIds"}
    guards = {k: v for k, v in vpc.items() if k == "securityGroupIds"}
    doors = {k: v for k, v in vpc.items() if k not in (*places, *guards)}
    kinds: dict[str, Any] = {
        "VpcConfigUpdate": places and (lambda: _move(account, cluster, places)),
        "SecurityGroupUpdate": guards and (lambda: _move(account, cluster, guards)),
        "EndpointAccessUpdate": doors and (lambda: _open(cluster, doors)),
        "LoggingUpdate": params.get("logging") and (lambda: _log(account, cluster, params["logging"])),
        "AccessConfigUpdate": params.get("accessConfig") and (lambda: _authenticate(cluster, params["accessConfig"])),
        "UpgradePolicyUpdate": params.get("upgradePolicy") and (lambda: cluster.body.update(upgradePolicy=params["upgradePolicy"])),
        "DeletionProtectionUpdate": "deletionProtection" in params
        and (lambda: cluster.body.update(deletionProtection=params["deletionProtection"])),
    }
    asked = {kind: change for kind, change in kinds.items() if change}
    if len(asked) != 1:
        raise Refused("InvalidParameterException", "Only one type of update can be allowed.")
    kind, change = asked.popitem()
    _refuse_idle(cluster, kind, params, doors)
    if places:
        _refuse_other_zones(account, cluster, places["subnetIds"])
    return update(cluster, cluster, kind, change)


def _refuse_idle(cluster: Cluster, kind: str, params: Body, doors: Body) -> None:
    """A change to what is there already is an error, not a success (seen in many projects' issue threads)."""
    body = cluster.body
    if kind == "EndpointAccessUpdate":
        after = _endpoint(doors, body["resourcesVpcConfig"])
        if all(body["resourcesVpcConfig"][k] == v for k, v in after.items()):
            raise Refused("InvalidParameterException", "Cluster is already at the desired configuration")
    if kind == "LoggingUpdate" and _logged(cluster, params["logging"]) == body["logging"]["clusterLogging"]:
        raise Refused("InvalidParameterException", "No changes needed for the logging config provided")
    if kind == "AccessConfigUpdate":
        before, after = body["accessConfig"]["authenticationMode"], params["accessConfig"]["authenticationMode"]
        # A way back does not exist (UpdateAccessConfigRequest; EKS user guide, "Change authentication mode").
        if MODES.index(after) <= MODES.index(before):
            raise Refused("InvalidParameterException", f"Unsupported authentication mode update from {before} to {after}")


def _refuse_other_zones(account: Account, cluster: Cluster, desired: list[str]) -> None:
    """The zones of a cluster are those it was created with (github.com/aws/containers-roadmap/issues/2258; message from memory)."""
    ids = cluster.body["resourcesVpcConfig"]["subnetIds"]
    before, after = ({s.availability_zone for s in subnets(account.region, some)} for some in (ids, desired))
    if before != after:
        raise Refused(
            "InvalidParameterException",
            f"Provided subnets belong to the AZs '{','.join(sorted(after))}'. But they should belong to the exact set of AZs "
            f"'{','.join(sorted(before))}' in which subnets were provided during cluster creation.",
        )


def _move(account: Account, cluster: Cluster, places: Body) -> None:
    network(account, cluster, {"subnetIds": cluster.body["resourcesVpcConfig"]["subnetIds"], **places})


def _open(cluster: Cluster, doors: Body) -> None:
    config = cluster.body["resourcesVpcConfig"]
    config.update(_endpoint(doors, config))


def _logged(cluster: Cluster, desired: Body) -> list[Body]:
    """Types that the request does not name stay as they are."""
    state = {t: row["enabled"] for row in cluster.body["logging"]["clusterLogging"] for t in row["types"]}
    state |= {t: row.get("enabled", False) for row in desired["clusterLogging"] for t in row["types"]}
    return logging({"clusterLogging": [{"types": [t for t, on in state.items() if on], "enabled": True}]})


def _log(account: Account, cluster: Cluster, desired: Body) -> None:
    cluster.body["logging"]["clusterLogging"] = _logged(cluster, desired)
    _keep_logs(account, cluster)


def _authenticate(cluster: Cluster, desired: Body) -> None:
    cluster.body["accessConfig"].update(desired)


def _with_keys(account: Account, desired: list[Body]) -> list[Body]:
    """EKS takes an ARN or an alias (Provider.keyArn in botocore), and shows the ARN of the key (*assumed*)."""
    backend = get_backend("kms")[ACCOUNT][account.region]
    found = []
    for row in desired:
        given = row["provider"]["keyArn"]
        named = backend.get_key_id_from_alias(given.rpartition(":")[2]) if ":alias/" in given else None
        key = next((k for k in backend.keys.values() if k.arn == given or k.id == named), None)
        if key is None:
            raise Refused("InvalidParameterException", f"Key {given} does not exist")
        found.append({**row, "provider": {"keyArn": key.arn}})
    return found


def encrypt(account: Account, params: Body) -> Body:
    cluster = account.active(params["clusterName"])
    if cluster.body["encryptionConfig"]:
        raise Refused("InvalidRequestException", "Encryption is already enabled")
    desired = _with_keys(account, params["encryptionConfig"])

    def change() -> None:
        cluster.body["encryptionConfig"] = desired

    return update(cluster, cluster, "AssociateEncryptionConfig", change)


def describe_update(account: Account, params: Body) -> Body:
    cluster = account.cluster(params["name"])
    record = cluster.updates.get(params["updateId"])
    if record is None:
        missing(f"No update found for ID: {params['updateId']}")
    record.look()
    return {"update": show(record)}


def versions(_account: Account, params: Body) -> Body:
    """Dates: EKS user guide, "Amazon EKS Kubernetes release calendar"; those of the last two are *assumed*."""
    desired = params.get("clusterVersions") or VERSIONS
    return {"clusterVersions": [_support(version) for version in VERSIONS if version in desired]}


STANDARD_UNTIL = {
    "1.31": "2025-11-26",
    "1.32": "2026-03-23",
    "1.33": "2026-07-29",
    "1.34": "2026-12-02",
    "1.35": "2027-03-27",
    "1.36": "2027-08-02",
}


def _support(version: str) -> Body:
    end = dt.datetime.fromisoformat(STANDARD_UNTIL[version]).replace(tzinfo=dt.UTC)
    over = end.timestamp() < now()
    return {
        "clusterVersion": version,
        "defaultVersion": version == VERSIONS[-1],
        "versionStatus": "EXTENDED_SUPPORT" if over else "STANDARD_SUPPORT",
        "endOfStandardSupportDate": end.timestamp(),
        "endOfExtendedSupportDate": (end + dt.timedelta(days=365)).timestamp(),
    }


ARNS = ("arn", "nodegroupArn", "addonArn", "accessEntryArn", "associationArn")


def bodies(cluster: Cluster) -> list[Body]:
    """Everything of a cluster that has tags."""
    found = [cluster.body, *(item.body for table in (cluster.nodegroups, cluster.addons) for item in table.items.values())]
    return [*found, *cluster.entries.values(), *cluster.associations.values()]


def _tagged(account: Account, arn: str) -> Body:
    """The tags of whatever an ARN names."""
    for cluster in account.clusters.values():
        for body in bodies(cluster):
            if arn in [body[name] for name in ARNS if name in body]:
                tags: Body = body["tags"]
                return tags
    return missing(f"The specified resourceArn {arn} is not associated with any resource")


def tag(account: Account, params: Body) -> Body:
    _tagged(account, params["resourceArn"]).update(params["tags"])
    return {}


def untag(account: Account, params: Body) -> Body:
    tags = _tagged(account, params["resourceArn"])
    for key in params["tagKeys"]:
        tags.pop(key, None)
    return {}


OPERATIONS: dict[str, Handler] = {
    "CreateCluster": create,
    "DescribeCluster": describe,
    "ListClusters": names,
    "DeleteCluster": delete,
    "UpdateClusterVersion": update_version,
    "UpdateClusterConfig": update_config,
    "AssociateEncryptionConfig": encrypt,
    "DescribeUpdate": describe_update,
    "DescribeClusterVersions": versions,
    "TagResource": tag,
    "UntagResource": untag,
}
