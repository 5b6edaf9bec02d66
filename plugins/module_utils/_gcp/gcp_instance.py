# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines and their boot disks as values.

The boot disk is made with the machine and outlives it: it holds the data. A machine that is made again gets the disk that is there.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.plan import GONE, Body, Plan, State, found_of, mark_text, whose, without_none
from .._core.clock import Deadline
from .._core.errors import InvalidInput, NotFound
from .._core.waiting import growing_interval, wait_for
from .api import Api
from .compare import mark_of, same
from .labels import refuse_metadata, refuse_tags, texts
from .links import link, network_link
from .plan import Step
from .resource import SET_LABELS, Change, Labelled

STOPPED = "TERMINATED"
# What a machine leaves by itself (Instance.status in compute v1): to stop, and to run, for which nothing has to wait.
_STOPPING, _STARTING = ("DEPROVISIONING", "PENDING_STOP", "STOPPING", "SUSPENDING"), ("PENDING", "PROVISIONING", "REPAIRING", "STAGING")
# All of them: the roles of the service account decide.
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
NIC = "nic0"
# A type or a key of SSH. A program on the machine can publish anything.
_KEY = re.compile(r"[A-Za-z0-9@.+/=-]+")
ACCESS = {"type": "ONE_TO_ONE_NAT", "name": "External NAT"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpDisk(Labelled):
    """A boot disk that its machine left."""

    NOUN = "disk"
    SERVICE, COLLECTION = "compute", "disks"
    PARENT = "projects/{project}/zones/{zone}"

    zone: str
    delete: bool = False

    @property
    def delete_data(self) -> bool:
        return self.delete

    def body(self) -> Body:
        return {"name": self.name}

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002
        return f"holds the data of the machine ({live.get('sizeGb')} GB), and a machine of its name gets it again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpInstance(Labelled):
    """A machine that runs. ``found`` is what was looked up before: the address as a number, and a disk that is there already."""

    NOUN = "machine"
    SERVICE, COLLECTION = "compute", "instances"
    PARENT = "projects/{project}/zones/{zone}"
    CHANGES = (
        SET_LABELS,
        Change(("metadata",), "setMetadata", "POST", "/setMetadata"),
        Change(("tags",), "setTags", "POST", "/setTags"),
        Change(("machineType",), "setMachineType", "POST", "/setMachineType"),
        Change(("serviceAccounts",), "setServiceAccount", "POST", "/setServiceAccount"),
        Change(("scheduling",), "setScheduling", "POST", "/setScheduling"),
        Change(("diskSizeGb",), "resize", "POST", "/resize"),
    )
    HINTS: t.ClassVar = {"INVALID_RESOURCE_USAGE": "The machine is protected against deletion: take that away first, if it may go"}
    AT_REST = ("machineType", "serviceAccounts", "scheduling")
    FIXED_HINT = "Delete the machine and make it again; its boot disk is kept, and the new machine gets it"

    zone: str
    machine_type: str | None = None
    disk: dict[str, t.Any] | None = None
    network: str | None = None
    subnetwork: str | None = None
    address: str | None = None
    tags: t.Sequence[str] | None = None
    metadata: dict[str, str] | None = None
    service_account: str | None = None
    spot: bool = False
    found: Body = dataclasses.field(default_factory=dict)

    @property
    def region(self) -> str:
        return self.zone.rsplit("-", 1)[0]

    def validate(self) -> None:
        refuse_metadata(self.label, texts(self.metadata or {}))
        refuse_tags(self.label, self.tags or ())
        if not (self.network or self.subnetwork):
            raise InvalidInput(f"{self.label} needs network or subnetwork")
        if self.address and "address" not in self.found:
            raise NotFound(
                f"{self.label} is to have the address {self.address}, which does not exist in {self.region}",
                hint="Create it first, by gcp_address",
            )

    def body(self) -> Body:
        account = {"email": self.service_account, "scopes": [SCOPE]}
        return {
            "name": self.name,
            "machineType": self.machine_type and link(self.parent, "machineTypes", self.machine_type),
            "network": self.network and network_link(self.project, self.network),
            "subnetwork": self.subnetwork and link(f"projects/{self.project}/regions/{self.region}", "subnetworks", self.subnetwork),
            "natIP": self.found.get("address"),
            "diskSizeGb": (self.disk or {}).get("size_gb"),
            "diskType": (self.disk or {}).get("type"),
            "tags": None if self.tags is None else sorted(self.tags),
            "metadata": None if self.metadata is None else texts(self.metadata),
            "serviceAccounts": [account] if self.service_account else None,
            "scheduling": {"provisioningModel": "SPOT" if self.spot else "STANDARD"},
        }  # fmt: skip

    def state(self, live: Body | None) -> State:
        if live is None:
            return GONE
        status = str(live.get("status", "there"))
        return State(stable=status not in (*_STOPPING, *_STARTING), seen=status, usable=status in _STARTING)

    def seen(self, live: Body) -> Body:
        nic: Body = next(iter(live.get("networkInterfaces") or ()), {})
        disk = live.get("_disk") or {}
        items = (live.get("metadata") or {}).get("items") or ()
        return {
            **live,
            "network": nic.get("network"),
            "subnetwork": nic.get("subnetwork"),
            "natIP": _access(live).get("natIP"),
            "diskSizeGb": disk.get("sizeGb"),
            "diskType": disk.get("type", "").rsplit("/", 1)[-1],
            # Machines that were made before there were others are shown without a model.
            "scheduling": {"provisioningModel": "STANDARD", **(live.get("scheduling") or {})},
            "tags": (live.get("tags") or {}).get("items") or [],
            "metadata": {row["key"]: row.get("value", "") for row in items},
        }

    def read(self, api: Api) -> Body | None:
        live = super().read(api)
        if live is not None:
            boot: Body = next((row for row in live.get("disks") or () if row.get("boot")), {})
            name = str(boot.get("source", "")).rsplit("/", 1)[-1]
            live["_disk"] = name and api.read(self.label, "compute", f"{self.parent}/disks/{name}")
        return live

    def creation(self) -> Step:
        if not self.machine_type or not self.disk:
            raise InvalidInput(f"{self.label} does not exist, and to create it machine_type and disk are needed")
        body = without_none(self.body())
        nic = {key: body.get(key) for key in ("network", "subnetwork")}
        accesses = [{**ACCESS, "natIP": self.found["address"]}] if self.address else None
        request = {
            "name": self.name,
            "machineType": body["machineType"],
            "disks": [self._boot()],
            "networkInterfaces": [without_none({**nic, "accessConfigs": accesses})],
            "tags": {"items": body.get("tags", [])},
            "metadata": {"items": _items(body.get("metadata", {}))},
            "serviceAccounts": body.get("serviceAccounts"),
            "scheduling": self._scheduling(),
            **self.marked({}),
        }  # fmt: skip
        return dataclasses.replace(super().creation(), request=without_none(request))

    def _boot(self) -> Body:
        """A new disk, or the one that an earlier machine of this name left, if that one was ours."""
        left = self.found.get("disk")
        if left is None:
            disk = self.disk or {}
            new = {
                "diskName": self.name,
                "diskSizeGb": disk.get("size_gb"),
                "diskType": disk.get("type") and link(self.parent, "diskTypes", disk["type"]),
                "sourceImage": disk.get("source_image"),
                **self.marked({}),
            }
            return {"boot": True, "autoDelete": False, "initializeParams": without_none(new)}
        mark = mark_of(self.owner)
        found = found_of(mark, left.get("labels") or {})
        if found != mark:
            raise InvalidInput(
                f"{self.label} would need a disk of its name, and there is one that does not carry the label {mark_text(mark)}:"
                f" {whose(found)}",
                hint="Choose another name, delete the disk, or give it the label if the machine is to boot from it",
            )
        return {"boot": True, "autoDelete": False, "source": f"{self.parent}/disks/{self.name}"}

    def _scheduling(self) -> Body:
        if not self.spot:
            return {"provisioningModel": "STANDARD", "automaticRestart": True, "onHostMaintenance": "MIGRATE"}
        usual = {"provisioningModel": "SPOT", "automaticRestart": False, "onHostMaintenance": "TERMINATE"}
        return {**usual, "instanceTerminationAction": "STOP"}

    def plan(self, live: Body | None) -> Plan:
        plan = super().plan(live)
        if live is None:
            return plan
        if live.get("status") == "SUSPENDED":
            raise InvalidInput(
                f"{self.label} is suspended", hint=f"Run `gcloud compute instances resume {self.name} --zone={self.zone}`, or delete it"
            )
        moves, before, after = self._moves(live), dict(plan.before), dict(plan.after)
        steps = [*plan.steps, *moves]
        if moves:
            before["natIP"], after["natIP"] = _access(live).get("natIP"), self.found["address"]
        if live.get("status") == STOPPED:
            steps.append(self.step("start", "start", suffix="/start"))
            before["status"], after["status"] = STOPPED, "RUNNING"
        return Plan(tuple(steps), before, after)

    def _moves(self, live: Body) -> list[Step]:
        """An address is exchanged by taking the access away and giving another."""
        access, steps = _access(live), []
        if not self.address or access.get("natIP") == self.found["address"]:
            return []
        if access:
            name = access.get("name", ACCESS["name"])
            method, says = "deleteAccessConfig", "take the address away"
            steps.append(self.step(method, says, suffix=f"/{method}", networkInterface=NIC, accessConfig=name))
        method, request = "addAccessConfig", {**ACCESS, "natIP": self.found["address"]}
        return [*steps, self.step(method, "give the address", request, f"/{method}", networkInterface=NIC)]

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        step = super().change_step(change, fields, live)
        key = next(iter(fields))
        self._refuse_running(key, live)
        if key in ("metadata", "tags"):
            items = _items(fields[key]) if key == "metadata" else fields[key]
            request = without_none({"fingerprint": (live.get(key) or {}).get("fingerprint"), "items": items})
        elif key == "serviceAccounts":
            request = fields[key][0]
        elif key == "scheduling":
            request = self._scheduling()
        elif key == "diskSizeGb":
            return self._resize(fields[key], live)
        else:
            return step
        return dataclasses.replace(step, request=request)

    def _resize(self, size: int, live: Body) -> Step:
        disk = live["_disk"]
        if size < int(disk["sizeGb"]):
            raise InvalidInput(
                f"{self.label} has a disk of {disk['sizeGb']} GB; Google cannot make it smaller ({size} GB)",
                hint=f"Give disk.size_gb at least {disk['sizeGb']}",
            )
        path = f"{self.parent}/disks/{disk['name']}/resize"
        return Step("disks.resize", {"sizeGb": str(size)}, "diskSizeGb", self.SERVICE, "stable", path=path)

    def _refuse_running(self, key: str, live: Body) -> None:
        if key in self.AT_REST and live.get("status") != STOPPED:
            raise InvalidInput(
                f"{self.label} runs, and Google changes {key} of a stopped machine only",
                hint=f"Stop it (gcloud compute instances stop {self.name} --zone={self.zone}) and run again: that changes and starts it",
            )

    def _differs(self, key: str, live: t.Any, desired: t.Any) -> bool:
        if key == "natIP":
            return False  # see ``_moves``
        return super()._differs(key, live, desired) if key != "diskType" else not same(live, desired)

    def deletions(self, live: Body) -> list[Step]:
        """Detach every disk from the deletion of the VM. Disks that are to be deleted are deleted by their own request."""
        rows = [row for row in live.get("disks") or () if row.get("autoDelete") and row.get("type") == "PERSISTENT"]
        return [*(self._keep(row["deviceName"]) for row in rows), self.deletion()]

    def _keep(self, device: str) -> Step:
        method = "setDiskAutoDelete"
        return self.step(method, f"keep disk {device}", suffix=f"/{method}", deviceName=device, autoDelete="false")


def _access(live: Body) -> Body:
    nic: Body = next(iter(live.get("networkInterfaces") or ()), {})
    return next(iter(nic.get("accessConfigs") or ()), {})


def _items(metadata: dict[str, str]) -> list[Body]:
    return [{"key": key, "value": value} for key, value in sorted(metadata.items())]


def look_up(api: Api, params: dict[str, t.Any]) -> None:
    """Add what a machine needs to know of others to the options: its address, and a disk of its name."""
    place = f"projects/{params['project']}"
    label, found = f"Google machine {params['name']}", {}
    if params.get("address"):
        region = params["zone"].rsplit("-", 1)[0]
        address = api.read(label, "compute", f"{place}/regions/{region}/addresses/{params['address']}")
        if address or api.lenient:
            found["address"] = (address or {}).get("address", "(made before)")
    found["disk"] = api.read(label, "compute", f"{place}/zones/{params['zone']}/disks/{params['name']}")
    params["found"] = found


def read_host_keys(api: Api, zone: str, name: str, timeout: float) -> list[str]:
    """Wait for the public SSH host keys of a machine and return them as "type key".

    The guest agent writes each as guest attribute hostkeys/TYPE (GoogleCloudPlatform/guest-agent, instance_setup.go, generateSSHKeys), and
    Google answers 404 until there is one.
    """
    label, path = f"Google machine {name}", f"projects/{api.project}/zones/{zone}/instances/{name}/getGuestAttributes"

    def observe() -> tuple[list[str], str | None]:
        answer = api.read(label, "compute", path, queryPath="hostkeys/") or {}
        rows = (answer.get("queryValue") or {}).get("items") or ()
        keys = [f"{row['key']} {row['value']}" for row in rows if _KEY.fullmatch(row["key"]) and _KEY.fullmatch(row["value"])]
        return sorted(keys), None if keys else "there are none"

    hint = "Google's guest agent or cloud-init writes them at the first boot if the metadata has enable-guest-attributes=TRUE"
    pause = growing_interval(1.0, 15.0, api.clock)
    return wait_for(observe, goal=f"{label} has not published its host keys", deadline=Deadline(timeout, api.clock), pause=pause, hint=hint)
