# SPDX-License-Identifier: GPL-3.0-or-later
"""From where the control plane of a cluster can be reached.

Rules: cloud.google.com/kubernetes-engine/docs/concepts/network-isolation. Without a public endpoint only the network and what is connected
to it gets in; with authorised networks, only those. The address stays the same, but nothing answers: here the endpoint is then one at which
nothing listens.

Networks: .../how-to/authorized-networks. Without a public endpoint there have to be some, if only an empty list of them
(GoogleCloudPlatform/magic-modules PR 8338: "must be enabled if private endpoint is enabled"), each is "a reserved network, which is
required for private endpoints" (GoogleCloudPlatform/gke-network-policy-demo PR 37, terraform-google-modules/
terraform-google-kubernetes-engine issue 153), and Google Cloud's public addresses are not among them (the same modules' PR 2078). Assumed:
that reserved are the ranges of cloud.google.com/vpc/docs/subnets#valid-ranges, and that what counts is how the cluster would be afterwards.
"""

import ipaddress

from ..api import Refused
from ..discovery import Body
from ..state import SETTINGS

NOWHERE = "127.0.0.1:1"
RESERVED = [
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
    )
]  # fmt: skip


def endpoint(body: Body) -> str:
    """As whoever runs the tests sees it."""
    ip = body["controlPlaneEndpointsConfig"]["ipEndpointsConfig"]
    if not ip["enablePublicEndpoint"]:
        return NOWHERE
    config = body["masterAuthorizedNetworksConfig"]
    if not config.get("enabled"):
        return SETTINGS.endpoint
    caller = ipaddress.ip_address(SETTINGS.caller_address)
    open_to = (ipaddress.ip_network(one["cidrBlock"]) for one in config.get("cidrBlocks") or [])
    return SETTINGS.endpoint if any(caller in network for network in open_to) else NOWHERE


def check_authorized(config: Body, *, public: bool) -> None:
    """Networks in canonical form, each once, and none without `enabled`."""
    rows = [str(one.get("cidrBlock", "")) for one in config.get("cidrBlocks") or []]
    if rows and not config.get("enabled"):
        raise Refused(400, "master_authorized_networks_config.cidr_blocks must be empty when it is not enabled.")  # assumed: the wording
    for row in rows:
        try:
            ipaddress.ip_network(row)
        except ValueError as error:
            raise Refused(400, f'Invalid CIDR block "{row}" in master authorized networks: {error}.') from error  # assumed: the wording
    if len(rows) != len(set(rows)):
        raise Refused(400, "Duplicate CIDR blocks in master authorized networks.")  # assumed: the wording
    if not public:
        _check_private(config, rows)


def _check_private(config: Body, rows: list[str]) -> None:
    field = "cluster.master_authorized_networks_config"
    if not config.get("enabled"):
        raise Refused(400, "Master authorized networks must be enabled if private endpoint is enabled.")
    if config.get("gcpPublicCidrsAccessEnabled"):
        text = f'"{field}.gcp_public_cidrs_access_enabled" cannot be enabled if private endpoint is enabled.'
        raise Refused(400, f'Invalid value for "{field}": {text}')
    for row in rows:
        network = ipaddress.ip_network(row)
        if network.version != 4 or not any(network.subnet_of(one) for one in RESERVED):
            text = f'CIDR range "{row}" is not a reserved network, which is required for private endpoints.'
            raise Refused(400, f'Invalid value for "{field}.cidr_blocks.cidr_block": {text}')
