# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks. Their defaults are those that a GET shows after an insert with a name and nothing else.

Rules: `autoCreateSubnetworks` has to be said, as networks of the old kind are made no more (Network.autoCreateSubnetworks); only routing
mode and MTU can be changed, the latter with every machine in it stopped (networks.patch; cloud.google.com/vpc/docs/change-mtu-vpc-network);
what is in use is told by the operation of the deletion.
"""

from .. import catalogue, quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import Project, Thing, project
from .resources import bare, change, find, insert, invalid, link, made, remove, users

SMALLEST_MTU, LARGEST_MTU = 1300, 8896


def _check_mtu(fields: Body) -> None:
    mtu = fields.get("mtu")
    if mtu is not None and not SMALLEST_MTU <= int(mtu) <= LARGEST_MTU:
        bounds = f"Must be greater than or equal to {SMALLEST_MTU} and less than or equal to {LARGEST_MTU}"
        raise invalid("mtu", mtu, bounds)


@handles("compute.networks.insert")
def _insert(asked: Asked) -> Body:
    given = asked.body
    if given.get("autoCreateSubnetworks") is None:
        # kubernetes-sigs/cluster-api-provider-gcp issue 391
        text = (
            "Creation of legacy mode networks is deprecated. Please create a subnet mode network instead by removing the IPv4Range field "
            "and adding the autoCreateSubnetworks field to your network insert request."
        )
        raise Refused(400, text, reason="invalid")
    _check_mtu(given)
    found = project(str(asked.params["project"]))
    body = made(
        asked, given,
        {"mtu": 1460, "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL", "subnetworks": []},
    )  # fmt: skip
    body["routingConfig"] = {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY", **(given.get("routingConfig") or {})}
    body["selfLinkWithId"] = link(f"projects/{found.id}/global/networks/{body['id']}")
    del body["subnetworks"]

    def finish() -> None:
        thing = found.shelf("networks")[bare(body["selfLink"])]
        if given["autoCreateSubnetworks"]:
            _subnets(found, thing)

    return insert(asked, body, finish, quotas.exceeded(asked, found, "", {"NETWORKS": 1.0}))


def _subnets(found: Project, network: Thing) -> None:
    """One of a fixed range in every region (cloud.google.com/vpc/docs/subnets#ip-ranges)."""
    from .subnetworks import AUTO, describe

    ranges = AUTO.subnets(new_prefix=20)
    for region, cidr in zip(catalogue.regions(), ranges, strict=False):
        body = describe(found, region, {"name": network.body["name"], "ipCidrRange": str(cidr), "network": network.body["selfLink"]})
        found.shelf("subnetworks")[bare(body["selfLink"])] = Thing(body)
        network.body.setdefault("subnetworks", []).append(body["selfLink"])


@handles("compute.networks.patch")
def _patch(asked: Asked) -> Body:
    thing = find(asked)
    _check_mtu(asked.body)
    fields: Body = {}
    for name, value in asked.body.items():
        if value is None or thing.body.get(name) == value or name in ("fingerprint", "kind", "id", "selfLink"):
            continue
        if name not in ("routingConfig", "mtu", "networkFirewallPolicyEnforcementOrder"):
            raise invalid(name, value, "The field cannot be changed.")  # assumed: the wording
        fields[name] = {**thing.body["routingConfig"], **value} if name == "routingConfig" else value
    if "mtu" in fields:
        _none_runs(asked, thing)
    return change(asked, thing, fields)


def _none_runs(asked: Asked, thing: Thing) -> None:
    found = project(str(asked.params["project"]))
    inside = [found.shelf("instances")[path] for path in users(found, bare(thing.body["selfLink"])) if "/instances/" in path]
    if any(instance.body["status"] == "RUNNING" for instance in inside):
        raise Refused(400, "Network MTU cannot be changed while VMs are running in it.", reason="invalid")  # assumed: the wording


@handles("compute.networks.switchToCustomMode")
def _switch(asked: Asked) -> Body:
    return change(asked, find(asked), {"autoCreateSubnetworks": False})


@handles("compute.networks.delete")
def _delete(asked: Asked) -> Body:
    thing, found = find(asked), project(str(asked.params["project"]))
    if thing.body.get("autoCreateSubnetworks"):
        # Its own subnets go with it, if it goes.
        from .subnetworks import is_auto

        shelf = found.shelf("subnetworks")
        own = [path for path, one in shelf.items() if one.body["network"] == thing.body["selfLink"] and is_auto(thing.body, one.body)]
        if not any(users(found, path) for path in own) and not set(users(found, bare(thing.body["selfLink"]))) - set(own):
            for path in own:
                del shelf[path]
    return remove(asked, thing, late_refusal=True)
