# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster stands on: network, ranges for pods and services, the control plane's range, and what GKE puts into the project for it.

Rules: cloud.google.com/kubernetes-engine/docs/concepts/alias-ips (a node takes twice its pods, as a power of two, from the pods' range; so
a /24 of it with 110 pods), .../how-to/private-clusters (a control plane's range is a /28 that overlaps nothing),
.../concepts/firewall-rules (the rules that GKE makes and names); ranges that one does not name are added to the subnetwork and go with the
cluster.
"""

import ipaddress
import math

from .. import catalogue
from ..api import Refused
from ..compute.resources import bare, link
from ..compute.subnetworks import mark
from ..discovery import Body
from ..state import Project, Thing, digest, long_id, now, number

# Services of a cluster that names no range for them (since 1.29).
MANAGED_SERVICES = "34.118.224.0/20"


def network(found: Project, body: Body, location: str) -> tuple[Thing, Thing]:
    """(network, subnetwork) that a request names, by name or link."""
    region = catalogue.region_of(location)
    name = str(body.get("network") or "default").rsplit("/", 1)[-1]
    net = found.shelf("networks").get(f"projects/{found.id}/global/networks/{name}")
    if net is None:
        raise Refused(400, f'network "{name}" does not exist.')  # gitpod-io/gitpod-gke-guide issue 21
    wanted = str(body.get("subnetwork") or "")
    if not wanted:
        if not net.body.get("autoCreateSubnetworks"):
            raise Refused(400, f'Subnetwork must be provided for manual subnet network "{name}".')
        wanted = name
    if "/regions/" in wanted and f"/regions/{region}/" not in f"/{wanted}":
        raise Refused(400, f'Subnetwork "{wanted}" is not in region "{region}".')  # assumed: the wording
    path = f"projects/{found.id}/regions/{region}/subnetworks/{wanted.rsplit('/', 1)[-1]}"
    subnet = found.shelf("subnetworks").get(path)
    if subnet is None or bare(subnet.body["network"]) != bare(net.body["selfLink"]):
        # hashicorp/terraform-provider-google issue 7895
        raise Refused(400, f'Subnetwork "{path}" is not valid for Network "{name}".')
    return net, subnet


def pod_bits(max_pods: int) -> int:
    """The prefix of a node's own range."""
    return 32 - math.ceil(math.log2(2 * max_pods))


def allocate(found: Project, body: Body, subnet: Thing) -> Body:
    """The ranges of a new cluster, complete."""
    policy = dict(body.get("ipAllocationPolicy") or {})
    if policy.get("useRoutes"):
        return {"useRoutes": True, "stackType": "IPV4"}
    policy["useIpAliases"] = True
    rows = {one["rangeName"]: one["ipCidrRange"] for one in subnet.body.get("secondaryIpRanges", [])}
    for field, cidr, word in (
        ("clusterSecondaryRangeName", "clusterIpv4CidrBlock", "Pod"), ("servicesSecondaryRangeName", "servicesIpv4CidrBlock", "Service"),
    ):  # fmt: skip
        name = policy.get(field)
        if name and name not in rows:
            # fabianlee/gcp-gke-clusters-ingress issue 2
            place = f'network "{subnet.body["network"]}", subnetwork "{subnet.body["name"]}"'
            raise Refused(400, f'{word} secondary range "{name}" not found in {place}.')
        if name:
            if policy.get(cidr):
                raise Refused(400, f"{word} secondary range name and CIDR block cannot both be specified.")  # assumed: the wording
            policy[cidr] = rows[name]
    if not policy.get("clusterSecondaryRangeName"):
        name = f"gke-{body['name']}-pods-{digest(body['name'], number())}"
        policy["clusterIpv4CidrBlock"] = _new_range(found, subnet, name, str(policy.get("clusterIpv4CidrBlock") or "/14"))
        policy["clusterSecondaryRangeName"] = name
    if not policy.get("servicesSecondaryRangeName"):
        policy["servicesIpv4CidrBlock"] = policy.get("servicesIpv4CidrBlock") or MANAGED_SERVICES
    if policy["clusterSecondaryRangeName"] == policy.get("servicesSecondaryRangeName"):
        # gruntwork-io/terraform-google-gke issue 118
        same = policy["clusterSecondaryRangeName"]
        raise Refused(400, f"Pod secondary range name ({same}) should not be the same as service secondary range name.")
    _own_services(found, policy, subnet)
    policy |= {"clusterIpv4Cidr": policy["clusterIpv4CidrBlock"], "servicesIpv4Cidr": policy["servicesIpv4CidrBlock"], "stackType": "IPV4"}
    policy["podCidrOverprovisionConfig"] = {}
    policy["defaultPodIpv4RangeUtilization"] = 0.0
    return policy


def _own_services(found: Project, policy: Body, subnet: Thing) -> None:
    """A range for services belongs to one cluster; pods' may be shared."""
    for other in found.shelf("clusters").values():
        theirs = other.body["ipAllocationPolicy"]
        if (
            policy.get("servicesSecondaryRangeName")
            and theirs.get("servicesSecondaryRangeName") == policy["servicesSecondaryRangeName"]
            and other.body["networkConfig"]["subnetwork"] == bare(subnet.body["selfLink"])
        ):
            text = f'Services range "{policy["servicesSecondaryRangeName"]}" is already used by cluster "{other.body["name"]}".'
            raise Refused(400, text)  # assumed: the wording


def _new_range(found: Project, subnet: Thing, name: str, wanted: str) -> str:
    taken = [ipaddress.ip_network(cidr) for thing in found.shelf("subnetworks").values() for cidr in _cidrs(thing.body)]
    if wanted.startswith("/"):
        candidates = ipaddress.ip_network("10.0.0.0/8").subnets(new_prefix=int(wanted[1:]))
        chosen = next((one for one in candidates if not any(one.overlaps(other) for other in taken)), None)
    else:
        chosen = ipaddress.ip_network(wanted)
        chosen = None if any(chosen.overlaps(other) for other in taken) else chosen
    if chosen is None:
        raise Refused(
            400, f"Requested CIDR {wanted} for containers is not available in network."
        )  # hashicorp/terraform-provider-google issue 2816, where the operation says it; assumed: how it goes on
    rows = [*subnet.body.get("secondaryIpRanges", []), {"rangeName": name, "ipCidrRange": str(chosen)}]
    subnet.body["secondaryIpRanges"] = rows
    mark(subnet.body)
    return str(chosen)


def _cidrs(body: Body) -> list[str]:
    return [body["ipCidrRange"], *(one["ipCidrRange"] for one in body.get("secondaryIpRanges", []))]


def room(policy: Body, nodes: int, max_pods: int) -> bool:
    """Whether the pods' range has a piece for each node. Where it has not, the operation fails (nodepools.py)."""
    if policy.get("useRoutes"):
        return True
    pods, bits = ipaddress.ip_network(policy["clusterIpv4CidrBlock"]), pod_bits(max_pods)
    return nodes <= (2 ** (bits - pods.prefixlen) if bits >= pods.prefixlen else 0)


def control_plane(found: Project, cidr: str) -> None:
    if not cidr:
        return
    block = ipaddress.ip_network(cidr)
    if block.prefixlen != 28:
        raise Refused(400, f'Invalid master IPv4 CIDR block "{cidr}": it must be a /28.')  # assumed: the wording
    for thing in found.shelf("subnetworks").values():
        if any(block.overlaps(ipaddress.ip_network(one)) for one in _cidrs(thing.body)):
            text = f'Invalid master IPv4 CIDR block "{cidr}": it conflicts with subnetwork "{thing.body["name"]}".'
            raise Refused(400, text)  # assumed: the wording
    for thing in found.shelf("clusters").values():
        other = thing.body.get("privateClusterConfig", {}).get("masterIpv4CidrBlock")
        if other and block.overlaps(ipaddress.ip_network(other)):
            raise Refused(400, f'Invalid master IPv4 CIDR block "{cidr}": it conflicts with cluster "{thing.body["name"]}".')  # assumed


def furnish(found: Project, body: Body) -> None:
    """GKE's own firewall rules, and the forwarding rule and address by which the control plane is in the network."""
    start, net = f"gke-{body['name']}-{digest(body['id'])}", link(body["networkConfig"]["network"])
    pods = body["ipAllocationPolicy"].get("clusterIpv4CidrBlock", "10.0.0.0/14")
    node = [f"{start}-node"]
    for word, sources, rules in (
        ("all", [pods], [{"IPProtocol": name} for name in ("tcp", "udp", "icmp", "esp", "ah", "sctp")]),
        ("vms", ["10.0.0.0/8"], [
            {"IPProtocol": "icmp"}, {"IPProtocol": "tcp", "ports": ["1-65535"]}, {"IPProtocol": "udp", "ports": ["1-65535"]},
        ]),
        ("inkubelet", [pods], [{"IPProtocol": "tcp", "ports": ["10255"]}]),
        ("exkubelet", ["0.0.0.0/0"], [{"IPProtocol": "tcp", "ports": ["10255"]}]),
    ):  # fmt: skip
        path = f"projects/{found.id}/global/firewalls/{start}-{word}"
        action = {"denied": rules} if word == "exkubelet" else {"allowed": rules}
        found.shelf("firewalls")[path] = Thing({
            "kind": "compute#firewall", "id": long_id(), "creationTimestamp": now(), "name": f"{start}-{word}", "network": net,
            "priority": 1000,
            "direction": "INGRESS", "disabled": False, "sourceRanges": sources, "targetTags": node, "selfLink": link(path),
            "logConfig": {"enable": False}, **action,
        })  # fmt: skip
    region = catalogue.region_of(body["location"])
    where, subnet = f"projects/{found.id}/regions/{region}", link(body["networkConfig"]["subnetwork"])
    common = {"id": long_id(), "creationTimestamp": now(), "name": f"{start}-pe", "region": link(where), "subnetwork": subnet}
    rule, address = f"{where}/forwardingRules/{start}-pe", f"{where}/addresses/{start}-pe"
    found.shelf("forwardingRules")[rule] = Thing({"kind": "compute#forwardingRule", **common, "network": net, "selfLink": link(rule)})
    found.shelf("addresses")[address] = Thing({
        "kind": "compute#address", **common, "addressType": "INTERNAL",
        "address": body["privateClusterConfig"]["privateEndpoint"], "status": "IN_USE",
        "users": [link(rule)], "selfLink": link(address), "purpose": "GCE_ENDPOINT", "labelFingerprint": "42WmSpB8rSM=",
    })  # fmt: skip


def unfurnish(found: Project, body: Body) -> None:
    start = f"gke-{body['name']}-{digest(body['id'])}"
    for kind in ("firewalls", "forwardingRules", "addresses"):
        shelf = found.shelf(kind)
        for path in [path for path in shelf if path.rsplit("/", 1)[-1].startswith(f"{start}-")]:
            del shelf[path]
    name = body["ipAllocationPolicy"].get("clusterSecondaryRangeName", "")
    subnet = found.shelf("subnetworks").get(body["networkConfig"]["subnetwork"])
    if subnet and name.startswith(f"gke-{body['name']}-pods-"):
        subnet.body["secondaryIpRanges"] = [one for one in subnet.body["secondaryIpRanges"] if one["rangeName"] != name]
        mark(subnet.body)
