# SPDX-License-Identifier: GPL-3.0-or-later
"""A GKE cluster with its node pools, as it is, and what its workloads made in the project."""

from __future__ import annotations

import re
import typing as t

from .._cloud.plan import Body
from .api import Api
from .compare import MARK
from .gke import pool_owner

_CLUSTER, _LOCATION = "goog-k8s-cluster-name", "goog-k8s-cluster-location"
_TITLES = {
    "disks": "disk", "load_balancers": "load balancer", "firewalls": "firewall rule", "network_endpoint_groups": "network endpoint group"
}  # fmt: skip


def read_cluster(api: Api, project: str, location: str, name: str, owner: str | None) -> Body:
    """Read a cluster with its node pools; it need not exist. ``owned``: it has the mark of the owner, or any if none is named."""
    path = f"projects/{project}/locations/{location}/clusters/{name}"
    cluster = api.read(f"GKE cluster {name}", "container", path) or {}
    mark = (cluster.get("resourceLabels") or {}).get(MARK, "")
    pools = cluster.get("nodePools") or []
    return {
        "exists": bool(cluster),
        "owned": mark == owner if owner else bool(mark),
        "status": cluster.get("status", ""),
        "endpoint": cluster.get("endpoint", ""),
        "certificate_authority": (cluster.get("masterAuth") or {}).get("clusterCaCertificate", ""),
        "version": cluster.get("currentMasterVersion", ""),
        "workload_pool": (cluster.get("workloadIdentityConfig") or {}).get("workloadPool", ""),
        "cluster": {key: value for key, value in cluster.items() if key not in ("nodePools", "nodeConfig", "masterAuth")},
        "node_pools": [{**pool, "owner": pool_owner(pool)} for pool in pools],
    }


def read_leftovers(api: Api, project: str, location: str, name: str, network: str | None) -> Body:
    """List resources that workloads of the cluster created in the project and that may outlive it.

    Disks of claims and load balancers of Services are known by the labels that GKE gives them, firewall rules by the tag of the cluster's
    nodes. Network endpoint groups have only the uid of their cluster (NegDescription of kubernetes/ingress-gce), which tells nothing once
    the cluster is gone: those of ``network`` are listed, and none if another cluster is in it, whose they may be.
    """

    def labelled(kind: str) -> list[Body]:
        rows = _everywhere(api, project, kind, f'labels.{_CLUSTER}="{name}"')
        return [row for row in rows if row["labels"].get(_LOCATION, location) == location]

    found = {"disks": labelled("disks"), "load_balancers": labelled("forwardingRules")}
    tag = re.compile(rf"gke-{re.escape(name)}-[0-9a-f]{{8}}-node")
    path, label = f"projects/{project}/global/firewalls", f"firewall rules of project {project}"
    rules = api.pages(label, "compute", path, "items", filter='name eq "k8s.*"')
    found["firewalls"] = [row for row in rules if any(tag.fullmatch(one) for one in row.get("targetTags") or ())]
    groups = [] if not network or _is_shared(api, project, network, path=f"{location}/{name}") else _endpoint_groups(api, project, network)
    found["network_endpoint_groups"] = groups
    return {key: [_leftover(_TITLES[key], row) for row in rows] for key, rows in found.items()}


def _leftover(title: str, row: Body) -> Body:
    return {"title": f"{title} {row['name']}", "name": row["name"], "location": _place(row)}


def _is_shared(api: Api, project: str, network: str, path: str) -> bool:
    """Whether a cluster other than that of PATH, location/name, is in the network."""
    rows = api.read(f"GKE clusters of project {project}", "container", f"projects/{project}/locations/-/clusters") or {}
    others = [row for row in rows.get("clusters") or () if f"{row['location']}/{row['name']}" != path]
    return any(row.get("network") == network.rsplit("/", 1)[-1] for row in others)


def _endpoint_groups(api: Api, project: str, network: str) -> list[Body]:
    inside = f'network eq ".*/networks/{network.rsplit("/", 1)[-1]}"'
    rows = _everywhere(api, project, "networkEndpointGroups", inside)
    return [row for row in rows if '"cluster-uid"' in row.get("description", "")]


def _everywhere(api: Api, project: str, kind: str, wanted: str) -> t.Iterator[Body]:
    """List the resources of all regions and zones."""
    path = f"projects/{project}/aggregated/{kind}"
    for page in api.each_page(f"{kind} of project {project}", "compute", path, filter=wanted):
        for place in (page.get("items") or {}).values():
            yield from place.get(kind) or ()


def _place(row: Body) -> str:
    return str(row.get("zone") or row.get("region") or "global").rsplit("/", 1)[-1]
