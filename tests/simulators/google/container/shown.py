# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters and node pools as a GET shows them: GKE leaves out what is false, nought or empty, as proto3's JSON does.

So `minNodeCount: 0`, `enabled: false` and an empty list come back as nothing at all, and so does a scope of maintenance exclusions that is
the first of its enum (flattenMaintenancePolicy of terraform-provider-google). Fields that are optional in the proto are shown even so.
"""

import json
from typing import Any

from ..discovery import Body
from ..state import Project, Thing, digest
from .nodes import groups, size

OPTIONAL = (
    "defaultEnablePrivateNodes", "enablePublicEndpoint", "allowExternalTraffic", "gcpPublicCidrsAccessEnabled",
    "privateEndpointEnforcementEnabled",
    "enableK8sTokensViaDns", "enableK8sCertsViaDns", "globalAccess", "enablePrivateNodes",
)  # fmt: skip


# Maps; an empty one is left out, while an empty message is shown.
MAPS = ("resourceLabels", "labels", "metadata", "maintenanceExclusions", "sysctls", "tags")
# Words that are nought in their enum.
FIRST = {"scope": "NO_UPGRADES"}


def proto(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: proto(item)
            for name, item in value.items()
            if name in OPTIONAL or not (item in (None, False, 0, "", []) or (item == {} and name in MAPS) or FIRST.get(name, "") == item)
        }
    return [proto(item) for item in value] if isinstance(value, list) else value


def pools_of(found: Project, cluster: str) -> list[Thing]:
    return [thing for key, thing in found.shelf("nodePools").items() if key.startswith(f"{cluster}/nodePools/")]


def pool(found: Project, thing: Thing) -> Body:
    body = {**thing.body, "instanceGroupUrls": groups(found, thing)}
    return {**proto(body), "etag": etag(thing.body)}


def cluster(found: Project, thing: Thing) -> Body:
    pools = pools_of(found, thing.extra["path"])
    shown = [pool(found, one) for one in pools]
    body = {
        **thing.body, "nodePools": shown, "instanceGroupUrls": [url for one in shown for url in one.get("instanceGroupUrls", [])],
        "currentNodeCount": sum(size(found, one) for one in pools),
    }  # fmt: skip
    if shown:
        body["nodeConfig"] = shown[0]["config"]
        body["currentNodeVersion"] = shown[0]["version"]
    return {**proto(body), "etag": etag(thing.body)}


def etag(body: Body) -> str:
    """Moves with the resource."""
    return digest(json.dumps(body, sort_keys=True, default=str), length=24)
