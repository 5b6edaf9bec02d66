# SPDX-License-Identifier: GPL-3.0-or-later
"""Node pools of GKE as values: the desired state, and the requests that lead to it."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, Plan
from .._cloud.texts import refuse_twice
from .._core.errors import InvalidInput
from .api import Api
from .compare import merged
from .errors import STOCKOUT
from .gke import CLUSTERS, GkeResource, is_whole
from .labels import refuse_metadata, refuse_node_labels, refuse_tags
from .plan import Step
from .resource import Change
from .tpu_slices import hosts_of

POOLS = f"{CLUSTERS}.nodePools"
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_CONFIG = "config."
# Changes that give a pool new machines come in one request, so that it gets them once.
_MACHINES = ("config.machineType", "config.diskType", "config.diskSizeGb")
# Each of the others is a request of its own (UpdateNodePoolRequest).
_UPDATES = (
    "config.labels", "config.taints", "config.tags", "config.resourceManagerTags", "locations", "upgradeSettings", "nodeDrainConfig",
    "maintenancePolicy", "queuedProvisioning", "config.workloadMetadataConfig", "config.gvnic", "config.fastSocket", "config.gcfsConfig",
    "config.kubeletConfig", "config.linuxNodeConfig", "config.containerdConfig", "config.loggingConfig", "config.confidentialNodes",
    "config.storagePools", "config.flexStart", "config.maxRunDuration", "config.consolidationDelay", "config.accelerators",
    "config.bootDisk", "config.imageType", "version",
)  # fmt: skip
# Fields whose request has a list or a dict in an object of its own.
_WRAPPED = {"labels": "labels", "taints": "taints", "tags": "tags", "resourceLabels": "labels"}
# Their requests replace the whole (terraform-provider-google sends all of linux_node_config and kubelet_config, and nothing for none).
_WHOLE = ("kubeletConfig", "linuxNodeConfig")
# Taints that GKE gives nodes by itself.
_GOOGLES_TAINTS = (
    "nvidia.com/gpu", "google.com/tpu", "kubernetes.io/arch", "sandbox.gke.io/runtime", "cloud.google.com/gke-queued",
)  # fmt: skip
_GOOGLES_LABELS = ("goog-", "cloud.google.com/")
# Metadata that GKE gives nodes by itself since 1.12 (node_config of google_container_node_pool, documentation of the field metadata).
_GOOGLES_METADATA = ("disable-legacy-endpoints",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GkeNodePool(GkeResource):
    """Options that are None keep their live value; Google chooses them when the pool is created.

    ``body`` and ``seen`` have the fields of ``config`` as ``config.machineType`` and so on, because each is changed by itself.
    """

    NOUN, LABEL = "GKE node pool", "GKE node pool {name} of cluster {cluster_name}"
    COLLECTION, METHODS = "nodePools", POOLS
    REPAIRED = "Delete it (state: absent) and run again; with owner, the module does that itself"
    PARENT = "projects/{project}/locations/{location}/clusters/{cluster_name}"
    ONCE = frozenset({"initialNodeCount"})
    IDENTITY = ("name",)
    # The mark first, so that an interrupted adoption is known as ours; then what is quick, then new machines, then their number.
    CHANGES = (
        *(Change((name,), "update", "PUT") for name in ("config.resourceLabels", *_UPDATES[:-3])),
        Change(_MACHINES, "update", "PUT"),
        *(Change((name,), "update", "PUT") for name in _UPDATES[-3:]),
        Change(("management",), "setManagement", "POST", ":setManagement"),
        Change(("autoscaling",), "setAutoscaling", "POST", ":setAutoscaling"),
        Change(("nodeCount",), "setSize", "POST", ":setSize"),
    )
    FIXED_HINT = "Create a second node pool with the new value, drain this one, and delete it"

    cluster_name: str
    config: Body | None = None
    autoscaling: Body | None = None
    initial_node_count: int | None = None
    node_count: int | None = None
    node_locations: list[str] | None = None
    management: Body | None = None
    upgrade_settings: Body | None = None
    placement_policy: Body | None = None
    max_pods_per_node: int | None = None
    queued_provisioning: bool | None = None

    def read(self, api: Api) -> Body | None:
        """Read the pool.

        If the desired version is a short form, the control plane's version is added; if a number of nodes is desired, the number in each
        zone, which only the instance groups show.
        """
        live = super().read(api)
        if live is not None and self.version and not is_whole(self.version):
            cluster = api.read(self.label, self.SERVICE, self.parent) or {}
            live = {**live, "_master": cluster.get("currentMasterVersion", "")}
        if live is None or self.node_count is None:
            return live
        groups = [url.split("/v1/", 1)[-1] for url in live.get("instanceGroupUrls") or ()]
        sizes = {int((api.read(self.label, "compute", group) or {}).get("targetSize", 0)) for group in groups}
        return {**live, "_nodeCount": sizes.pop() if len(sizes) == 1 else sorted(sizes)}

    def marks(self, live: Body) -> dict[str, str]:
        return dict((live.get("config") or {}).get("resourceLabels") or {})

    def marked(self, live: Body) -> Body:
        labels = (self.config or {}).get("resourceLabels")
        if labels is None and not self.owner:
            return {}
        return {"config.resourceLabels": self.labels_for(live.get("config.resourceLabels"), labels)}

    def body(self) -> Body:
        config = {f"{_CONFIG}{key}": value for key, value in (self.config or {}).items() if key != "resourceLabels"}
        pods, queued = self.max_pods_per_node, self.queued_provisioning
        fixed = {"enabled": False} if self.node_count is not None else None
        return {
            "name": self.name,
            **config,
            "initialNodeCount": self._initial_count(),
            "nodeCount": self.node_count,
            "autoscaling": self.autoscaling or fixed,
            "locations": self.node_locations,
            "version": self.version,
            "management": self.management,
            "upgradeSettings": self.upgrade_settings,
            "placementPolicy": self.placement_policy,
            "maxPodsConstraint": None if pods is None else {"maxPodsPerNode": pods},
            "queuedProvisioning": None if queued is None else {"enabled": queued},
        }

    def _initial_count(self) -> int:
        """Nodes of a new pool in each zone: as asked, or as many as it will have at least."""
        scaling = self.autoscaling or {}
        least = scaling.get("minNodeCount") or min(1, scaling.get("totalMinNodeCount") or 0)
        asked = (count for count in (self.node_count, self.initial_node_count) if count is not None)
        return int(next(asked, least))

    def seen(self, live: Body) -> Body:
        """The live pool without taints, labels and metadata that GKE added; a version at or above the desired one is shown as that."""
        config = dict(live.get("config") or {})
        asked = {row["key"] for row in (self.config or {}).get("taints") or ()}
        config["taints"] = [row for row in config.get("taints") or () if row["key"] in asked or row["key"] not in _GOOGLES_TAINTS]
        for field, own in (("labels", _GOOGLES_LABELS), ("metadata", _GOOGLES_METADATA)):
            named = (self.config or {}).get(field) or {}
            config[field] = {key: value for key, value in (config.get(field) or {}).items() if key in named or not key.startswith(own)}
        flat = {f"{_CONFIG}{key}": value for key, value in config.items()}
        return {**live, **flat, "version": self.version_seen(live.get("version", "")), "nodeCount": live.get("_nodeCount")}

    def validate(self) -> None:
        super().validate()
        config, scaling = self.config or {}, self.autoscaling or {}
        refuse_node_labels(self.label, config.get("labels") or {})
        refuse_metadata(self.label, config.get("metadata") or {})
        refuse_tags(self.label, config.get("tags") or ())
        if scaling.get("enabled") and self.node_count is not None:
            raise InvalidInput(
                f"{self.label}: node_count and autoscaling would each change the number of nodes",
                hint="Leave out one of them; initial_node_count says with how many nodes an autoscaled pool begins",
            )
        for least, most in (("minNodeCount", "maxNodeCount"), ("totalMinNodeCount", "totalMaxNodeCount")):
            if (scaling.get(least) or 0) > (scaling.get(most) or 0):
                raise InvalidInput(
                    f"{self.label}: autoscaling has {least} {scaling.get(least)} and {most} {scaling.get(most)}",
                    hint="The minimum must not be over the maximum",
                )
        self._refuse_totals(scaling)
        refuse_twice(self.label, config.get("taints") or ())

    def _refuse_totals(self, scaling: Body) -> None:
        """GKE judges a slice of several machines by maxNodeCount, the number of a zone; it ignores the total."""
        topology, machine = (self.placement_policy or {}).get("tpuTopology"), (self.config or {}).get("machineType")
        hosts = hosts_of(str(machine), str(topology))
        totals = [key for key in ("totalMinNodeCount", "totalMaxNodeCount") if scaling.get(key) is not None]
        if scaling.get("enabled") and totals and hosts > 1:
            raise InvalidInput(
                f"{self.label}: GKE judges a slice of TPUs by the number of each zone, and autoscaling has {' and '.join(totals)}",
                hint=f"Use min_node_count: 0 and max_node_count: {hosts}",
            )

    def plan(self, live: Body | None) -> Plan:
        """One in ERROR was never provisioned."""
        if live and live.get("status") == "ERROR":
            return self.again(live, empty=True)
        return super().plan(None if live is None or self.going(live) else live)

    def creation(self) -> Step:
        if not (self.autoscaling or {}).get("enabled") and self.node_count is None and self.initial_node_count is None:
            raise InvalidInput(f"{self.label} does not exist", hint="To create it, autoscaling, node_count or initial_node_count is needed")
        step = super().creation()
        pool: Body = {"config": {"oauthScopes": [CLOUD_PLATFORM]}}
        for key, value in step.request.items():
            if key.startswith(_CONFIG):
                pool["config"][key.removeprefix(_CONFIG)] = value
            elif key != "nodeCount" and (key != "version" or is_whole(value)):
                pool[key] = value  # without a whole version, it gets that of the control plane
        return dataclasses.replace(step, request={"nodePool": pool})

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        named = {key.removeprefix(_CONFIG): value for key, value in fields.items()}
        step = super().change_step(change, named, live)
        return dataclasses.replace(step, request=_request(change, named, live), says=_says(fields, live))

    def hint(self, codes: t.Sequence[str]) -> str:
        if STOCKOUT not in codes:
            return ""
        config = self.config or {}
        rows = config.get("accelerators") or ()
        gpus = " and ".join(f"{row.get('acceleratorCount')} x {row.get('acceleratorType')}" for row in rows)
        what = f"{config.get('machineType', 'such a machine')}{f' with {gpus}' if gpus else ''}"
        where = ", ".join(self.node_locations or [self.location])
        ways = ["other zones (node_locations)", "another machine type or accelerator"]
        ways += [] if config.get("spot") else ["spot: true"]
        ways += ["a reservation (reservation_affinity)", "queued_provisioning"]
        return f"Google has no {what} left in {where}. Try {', '.join(ways)}; or run again later"


def _request(change: Change, fields: Body, live: Body) -> Body:
    """The body of a change. The live value is merged into fields that GKE replaces as a whole."""
    if change.method == "setManagement":
        now = {key: bool((live.get("management") or {}).get(key)) for key in ("autoRepair", "autoUpgrade")}
        return {"management": merged(now, fields["management"])}
    if change.method == "setAutoscaling":
        policy = (live.get("autoscaling") or {}).get("locationPolicy")
        kept = {"locationPolicy": policy} if policy and fields["autoscaling"].get("enabled") else {}
        return {"autoscaling": {**kept, **fields["autoscaling"]}}
    if change.method == "setSize":
        return {"nodeCount": fields["nodeCount"]}
    if "upgradeSettings" in fields:
        now, asked = live.get("upgradeSettings") or {}, fields["upgradeSettings"]
        alike = asked.get("strategy") in (None, now.get("strategy"))
        return {"upgradeSettings": merged(now, asked) if alike else asked}
    if "version" in fields:
        # The newest 1.N may be newer than the control plane, which nodes must not be.
        master, asked = live.get("_master") or "", fields["version"]
        return {"nodeVersion": master if master.startswith((f"{asked}.", f"{asked}-")) else asked}
    now = live.get("config") or {}
    whole = {key: merged(now.get(key), fields[key], key) for key in _WHOLE if key in fields}
    return {key: {_WRAPPED[key]: value} if key in _WRAPPED else value for key, value in {**fields, **whole}.items()}


def _says(fields: Body, live: Body) -> str:
    if "version" in fields:
        return f"version {live.get('version')} to {fields['version']}"
    return ", ".join(key.removeprefix(_CONFIG) for key in sorted(fields))
