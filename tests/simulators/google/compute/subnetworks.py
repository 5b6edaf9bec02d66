# SPDX-License-Identifier: GPL-3.0-or-later
"""Subnetworks: ranges that fit each other, and the three ways to change one.

Rules: a change needs the current fingerprint (Subnetwork.fingerprint); `privateIpGoogleAccess` is changed by a method of its own, a range
can only grow, by another (their descriptions); a range that overlaps one of the network is refused (message:
terraform-google-modules/terraform-google-network issue 20); secondary ranges that a cluster uses cannot be taken away; clusters and
machines keep a subnetwork from being deleted. A network that makes its subnetworks itself takes more of them, outside of the range that it
makes its own from (cloudfoundry/bosh-google-cpi-release issue 238); those that it made cannot be deleted (knative/test-infra issue 946).
"""

import ipaddress

from .. import quotas
from ..api import Asked, Refused, handles
from ..discovery import Body
from ..state import Project, Thing, long_id, now, project
from .resources import bare, change, find, fingerprint, insert, invalid, link, made, ready, refer, remove, same

STALE = "Invalid fingerprint."
# At least four addresses.
LONGEST = 29
AUTO = ipaddress.IPv4Network("10.128.0.0/9")
DEFAULTS = {
    "purpose": "PRIVATE", "stackType": "IPV4_ONLY", "privateIpGoogleAccess": False, "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
    "allowSubnetCidrRoutesOverlap": False,
}  # fmt: skip
FINGERED = ("secondaryIpRanges", "logConfig", "privateIpGoogleAccess", "ipCidrRange", "stackType", "purpose")
CHANGEABLE = (
    "secondaryIpRanges", "logConfig", "enableFlowLogs", "stackType", "ipv6AccessType", "privateIpv6GoogleAccess", "purpose", "role",
)  # fmt: skip


def mark(body: Body) -> Body:
    body["fingerprint"] = fingerprint({name: body.get(name) for name in FINGERED})
    return body


def describe(found: Project, region: str, fields: Body) -> Body:
    """One that Google makes itself."""
    where = f"projects/{found.id}/regions/{region}"
    body = {
        "kind": "compute#subnetwork", "id": long_id(), "creationTimestamp": now(), **DEFAULTS, **fields, "region": link(where),
        "selfLink": link(f"{where}/subnetworks/{fields['name']}"), "gatewayAddress": _gateway(fields["ipCidrRange"]),
    }  # fmt: skip
    return mark(body)


def _gateway(cidr: str) -> str:
    return str(ipaddress.ip_network(cidr)[1])


def _cidr(field: str, text: str) -> ipaddress.IPv4Network:
    try:
        found = ipaddress.IPv4Network(text, strict=False)
    except ValueError as error:
        raise invalid(field, text, "Must be a valid IPV4 CIDR address range.") from error
    if str(found) != text:
        raise invalid(field, text, f"{text} is not a valid network: the host part is not zero, {found} would be.")  # assumed: the wording
    if not 4 <= found.prefixlen <= LONGEST:
        raise invalid(field, text, f"The prefix length must be between 4 and {LONGEST}.")
    return found


def ranges(body: Body) -> list[tuple[str, ipaddress.IPv4Network]]:
    """(field, range) of a subnetwork: the primary one has to leave room for at least four addresses."""
    rows = [("ipCidrRange", _cidr("ipCidrRange", str(body.get("ipCidrRange"))))]
    for index, one in enumerate(body.get("secondaryIpRanges") or []):
        field = f"secondaryIpRanges[{index}].ipCidrRange"
        rows.append((field, _cidr(field, str(one.get("ipCidrRange")))))
    return rows


def _fit(found: Project, body: Body) -> None:
    own = ranges(body)
    for index, (_field, one) in enumerate(own):
        for field, other in own[index + 1 :]:
            if one.overlaps(other):
                raise invalid(field, other, f"The range overlaps with {one} of this subnetwork.")
    for thing in found.shelf("subnetworks").values():
        other = thing.body
        if bare(other["network"]) != bare(body["network"]) or other["selfLink"] == body["selfLink"]:
            continue
        taken = [cidr for _field, cidr in ranges(other)]
        for field, one in own:
            if any(one.overlaps(cidr) for cidr in taken):
                region = other["region"].rsplit("/", 1)[-1]
                text = f"Invalid IPCidrRange: {one} conflicts with existing subnetwork '{other['name']}' in region '{region}'."
                raise invalid(field, one, text)


def _extends(body: Body) -> None:
    for field, one in ranges(body):
        if one.overlaps(AUTO):
            raise invalid(field, one, f"Extended subnetworks in auto subnet mode networks cannot overlap with {AUTO}.")


