# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a cluster by `update`: one desired field in a request, seen when the operation is over.

Rules: "Exactly one update can be applied to a cluster with each request" (ClusterUpdate in google/container/v1/cluster_service.proto); what
ClusterUpdate has no field for cannot be changed (network, subnetwork, ranges, private nodes of old clusters, name); the channel's versions
bound the cluster's.
"""

import copy
from collections.abc import Callable
from typing import Any

from .. import catalogue
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..operations import Failed
from ..state import Project, Thing
from . import clusters, doors, nodes, pools, shown, versions
from .operations import free, start

Apply = Callable[[], None]
Change = Callable[[Asked, Project, Thing, Any], Apply]


def busy(asked: Asked, thing: Thing, kind: str, apply: Apply) -> Body:
    """The cluster is RECONCILING until the operation is over, and DEGRADED where that fails."""
    free(thing.extra["path"])
    before, thing.body["status"] = thing.body["status"], "RECONCILING"

    def finish() -> None:
        thing.body["status"] = before
        apply()

    def fail(failed: Failed) -> None:
        thing.body |= {"status": "DEGRADED", "statusMessage": str(failed)}

    return start(asked, kind, thing.extra["path"], finish, fail)


@handles("container.projects.locations.clusters.update")
def _update(asked: Asked) -> Body:
    found, thing = clusters.find(asked)
    update = {name: value for name, value in (asked.body.get("update") or {}).items() if value is not None}
    if update.get("etag") not in (None, "", shown.etag(thing.body)):
        text = "The etag of the cluster does not match the current one."  # assumed: the wording
        raise Refused(412, text, code="FAILED_PRECONDITION", reason="conditionNotMet")
    fields = [name for name in update if name != "etag"]
    if not fields:
        raise Refused(400, "Must specify a field to update.")
    if len(fields) > 1:
        raise Refused(400, "Exactly one update can be applied to a cluster with each request.")
    free(thing.extra["path"])
    name = fields[0]
    if name == "desiredLocations":
        return _locations(asked, found, thing, list(update[name]))
    kind = "UPGRADE_MASTER" if name == "desiredMasterVersion" else "UPDATE_CLUSTER"
    if name not in CHANGES:
        raise Refused(501, f"the simulator does not change {name} of a cluster", code="UNIMPLEMENTED")
    return busy(asked, thing, kind, CHANGES[name](asked, found, thing, update[name]))


def _replace(field: str) -> Change:
    """The field of the cluster's own takes the value."""
    return lambda _asked, _found, thing, value: lambda: thing.body.update({field: value})


def _gateways(_asked: Asked, _found: Project, thing: Thing, value: Any) -> Apply:
    return lambda: thing.body["networkConfig"].update(gatewayApiConfig=value)


def _master(_asked: Asked, found: Project, thing: Thing, value: Any) -> Apply:
    channel = thing.body["releaseChannel"].get("channel", "")
    wanted = versions.chosen(str(value), channel)
    versions.upgrade(thing.body["currentMasterVersion"], wanted)
    rows = shown.pools_of(found, thing.extra["path"])
    versions.leave_behind({pool.body["name"]: pool.body["version"] for pool in rows}, wanted)
    return lambda: thing.body.update(currentMasterVersion=wanted)


def _channel(_asked: Asked, found: Project, thing: Thing, value: Any) -> Apply:
    """Pools of a cluster in a channel have auto-upgrade, and are not too old for it (rancher/gke-operator issue 492); the channel has to
    have the cluster's minor version, or a newer one."""
    channel = value.get("channel", "UNSPECIFIED")
    current = thing.body["currentMasterVersion"]
    if channel in versions.CHANNELS and versions.minor(current) > versions.minor(versions.valid(channel)[0]):
        text = f"Cluster version {current} is newer than any version of release channel {channel}."  # assumed: the wording
        raise Refused(400, text, code="FAILED_PRECONDITION", reason="failedPrecondition")
    wanted = {} if channel == "UNSPECIFIED" else {"channel": channel}
    rows = shown.pools_of(found, thing.extra["path"]) if wanted else []
    for pool in rows:
        versions.of_nodes(pool.body["version"], current, upgraded=True)

    def apply() -> None:
        thing.body["releaseChannel"] = wanted
        for pool in rows:
            pool.body["management"] = {**pool.body["management"], "autoUpgrade": True}

    return apply


