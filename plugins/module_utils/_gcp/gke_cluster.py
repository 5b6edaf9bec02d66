# SPDX-License-Identifier: GPL-3.0-or-later
"""GKE clusters as values: the desired state, and the requests that lead to it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import re
import typing as t

from .._cloud.plan import Body, Plan, State, camel, camelled, without_none
from .._cloud.texts import network_of
from .._core.errors import InvalidInput
from .api import Api
from .compare import MARK, merged
from .gke import CLUSTERS, GkeResource, pool_owner, reached, refuse_leaving_behind, refuse_skipping
from .gke_access import endpoints, merged_networks, refuse_public_networks
from .plan import Step
from .resource import Change

PROTECTED = "muster-protected"
"""The API has no protection from deletion, so a label remembers it."""
FIRST_POOL = "muster-first-pool"
"""GKE makes no cluster without nodes. These are deleted when it is there; no other pool has this name."""
DISABLED_ADDONS = {
    "horizontal_pod_autoscaling": "horizontalPodAutoscaling",
    "http_load_balancing": "httpLoadBalancing",
    "network_policy": "networkPolicyConfig",
}
ADDONS = (
    "config_connector", "dns_cache", "gce_persistent_disk_csi_driver", "gcp_filestore_csi_driver", "gcs_fuse_csi_driver",
    "gke_backup_agent", "lustre_csi_driver", "parallelstore_csi_driver", "ray_operator", "stateful_ha",
)  # fmt: skip
# Fields of MaintenanceWindow, one of which a cluster with a window has; and one of our own, for those without.
_WINDOWS, _ANY_TIME = {"dailyMaintenanceWindow", "recurringWindow", "recurringMaintenanceWindow"}, "anyTime"
_DAY_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
# GKE shows the second for the first once the cluster has an exclusion (terraform-provider-google, rfc5545RecurrenceDiffSuppress).
_DAILY = ("FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU")
_CHANNELS = {True: "CHANNEL_STANDARD", False: "CHANNEL_DISABLED"}
# Field of a cluster: the one field of ClusterUpdate that changes it, and its name in messages. GKE takes one of them in a request.
UPDATES = {
    "releaseChannel": ("desiredReleaseChannel", "release channel"),
    "controlPlaneEndpointsConfig": ("desiredControlPlaneEndpointsConfig", "access to the control plane"),
    "networkConfig": ("desiredDefaultEnablePrivateNodes", "private nodes"),
    "gatewayApiConfig": ("desiredGatewayApiConfig", "Gateway API"),
    "workloadIdentityConfig": ("desiredWorkloadIdentityConfig", "workload identity"),
    "addonsConfig": ("desiredAddonsConfig", "addons"),
    "monitoringConfig": ("desiredMonitoringConfig", "monitoring"),
    "loggingConfig": ("desiredLoggingConfig", "logging"),
    "locations": ("desiredLocations", "zones of nodes"),
    "currentMasterVersion": ("desiredMasterVersion", "version"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GkeCluster(GkeResource):
    """Options that are None keep their live value; Google chooses them when the cluster is created."""

    NOUN, LABEL = "GKE cluster", "GKE cluster {name}"
    COLLECTION, METHODS = "clusters", CLUSTERS
    REPAIRED = "Delete it (state: absent) and run again"
    PARENT = "projects/{project}/locations/{location}"
    # The mark first, so that an interrupted adoption is known as ours; the version last, as it takes longest.
    CHANGES = (
        Change(("resourceLabels",), "setResourceLabels", "POST", ":setResourceLabels", also=("labelFingerprint",)),
        Change(("maintenancePolicy",), "setMaintenancePolicy", "POST", ":setMaintenancePolicy"),
        *(Change((name,), "update", "PUT") for name in UPDATES),
    )
    FIXED_HINT = "Set the option as it is, or create another cluster"

    network: str | None = None
    subnetwork: str | None = None
    cluster_secondary_range_name: str | None = None
    services_secondary_range_name: str | None = None
    node_locations: list[str] | None = None
    release_channel: t.Literal["UNSPECIFIED", "RAPID", "REGULAR", "STABLE", "EXTENDED"] | None = None
    private_nodes: bool | None = None
    private_endpoint: bool | None = None
    master_ipv4_cidr: str | None = None
    master_authorized_networks: list[Body] | None = None
    workload_identity: bool = True
    managed_prometheus: bool | None = None
    logging_components: list[str] | None = None
    monitoring_components: list[str] | None = None
    addons: dict[str, bool] | None = None
    gateway_api: bool | None = None
    maintenance_window: Body | None = None
    deletion_protection: bool | None = None
    service_account: str | None = None
    labels: dict[str, str] | None = None

    def read(self, api: Api) -> Body | None:
        """The cluster without the password and key that old clusters have."""
        live = super().read(api)
        if live is None or "masterAuth" not in live:
            return live
        authority = live["masterAuth"].get("clusterCaCertificate", "")
        return {**live, "masterAuth": {"clusterCaCertificate": authority}}

    def state(self, live: Body | None) -> State:
        """The state of the cluster; not stable while the first pool is being deleted, which a run that was killed may have begun."""
        if any(pool.get("status") == "STOPPING" for pool in _first_pools(live)):
            return State(stable=False, seen=f"node pool {FIRST_POOL} is STOPPING")
        return super().state(live)

    def marks(self, live: Body) -> dict[str, str]:
        return dict(live.get("resourceLabels") or {})

    def marked(self, live: Body) -> Body:
        """The labels, with the mark of the owner and that of the protection."""
        if self.labels is None and not self.owner and self.deletion_protection is None:
            return {}
        current = live.get("resourceLabels") or {}
        labels = self.labels_for(current, self.labels)
        labels.pop(PROTECTED, None)
        if self.deletion_protection or (self.deletion_protection is None and PROTECTED in current):
            labels[PROTECTED] = "true"
        return {"resourceLabels": labels}

    def body(self) -> Body:
        pool = f"{self.project}.svc.id.goog" if self.workload_identity else ""
        return {
            "name": self.name,
            **self._networks(),
            "locations": self.node_locations,
            "releaseChannel": self.release_channel and {"channel": self.release_channel},
            "controlPlaneEndpointsConfig": endpoints(self.private_endpoint, self.master_authorized_networks),
            "workloadIdentityConfig": {"workloadPool": pool},
            "addonsConfig": _addons(self.addons) if self.addons is not None else None,
            "gatewayApiConfig": None if self.gateway_api is None else {"channel": _CHANNELS[self.gateway_api]},
            "monitoringConfig": self._monitoring(),
            "loggingConfig": _components(self.logging_components),
            "maintenancePolicy": None if self.maintenance_window is None else {"window": _window(self.maintenance_window)},
            "currentMasterVersion": self.version,
        }

    def _networks(self) -> Body:
        region = "-".join(self.location.split("-")[:2])
        ranges = camelled(vars(self), ("cluster_secondary_range_name", "services_secondary_range_name"))
        return {
            "network": self._link(self.network, "global/networks"),
            "subnetwork": self._link(self.subnetwork, f"regions/{region}/subnetworks"),
            "ipAllocationPolicy": {"useIpAliases": True, **ranges} if ranges else None,
            "networkConfig": None if self.private_nodes is None else {"defaultEnablePrivateNodes": self.private_nodes},
            "privateClusterConfig": self.master_ipv4_cidr
            and {"masterIpv4CidrBlock": network_of("master_ipv4_cidr", self.master_ipv4_cidr)},
        }

    def _link(self, name: str | None, place: str) -> str | None:
        """A name as the path of the resource; a path may be of another project (a shared VPC)."""
        return f"projects/{self.project}/{place}/{name}" if name and "/" not in name else name

    def _monitoring(self) -> Body | None:
        found = dict(_components(self.monitoring_components) or {})
        if self.managed_prometheus is not None:
            found["managedPrometheusConfig"] = {"enabled": self.managed_prometheus}
        return found or None

    def seen(self, live: Body) -> Body:
        """The live cluster for a comparison: full path of the network, channel UNSPECIFIED, and the desired version once it is reached.

        The Gateway API is a field beside networkConfig, which contains it, because another request changes it.
        """
        networks = live.get("networkConfig") or {}
        named = {key: networks[key] for key in ("network", "subnetwork") if networks.get(key)}
        channel = {"channel": (live.get("releaseChannel") or {}).get("channel") or "UNSPECIFIED"}
        gateways = {"channel": (networks.get("gatewayApiConfig") or {}).get("channel") or _CHANNELS[False]}
        policy = live.get("maintenancePolicy") or {}
        window = dict(policy.get("window") or {})
        recurring = window.get("recurringWindow") or {}
        if recurring.get("recurrence") in _DAILY and (self.maintenance_window or {}).get("recurrence") in _DAILY:
            window["recurringWindow"] = {**recurring, "recurrence": (self.maintenance_window or {})["recurrence"]}
        return {
            **live,
            **named,
            "maintenancePolicy": {**policy, "window": {**window, _ANY_TIME: not _WINDOWS & window.keys()}},
            "releaseChannel": channel,
            "gatewayApiConfig": gateways,
            "currentMasterVersion": self.version_seen(live.get("currentMasterVersion", "")),
        }

    def validate(self) -> None:
        super().validate()
        if self.private_endpoint and self.private_nodes is False:
            raise InvalidInput(f"{self.label}: a control plane without public address needs private nodes", hint="Set private_nodes: true")

    def plan(self, live: Body | None) -> Plan:
        asked = endpoints(self.private_endpoint, self.master_authorized_networks)
        refuse_public_networks(self.label, asked, (live or {}).get("controlPlaneEndpointsConfig"))
        if live is None or self.going(live):
            made = super().plan(None)
            return dataclasses.replace(made, steps=(*made.steps, self._drop_first_pool()))
        if live["status"] == "ERROR":
            return self.again(live, empty=not [pool for pool in live.get("nodePools") or () if pool["name"] != FIRST_POOL])
        if self.version and not reached(live["currentMasterVersion"], self.version):
            refuse_skipping(self.label, live["currentMasterVersion"], self.version)
            refuse_leaving_behind(self.label, live.get("nodePools") or (), self.version)
        plan = super().plan(live)
        if not _first_pools(live):
            return plan
        before, after = {**plan.before, "nodePools": [FIRST_POOL]}, {**plan.after, "nodePools": []}
        return Plan((*plan.steps, self._drop_first_pool()), before, after)

    def _drop_first_pool(self) -> Step:
        says = "delete the nodes that GKE wants for a new cluster"
        return self.step("nodePools.delete", says, suffix=f"/nodePools/{FIRST_POOL}", verb="DELETE")

    def creation(self) -> Step:
        if not self.network or not self.subnetwork:
            raise InvalidInput(f"{self.label} does not exist", hint="To create it, network and subnetwork are needed")
        step = super().creation()
        cluster = dict(step.request)
        if version := cluster.pop("currentMasterVersion", None):
            cluster["initialClusterVersion"] = version
        if policy := cluster.pop("maintenancePolicy", None):
            window = {key: value for key, value in policy["window"].items() if key != _ANY_TIME}
            cluster |= {"maintenancePolicy": {"window": window}} if window else {}
        if not self.workload_identity:
            del cluster["workloadIdentityConfig"]
        if gateways := cluster.pop("gatewayApiConfig", None):
            cluster["networkConfig"] = {**cluster.get("networkConfig", {}), "gatewayApiConfig": gateways}
        config = {
            "machineType": "e2-medium",
            "serviceAccount": self.service_account,
            "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "resourceLabels": {MARK: self.owner} if self.owner else None,
        }
        cluster["nodePools"] = [{"name": FIRST_POOL, "initialNodeCount": 1, "config": without_none(config)}]
        return dataclasses.replace(step, request={"cluster": cluster})

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        step = super().change_step(change, fields, live)
        ((field, value),) = fields.items()
        if field == "resourceLabels":
            return dataclasses.replace(step, says="labels")
        if field == "maintenancePolicy":
            policy = live.get("maintenancePolicy") or {}
            kept = (policy.get("window") or {}).get("maintenanceExclusions")
            window = {**({"maintenanceExclusions": kept} if kept else {}), **value["window"]}
            window.pop(_ANY_TIME, None)
            return dataclasses.replace(step, request={"maintenancePolicy": {**policy, "window": window}}, says="maintenance window")
        name, says = UPDATES[field]
        if field == "currentMasterVersion":
            says = f"version {live[field]} to {value}"
        return dataclasses.replace(step, request={"update": {name: _update(field, value, live)}}, says=says)

    def deletions(self, live: Body) -> list[Step]:
        if PROTECTED in self.marks(live) and self.deletion_protection is not False:
            raise InvalidInput(
                f"{self.label} is protected from deletion",
                hint="Set deletion_protection: false together with state: absent to delete it all the same",
            )
        return super().deletions(live)

    def used_by(self, live: Body) -> str:
        """Node pools go with their cluster, so those of others keep it; those of an Autopilot cluster are its own."""
        if not self.owner or (live.get("autopilot") or {}).get("enabled"):
            return ""
        pools = [one for one in live.get("nodePools") or () if not (one.get("autoscaling") or {}).get("autoprovisioned")]
        theirs = ", ".join(sorted(one["name"] for one in pools if pool_owner(one) != self.owner))
        return f"has node pools of others ({theirs}), which would go with it" if theirs else ""


def _first_pools(live: Body | None) -> list[Body]:
    return [pool for pool in (live or {}).get("nodePools") or () if pool["name"] == FIRST_POOL]


def _update(field: str, value: t.Any, live: Body) -> t.Any:
    """The value of the field of ClusterUpdate. The live value is merged into fields that GKE replaces as a whole."""
    if field == "networkConfig":
        return value["defaultEnablePrivateNodes"]
    if field in ("monitoringConfig", "loggingConfig"):
        return merged(live.get(field), value)
    return merged_networks(live.get(field), value) if field == "controlPlaneEndpointsConfig" else value


def _addons(addons: dict[str, bool]) -> Body:
    asked = {key: value for key, value in addons.items() if value is not None}
    off = {DISABLED_ADDONS[key]: {"disabled": not value} for key, value in asked.items() if key in DISABLED_ADDONS}
    return {**off, **{f"{camel(key)}Config": {"enabled": value} for key, value in asked.items() if key in ADDONS}}


def _components(names: list[str] | None) -> Body | None:
    return None if names is None else {"componentConfig": {"enableComponents": names}}


def _window(asked: Body) -> Body:
    """A window every day, one that recurs, or none; times as Google shows them (terraform-provider-google, Rfc3339TimeDiffSuppress)."""
    window: Body = {}
    if start := asked.get("daily_start_time"):
        if not (found := _DAY_TIME.fullmatch(start)):
            raise InvalidInput(f"maintenance_window: {start!r} is no time of a day", hint='Write daily_start_time as "03:00", in quotes')
        window["dailyMaintenanceWindow"] = {"startTime": f"{found[1]:0>2}:{found[2]}"}
    elif asked.get("recurrence"):
        times = {"startTime": _moment(asked["start_time"]), "endTime": _moment(asked["end_time"])}
        window["recurringWindow"] = {"window": times, "recurrence": asked["recurrence"]}
    else:
        window[_ANY_TIME] = True
    return window


def _moment(text: str) -> str:
    """A time in the form of Google's timestamps, in UTC. Ansible writes one that YAML read as a time with a space in it."""
    found = None
    with contextlib.suppress(ValueError):
        found = dt.datetime.fromisoformat(text)
    if found is None or found.tzinfo is None:
        raise InvalidInput(f"maintenance_window: {text!r} is no time with a zone", hint="Write it as 2026-01-03T01:00:00Z")
    return found.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
