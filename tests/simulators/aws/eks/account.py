# SPDX-License-Identifier: GPL-3.0-or-later
"""The EKS side of one account in one region, and what its operations share."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..api import Refused
from ..journal import JOURNAL
from ..state import ACCOUNT, Body, Item, Table, now, number

# Versions on offer, oldest first; AWS keeps a moving window (assumed: which ones makes no difference to the rules).
VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
# What EKS puts into a cluster without being asked (CreateClusterRequest.bootstrapSelfManagedAddons).
SELF_MANAGED = ("vpc-cni", "coredns", "kube-proxy")


@dataclass
class Cluster(Item):
    nodegroups: Table = field(default_factory=Table)
    addons: Table = field(default_factory=Table)
    entries: dict[str, Body] = field(default_factory=dict)
    policies: dict[str, dict[str, Body]] = field(default_factory=dict)
    associations: dict[str, Body] = field(default_factory=dict)
    updates: dict[str, Item] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)
    self_managed: set[str] = field(default_factory=set)
    """What is in the cluster as objects that no add-on of EKS has made (bootstrapSelfManagedAddons)."""

    @property
    def provides_nodes(self) -> bool:
        """Whether EKS starts nodes by itself where pods need them (Auto Mode)."""
        return bool(self.body.get("computeConfig", {}).get("enabled"))


@dataclass
class Account:
    region: str
    clusters: dict[str, Cluster] = field(default_factory=dict)

    def arn(self, kind: str, *names: str) -> str:
        return f"arn:aws:eks:{self.region}:{ACCOUNT}:{kind}/{'/'.join(names)}"

    def cluster(self, name: str) -> Cluster:
        found = self.clusters.get(name)
        if not found:
            missing(f"No cluster found for name: {name}.")
        return found

    def active(self, name: str) -> Cluster:
        """The cluster, ready for a change."""
        found = self.cluster(name)
        if found.status != "ACTIVE":
            raise Refused("ResourceInUseException", f"Cannot modify cluster {name} currently in status {found.status}", 409)
        return found


REGIONS: dict[str, Account] = {}
Handler = Callable[[Account, Body], Body]


def account(region: str) -> Account:
    return REGIONS.setdefault(region, Account(region))


def missing(message: str) -> NoReturn:
    raise Refused("ResourceNotFoundException", message, 404)


def admit(account: Account, cluster: Cluster, principal: str, **fields: Any) -> Body:
    """The access entry of a principal, which may be there already."""
    entry = {
        "clusterName": cluster.body["name"],
        "principalArn": principal,
        "kubernetesGroups": [],
        "accessEntryArn": account.arn("access-entry", cluster.body["name"], "role", number()),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": {},
        "type": "STANDARD",
        **fields,
    }
    return cluster.entries.setdefault(principal, entry)


def associate(account: Account, cluster: Cluster, params: Body, **fields: Any) -> Body:
    """A pod identity: the role of a service account."""
    identity = f"a-{number()}"
    cluster.associations[identity] = {
        "clusterName": cluster.body["name"],
        "namespace": "kube-system",
        "associationArn": account.arn("podidentityassociation", cluster.body["name"], identity),
        "associationId": identity,
        "tags": {},
        "createdAt": now(),
        "modifiedAt": now(),
        **{k: params[k] for k in ("namespace", "serviceAccount", "roleArn", "targetRoleArn", "tags") if k in params},
        **fields,
    }
    return cluster.associations[identity]


def show(item: Item | Body) -> Body:
    return copy.deepcopy(item.body if isinstance(item, Item) else item)


def update(
    cluster: Cluster, item: Item, kind: str, change: Callable[[], None], busy: str = "UPDATING", params: Any = None, broken: str = ""
) -> Body:
    """A change that takes its time: the resource is busy, the change is seen when the update is over.

    The fault ``update_fails`` ends it as Failed, with the resource as it was, or in the status BROKEN with the reason as its issue.
    """
    fault = JOURNAL.fault("update_fails", kind)
    before = item.status
    record = Item({"id": number(), "type": kind, "params": params or [], "createdAt": now(), "errors": []})
    cluster.updates[record.body["id"]] = record

    def over() -> None:
        item.body["status"], item.left = before, 0
        record.left = 0
        if fault:
            record.body["status"] = "Failed"
            record.body["errors"] = [fault.detail]
            if broken:
                item.body["status"] = broken
                code, message = fault.detail["errorCode"], fault.detail["errorMessage"]
                item.body["health"] = {"issues": [{"code": code, "message": message, "resourceIds": []}]}
        else:
            record.body["status"] = "Successful"
            change()

    item.start(busy, before, over)
    record.start("InProgress", "Successful", over)
    return {"update": show(record)}
