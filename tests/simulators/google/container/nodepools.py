# SPDX-License-Identifier: GPL-3.0-or-later
"""Node pools: made, read, deleted, sized.

A zone that has no machines left is told by the operation, as a Status and after the pool appeared; the pool stays, in ERROR, with a
condition GCE_STOCKOUT (StatusCondition in the discovery document; message: hashicorp/terraform-provider-google issue 6287 and PR 10121,
"Google Compute Engine: Not all instances running in IGM"; that the pool stays: GoogleCloudPlatform/magic-modules PR 5225). The same if the
range of the pods has no piece left for a node (hashicorp/terraform-cdk issue 1964; assumed: that no node of the request comes then).
"""

from ..api import Asked, Refused, handles
from ..compute.instances import STOCK_OUT
from ..compute.resources import bare
from ..discovery import Body
from ..journal import JOURNAL
from ..operations import Failed, look_at
from ..state import Project, Thing, digest
from . import clusters, ground, nodes, pools, shown
from .operations import free, link, start

INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 8


def _standard(found: Project, cluster: Thing) -> tuple[Project, Thing]:
    """The same, unless it is an Autopilot cluster (turbot/steampipe-plugin-gcp PR 591, gke-labs/kube-agents issue 920)."""
    if cluster.body["autopilot"].get("enabled"):
        raise Refused(400, "Autopilot node pools cannot be accessed or modified.")
    return found, cluster


def find(asked: Asked) -> tuple[Project, Thing, Thing]:
    """(project, cluster, pool) that a request is for."""
    found, cluster = _standard(*clusters.find(asked))
    path = f"{cluster.extra['path']}/nodePools/{asked.parts('name')['nodePools']}"
    thing = found.shelf("nodePools").get(path)
    if thing is None:
        raise clusters.missing(path)
    return found, cluster, thing


@handles("container.projects.locations.clusters.nodePools.get")
def _get(asked: Asked) -> Body:
    look_at(find(asked)[2].extra["path"])
    found, _cluster, thing = find(asked)
    return shown.pool(found, thing)


def stock_out(found: Project, pool: Thing) -> Failed:
    return _not_running(pool, "ZONE_RESOURCE_POOL_EXHAUSTED", STOCK_OUT.format(found.id, pool.body["locations"][0]))


def exhausted(found: Project, cluster: Thing, pool: Thing, count: int) -> Failed | None:
    """So many nodes of a pool in each zone, beside those that the cluster has, if its range has no pieces for them."""
    rows = [one for one in shown.pools_of(found, cluster.extra["path"]) if one is not pool]
    there = sum(int(one.extra["per_zone"]) * len(one.body["locations"]) for one in rows)
    policy, pods = cluster.body["ipAllocationPolicy"], int(pool.body["maxPodsConstraint"]["maxPodsPerNode"])
    if not count or ground.room(policy, there + count * len(pool.body["locations"]), pods):
        return None
    place = f"{bare(cluster.body['networkConfig']['subnetwork'])}-{policy['clusterSecondaryRangeName']}"
    return _not_running(pool, "IP_SPACE_EXHAUSTED", f"IP space of '{place}-{digest(place)}' is exhausted.")


def _not_running(pool: Thing, word: str, why: str) -> Failed:
    name, wanted = f"{nodes.base(pool)}-zone", max(int(pool.extra["per_zone"]), 1)
    text = (
        f"Google Compute Engine: Not all instances running in IGM after 35m7s. Expected {wanted}, running 0, transitioning {wanted}. "
        f"Current errors: [{word}]: Instance '{name}' creation failed: {why}"
    )
    return Failed(RESOURCE_EXHAUSTED, text)


@handles("container.projects.locations.clusters.nodePools.create")
def _create(asked: Asked) -> Body:
    found, cluster = _standard(*clusters.find(asked, "parent"))
    given = asked.body.get("nodePool") or {}
    path = f"{cluster.extra['path']}/nodePools/{given.get('name')}"
    if path in found.shelf("nodePools"):
        raise Refused(409, f"Already exists: {link(path).removeprefix('https://container.googleapis.com/v1/')}.")
    if cluster.body["status"] in ("PROVISIONING", "STOPPING", "ERROR"):
        free(cluster.extra["path"])
        text = f"Cluster {cluster.body['name']} is in state {cluster.body['status']}, and node pools cannot be created."
        raise Refused(400, text, code="FAILED_PRECONDITION", reason="failedPrecondition")  # assumed: the wording
    free(path)
    thing = pools.new(asked, found, cluster, given)
    pools.afford(asked, found, [thing])
    found.shelf("nodePools")[path] = thing

    def finish() -> None:
        thing.body["status"] = "RUNNING"
        nodes.settle(found, cluster.body, thing)

    def fail(failed: Failed) -> None:
        condition = {"message": str(failed), "canonicalCode": "UNKNOWN"}
        if failed.code == RESOURCE_EXHAUSTED:
            condition["canonicalCode"] = "RESOURCE_EXHAUSTED"
        if "ZONE_RESOURCE_POOL_EXHAUSTED" in str(failed):
            condition["code"] = "GCE_STOCKOUT"
        thing.body |= {"status": "ERROR", "statusMessage": str(failed), "conditions": [condition]}
        thing.extra["per_zone"] = 0
        nodes.settle(found, cluster.body, thing)

    failed = exhausted(found, cluster, thing, int(thing.extra["per_zone"]))
    failed = stock_out(found, thing) if JOURNAL.fault("stock_out", asked.id) else failed
    if told := pools.misplaced(found, thing):
        failed = Failed(INVALID_ARGUMENT, told)
    return start(asked, "CREATE_NODE_POOL", path, finish, fail, failed)


@handles("container.projects.locations.clusters.nodePools.delete")
def _delete(asked: Asked) -> Body:
    found, _cluster, thing = find(asked)
    path = thing.extra["path"]
    free(path)
    before, thing.body["status"] = thing.body["status"], "STOPPING"

    def finish() -> None:
        nodes.clear(found, thing)
        found.shelf("nodePools").pop(path)

    def fail(failed: Failed) -> None:
        thing.body |= {"status": before, "statusMessage": str(failed)}

    return start(asked, "DELETE_NODE_POOL", path, finish, fail)
