# SPDX-License-Identifier: GPL-3.0-or-later
"""Routers with Cloud NAT. A patch replaces the whole list of NATs; a router goes with the NATs in it.

Rules: a NAT's addresses are either made by Google or named, and what is named has to be there and external; one that takes all ranges of
all subnetworks is the only one of its network and region (RouterNat.sourceSubnetworkIpRangesToNat), and no range of a subnetwork belongs to
two (GoogleCloudPlatform/cloud-foundation-fabric issue 2383); what it does not say is added.
"""

from __future__ import annotations

import re

from .. import quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import project
from .resources import bare, change, find, insert, link, made, refer, remove

NAT = {
    "enableEndpointIndependentMapping": False, "endpointTypes": ["ENDPOINT_TYPE_VM"], "type": "PUBLIC", "autoNetworkTier": "PREMIUM",
}  # fmt: skip
EVERY, PRIMARY = ALL = ("ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES")


def _invalid(field: str, value: object, text: str) -> Refused:
    return Refused(400, f"Invalid value for field '{field}': '{value}'. {text}", reason="invalid")


def _nats(asked: Asked, body: Body) -> None:
    names = [str(nat.get("name", "")) for nat in body.get("nats") or []]
    for index, nat in enumerate(body.get("nats") or []):
        field = f"resource.nats[{index}]"
        if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", names[index]):
            raise _invalid(f"{field}.name", names[index], "Must be a match of regex '[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?'")
        if names.count(names[index]) > 1:
            raise _invalid(f"{field}.name", names[index], "The name of a NAT must be unique in its router.")  # assumed: the wording
        option, addresses = nat.get("natIpAllocateOption"), nat.get("natIps") or []
        if option not in ("AUTO_ONLY", "MANUAL_ONLY") or bool(addresses) != (option == "MANUAL_ONLY"):
            text = "NAT IPs must be given for MANUAL_ONLY, and only then."  # assumed: the wording
            raise _invalid(f"{field}.natIpAllocateOption", option, text)
        nat["natIps"] = [_address(asked, url, f"{field}.natIps[{i}]") for i, url in enumerate(addresses)]
        if not addresses:
            del nat["natIps"]
        wide = nat.get("sourceSubnetworkIpRangesToNat")
        if wide not in (*ALL, "LIST_OF_SUBNETWORKS"):
            raise _invalid(f"{field}.sourceSubnetworkIpRangesToNat", wide or "", "It has to be specified.")  # assumed: the wording
        if bool(nat.get("subnetworks")) != (wide == "LIST_OF_SUBNETWORKS"):
            raise _invalid(f"{field}.subnetworks", "", "They must be given for LIST_OF_SUBNETWORKS, and only then.")  # assumed: the wording
        for one, row in enumerate(nat.get("subnetworks") or []):
            row["name"] = refer(asked, row.get("name", ""), "subnetworks", f"{field}.subnetworks[{one}].name").body["selfLink"]
        for name, value in NAT.items():
            nat.setdefault(name, value)
        if nat.get("logConfig"):
            nat["logConfig"] = {"filter": "ALL", **nat["logConfig"]}
    _alone(asked, body)


def _address(asked: Asked, url: str, field: str) -> str:
    address = refer(asked, url, "addresses", field)
    if address.body.get("addressType") != "EXTERNAL":
        raise _invalid(field, url, "The address must be an external one.")  # assumed: the wording
    return str(address.body["selfLink"])


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
        raise _invalid("resource.nats[0].sourceSubnetworkIpRangesToNat", EVERY, text)
    taken = [_ranges(nat) for _router, nat in rows]
    for index, (_router, nat) in enumerate(own):
        mine = _ranges(nat)
        if twice := sorted({two for one in mine for others in taken for two in others if _meet(one, two)}):
            text = f"Can not specify {twice[0][1]} for the Subnetwork since it is already configured for Nat with the option {twice[0][1]}."
            raise _invalid(f"resource.nats[{index}].subnetworks[0].sourceIpRangesToNat[0]", twice[0][1], text)
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
    _show(asked, body)
    return insert(asked, body, failed=quotas.exceeded(asked, found, "", {"ROUTERS": 1.0}))


def _show(asked: Asked, body: Body) -> None:
    """Addresses that a NAT uses say so."""
    for nat in body.get("nats") or []:
        for url in nat.get("natIps", []):
            address = project(str(asked.params["project"])).shelf("addresses")[bare(url)].body
            address["status"], address["users"] = "IN_USE", [body["selfLink"]]


def _release(asked: Asked, body: Body, after: Body) -> None:
    kept = {url for nat in after.get("nats") or [] for url in nat.get("natIps", [])}
    for nat in body.get("nats") or []:
        for url in nat.get("natIps", []):
            address = project(str(asked.params["project"])).shelf("addresses").get(bare(url))
            if url not in kept and address:
                address.body["status"] = "RESERVED"
                address.body.pop("users", None)


@handles("compute.routers.patch")
def _change(asked: Asked) -> Body:
    thing = find(asked)
    before = dict(thing.body)
    given = {name: value for name, value in asked.body.items() if name not in ("id", "creationTimestamp", "selfLink", "kind", "region")}
    kept = (
        thing.body
        if asked.id.endswith("patch")
        else {n: thing.body[n] for n in ("kind", "id", "creationTimestamp", "region", "selfLink", "name", "network")}
    )
    after = {**kept, **given}
    if bare(str(after["network"])) not in (bare(before["network"]), bare(before["network"]).split("/", 2)[-1]):
        raise _invalid("resource.network", after["network"], "The network of a router cannot be changed.")  # assumed: the wording
    after["network"] = link(bare(before["network"]))
    _nats(asked, after)

    def finish() -> None:
        _release(asked, before, after)
        _show(asked, after)

    return change(asked, thing, {name: after.get(name) for name in {*thing.body, *after}}, finish=finish)


@handles("compute.routers.delete")
def _delete(asked: Asked) -> Body:
    thing = find(asked)
    return remove(asked, thing, finish=lambda: _release(asked, thing.body, {}))
