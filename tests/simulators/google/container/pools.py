# SPDX-License-Identifier: GPL-3.0-or-later
"""A new node pool: what is checked, and what GKE adds.

Sources: cloud.google.com/kubernetes-engine/docs/how-to/gpus (the driver is installed by default since 1.30.1; the taint nvidia.com/gpu
where there are pools without GPUs), .../how-to/tpus (topologies), .../how-to/provisioningrequest (queued provisioning),
.../concepts/release-channels. Messages: quotas.py (quota); rancher/rancher issue 32282 ("Auto_upgrade and auto_repair cannot be false when
release_channel ... is set") and terraform-google-modules/terraform-google-kubernetes-engine PR 682 (the same of auto_upgrade alone).
"""

import copy
import math

from .. import catalogue, quotas
from ..api import Asked, Refused
from ..authorise import need
from ..discovery import Body
from ..labels import refuse_of_gke, refuse_of_nodes
from ..state import Project, Thing, digest, number, see
from . import ground, shown, versions

SCOPES = [
    f"https://www.googleapis.com/auth/{name}"
    for name in ("devstorage.read_only", "logging.write", "monitoring", "service.management.readonly", "servicecontrol", "trace.append")
]
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
TPU_TAINT = {"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}
LARGER_DISK = versions.key("1.36.3-gke.1480000")
COMPACT = ("a2", "a3", "c2", "c2d", "c3", "c3d", "g2", "h3", "n2", "n2d")


def new(asked: Asked, found: Project, cluster: Thing, given: Body) -> Thing:
    """A pool of a cluster that may not be there yet; nothing is kept."""
    given, body = copy.deepcopy(given), cluster.body
    name = str(given.get("name", ""))
    from .clusters import NAME, check_zone

    if not NAME.match(name):
        raise Refused(
            400, f'Invalid value for field "node_pool.name": "{name}". Must be a match of regex "{NAME.pattern[1:-1]}".'
        )  # assumed
    zones = sorted(set(given.get("locations") or body["locations"]))
    for zone in zones:
        check_zone(zone, catalogue.region_of(body["location"]))
    version = str(given.get("version") or "-")
    version = body["currentMasterVersion"] if version == "-" else versions.chosen(version, "", "Node")
    config, gpus = _config(found, cluster, given.get("config") or {}, zones)
    check_disk(config, version)
    _placement(found, given, config, zones)
    scaling = check_autoscaling(given.get("autoscaling") or {})
    _queued(given, config, scaling)
    count = int(given.get("initialNodeCount") or 0)
    _topology_count(given, config, count, scaling)
    pods = int((given.get("maxPodsConstraint") or {}).get("maxPodsPerNode") or body["defaultMaxPodsConstraint"]["maxPodsPerNode"])
    if not 8 <= pods <= 256:
        raise Refused(400, "Max pods per node must be between 8 and 256.")  # assumed: the wording
    kept = management(given.get("management") or {}, body)
    versions.of_nodes(version, body["currentMasterVersion"], upgraded=kept["autoUpgrade"])
    run_as(asked, found, config)
    path = f"{cluster.extra['path']}/nodePools/{name}"
    pool: Body = {
        **{key: value for key, value in given.items() if value is not None}, "config": config, "locations": zones,
        "version": version, "status": "PROVISIONING",
        "initialNodeCount": count, "autoscaling": scaling, "management": kept,
        "maxPodsConstraint": {"maxPodsPerNode": str(pods)}, "podIpv4CidrSize": ground.pod_bits(pods),
        "networkConfig": _network(given, body),
        "upgradeSettings": upgrade_settings(given.get("upgradeSettings") or {}), "selfLink": _link(path),
    }  # fmt: skip
    return Thing(pool, extra={"path": path, "hash": digest(path, number()), "per_zone": count, "gpus": gpus})


def _link(path: str) -> str:
    from .operations import link

    return link(path)


KUBELET = {"insecureKubeletReadonlyPortEnabled": False, "maxParallelImagePulls": 2}
"""What GKE fills in (k8s-config-connector cdb85ecf17, testdata/basic/container/v1beta1/containernodepool/*/_http.log)."""


def _config(found: Project, cluster: Thing, given: Body, zones: list[str]) -> tuple[Body, dict[str, int]]:
    config: Body = {
        "machineType": "e2-medium", "diskSizeGb": 100, "diskType": "pd-balanced", "imageType": "COS_CONTAINERD",
        "oauthScopes": SCOPES, "serviceAccount": "default",
        "metadata": {"disable-legacy-endpoints": "true"}, "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
        "windowsNodeConfig": {},
        "effectiveCgroupMode": "EFFECTIVE_CGROUP_MODE_V2", "loggingConfig": {"variantConfig": {"variant": "DEFAULT"}},
    }  # fmt: skip
    if cluster.body["workloadIdentityConfig"].get("workloadPool"):
        config["workloadMetadataConfig"] = {"mode": "GKE_METADATA"}
    config |= {name: value for name, value in given.items() if value is not None}
    config["metadata"] = {"disable-legacy-endpoints": "true", **(given.get("metadata") or {})}
    config["kubeletConfig"] = {**KUBELET, **(given.get("kubeletConfig") or {})}
    config["imageType"] = check_image(config["imageType"])
    mode = (config.get("workloadMetadataConfig") or {}).get("mode")
    if mode == "GKE_METADATA" and not cluster.body["workloadIdentityConfig"].get("workloadPool"):
        text = "GKE_METADATA workload metadata mode requires Workload Identity to be enabled on the cluster."  # assumed: the wording
        raise Refused(400, text)
    gpus = accelerators(config, zones)
    config["taints"] = taints(config.get("taints") or [], found, cluster, bool(gpus), config["machineType"])
    model = "spot" if config.get("spot") else "on-demand"
    refuse_of_gke(config.get("resourceLabels"), "node_pool.config.resource_labels")
    refuse_of_nodes(config.get("labels"))
    # GKE's own labels beside the user's, visible in the pool (terraform-google-modules/terraform-google-kubernetes-engine issue 2371).
    config["resourceLabels"] = {**(config.get("resourceLabels") or {}), "goog-gke-node-pool-provisioning-model": model}
    if gpus:
        config["resourceLabels"]["goog-gke-accelerator-type"] = next(iter(gpus))
    config["bootDisk"] = {"diskType": config["diskType"], "sizeGb": str(config["diskSizeGb"])}
    return config, gpus


def check_image(image: str) -> str:
    if image.upper() not in versions.IMAGE_TYPES:
        raise Refused(400, f'Image type "{image}" is not supported.')  # assumed: the wording
    return image.upper()


def check_disk(config: Body, version: str) -> None:
    """NodeConfig.diskSizeGb says how large it has to be."""
    if config["diskType"] not in catalogue.DISK_TYPES:
        raise Refused(400, f'Disk type "{config["diskType"]}" is not supported.')  # assumed: the wording
    least = 15 if versions.key(version) >= LARGER_DISK else 12
    if int(config["diskSizeGb"]) < least:
        raise Refused(400, f"Disk size must be at least {least} GB.")  # assumed: the wording


def accelerators(config: Body, zones: list[str]) -> dict[str, int]:
    """GPUs of each node: the zone has them, the machine can take them, and a machine that is made with some says so."""
    rows, chosen = config.get("accelerators") or [], {}
    for zone in zones:
        for row in rows:
            if not catalogue.has_gpu(zone, str(row.get("acceleratorType"))):
                raise Refused(400, f'Accelerator type "{row.get("acceleratorType")}" does not exist in zone {zone}.')
        if catalogue.machine(zone, config["machineType"]) is None:
            raise Refused(
                400, f'Invalid machine type "{config["machineType"]}" in zone "{zone}": GCE_NOT_FOUND'
            )  # keras-team/kinetic issue 305
    kind = catalogue.machine(zones[0], config["machineType"])
    for row in rows:
        name, count = str(row["acceleratorType"]), int(row.get("acceleratorCount") or 0)
        fits = kind and ((name, count) == kind.gpu if kind.gpu else kind.family == "n1" and count in catalogue.CHOICE.get(name, ()))
        if not fits:
            text = f"Machine type {config['machineType']} does not support {count} accelerators of type {name}."  # assumed: the wording
            raise Refused(400, text)
        chosen[name] = count
        row["acceleratorCount"] = str(count)
        row.setdefault("gpuDriverInstallationConfig", {"gpuDriverVersion": "DEFAULT"})
    if kind and kind.gpu and not rows:
        text = f"Machine type {config['machineType']} requires accelerators: {kind.gpu[1]} of type {kind.gpu[0]}."  # assumed: the wording
        raise Refused(400, text)
    return chosen


def taints(rows: list[Body], found: Project, cluster: Thing, gpus: bool, machine: str) -> list[Body]:
    """As asked, and those that keep other pods away from accelerators."""
    own: list[Body] = [TPU_TAINT] if machine in catalogue.TPUS else []
    others = shown.pools_of(found, cluster.extra["path"]) if "path" in cluster.extra else []
    if gpus and any(not pool.extra["gpus"] for pool in others):
        own = [GPU_TAINT]
    keys = [(row.get("key"), row.get("effect")) for row in rows]
    if len(keys) != len(set(keys)):
        raise Refused(400, "Duplicate taints of one key and effect.")  # assumed: the wording
    return [*rows, *(one for one in own if (one["key"], one["effect"]) not in keys)]


def _placement(found: Project, given: Body, config: Body, zones: list[str]) -> None:
    """Of TPUs: xpk PR 825 has the refusal of a single host; PlacementPolicy.policyName that of a policy that is not there."""
    placement = given.get("placementPolicy") or {}
    topology, tpu = placement.get("tpuTopology"), catalogue.TPUS.get(config["machineType"])
    policy = f"projects/{found.id}/regions/{catalogue.region_of(zones[0])}/resourcePolicies/{placement.get('policyName')}"
    if placement.get("policyName") and policy not in found.shelf("resourcePolicies"):
        raise Refused(400, f"Resource policy '{policy}' was not found.")  # assumed: the wording
    if tpu and topology in tpu.one_host:
        text = "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from the node pool creation"
        raise Refused(400, f"{text} request if the node pool is intented to run with single-host TPU slice nodes.")
    if topology and tpu is None:
        raise Refused(400, f"TPU topology cannot be specified for machine type {config['machineType']}.")  # assumed: the wording
    if tpu and topology and topology not in (*tpu.one_host, *tpu.hosts):
        valid = ", ".join((*tpu.one_host, *tpu.hosts))
        text = f'TPU topology "{topology}" is invalid for machine type {config["machineType"]}; valid: {valid}.'
        raise Refused(400, text)  # assumed: the wording
    if tpu and topology in tpu.hosts and len(zones) != 1:
        raise Refused(400, "A multi-host TPU slice node pool must have exactly one zone.")  # assumed: the wording
    if placement.get("type") == "COMPACT" and not tpu and config["machineType"].split("-")[0] not in COMPACT:
        raise Refused(400, f"Compact placement is not supported for machine type {config['machineType']}.")  # assumed: the wording


def misplaced(found: Project, thing: Thing) -> str:
    """Why Compute Engine makes no group of these machines, which ends the pool in ERROR (vllm-project/ci-infra PR 547)."""
    tpu, placement = catalogue.TPUS.get(thing.body["config"]["machineType"]), thing.body.get("placementPolicy") or {}
    if not (tpu and tpu.workload_policy and placement.get("tpuTopology")):
        return ""
    region = catalogue.region_of(thing.body["locations"][0])
    policy = found.shelf("resourcePolicies").get(f"projects/{found.id}/regions/{region}/resourcePolicies/{placement.get('policyName')}")
    wanted = {"type": "HIGH_THROUGHPUT", "acceleratorTopology": placement["tpuTopology"]}
    if policy and not placement.get("type") and (policy.body.get("workloadPolicy") or {}).items() >= wanted.items():
        return ""
    machine = thing.body["config"]["machineType"]
    text = f"Creation of a managed instance group with {machine} machine type with placement policy is not supported."
    return f"{text} Use workload policy instead."


def _hosts(pool: Body, config: Body) -> int:
    """Machines of a slice of several; 0 for any other pool."""
    tpu, topology = catalogue.TPUS.get(config["machineType"]), (pool.get("placementPolicy") or {}).get("tpuTopology")
    return math.prod(int(word) for word in topology.split("x")) // tpu.chips if tpu and topology in tpu.hosts else 0


def _topology_count(given: Body, config: Body, count: int, scaling: Body) -> None:
    """A slice of several hosts is whole or not there."""
    hosts = _hosts(given, config)
    if hosts and (count not in (0, hosts) or (count == 0 and not scaling.get("enabled"))):
        # assumed: worded like the maximum
        text = f"Initial node count {count} is not a valid size of TPU pod slice with topology"
        raise Refused(400, f"{text} {given['placementPolicy']['tpuTopology']}")
    check_slice(given, config, scaling)


def check_slice(pool: Body, config: Body, scaling: Body) -> None:
    """Its maximum is that of a zone, which is nought where totalMaxNodeCount is used (vllm-project/ci-infra PR 545)."""
    hosts, most = _hosts(pool, config), int(scaling.get("maxNodeCount") or 0)
    if hosts and scaling.get("enabled") and most != hosts:
        text = f"Maximum node count {most} is not a valid size of TPU pod slice with topology"
        raise Refused(400, f"{text} {pool['placementPolicy']['tpuTopology']}")


def check_autoscaling(given: Body) -> Body:
    if not given.get("enabled"):
        return {}
    each = [int(given.get(name) or 0) for name in ("minNodeCount", "maxNodeCount")]
    total = [int(given.get(name) or 0) for name in ("totalMinNodeCount", "totalMaxNodeCount")]
    if any(each) and any(total):
        raise Refused(
            400, "Only one of min/max node count and total min/max node count can be set."
        )  # NodePoolAutoscaling.totalMaxNodeCount; assumed: the wording
    least, most = total if any(total) else each
    if most < 1 or least > most or least < 0:
        raise Refused(
            400,
            f"Invalid autoscaling: minimum {least} and maximum {most}; max_node_count must be at least 1 and min_node_count not above it.",
        )
    return {"locationPolicy": "BALANCED", **given}


def _queued(given: Body, config: Body, scaling: Body) -> None:
    if not (given.get("queuedProvisioning") or {}).get("enabled"):
        return
    affinity = (config.get("reservationAffinity") or {}).get("consumeReservationType")
    if not scaling.get("enabled") or given.get("initialNodeCount") or affinity != "NO_RESERVATION":
        # hashicorp/terraform-provider-google issue 18341; GoogleCloudPlatform/k8s-config-connector PR 11085; assumed: the second's wording
        text = "Queued_provisioning requires reservation affinity to be set to none"
        if affinity == "NO_RESERVATION":
            text = "Queued_provisioning requires autoscaling from zero nodes"
        raise Refused(400, text)


def management(given: Body, cluster: Body) -> Body:
    channel = cluster["releaseChannel"].get("channel")
    wanted = {"autoRepair": True, "autoUpgrade": True, **given} if not given else {"autoRepair": False, "autoUpgrade": False, **given}
    if channel not in (None, "UNSPECIFIED") and not wanted["autoUpgrade"]:
        raise Refused(400, f"Auto_upgrade must be true when release_channel {channel} is set.")
    return wanted


def upgrade_settings(given: Body) -> Body:
    surge = given and not given.get("blueGreenSettings") and given.get("strategy", "SURGE") == "SURGE"
    if surge and not int(given.get("maxSurge") or 0) and not int(given.get("maxUnavailable") or 0):
        raise Refused(400, "Max_surge and max_unavailable cannot both be zero.")  # assumed: the wording
    return {"strategy": "SURGE", **(given or {"maxSurge": 1})}


def _network(given: Body, cluster: Body) -> Body:
    policy = cluster["ipAllocationPolicy"]
    wanted = given.get("networkConfig") or {}
    return {
        "podRange": policy.get("clusterSecondaryRangeName", ""), "podIpv4CidrBlock": policy.get("clusterIpv4CidrBlock", ""),
        "enablePrivateNodes": cluster["networkConfig"]["defaultEnablePrivateNodes"], "podIpv4RangeUtilization": 0.0, **wanted,
    }  # fmt: skip


def run_as(asked: Asked, found: Project, config: Body) -> None:
    """The nodes' service account exists, is known to GKE by now, and the caller may act as it."""
    email = str(config["serviceAccount"])
    wanted = f"{found.number}-compute@developer.gserviceaccount.com" if email == "default" else email
    thing = found.shelf("serviceAccounts").get(wanted)
    if wanted.startswith(found.number):
        thing = thing and Thing(thing.body, unseen={"container": 0})
    if not see(thing, "container"):
        raise Refused(400, f'Service account "{wanted}" does not exist.')  # midl-dev/tezos-on-gke issue 45
    try:
        need(asked, "iam.serviceAccounts.actAs")
    except Refused as refused:
        text = f'The user does not have access to service account "{email}". Ask a project owner to grant you the'
        raise Refused(403, f"{text} iam.serviceAccountUser role on the service account.") from refused


def afford(asked: Asked, found: Project, made: list[Thing]) -> None:
    """Whether quotas suffice for all of them."""
    for pool in made:
        count, config = int(pool.extra["per_zone"]) * len(pool.body["locations"]), pool.body["config"]
        region = catalogue.region_of(pool.body["locations"][0])
        one = quotas.needs(
            catalogue.machine(pool.body["locations"][0], config["machineType"]), pool.extra["gpus"], bool(config.get("spot"))
        )
        solid = "DISKS_TOTAL_GB" if config["diskType"] == "pd-standard" else "SSD_TOTAL_GB"
        one[solid] = float(config["diskSizeGb"])
        if not pool.body["networkConfig"].get("enablePrivateNodes"):
            one["IN_USE_ADDRESSES"] = 1.0
        quotas.refuse(asked, found, region, {metric: amount * count for metric, amount in one.items()} if count else {})
