# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines and their disks.

Rules: metadata, tags and labels are set whole, with the fingerprint that was read (descriptions of the fields); a machine type or service
account changes only while the machine is stopped (instances.setMachineType, setServiceAccount); what is protected is not deleted; a zone
may have none left (ZONE_RESOURCE_POOL_EXHAUSTED, cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability);
disks that are not auto-deleted stay.
"""

import copy

from .. import catalogue, quotas
from ..api import Asked, Refused, handles
from ..authorise import need
from ..discovery import Body
from ..journal import JOURNAL
from ..operations import Failed
from ..state import Project, Thing, project
from . import machines
from .resources import bare, change, find, fingerprint, insert, invalid, label, link, made, ready, remove, same

STOCK_OUT = (
    "The zone 'projects/{}/zones/{}' does not have enough resources available to fulfill the request.  "
    "Try a different zone, or try again later."
)


HOST_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIO0V4QmYkqVbcyS0Vd3n0VgK8J7b1Y5m1Qy0m7Ue6XkZ"


def stock_out(found: Project, zone: str) -> Failed:
    return Failed("ZONE_RESOURCE_POOL_EXHAUSTED", STOCK_OUT.format(found.id, zone), 503)


@handles("compute.instances.insert")
def _insert(asked: Asked) -> Body:
    found, zone = project(str(asked.params["project"])), str(asked.params["zone"])
    body = made(asked, copy.deepcopy(asked.body), {
        "canIpForward": False, "deletionProtection": False, "startRestricted": False, "status": "PROVISIONING",
        "cpuPlatform": "Unknown CPU Platform",
        "shieldedInstanceConfig": {"enableSecureBoot": False, "enableVtpm": True, "enableIntegrityMonitoring": True},
    })  # fmt: skip
    if bare(body["selfLink"]) in found.shelf("instances"):
        raise Refused(409, f"The resource '{bare(body['selfLink'])}' already exists")
    kind = machines.machine(zone, str(body.get("machineType", "")))
    body["machineType"] = link(f"projects/{found.id}/zones/{zone}/machineTypes/{kind.name}")
    gpus = dict([kind.gpu]) if kind.gpu else {}
    body["scheduling"] = machines.scheduling(body.get("scheduling") or {}, bool(gpus))
    if body.get("serviceAccounts"):
        machines.run_as(asked, found, body["serviceAccounts"])
    if any(row.get("accessConfigs") for row in body.get("networkInterfaces") or []):
        need(asked, "compute.subnetworks.useExternalIp")
    if body.get("labels"):
        need(asked, "compute.instances.setLabels")
    label(body, body.get("labels") or {})
    _marks(body)
    machines.interfaces(asked, found, body)
    disks = machines.disks(asked, found, body)
    spot = body["scheduling"]["provisioningModel"] == "SPOT"
    wanted = quotas.needs(kind, gpus, spot)
    failed = quotas.exceeded(asked, found, catalogue.region_of(zone), wanted)
    if JOURNAL.fault("stock_out", asked.id):
        failed = stock_out(found, zone)
    for path, disk in disks:
        found.shelf("disks")[path] = Thing(disk)

    def finish() -> None:
        body.update(status="RUNNING", cpuPlatform="Intel Broadwell", lastStartTimestamp=body["creationTimestamp"])
        found.shelf("instances")[bare(body["selfLink"])].extra["guest"] = {"hostkeys/ssh-ed25519": HOST_KEY}

    def undo() -> None:
        machines.release(found, body["selfLink"])
        for path, _disk in disks:
            found.shelf("disks").pop(path, None)

    return insert(asked, body, finish, failed, {"machine": kind, "gpus": gpus, "spot": spot}, undo)


def _marks(body: Body) -> None:
    """What is set whole has a fingerprint."""
    tags = {"items": sorted((body.get("tags") or {}).get("items") or [])}
    body["tags"] = {**({"items": tags["items"]} if tags["items"] else {}), "fingerprint": fingerprint(tags)}
    items = (body.get("metadata") or {}).get("items") or []
    keys = [row.get("key") for row in items]
    if len(keys) != len(set(keys)):
        raise invalid("metadata", "", "Duplicate metadata keys are not allowed.")  # assumed: the wording
    body["metadata"] = {"kind": "compute#metadata", "fingerprint": fingerprint(items), **({"items": items} if items else {})}
    body["fingerprint"] = fingerprint([body["tags"], body["metadata"], body.get("labels")])


@handles("compute.instances.getGuestAttributes")
def _guest_attributes(asked: Asked) -> Body:
    """What programs of the machine wrote: at its first boot the guest agent its host keys (guest-agent, instance_setup.go).

    Only if the metadata enables them (cloud.google.com/compute/docs/metadata/manage-guest-attributes). A path that has none is not found,
    in the words that gcloud looks for (googlecloudsdk/command_lib/compute/ssh_utils.py).
    """
    thing, path = find(asked), str(asked.params["queryPath"])
    metadata = {row["key"]: row["value"] for row in thing.body["metadata"].get("items", [])}
    written = thing.extra.get("guest", {}) if metadata.get("enable-guest-attributes") == "TRUE" else {}
    names = [name.split("/", 1) for name in written if name.startswith(path)]
    rows = [{"namespace": space, "key": key, "value": written[f"{space}/{key}"]} for space, key in names]
    if not rows:
        raise Refused(404, f"The resource '{path}' of type 'Guest Attribute' was not found.")
    return {"kind": "compute#guestAttributes", "queryPath": path, "queryValue": {"items": rows}}


@handles("compute.instances.setMetadata")
def _metadata(asked: Asked) -> Body:
    thing = find(asked)
    same(
        asked.body.get("fingerprint"),
        thing.body["metadata"]["fingerprint"],
        "Supplied fingerprint does not match current metadata fingerprint.",
    )
    after = {"metadata": {"items": asked.body.get("items") or []}, "tags": thing.body["tags"]}
    _marks(after)
    return change(asked, thing, {"metadata": after["metadata"]})


@handles("compute.instances.setTags")
def _tags(asked: Asked) -> Body:
    thing = find(asked)
    same(asked.body.get("fingerprint"), thing.body["tags"]["fingerprint"], "Supplied fingerprint does not match current tags fingerprint.")
    after = {"tags": {"items": asked.body.get("items") or []}}
    _marks(after)
    return change(asked, thing, {"tags": after["tags"]})


def _stopped(thing: Thing) -> Thing:
    if thing.body["status"] != "TERMINATED":
        # hashicorp/terraform-provider-google issue 7101; assumed: that the request is refused, and not the operation.
        text = "Invalid resource usage: 'Instance should be in the STOPPED state.'."
        raise Refused(400, text, reason="resourceNotReady")
    return thing


@handles("compute.instances.setMachineType")
def _machine_type(asked: Asked) -> Body:
    thing, zone = _stopped(find(asked)), str(asked.params["zone"])
    kind = machines.machine(zone, str(asked.body.get("machineType", "")))
    thing.extra["machine"] = kind
    return change(asked, thing, {"machineType": link(f"projects/{asked.params['project']}/zones/{zone}/machineTypes/{kind.name}")})


@handles("compute.instances.setServiceAccount")
def _service_account(asked: Asked) -> Body:
    thing = _stopped(find(asked))
    rows = [{"email": asked.body.get("email"), "scopes": asked.body.get("scopes") or []}] if asked.body.get("email") else []
    machines.run_as(asked, project(str(asked.params["project"])), rows)
    return change(asked, thing, {"serviceAccounts": rows or None})


@handles("compute.instances.setScheduling")
def _scheduling(asked: Asked) -> Body:
    thing = find(asked)
    wanted = machines.scheduling(asked.body, bool(thing.extra.get("gpus")))
    if wanted["provisioningModel"] != thing.body["scheduling"]["provisioningModel"]:
        _stopped(thing)
    return change(asked, thing, {"scheduling": wanted})


@handles("compute.instances.setDeletionProtection")
def _protection(asked: Asked) -> Body:
    return change(asked, find(asked), {"deletionProtection": asked.params.get("deletionProtection", True)})


@handles("compute.instances.setDiskAutoDelete")
def _auto_delete(asked: Asked) -> Body:
    thing = find(asked)
    rows = [
        {**row, "autoDelete": asked.params["autoDelete"]} if row["deviceName"] == asked.params["deviceName"] else row
        for row in thing.body["disks"]
    ]
    return change(asked, thing, {"disks": rows})


@handles("compute.instances.addAccessConfig")
def _add_access(asked: Asked) -> Body:
    thing, found = ready(find(asked)), project(str(asked.params["project"]))
    row = copy.deepcopy(thing.body["networkInterfaces"][0])
    if row.get("accessConfigs"):
        raise Refused(400, "At most one access config currently supported.", reason="invalid")
    config = dict(asked.body)
    machines.access(found, config, thing.body["selfLink"], catalogue.region_of(str(asked.params["zone"])))
    return change(asked, thing, {"networkInterfaces": [{**row, "accessConfigs": [config]}]})


@handles("compute.instances.deleteAccessConfig")
def _delete_access(asked: Asked) -> Body:
    thing, found = find(asked), project(str(asked.params["project"]))
    row = copy.deepcopy(thing.body["networkInterfaces"][0])
    row.pop("accessConfigs", None)

    def finish() -> None:
        for address in found.shelf("addresses").values():
            if thing.body["selfLink"] in address.body.get("users", []):
                del address.body["users"]
                address.body["status"] = "RESERVED"

    return change(asked, thing, {"networkInterfaces": [row]}, finish=finish)


@handles("compute.instances.start")
def _start(asked: Asked) -> Body:
    return change(asked, find(asked), {"status": "RUNNING"})


@handles("compute.instances.stop")
def _stop(asked: Asked) -> Body:
    return change(asked, find(asked), {"status": "TERMINATED"})


@handles("compute.instances.delete")
def _delete(asked: Asked) -> Body:
    thing, found = find(asked), project(str(asked.params["project"]))
    if thing.body["deletionProtection"]:
        text = f"Resource cannot be deleted if it's protected against deletion: '{bare(thing.body['selfLink'])}'"
        raise Refused(400, f"Invalid resource usage: '{text}'.", reason="invalidResourceUsage")
    return remove(asked, thing, finish=lambda: forget(found, thing.body))


def forget(found: Project, body: Body) -> None:
    """With a machine go the disks that were made to; the others and its address are free again."""
    machines.release(found, body["selfLink"])
    for row in body["disks"]:
        if row["autoDelete"]:
            found.shelf("disks").pop(bare(row["source"]), None)


@handles("compute.disks.delete")
def _delete_disk(asked: Asked) -> Body:
    thing = find(asked)
    if thing.body.get("users"):
        text = f"The disk resource '{bare(thing.body['selfLink'])}' is already being used by '{bare(thing.body['users'][0])}'"
        raise Refused(400, text, reason="resourceInUseByAnotherResource")
    return remove(asked, thing)


@handles("compute.forwardingRules.delete", "compute.targetPools.delete", "compute.networkEndpointGroups.delete",
         "compute.resourcePolicies.delete")  # fmt: skip
def _delete_other(asked: Asked) -> Body:
    return remove(asked, find(asked))


@handles("compute.resourcePolicies.insert")
def _insert_policy(asked: Asked) -> Body:
    """A placement for TPUs or close nodes."""
    return insert(asked, made(asked, asked.body, {"status": "READY"}))
