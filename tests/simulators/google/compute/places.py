# SPDX-License-Identifier: GPL-3.0-or-later
"""Regions, zones and what each has; the project with its quotas."""

from __future__ import annotations

from .. import catalogue, quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import Project, project
from .lists import page
from .resources import link, where


def _project(asked: Asked) -> Project:
    return project(str(asked.params["project"]))


def _missing(asked: Asked) -> Refused:
    return Refused(404, f"The resource '{asked.path.split('/v1/', 1)[-1]}' was not found")


@handles("compute.projects.get")
def _get_project(asked: Asked) -> Body:
    found = _project(asked)
    return {
        "kind": "compute#project", "id": "5000000000000000001", "creationTimestamp": "2026-01-15T02:00:00.000-08:00", "name": found.id,
        "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": "AAAAAAAAAAA="}, "quotas": quotas.rows(found),
        "selfLink": link(f"projects/{found.id}"), "defaultServiceAccount": f"{found.number}-compute@developer.gserviceaccount.com",
        "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS", "defaultNetworkTier": "PREMIUM", "vmDnsSetting": "ZONAL_ONLY",
    }  # fmt: skip


def _region(found: Project, name: str) -> Body:
    where_ = f"projects/{found.id}/regions/{name}"
    return {
        "kind": "compute#region", "id": str(1000 + catalogue.regions().index(name)), "name": name, "description": name, "status": "UP",
        "zones": [link(f"projects/{found.id}/zones/{zone}") for zone in catalogue.zones(name)], "quotas": quotas.rows(found, name),
        "selfLink": link(where_), "supportsPzs": False,
    }  # fmt: skip


def _zone(found: Project, name: str) -> Body:
    return {
        "kind": "compute#zone", "id": str(2000 + catalogue.zones().index(name)), "name": name, "description": name, "status": "UP",
        "region": link(f"projects/{found.id}/regions/{catalogue.region_of(name)}"), "selfLink": link(f"projects/{found.id}/zones/{name}"),
        "availableCpuPlatforms": ["Intel Broadwell", "Intel Cascade Lake", "Intel Skylake", "AMD Rome"], "supportsPzs": False,
    }  # fmt: skip


@handles("compute.regions.get")
def _get_region(asked: Asked) -> Body:
    if asked.params["region"] not in catalogue.regions():
        raise _missing(asked)
    return _region(_project(asked), str(asked.params["region"]))


@handles("compute.regions.list")
def _list_regions(asked: Asked) -> Body:
    return page(asked, [_region(_project(asked), name) for name in catalogue.regions()], "region")


@handles("compute.zones.get")
def _get_zone(asked: Asked) -> Body:
    if asked.params["zone"] not in catalogue.zones():
        raise _missing(asked)
    return _zone(_project(asked), str(asked.params["zone"]))


@handles("compute.zones.list")
def _list_zones(asked: Asked) -> Body:
    return page(asked, [_zone(_project(asked), name) for name in catalogue.zones()], "zone")


def machine_type(found: Project, zone: str, name: str) -> Body | None:
    machine = catalogue.machine(zone, name)
    if machine is None:
        return None
    body: Body = {
        "kind": "compute#machineType", "name": name, "guestCpus": machine.cpus, "memoryMb": machine.memory_mb, "zone": zone,
        "isSharedCpu": machine.shared, "maximumPersistentDisks": 128, "maximumPersistentDisksSizeGb": "263168",
        "selfLink": link(f"projects/{found.id}/zones/{zone}/machineTypes/{name}"), "architecture": "X86_64",
    }  # fmt: skip
    if machine.gpu:
        body["accelerators"] = [{"guestAcceleratorType": machine.gpu[0], "guestAcceleratorCount": machine.gpu[1]}]
    return body


@handles("compute.machineTypes.get")
def _get_machine(asked: Asked) -> Body:
    where(asked)
    body = machine_type(_project(asked), str(asked.params["zone"]), str(asked.params["machineType"]))
    if body is None:
        raise _missing(asked)
    return body


@handles("compute.machineTypes.list")
def _list_machines(asked: Asked) -> Body:
    where(asked)
    found, zone = _project(asked), str(asked.params["zone"])
    rows = [machine_type(found, zone, name) for name in catalogue.machine_names()]
    return page(asked, [row for row in rows if row], "machineType")


def _accelerator(found: Project, zone: str, name: str) -> Body:
    return {
        "kind": "compute#acceleratorType", "name": name, "description": name.replace("-", " ").upper(), "maximumCardsPerInstance": 8,
        "zone": link(f"projects/{found.id}/zones/{zone}"), "selfLink": link(f"projects/{found.id}/zones/{zone}/acceleratorTypes/{name}"),
    }  # fmt: skip


def _accelerators(zone: str) -> list[str]:
    tpus = {tpu.accelerator for tpu in catalogue.TPUS.values() if zone in tpu.zones}
    return [gpu for gpu in catalogue.GPUS if catalogue.has_gpu(zone, gpu)] + sorted(tpus)


@handles("compute.acceleratorTypes.get")
def _get_accelerator(asked: Asked) -> Body:
    where(asked)
    if asked.params["acceleratorType"] not in _accelerators(str(asked.params["zone"])):
        raise _missing(asked)
    return _accelerator(_project(asked), str(asked.params["zone"]), str(asked.params["acceleratorType"]))


@handles("compute.acceleratorTypes.list")
def _list_accelerators(asked: Asked) -> Body:
    where(asked)
    zone = str(asked.params["zone"])
    return page(asked, [_accelerator(_project(asked), zone, name) for name in _accelerators(zone)], "acceleratorType")


@handles("compute.diskTypes.list")
def _list_disk_types(asked: Asked) -> Body:
    where(asked)
    found, zone = _project(asked), str(asked.params["zone"])
    rows = [
        {
            "kind": "compute#diskType", "name": name, "zone": link(f"projects/{found.id}/zones/{zone}"),
            "selfLink": link(f"projects/{found.id}/zones/{zone}/diskTypes/{name}"), "validDiskSize": f"{least}GB-65536GB",
        }
        for name, least in catalogue.DISK_TYPES.items()
    ]  # fmt: skip
    return page(asked, rows, "diskType")
