# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GKE cluster with its node pools, as it is, and what its workloads made in the project.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body
from .api import Api
from .compare import MARK
from .gke import pool_owner

_CLUSTER, _LOCATION = "goog-k8s-cluster-name", "goog-k8s-cluster-location"


def read_cluster(api: Api, project: str, location: str, name: str, owner: str | None) -> Body:
    """Everything known about a cluster; it need not exist. ``owned``: it has the mark of the owner, or any if none is named."""
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
        "cluster": {
            key: value for key, value in cluster.items() if key not in ("nodePools", "nodeConfig", "masterAuth")
        },
        "node_pools": [{**pool, "owner": pool_owner(pool)} for pool in pools],
    }


def read_leftovers(api: Api, project: str, location: str, name: str) -> Body:
    """Disks of claims and load balancers of Services, by the labels that GKE gives them. They may outlive the cluster."""
    return {
        key: [
            {"name": row["name"], "location": _place(row)}
            for row in _everywhere(api, project, kind, f'labels.{_CLUSTER}="{name}"')
            if row["labels"].get(_LOCATION, location) == location
        ]
        for key, kind in (("disks", "disks"), ("load_balancers", "forwardingRules"))
    }


def _everywhere(api: Api, project: str, kind: str, wanted: str) -> t.Iterator[Body]:
    """Those of all regions and zones."""
    path = f"projects/{project}/aggregated/{kind}"
    for page in api.each_page(f"{kind} of project {project}", "compute", path, filter=wanted):
        for place in (page.get("items") or {}).values():
            yield from place.get(kind) or ()


def _place(row: Body) -> str:
    return str(row.get("zone") or row.get("region") or "global").rsplit("/", 1)[-1]
