# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of GKE, and which may run beside each other.

`error` is a google.rpc.Status, `statusMessage` says the same (Operation in the discovery document). While something is being done to a
cluster, anything else to it is refused with FAILED_PRECONDITION, "Cluster is running incompatible operation" (rancher/gke-operator PR 509,
kubernetes-sigs/cluster-api-provider-gcp issue 1363, with CLUSTER_ALREADY_HAS_OPERATION); node pools of one cluster can be worked on side by
side, five at most ("hits the concurrent operations quota 5": hashicorp/terraform-provider-google issues 15205, 15579).
"""

from collections.abc import Callable

from ..api import Asked, Refused, error_info, handles
from ..discovery import Body
from ..operations import OPERATIONS, Failed, Operation, begin, nothing, running, unharmed
from ..state import NUMBER, digest, now, number, project

ROOT = "https://container.googleapis.com/v1/"
SIDE_BY_SIDE = 5


def link(path: str) -> str:
    """Of zonal clusters, links have `zones` where names have `locations`."""
    words = path.split("/")
    if len(words) > 3 and words[2] == "locations" and words[3].count("-") == 2:
        words[2] = "zones"
    return ROOT + "/".join(words)


def _ends(body: Body, failed: Failed | None) -> None:
    body["status"] = "DONE"
    if failed:
        body["error"] = {"code": failed.code, "message": str(failed)}
        body["statusMessage"] = str(failed)


def free(path: str) -> None:
    """A cluster or a node pool at which nothing else is done now."""
    cluster = path.split("/nodePools/")[0]
    pool = "/nodePools/" in path
    others = [one for one in running(cluster) if not pool or one.target in (cluster, path)]
    if others:
        name = str(others[0].body["name"])
        info = error_info("CLUSTER_ALREADY_HAS_OPERATION", "container.googleapis.com")
        text = f"Cluster is running incompatible operation {name}."
        raise Refused(400, text, code="FAILED_PRECONDITION", reason="failedPrecondition", details=[info])
    if pool and len(running(cluster)) >= SIDE_BY_SIDE:
        text = f'Too many operations: cluster "{cluster.rsplit("/", 1)[-1]}" hits the concurrent operations quota {SIDE_BY_SIDE}'
        raise Refused(429, f"{text}, please try again later.")


def start(
    asked: Asked,
    kind: str,
    path: str,
    finish: Callable[[], None] = nothing,
    fail: Callable[[Failed], None] = unharmed,
    failed: Failed | None = None,
) -> Body:
    words = path.split("/")
    owner, location, count = words[1], words[3], number()
    name = f"operation-{1_790_000_000_000 + count}-{digest(count)}-{digest(path, length=4)}-4000-8000-{digest(kind, length=12)}"
    key = f"projects/{owner}/locations/{location}/operations/{name}"
    body: Body = {
        "name": name, "operationType": kind, "status": "RUNNING", "zone": location, "location": location, "startTime": now(),
        "selfLink": link(key).replace(f"projects/{owner}/", f"projects/{NUMBER}/"),
        "targetLink": link(path).replace(f"projects/{owner}/", f"projects/{NUMBER}/"),
    }  # fmt: skip
    return begin(asked, key, body, path, _ends, finish, fail, failed).body


def _find(asked: Asked) -> Operation:
    parts = asked.parts("name")
    found = project(parts["projects"])
    key = f"projects/{found.id}/locations/{parts['locations']}/operations/{parts['operations']}"
    if key not in OPERATIONS:
        raise Refused(404, f"Not found: {key}.")
    return OPERATIONS[key]


@handles("container.projects.locations.operations.get")
def _get(asked: Asked) -> Body:
    operation = _find(asked)
    operation.look()
    return operation.body


@handles("container.projects.zones.operations.get")
def _get_zonal(asked: Asked) -> Body:
    """The older form, to which the links of operations of zonal clusters lead."""
    asked.params["name"] = "projects/{projectId}/locations/{zone}/operations/{operationId}".format(**asked.params)
    return _get(asked)
