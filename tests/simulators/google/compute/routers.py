# SPDX-License-Identifier: GPL-3.0-or-later
"""Routers with Cloud NAT. A patch replaces the whole list of NATs; a router goes with the NATs in it.

Rules: a NAT that takes all ranges of all subnetworks is the only one of its network and region (RouterNat.sourceSubnetworkIpRangesToNat),
and no range of a subnetwork belongs to two (GoogleCloudPlatform/cloud-foundation-fabric issue 2383); what it does not say is added.
"""

import re

from .. import quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import project
from .resources import bare, change, find, insert, invalid, link, made, refer, remove

NAT = {
    "enableEndpointIndependentMapping": False, "endpointTypes": ["ENDPOINT_TYPE_VM"], "type": "PUBLIC", "autoNetworkTier": "PREMIUM",
}  # fmt: skip
EVERY, PRIMARY = ALL = ("ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES")


def _nats(asked: Asked, body: Body) -> None:
    names = [str(nat.get("name", "")) for nat in body.get("nats") or []]
    for index, nat in enumerate(body.get("nats") or []):
        field = f"nats[{index}]"
        if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", names[index]):
            raise invalid(f"{field}.name", names[index], "Must be a match of regex '[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?'")
        if names.count(names[index]) > 1:
            raise invalid(f"{field}.name", names[index], "The name of a NAT must be unique in its router.")  # assumed: the wording
        if nat.get("natIpAllocateOption") != "AUTO_ONLY":
            raise Refused(501, "the simulator has no addresses that are given to a NAT", code="UNIMPLEMENTED")
        wide = nat.get("sourceSubnetworkIpRangesToNat")
        if wide not in (*ALL, "LIST_OF_SUBNETWORKS"):
            raise invalid(f"{field}.sourceSubnetworkIpRangesToNat", wide or "", "It has to be specified.")  # assumed: the wording
        if bool(nat.get("subnetworks")) != (wide == "LIST_OF_SUBNETWORKS"):
            raise invalid(f"{field}.subnetworks", "", "They must be given for LIST_OF_SUBNETWORKS, and only then.")  # assumed: the wording
        for one, row in enumerate(nat.get("subnetworks") or []):
            row["name"] = refer(asked, row.get("name", ""), "subnetworks", f"resource.{field}.subnetworks[{one}].name").body["selfLink"]
        for name, value in NAT.items():
            nat.setdefault(name, value)
    _alone(asked, body)


def _alone(asked: Asked, body: Body) -> None:
    rows = [
        (thing.body["name"], nat)
        for thing in project(str(asked.params["project"])).shelf("routers").values()
        if thing.body["region"] == body["region"] and thing.body["name"] != body["name"]
        if bare(thing.body["network"]) == bare(body["network"])
        for nat in thing.body.get("nats", [])
    ]  # fmt: skip
    own = [(body["name"], nat) for nat in body.get("nats") or []]
    options = [nat.get("sourceSubnetworkIpRangesToNat") for _router, nat in [*rows, *own]]
    if own and EVERY in options and len(options) > 1:
        text = f"Can not create new Nats since a Nat with option {EVERY} exists."  # google/osv.dev PR 5629
        raise invalid("nats[0].sourceSubnetworkIpRangesToNat", EVERY, text)
    taken = [_ranges(nat) for _router, nat in rows]
    for index, (_router, nat) in enumerate(own):
        mine = _ranges(nat)
        if twice := sorted({two for one in mine for others in taken for two in others if _meet(one, two)}):
            text = f"Can not specify {twice[0][1]} for the Subnetwork since it is already configured for Nat with the option {twice[0][1]}."
            raise invalid(f"nats[{index}].subnetworks[0].sourceIpRangesToNat[0]", twice[0][1], text)
        taken.append(mine)


def _ranges(nat: Body) -> list[tuple[str, str]]:
    """(subnetwork, which of its ranges) that a NAT takes; empty is each."""
    if nat["sourceSubnetworkIpRangesToNat"] == PRIMARY:
        return [("", "PRIMARY_IP_RANGE")]
    found = []
    for row in nat.get("subnetworks") or []:
        for kind in row.get("sourceIpRangesToNat") or ["ALL_IP_RANGES"]:
            names = row.get("secondaryIpRangeNames") or [] if kind == "LIST_OF_SECONDARY_IP_RANGES" else [kind]
            found += [(str(row["name"]), "" if name == "ALL_IP_RANGES" else name) for name in names]
    return found


def _meet(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return all(not mine or not theirs or mine == theirs for mine, theirs in zip(one, other, strict=True))


@handles("compute.routers.insert")
def _insert(asked: Asked) -> Body:
    found = project(str(asked.params["project"]))
    body = made(asked, asked.body, {"encryptedInterconnectRouter": False})
    body["network"] = refer(asked, str(body.get("network", "")), "networks", "resource.network").body["selfLink"]
    _nats(asked, body)
    return insert(asked, body, failed=quotas.exceeded(asked, found, "", {"ROUTERS": 1.0}))


@handles("compute.routers.patch")
def _change(asked: Asked) -> Body:
    thing = find(asked)
    before = thing.body
    given = {name: value for name, value in asked.body.items() if name not in ("id", "creationTimestamp", "selfLink", "kind", "region")}
    after = {**thing.body, **given}
    if bare(str(after["network"])) not in (bare(before["network"]), bare(before["network"]).split("/", 2)[-1]):
        raise invalid("network", after["network"], "The network of a router cannot be changed.")  # assumed: the wording
    after["network"] = link(bare(before["network"]))
    _nats(asked, after)
    return change(asked, thing, after)


@handles("compute.routers.delete")
def _delete(asked: Asked) -> Body:
    return remove(asked, find(asked))
