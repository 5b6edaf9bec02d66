# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where the control plane of a cluster can be reached.

Rules: cloud.google.com/kubernetes-engine/docs/concepts/network-isolation. Without a public endpoint only the network and what is connected
to it gets in; with authorised networks, only those. The address stays the same, but nothing answers: here the endpoint is then one at which
nothing listens.
"""

from __future__ import annotations

import ipaddress

from ..discovery import Body
from ..state import SETTINGS

NOWHERE = "127.0.0.1:1"


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
