# SPDX-License-Identifier: GPL-3.0-or-later
"""Static addresses, of a region or global.

Rules: labels only by setLabels (Address.labels: "These can only be added or modified by the setLabels method"); one in use is not released;
there is nothing else to change.
"""

import ipaddress

from .. import quotas
from ..api import Asked, handles
from ..discovery import Body
from ..state import SETTINGS, number, project
from .resources import find, fingerprint, insert, invalid, made, refer, remove, where


@handles("compute.addresses.insert", "compute.globalAddresses.insert")
def _insert(asked: Asked) -> Body:
    if asked.body.get("labels"):
        # assumed: that it is refused and not ignored, and the wording; either way the labels are not there afterwards.
        raise invalid("labels", "", "Labels can only be set by the setLabels method.")
    found = project(str(asked.params["project"]))
    kind = asked.body.get("addressType") or "EXTERNAL"
    body = made(asked, asked.body, {"status": "RESERVING", "labelFingerprint": fingerprint({}), "ipVersion": "IPV4"})
    body["addressType"] = kind
    if kind == "EXTERNAL":
        body.setdefault("address", str(SETTINGS.addresses[number() % (SETTINGS.addresses.num_addresses - 2) + 1]))
        body.setdefault("networkTier", "PREMIUM")
        if "regions/" in where(asked):
            del body["ipVersion"]
    else:
        subnet = refer(asked, str(body.get("subnetwork", "")), "subnetworks", "resource.subnetwork")
        body["subnetwork"] = subnet.body["selfLink"]
        body.setdefault("address", str(ipaddress.ip_network(subnet.body["ipCidrRange"])[10 + number() % 200]))
        body.setdefault("purpose", "GCE_ENDPOINT")
        body.setdefault("networkTier", "PREMIUM")
    region = where(asked).removeprefix("regions/")
    short = quotas.exceeded(asked, found, region, {"STATIC_ADDRESSES": 1.0}) if "regions/" in where(asked) and kind == "EXTERNAL" else None
    return insert(asked, body, lambda: body.update(status="RESERVED"), short)


@handles("compute.addresses.delete", "compute.globalAddresses.delete")
def _delete(asked: Asked) -> Body:
    return remove(asked, find(asked))