def _endpoints(_asked: Asked, _found: Project, thing: Thing, value: Any) -> Apply:
    ip = value.get("ipEndpointsConfig") or {}
    both = _doors(thing, ip.get("enablePublicEndpoint"), ip.get("authorizedNetworksConfig"))

    def apply() -> None:
        now = thing.body["controlPlaneEndpointsConfig"]
        now["dnsEndpointConfig"] = {**now["dnsEndpointConfig"], **(value.get("dnsEndpointConfig") or {})}
        now["ipEndpointsConfig"] |= {name: item for name, item in ip.items() if name != "authorizedNetworksConfig"}
        both()

    return apply


def _doors(thing: Thing, public: bool | None, networks: Body | None) -> Apply:
    """The public endpoint and the authorised networks; what is not given stays, and both have to fit."""
    ip, before = (thing.body["controlPlaneEndpointsConfig"]["ipEndpointsConfig"], thing.body["masterAuthorizedNetworksConfig"])
    wanted = ip["enablePublicEndpoint"] if public is None else public
    kept = {"gcpPublicCidrsAccessEnabled": before.get("gcpPublicCidrsAccessEnabled", True)}
    after = before if networks is None else {**kept, **networks}
    doors.check_authorized(after, public=wanted)

    def apply() -> None:
        thing.body["masterAuthorizedNetworksConfig"] = after
        thing.body["controlPlaneEndpointsConfig"]["ipEndpointsConfig"] |= {
            "authorizedNetworksConfig": after,
            "enablePublicEndpoint": wanted,
        }
        thing.body["privateClusterConfig"]["enablePrivateEndpoint"] = not wanted

    return apply


def _private_nodes(_asked: Asked, _found: Project, thing: Thing, value: Any) -> Apply:
    """Of pools that are made from now on."""

    def apply() -> None:
        thing.body["networkConfig"]["defaultEnablePrivateNodes"] = bool(value)
        thing.body["privateClusterConfig"]["enablePrivateNodes"] = bool(value)

    return apply


def _addons(_asked: Asked, _found: Project, thing: Thing, value: Any) -> Apply:
    """Add-ons that are not named stay as they are."""
    return lambda: thing.body["addonsConfig"].update(copy.deepcopy(value))


def _workload(_asked: Asked, found: Project, thing: Thing, value: Any) -> Apply:
    """Pools that are there keep their metadata server."""
    clusters.check_workload_pool(found, value.get("workloadPool"))

    def apply() -> None:
        thing.body["workloadIdentityConfig"] = dict(value)
        if value.get("workloadPool"):
            found.shelf("identityPools").setdefault(f"{found.id}.svc.id.goog", Thing({}))

    return apply


def _telemetry(field: str) -> Change:
    """Logging and monitoring: of what is named, the whole."""

    def change(_asked: Asked, _found: Project, thing: Thing, value: Any) -> Apply:
        components = (value.get("componentConfig") or {}).get("enableComponents") or []
        if components and "SYSTEM_COMPONENTS" not in components:
            raise Refused(400, f"SYSTEM_COMPONENTS must be enabled in {field} when other components are.")  # assumed: the wording
        return lambda: thing.body[field].update(copy.deepcopy(value))

    return change


CHANGES: dict[str, Change] = {
    "desiredMasterVersion": _master, "desiredReleaseChannel": _channel,
    "desiredControlPlaneEndpointsConfig": _endpoints, "desiredDefaultEnablePrivateNodes": _private_nodes,
    "desiredAddonsConfig": _addons, "desiredWorkloadIdentityConfig": _workload, "desiredLoggingConfig": _telemetry("loggingConfig"),
    "desiredMonitoringConfig": _telemetry("monitoringConfig"), "desiredLoggingService": _replace("loggingService"),
    "desiredMonitoringService": _replace("monitoringService"), "desiredGatewayApiConfig": _gateways,
}  # fmt: skip


def _locations(asked: Asked, found: Project, thing: Thing, zones: list[str]) -> Body:
    """Of all its node pools, too (desiredLocations: "will update the locations of all node pools")."""
    location, rows = thing.body["location"], shown.pools_of(found, thing.extra["path"])
    for zone in zones:
        clusters.check_zone(zone, catalogue.region_of(location))
    if catalogue.is_zone(location) and location not in zones:
        raise Refused(400, f'Cluster locations must include the cluster\'s zone "{location}".')  # assumed: the wording
    for pool in rows:
        pools.accelerators(copy.deepcopy(pool.body["config"]), zones)

    def apply() -> None:
        thing.body["locations"] = sorted(set(zones))
        for pool in rows:
            pool.body["locations"] = sorted(set(zones))
            nodes.settle(found, thing.body, pool)

    return busy(asked, thing, "UPDATE_CLUSTER", apply)
