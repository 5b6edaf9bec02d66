# SPDX-License-Identifier: GPL-3.0-or-later
"""An EKS cluster, and everything that belongs to it."""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body
from .api import Api
from .plan import tag_dict

# A tag whose value is the name of the cluster that Muster created the resource for.
OWNER = "muster.ml/owner"
# The region of that cluster, on what an account has once for all regions: clusters of one name may be in several.
REGION = "muster.ml/region"
# Parts of a cluster: key of the answer, operation that lists, key of its list, operation that describes, its parameter and key.
PARTS = (
    ("nodegroups", "list_nodegroups", "describe_nodegroup", "nodegroupName", "nodegroup"),
    ("addons", "list_addons", "describe_addon", "addonName", "addon"),
)


def read_cluster(api: Api, name: str, roles: t.Iterable[str] = ()) -> Body:
    """Read a cluster with its parts, and the IAM roles around it; none of them need exist."""
    label = f"EKS cluster {name}"
    caller = api.caller()
    found = api.read(label, "eks", "describe_cluster", name=name)
    parts = {part[0]: _part(api, label, name, *part) if found else [] for part in PARTS}
    cluster = found["cluster"] if found else {}
    region = api.region("eks")
    known = [role for role in (_role(api, label, role, name, region) for role in roles) if role]
    return {
        "exists": bool(found),
        "account": caller.account,
        "partition": caller.partition,
        "region": region,
        "cluster": cluster,
        "owned": _owned(cluster.get("tags"), name),
        "oidc_provider": cluster.get("identity", {}).get("oidc", {}).get("issuer", "").removeprefix("https://"),
        "roles": known,
        **parts,
    }


def _owned(tags: dict[str, str] | None, cluster: str) -> bool:
    return (tags or {}).get(OWNER) == cluster


def _role(api: Api, label: str, name: str, cluster: str, region: str) -> Body | None:
    found = api.read(label, "iam", "get_role", RoleName=name)
    if not found:
        return None
    role = found["Role"]
    tags = tag_dict(role.get("Tags"))
    owned = _owned(tags, cluster) and tags.get(REGION) == region
    return {"RoleName": role["RoleName"], "Arn": role["Arn"], "tags": tags, "owned": owned}


def _part(api: Api, label: str, cluster: str, key: str, listing: str, describe: str, parameter: str, one: str) -> list[Body]:
    names = api.pages(label, "eks", listing, key, clusterName=cluster)
    found = (api.read(label, "eks", describe, clusterName=cluster, **{parameter: name}) for name in names)
    rows = (row[one] for row in found if row)  # one may have been deleted since it was listed
    return [{**row, "owned": _owned(row.get("tags"), cluster)} for row in rows]