def is_auto(network: Body | None, body: Body) -> bool:
    """Whether the network made it."""
    own = bool(network and network.get("autoCreateSubnetworks"))
    return own and ipaddress.IPv4Network(body["ipCidrRange"]).subnet_of(AUTO)


@handles("compute.subnetworks.insert")
def _insert(asked: Asked) -> Body:
    found = project(str(asked.params["project"]))
    network = refer(asked, str(asked.body.get("network", "")), "networks", "resource.network")
    body = made(asked, asked.body, DEFAULTS)
    body["network"] = network.body["selfLink"]
    body.pop("fingerprint", None)
    if network.body.get("autoCreateSubnetworks"):
        _extends(body)
    _fit(found, body)
    body["gatewayAddress"] = _gateway(body["ipCidrRange"])
    mark(body)
    done = insert(
        asked, body,
        lambda: network.body.setdefault("subnetworks", []).append(body["selfLink"]),
        quotas.exceeded(asked, found, "", {"SUBNETWORKS": 1.0}),
    )  # fmt: skip
    found.shelf("subnetworks")[bare(body["selfLink"])].extra["policy"] = {"etag": "ACAB"}
    return done


@handles("compute.subnetworks.patch")
def _patch(asked: Asked) -> Body:
    found, thing = project(str(asked.params["project"])), find(asked)
    same(asked.body.get("fingerprint"), thing.body["fingerprint"], STALE)
    wanted = {name: value for name, value in asked.body.items() if name != "fingerprint" and thing.body.get(name) != value}
    for name, value in wanted.items():
        if name not in CHANGEABLE:
            raise invalid(name, value, "The field cannot be changed by a patch.")  # assumed: the wording
    after = {**thing.body, **wanted}
    _fit(found, after)
    if "secondaryIpRanges" in wanted:
        _still_used(found, thing, wanted["secondaryIpRanges"] or [])
    fields = {name: after[name] for name in wanted}
    return change(asked, thing, {**fields, "fingerprint": mark(after)["fingerprint"]})


def _still_used(found: Project, thing: Thing, after: list[Body]) -> None:
    """Of the ranges of clusters none may go or change."""
    left = {(one["rangeName"], one["ipCidrRange"]) for one in after}
    gone = [one for one in thing.body.get("secondaryIpRanges", []) if (one["rangeName"], one["ipCidrRange"]) not in left]
    for cluster in found.shelf("clusters").values():
        policy = cluster.body.get("ipAllocationPolicy", {})
        for one in gone:
            if bare(cluster.body["networkConfig"]["subnetwork"]) == bare(thing.body["selfLink"]) and one["rangeName"] in (
                policy.get("clusterSecondaryRangeName"),
                policy.get("servicesSecondaryRangeName"),
            ):
                text = f"The secondary range '{one['rangeName']}' is in use by cluster '{cluster.body['name']}'."  # assumed: the wording
                raise invalid("secondaryIpRanges", "", text)


@handles("compute.subnetworks.setPrivateIpGoogleAccess")
def _private(asked: Asked) -> Body:
    thing, wanted = find(asked), bool(asked.body.get("privateIpGoogleAccess"))
    after = mark({**thing.body, "privateIpGoogleAccess": wanted})
    return change(asked, thing, {"privateIpGoogleAccess": wanted, "fingerprint": after["fingerprint"]})


@handles("compute.subnetworks.expandIpCidrRange")
def _expand(asked: Asked) -> Body:
    found, thing = project(str(asked.params["project"])), find(asked)
    wanted = str(asked.body.get("ipCidrRange"))
    new, old = _cidr("ipCidrRange", wanted), ipaddress.IPv4Network(thing.body["ipCidrRange"])
    if new == old or not old.subnet_of(new):
        text = f"New IP CIDR range must be larger than, and contain, the existing {old}."  # assumed: the wording
        raise invalid("ipCidrRange", wanted, text)
    after = {**thing.body, "ipCidrRange": wanted}
    _fit(found, after)
    return change(asked, thing, {"ipCidrRange": wanted, "gatewayAddress": _gateway(wanted), "fingerprint": mark(after)["fingerprint"]})


@handles("compute.subnetworks.delete")
def _delete(asked: Asked) -> Body:
    thing, found = ready(find(asked)), project(str(asked.params["project"]))
    network = found.shelf("networks").get(bare(thing.body["network"]))
    if network and is_auto(network.body, thing.body):
        text = "Invalid resource usage: 'Cannot delete auto subnetwork from an auto subnet mode network.'."
        raise Refused(400, text, reason="invalidResourceUsage")

    def finish() -> None:
        if network:
            network.body["subnetworks"] = [url for url in network.body.get("subnetworks", []) if url != thing.body["selfLink"]]

    return remove(asked, thing, finish=finish)
