# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is made of: its disks, its interfaces, how it is scheduled, what runs as whom. Each is checked and completed here.

Messages: "Instances with guest accelerators do not support live migration" (loft-sh/devpod issue 973), "... of type 'serviceAccount' was
not found" (GoogleCloudPlatform/terraform-google-nat-gateway issue 86); assumed: "Machine type with name ... does not exist in zone ...",
"External IP address: ... is already in-use".
"""

import ipaddress

from .. import catalogue
from ..api import Asked, Refused
from ..authorise import need
from ..discovery import Body
from ..state import Project, Thing, long_id, now, number, see
from .images import resolve
from .resources import bare, fingerprint, invalid, link, refer


def machine(zone: str, url: str) -> catalogue.Machine:
    name = str(url).rsplit("/", 1)[-1]
    if "/" in str(url) and f"zones/{zone}/" not in str(url):
        raise invalid("machineType", url, f"The machine type is not in zone {zone}.")  # assumed: the wording
    if "/" not in str(url):
        raise invalid("machineType", url, "The URL is malformed.")
    found = catalogue.machine(zone, name)
    if found is None:
        raise invalid("machineType", url, f"Machine type with name '{name}' does not exist in zone '{zone}'.")
    return found


def scheduling(given: Body, has_gpus: bool) -> Body:
    """Spot machines neither restart nor move; those with accelerators do not move."""
    spot = given.get("provisioningModel") == "SPOT" or bool(given.get("preemptible"))
    if spot and (given.get("automaticRestart") or given.get("onHostMaintenance") == "MIGRATE"):
        raise invalid(
            "scheduling", "", "Scheduling must have automaticRestart be false and onHostMaintenance TERMINATE when preemptible is true."
        )
    if has_gpus and given.get("onHostMaintenance", "MIGRATE" if not spot else "TERMINATE") == "MIGRATE":
        raise Refused(400, "Instances with guest accelerators do not support live migration.", reason="badRequest")
    usual = {"onHostMaintenance": "TERMINATE" if spot else "MIGRATE", "automaticRestart": not spot, "preemptible": spot}
    model = {"provisioningModel": "SPOT" if spot else "STANDARD"}
    return {**usual, **model, **{name: value for name, value in given.items() if name != "preemptible"}}


def disks(asked: Asked, found: Project, body: Body) -> list[tuple[str, Body]]:
    """(path, description) of the disks to make; ``body`` then refers to them."""
    zone, rows, made = str(asked.params["zone"]), body.get("disks") or [], []
    if not rows or not rows[0].get("boot"):
        raise invalid("disks", "", "No boot disk specified for the instance.")
    for index, row in enumerate(rows):
        row.setdefault("type", "PERSISTENT")
        row.setdefault("mode", "READ_WRITE")
        row.setdefault("autoDelete", False)
        row.setdefault("boot", False)
        row |= {
            "kind": "compute#attachedDisk",
            "index": index,
            "interface": "SCSI",
            "deviceName": row.get("deviceName") or f"persistent-disk-{index}",
        }
        params = row.pop("initializeParams", None)
        if row.get("source"):
            disk = refer(asked, row["source"], "disks", f"resource.disks[{index}].source", f"zones/{zone}")
            if disk.body.get("users"):
                user = bare(disk.body["users"][0])
                text = f"The disk resource '{bare(disk.body['selfLink'])}' is already being used by '{user}'"
                raise Refused(400, text, reason="resourceInUseByAnotherResource")
            row |= {"source": disk.body["selfLink"], "diskSizeGb": disk.body["sizeGb"]}
            disk.body["users"] = [body["selfLink"]]
            continue
        name = (params or {}).get("diskName") or (body["name"] if index == 0 else f"{body['name']}-{index}")
        path, disk_body = new_disk(found, zone, name, params or {}, f"disks[{index}].initializeParams")
        disk_body["users"] = [body["selfLink"]]
        row |= {"source": disk_body["selfLink"], "diskSizeGb": disk_body["sizeGb"]}
        made.append((path, disk_body))
    return made


def new_disk(found: Project, zone: str, name: str, params: Body, field: str) -> tuple[str, Body]:
    path = f"projects/{found.id}/zones/{zone}/disks/{name}"
    if path in found.shelf("disks"):
        raise Refused(409, f"The resource '{path}' already exists")
    kind = str(params.get("diskType") or params.get("type") or "pd-standard").rsplit("/", 1)[-1]
    if kind not in catalogue.DISK_TYPES:
        raise invalid(f"{field}.diskType", params.get("diskType"), "The referenced diskType resource cannot be found.")
    size, image = int(params.get("diskSizeGb") or params.get("sizeGb") or 0), {}
    if source := params.get("sourceImage"):
        resolved = resolve(str(source))
        if resolved is None:
            raise Refused(404, f"The resource '{bare(str(source))}' was not found")
        if size and size < resolved[1]:
            raise invalid(f"{field}.diskSizeGb", size, f"Requested disk size cannot be smaller than the image size ({resolved[1]} GB)")
        size, image = size or resolved[1], {"sourceImage": resolved[0]}
    size = size or 500
    if size < catalogue.DISK_TYPES[kind]:
        raise invalid(f"{field}.diskSizeGb", size, f"Disk size cannot be smaller than {catalogue.DISK_TYPES[kind]} GB.")
    body = {
        "kind": "compute#disk", "id": long_id(), "creationTimestamp": now(), "name": name, "sizeGb": str(size), "status": "READY",
        "zone": link(f"projects/{found.id}/zones/{zone}"), "type": link(f"projects/{found.id}/zones/{zone}/diskTypes/{kind}"),
        "selfLink": link(path), "labelFingerprint": fingerprint(params.get("labels") or {}), "physicalBlockSizeBytes": "4096", **image,
    }  # fmt: skip
    if params.get("labels"):
        body["labels"] = params["labels"]
    return path, body


def interfaces(asked: Asked, found: Project, body: Body) -> None:
    rows, region = body.get("networkInterfaces") or [], catalogue.region_of(str(asked.params["zone"]))
    if not rows:
        raise invalid("networkInterfaces", "", "At least one network interface is required.")
    for index, row in enumerate(rows):
        field = f"networkInterfaces[{index}]"
        subnet = _subnet(asked, found, row, field, region)
        network = ipaddress.ip_network(subnet.body["ipCidrRange"])
        row |= {
            "kind": "compute#networkInterface", "name": f"nic{index}", "network": subnet.body["network"],
            "subnetwork": subnet.body["selfLink"],
            "stackType": "IPV4_ONLY", "networkIP": row.get("networkIP") or str(network[2 + number() % (network.num_addresses - 4)]),
        }  # fmt: skip
        row["fingerprint"] = fingerprint(row)
        for config in row.get("accessConfigs") or []:
            access(found, config, body["selfLink"], region)


def _subnet(asked: Asked, found: Project, row: Body, field: str, region: str) -> Thing:
    if url := row.get("subnetwork"):
        subnet = refer(asked, url, "subnetworks", f"resource.{field}.subnetwork", f"regions/{region}")
        if f"/regions/{region}/" not in subnet.body["selfLink"]:
            raise invalid(f"{field}.subnetwork", url, f"The subnetwork is not in region {region}.")  # assumed: the wording
        if row.get("network") and bare(row["network"]).split("/")[-1] != subnet.body["network"].rsplit("/", 1)[-1]:
            raise invalid(f"{field}.subnetwork", url, "The subnetwork is not of the network.")  # assumed: the wording
        return subnet
    network = refer(asked, row.get("network") or "global/networks/default", "networks", f"resource.{field}.network")
    for thing in found.shelf("subnetworks").values():
        if (
            thing.body["network"] == network.body["selfLink"]
            and f"/regions/{region}/" in thing.body["selfLink"]
            and network.body.get("autoCreateSubnetworks")
        ):
            return thing
    raise invalid(f"{field}.subnetwork", "", "Subnetwork should be specified for custom subnetmode network")


def access(found: Project, config: Body, user: str, region: str) -> None:
    """An external address: a reserved one of the region that nobody has, or one that Google chooses."""
    for name, value in (("kind", "compute#accessConfig"), ("type", "ONE_TO_ONE_NAT"), ("name", "External NAT"), ("networkTier", "PREMIUM")):
        config.setdefault(name, value)
    wanted = config.get("natIP")
    if not wanted:
        config["natIP"] = f"198.51.100.{number() % 254 + 1}"
        return
    for key, thing in found.shelf("addresses").items():
        if thing.body["address"] == wanted and f"/regions/{region}/" in key:
            if thing.body.get("users"):
                text = f"External IP address: {wanted} is already in-use."
                raise invalid("networkInterfaces[0].accessConfigs[0].natIP", wanted, text)
            thing.body |= {"status": "IN_USE", "users": [user]}
            return
    raise invalid(
        "networkInterfaces[0].accessConfigs[0].natIP", wanted, "The specified external IP address is not reserved in this region."
    )


def release(found: Project, user: str) -> None:
    for name in ("addresses", "disks"):
        for thing in found.shelf(name).values():
            if user in thing.body.get("users", []):
                del thing.body["users"]
                if name == "addresses":
                    thing.body["status"] = "RESERVED"


def run_as(asked: Asked, found: Project, rows: list[Body]) -> None:
    """The service account is there, is known to compute by now, and the caller may act as it."""
    for row in rows:
        email = str(row.get("email", ""))
        if email in ("", "default"):
            email = row["email"] = f"{found.number}-compute@developer.gserviceaccount.com"
        if not see(found.shelf("serviceAccounts").get(email), "compute"):
            raise Refused(404, f"The resource 'projects/{found.id}/serviceAccounts/{email}' of type 'serviceAccount' was not found.")
        try:
            need(asked, "iam.serviceAccounts.actAs")
        except Refused as refused:
            text = f"The user does not have access to service account '{email}'.  User: '{asked.caller}'.  Ask a project owner to grant"
            raise Refused(403, f"{text} you the iam.serviceAccountUser role on the service account") from refused
