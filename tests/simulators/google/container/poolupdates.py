# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of node pools. What is not in UpdateNodePoolRequest cannot be changed: service account, scopes, spot, placement.

Rules: one kind of change in a request (gcloud's `node-pools update` offers no two either; assumed: that the service refuses); labels and
taints are replaced whole, of autoscaled pools too (cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools: since control
planes of 1.23.4-gke.300; before, hashicorp/terraform-provider-google issue 13577), and so are tags of the Resource Manager
(ResourceManagerTags: "Existing tags will be replaced with new values") and, assumed, kubeletConfig and linuxNodeConfig with their sysctls
(the provider sends the whole of them, and an empty one where they were taken out); machine type, disk and image make new nodes; while a
change runs the pool is RECONCILING (RUNNING_WITH_ERROR where it fails).
"""

import copy
from collections.abc import Callable

from .. import catalogue
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..labels import refuse_of_gke, refuse_of_nodes
from ..operations import Failed
from ..state import Project, Thing
from . import clusters, nodepools, nodes, pools, shown, versions
from .operations import free, start

WHERE = ("name", "clusterId", "nodePoolId", "projectId", "zone", "etag")
# Changes that make new nodes, and may come in one request.
MACHINE = {"machineType", "diskType", "diskSizeGb", "nodeVersion", "imageType"}


def apply(
    asked: Asked, found: Project, cluster: Thing, thing: Thing, kind: str, after: Body, then: Callable[[], None],
    failed: Failed | None = None,
) -> Body:  # fmt: skip
    """The change is seen when the operation is over."""
    if "config" in after:
        pools.check_disk(after["config"], after.get("version") or thing.body["version"])
    free(thing.extra["path"])
    before, thing.body["status"] = thing.body["status"], "RECONCILING"

    def finish() -> None:
        thing.body |= {**after, "status": "RUNNING" if before == "RECONCILING" else before}
        then()

    def fail(failed: Failed) -> None:
        thing.body |= {"status": "RUNNING_WITH_ERROR", "statusMessage": str(failed)}

    return start(asked, kind, thing.extra["path"], finish, fail, failed)


@handles("container.projects.locations.clusters.nodePools.update")
def _update(asked: Asked) -> Body:
    found, cluster, thing = nodepools.find(asked)
    if asked.body.get("etag") not in (None, "", shown.etag(thing.body)):
        text = "The etag of the node pool does not match the current one."  # assumed: the wording
        raise Refused(412, text, code="FAILED_PRECONDITION", reason="conditionNotMet")
    wanted = {name: value for name, value in asked.body.items() if name not in WHERE and value is not None}
    if not wanted:
        raise Refused(400, "Must specify a field to update.")
    if len(wanted) > 1 and not set(wanted) <= MACHINE:
        raise Refused(400, f"Only one kind of update can be made at a time: {', '.join(sorted(wanted))}.")  # assumed: the wording
    after = {"config": copy.deepcopy(thing.body["config"])}
    new_nodes = bool(set(wanted) & MACHINE)
    for name, value in wanted.items():
        change = CHANGES.get(name, _plain(name))
        change(found, cluster, thing, after, value)
    if new_nodes:
        thing.extra["gpus"] = pools.accelerators(after["config"], thing.body["locations"])

    def then() -> None:
        if new_nodes:
            nodes.replace(found, cluster.body, thing)
        else:
            nodes.settle(found, cluster.body, thing)

    kind = "UPGRADE_NODES" if "nodeVersion" in wanted else "UPDATE_CLUSTER"
    return apply(asked, found, cluster, thing, kind, after, then)


Change = Callable[[Project, Thing, Thing, Body, object], None]


def _plain(name: str) -> Change:
    """A field of the config, replaced."""

    def change(_found: Project, _cluster: Thing, thing: Thing, after: Body, value: object) -> None:
        if name in thing.body or name in ("upgradeSettings", "queuedProvisioning", "maintenancePolicy", "nodeDrainConfig"):
            after[name] = value
        else:
            after["config"][name] = value

    return change


def _labels(_found: Project, _cluster: Thing, _thing: Thing, after: Body, value: object) -> None:
    assert isinstance(value, dict)
    refuse_of_nodes(value.get("labels"))
    after["config"]["labels"] = value.get("labels") or {}


def _taints(found: Project, cluster: Thing, thing: Thing, after: Body, value: object) -> None:
    """GKE's own of accelerators stay (assumed)."""
    assert isinstance(value, dict)
    rows = list(value.get("taints") or [])
    own = [one for one in thing.body["config"].get("taints", []) if one in (pools.GPU_TAINT, pools.TPU_TAINT)]
    after["config"]["taints"] = [*rows, *(one for one in own if one not in rows)]


def _tags(_found: Project, _cluster: Thing, _thing: Thing, after: Body, value: object) -> None:
    assert isinstance(value, dict)
    after["config"]["tags"] = value.get("tags") or []


def _resource_labels(_found: Project, _cluster: Thing, thing: Thing, after: Body, value: object) -> None:
    assert isinstance(value, dict)
    refuse_of_gke(value.get("labels"), "resource_labels")
    own = {key: text for key, text in thing.body["config"]["resourceLabels"].items() if key.startswith("goog-gke-")}
    after["config"]["resourceLabels"] = {**(value.get("labels") or {}), **own}


def _version(_found: Project, cluster: Thing, thing: Thing, after: Body, value: object) -> None:
    master = cluster.body["currentMasterVersion"]
    version = master if value in ("", "-") else versions.chosen(str(value), "", "Node")
    versions.of_nodes(version, master, upgraded=bool(thing.body["management"].get("autoUpgrade")))
    after["version"] = version


def _image(_found: Project, _cluster: Thing, _thing: Thing, after: Body, value: object) -> None:
    after["config"]["imageType"] = pools.check_image(str(value))


def _disk(name: str) -> Change:
    def change(_found: Project, _cluster: Thing, _thing: Thing, after: Body, value: object) -> None:
        config = after["config"]
        config[name] = int(str(value)) if name == "diskSizeGb" else value
        config["bootDisk"] = {"diskType": config["diskType"], "sizeGb": str(config["diskSizeGb"])}

    return change


def _locations(_found: Project, cluster: Thing, _thing: Thing, after: Body, value: object) -> None:
    assert isinstance(value, list)
    for zone in value:
        clusters.check_zone(zone, catalogue.region_of(cluster.body["location"]))
    pools.accelerators(after["config"], list(value))
    after["locations"] = sorted(set(value))


def _upgrade(_found: Project, _cluster: Thing, thing: Thing, after: Body, value: object) -> None:
    assert isinstance(value, dict)
    after["upgradeSettings"] = pools.upgrade_settings(value)


CHANGES: dict[str, Change] = {
    "labels": _labels, "taints": _taints, "tags": _tags, "resourceLabels": _resource_labels,
    "nodeVersion": _version, "imageType": _image, "diskType": _disk("diskType"), "diskSizeGb": _disk("diskSizeGb"), "locations": _locations,
    "upgradeSettings": _upgrade,
}  # fmt: skip


@handles("container.projects.locations.clusters.nodePools.setAutoscaling")
def _autoscaling(asked: Asked) -> Body:
    found, cluster, thing = nodepools.find(asked)
    after = pools.check_autoscaling(asked.body.get("autoscaling") or {})
    pools.check_slice(thing.body, thing.body["config"], after)
    least, most = int(after.get("minNodeCount") or 0), int(after.get("maxNodeCount") or 0)

    def then() -> None:
        """The autoscaler brings the pool between its bounds."""
        if most:
            thing.extra["per_zone"] = min(max(int(thing.extra["per_zone"]), least), most)
        nodes.settle(found, cluster.body, thing)

    return apply(asked, found, cluster, thing, "SET_NODE_POOL_MANAGEMENT", {"autoscaling": after}, then)


@handles("container.projects.locations.clusters.nodePools.setManagement")
def _management(asked: Asked) -> Body:
    found, cluster, thing = nodepools.find(asked)
    given = asked.body["management"]
    after = pools.management({"autoRepair": False, "autoUpgrade": False, **given}, cluster.body)
    if after["autoUpgrade"] and not thing.body["management"].get("autoUpgrade"):
        versions.of_nodes(thing.body["version"], cluster.body["currentMasterVersion"], upgraded=True)  # assumed: here, too
    return apply(asked, found, cluster, thing, "SET_NODE_POOL_MANAGEMENT", {"management": after}, lambda: None)


@handles("container.projects.locations.clusters.nodePools.setSize")
def _size(asked: Asked) -> Body:
    """So many in each zone. `initialNodeCount` says still what it said at first."""
    found, cluster, thing = nodepools.find(asked)
    count = int(asked.body.get("nodeCount") or 0)
    more = (count - int(thing.extra["per_zone"])) * len(thing.body["locations"])
    if more > 0:
        grown = Thing(thing.body, extra={**thing.extra, "per_zone": more // len(thing.body["locations"])})
        pools.afford(asked, found, [grown])

    def then() -> None:
        thing.extra["per_zone"] = count
        nodes.settle(found, cluster.body, thing)

    failed = nodepools.exhausted(found, cluster, thing, count) if more > 0 else None
    return apply(asked, found, cluster, thing, "SET_NODE_POOL_SIZE", {}, then, failed)
