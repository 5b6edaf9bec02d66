# SPDX-License-Identifier: GPL-3.0-or-later
"""Every object of a cluster: each resource that discovery knows and that can be listed, in all namespaces. Shares no code with the modules.

    python -m support.objects KUBECONFIG [CONTEXT]

prints {object: {uid, writes}} as JSON. ``writes`` are the field managers of Muster that wrote the object, and when; ``deleting`` is true
of one whose deletion has begun. What Kubernetes makes for another object that is listed, such as the pods of a Deployment, is left out,
and so is what it lets expire.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubernetes import client

Body = dict[str, Any]
Get = Callable[[str], Body]
MANAGER = "muster"
EXPIRING = ("Event", "CertificateSigningRequest", "bootstrap.kubernetes.io/token")
API_SERVER = "apiserver.kubernetes.io/identity"
"""Label of the Lease by which an API server tells that it runs: one that was away for long has another afterwards."""


def resources(get: Get) -> dict[str, str]:
    """Path of each list, by kind and API group; a resource that several versions serve is listed once."""
    paths = ["/api/v1"]
    for group in get("/apis")["groups"]:
        served = sorted(group["versions"], key=lambda version: version != group["preferredVersion"])
        paths += [f"/apis/{version['groupVersion']}" for version in served]
    found: dict[str, str] = {}
    for path in paths:
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        for row in get(path)["resources"]:
            if "list" in row["verbs"] and "/" not in row["name"] and row["kind"] not in EXPIRING:
                found.setdefault(f"{row['kind']}.{group}".rstrip("."), f"{path}/{row['name']}")
    return found


def items(get: Get, path: str) -> Iterator[Body]:
    """Every object of a list, page by page."""
    more = ""
    while True:
        page = get(f"{path}?limit=500{more}")
        yield from (item for item in page["items"] if not expires(item))
        if not (token := page["metadata"].get("continue")):
            return
        more = f"&continue={token}"


def expires(item: Body) -> bool:
    """Whether Kubernetes lets this one expire, of a kind whose others stay."""
    return item.get("type") in EXPIRING or API_SERVER in item["metadata"].get("labels", {})


def objects(get: Get) -> dict[str, Body]:
    """Kind and name of each object: its uid, and what Muster wrote. Those that exist only in answers have no uid."""
    found = [(kind, item["metadata"]) for kind, path in resources(get).items() for item in items(get, path)]
    uids = {meta.get("uid") for _kind, meta in found}
    return {
        f"{kind} {meta.get('namespace', '')}/{meta['name']}".replace(" /", " "): {
            "uid": meta["uid"],
            "writes": wrote,
            **({"deleting": True} if "deletionTimestamp" in meta else {}),
        }
        for kind, meta in found
        if "uid" in meta and ((wrote := writes(meta)) or not any(owner["uid"] in uids for owner in meta.get("ownerReferences", [])))
    }


def writes(meta: Body) -> list[str]:
    """When each field manager of Muster wrote the object last."""
    entries = [entry for entry in meta.get("managedFields", []) if entry["manager"].startswith(MANAGER)]
    return sorted(f"{e['manager']} {e['operation']} {e.get('subresource', '')} {e['time']}" for e in entries)


def connected(kubeconfig: str, context: str | None) -> client.ApiClient:
    """A client of the official library, which takes a second to import."""
    from kubernetes import config

    return config.new_client_from_config(kubeconfig, context)


def reader(kubeconfig: str, context: str | None) -> Get:
    """Reads a path of the API server. What may not be read is an error: whatever it hides would not be compared."""
    api = connected(kubeconfig, context)

    def get(path: str) -> Body:
        answer = api.call_api(path, "GET", auth_settings=["BearerToken"], _preload_content=False)
        body: Body = json.loads(answer.data)
        return body

    return get


if __name__ == "__main__":
    from kubernetes.client import ApiException

    kubeconfig, context = [*sys.argv[1:], ""][:2]
    try:
        print(json.dumps(objects(reader(kubeconfig, context or None))))
    except ApiException as error:
        sys.exit(f"Not every object can be listed, so nothing is judged: {error.status} {error.body!r}")
