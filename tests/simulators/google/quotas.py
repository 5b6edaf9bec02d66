# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas of the project, and what is used of them.

Metrics and words: compute's Quota in the discovery document, cloud.google.com/compute/resource-usage; limits as a project has that asked
for some GPUs. The operation of compute ends with QUOTA_EXCEEDED; GKE refuses the request at
once ("Insufficient regional quota to satisfy request": terraform-google-modules/terraform-google-kubernetes-engine issue 1795; "project
quota" for what counts in all regions: kubeflow/examples issue 597).
"""

from . import catalogue
from .api import Asked, Refused
from .journal import JOURNAL
from .operations import Failed
from .state import Project, Thing

GLOBAL = {
    "NETWORKS": 15.0, "FIREWALLS": 100.0, "ROUTERS": 20.0, "SUBNETWORKS": 100.0, "GPUS_ALL_REGIONS": 32.0,
    "CPUS_ALL_REGIONS": 1000.0,
}  # fmt: skip
REGIONAL = {
    "CPUS": 256.0, "PREEMPTIBLE_CPUS": 256.0, "DISKS_TOTAL_GB": 20480.0, "SSD_TOTAL_GB": 20480.0, "STATIC_ADDRESSES": 8.0,
    "IN_USE_ADDRESSES": 64.0, "INSTANCES": 720.0, **dict.fromkeys(catalogue.QUOTA_OF_GPU.values(), 16.0),
    **{f"PREEMPTIBLE_{metric}": 16.0 for metric in catalogue.QUOTA_OF_GPU.values()},
}  # fmt: skip
SHELVES = {"NETWORKS": "networks", "FIREWALLS": "firewalls", "ROUTERS": "routers", "SUBNETWORKS": "subnetworks"}


def limit(metric: str) -> float:
    return {**GLOBAL, **REGIONAL}[metric]


def used(found: Project, metric: str, region: str) -> float:
    if metric in SHELVES:
        return float(len(found.shelf(SHELVES[metric])))
    if metric == "STATIC_ADDRESSES":
        rows = found.shelf("addresses")
        return float(sum(1 for key, thing in rows.items() if f"regions/{region}/" in key and thing.body.get("addressType") == "EXTERNAL"))
    instances = [t for key, t in found.shelf("instances").items() if not region or f"zones/{region}-" in key]
    if metric == "INSTANCES":
        return float(len(instances))
    if metric == "IN_USE_ADDRESSES":
        return float(sum(1 for thing in instances if thing.body["networkInterfaces"][0].get("accessConfigs")))
    if metric.endswith("_TOTAL_GB"):
        return _disks(found, metric, region)
    return sum(_of_instance(thing, metric) for thing in instances)


def _disks(found: Project, metric: str, region: str) -> float:
    rows = [t.body for key, t in found.shelf("disks").items() if f"zones/{region}-" in key]
    solid = [row for row in rows if not row["type"].endswith("pd-standard")]
    chosen = solid if metric == "SSD_TOTAL_GB" else [row for row in rows if row not in solid]
    return float(sum(int(row["sizeGb"]) for row in chosen))


def _of_instance(thing: Thing, metric: str) -> float:
    return needs(thing.extra.get("machine"), thing.extra.get("gpus", {}), bool(thing.extra.get("spot"))).get(metric, 0.0)


def needs(machine: catalogue.Machine | None, gpus: dict[str, int], spot: bool) -> dict[str, float]:
    """What one machine takes. Spot GPUs have quotas of their own; spot processors come from the usual one where there is no other."""
    if machine is None or machine.tpu:
        return {}
    wanted = {"CPUS_ALL_REGIONS": float(machine.cpus), "INSTANCES": 1.0, "CPUS": float(machine.cpus)}
    for gpu, count in gpus.items():
        metric = catalogue.QUOTA_OF_GPU[gpu]
        wanted[f"PREEMPTIBLE_{metric}" if spot else metric] = float(count)
        if not spot:
            wanted["GPUS_ALL_REGIONS"] = float(count)
    return wanted


def short(asked: Asked, found: Project, region: str, wanted: dict[str, float]) -> tuple[str, float, float, float] | None:
    """(metric, wanted, used, limit) of the first that does not suffice. The fault `quota` (metric) makes one so."""
    if fault := JOURNAL.fault("quota", asked.id):
        metric = str(fault.detail.get("metric", "CPUS"))
        return metric, wanted.get(metric, 1.0), limit(metric), limit(metric)
    for metric, amount in wanted.items():
        has = used(found, metric, "" if metric in GLOBAL else region)
        if has + amount > limit(metric):
            return metric, amount, has, limit(metric)
    return None


def exceeded(asked: Asked, found: Project, region: str, wanted: dict[str, float]) -> Failed | None:
    """As an operation of compute says it."""
    row = short(asked, found, region, wanted)
    if row is None:
        return None
    metric, _amount, _used, most = row
    where = "globally" if metric in GLOBAL else f"in region {region}"
    return Failed("QUOTA_EXCEEDED", f"Quota '{metric}' exceeded.  Limit: {most} {where}.", 403)


def refuse(asked: Asked, found: Project, region: str, wanted: dict[str, float]) -> None:
    """As GKE says it."""
    row = short(asked, found, region, wanted)
    if row is None:
        return
    metric, amount, has, most = row
    text = (
        f'Insufficient {"project" if metric in GLOBAL else "regional"} quota to satisfy request: resource "{metric}": request requires '
        f"'{amount}' and is short "
        f"'{has + amount - most}'. project has a quota of '{most}' with '{max(most - has, 0.0)}' available. View and manage quotas at "
        f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={found.id}."
    )
    raise Refused(403, text)
