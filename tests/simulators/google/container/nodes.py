# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of node pools, as compute shows them: groups, templates, instances and boot disks in the project, which use its quotas and
its subnetwork.

Names: gke-CLUSTER-POOL-HASH-grp for a group in a zone, gke-CLUSTER-POOL-HASH-XXXX for a node (both shortened). They carry the pool's
labels, and GKE's own (cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels).
"""

import ipaddress

from .. import catalogue
from ..compute.instances import forget
from ..compute.machines import new_disk
from ..compute.resources import fingerprint, link
from ..discovery import Body
from ..state import Project, Thing, digest, long_id, now, number

SHORT = 16


def base(thing: Thing) -> str:
    """The start of names of a pool's machines, GKE's own hash in it."""
    words = thing.extra["path"].split("/")
    cluster, pool = words[5][:SHORT].rstrip("-"), words[7][:SHORT].rstrip("-")
    return f"gke-{cluster}-{pool}-{thing.extra['hash']}"


def groups(found: Project, thing: Thing) -> list[str]:
    return [link(f"projects/{found.id}/zones/{zone}/instanceGroupManagers/{base(thing)}-grp") for zone in thing.body["locations"]]


def instances(found: Project, thing: Thing, zone: str = "") -> list[str]:
    start = f"instances/{base(thing)}-"
    return [key for key in found.shelf("instances") if start in key and (not zone or f"/zones/{zone}/" in key)]


def size(found: Project, thing: Thing) -> int:
    return len(instances(found, thing))


def settle(found: Project, cluster: Body, thing: Thing) -> None:
    """As many machines in each of its zones as it is to have, and a group in each."""
    wanted = int(thing.extra["per_zone"])
    for key in [key for key in found.shelf("instanceGroupManagers") if f"/{base(thing)}-grp" in key]:
        zone = key.split("/")[3]
        if zone not in thing.body["locations"]:
            _ungroup(found, thing, zone)
    for zone in thing.body["locations"]:
        _group(found, thing, zone, wanted)
        have = instances(found, thing, zone)
        for key in have[wanted:]:
            _stop(found, key)
        for _node in range(wanted - len(have)):
            _start(found, cluster, thing, zone)


def replace(found: Project, cluster: Body, thing: Thing) -> None:
    """New machines for the old ones, one by one."""
    for key in instances(found, thing):
        _stop(found, key)
    settle(found, cluster, thing)


def clear(found: Project, thing: Thing) -> None:
    for zone in thing.body["locations"]:
        _ungroup(found, thing, zone)


def _ungroup(found: Project, thing: Thing, zone: str) -> None:
    for key in instances(found, thing, zone):
        _stop(found, key)
    for kind in ("instanceGroupManagers", "instanceGroups"):
        found.shelf(kind).pop(f"projects/{found.id}/zones/{zone}/{kind}/{base(thing)}-grp", None)
    found.shelf("instanceTemplates").pop(f"projects/{found.id}/global/instanceTemplates/{base(thing)}", None)


def _group(found: Project, thing: Thing, zone: str, wanted: int) -> None:
    name, where = f"{base(thing)}-grp", f"projects/{found.id}/zones/{zone}"
    template = f"projects/{found.id}/global/instanceTemplates/{base(thing)}"
    common = {"id": long_id(), "creationTimestamp": now(), "zone": link(where)}
    found.shelf("instanceTemplates").setdefault(
        template, Thing({"kind": "compute#instanceTemplate", **common, "name": base(thing), "selfLink": link(template)})
    )
    for kind, extra in (
        ("instanceGroups", {"size": wanted}),
        ("instanceGroupManagers", {"targetSize": wanted, "instanceTemplate": link(template), "baseInstanceName": base(thing),
                                   "instanceGroup": link(f"{where}/instanceGroups/{name}"), "status": {"isStable": True}}),
    ):  # fmt: skip
        path = f"{where}/{kind}/{name}"
        body = {"kind": f"compute#{kind[:-1]}", **common, "name": name, "selfLink": link(path), **extra}
        found.shelf(kind).setdefault(path, Thing(body)).body.update(extra)


def _start(found: Project, cluster: Body, thing: Thing, zone: str) -> None:
    config, count = thing.body["config"], number()
    name = f"{base(thing)}-{digest(count, length=4)}"
    path = f"projects/{found.id}/zones/{zone}/instances/{name}"
    subnet = found.shelf("subnetworks")[cluster["networkConfig"]["subnetwork"]].body
    disk_path, disk = new_disk(
        found, zone, name,
        {"diskSizeGb": config["diskSizeGb"], "diskType": config["diskType"], "labels": config.get("resourceLabels")}, "disk",
    )  # fmt: skip
    disk["users"] = [link(path)]
    found.shelf("disks")[disk_path] = Thing(disk)
    labels = {"goog-gke-node": "", **cluster.get("resourceLabels", {}), **config.get("resourceLabels", {})}
    tags = [f"gke-{cluster['name'][:SHORT]}-{digest(cluster['id'])}-node", *config.get("tags", [])]
    body: Body = {
        "kind": "compute#instance", "id": long_id(), "creationTimestamp": now(), "name": name, "status": "RUNNING",
        "zone": link(f"projects/{found.id}/zones/{zone}"),
        "machineType": link(f"projects/{found.id}/zones/{zone}/machineTypes/{config['machineType']}"), "labels": labels,
        "labelFingerprint": fingerprint(labels), "tags": {"items": tags, "fingerprint": fingerprint(tags)}, "selfLink": link(path),
        "metadata": {"fingerprint": fingerprint(name), "items": [{"key": "cluster-name", "value": cluster["name"]}]},
        "deletionProtection": False,
        "networkInterfaces": [_interface(cluster, thing, subnet)],
        "disks": [{"source": link(disk_path), "autoDelete": True, "boot": True, "deviceName": "persistent-disk-0"}],
        "serviceAccounts": [{"email": config["serviceAccount"], "scopes": config["oauthScopes"]}],
        "scheduling": {"provisioningModel": "SPOT" if config.get("spot") else "STANDARD", "automaticRestart": not config.get("spot")},
    }  # fmt: skip
    extra = {
        "machine": catalogue.machine(zone, config["machineType"]),
        "gpus": thing.extra["gpus"],
        "spot": bool(config.get("spot")),
        "pool": thing.extra["path"],
    }
    found.shelf("instances")[path] = Thing(body, extra=extra)


def _interface(cluster: Body, thing: Thing, subnet: Body) -> Body:
    network = ipaddress.ip_network(subnet["ipCidrRange"])
    row: Body = {
        "name": "nic0", "network": subnet["network"], "subnetwork": subnet["selfLink"],
        "networkIP": str(network[2 + number() % (network.num_addresses - 4)]),
    }  # fmt: skip
    if not thing.body["networkConfig"].get("enablePrivateNodes"):
        row["accessConfigs"] = [{"type": "ONE_TO_ONE_NAT", "name": "external-nat", "natIP": f"198.51.100.{number() % 254 + 1}"}]
    return row


def _stop(found: Project, key: str) -> None:
    thing = found.shelf("instances").pop(key, None)
    if thing:
        forget(found, thing.body)
