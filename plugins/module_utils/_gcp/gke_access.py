# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the control plane of a GKE cluster: whether it has a public address, and which networks may reach it."""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body, without_none
from .._cloud.texts import is_within, network_of
from .._core.errors import InvalidInput

# Private and reserved ranges; without a public address of the control plane, GKE accepts no others.
_RESERVED = (
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
)  # fmt: skip
_OPTION = "master_authorized_networks"


def endpoints(private: bool | None, networks: list[Body] | None) -> Body | None:
    """Build the desired ControlPlaneEndpointsConfig.

    For a control plane without a public endpoint GKE requires both settings: authorised networks are enabled, even if none is named, and
    public addresses of Google Cloud have no access.
    """
    asked: Body = {} if private is None else {"enablePublicEndpoint": not private}
    if private or networks is not None:
        asked["authorizedNetworksConfig"] = without_none(
            {
                "enabled": True,
                "gcpPublicCidrsAccessEnabled": False if private else None,
                "cidrBlocks": None if networks is None else [_block(row) for row in networks],
            }
        )
    return {"ipEndpointsConfig": asked} if asked else None


def _block(row: Body) -> Body:
    return without_none({"cidrBlock": network_of(_OPTION, row["cidr_block"]), "displayName": row.get("display_name")})


def refuse_public_networks(label: str, asked: Body | None, live: Body | None) -> None:
    """Refuse public ranges for a control plane that has, or is to have, no public address."""
    now, then = _of(live), _of(asked)
    if {**now, **then}.get("enablePublicEndpoint", True):
        return
    both = [one.get("authorizedNetworksConfig", {}).get("cidrBlocks") for one in (then, now)]
    rows: list[Body] = next((blocks for blocks in both if blocks is not None), [])
    public = [row["cidrBlock"] for row in rows if not is_within(row["cidrBlock"], _RESERVED)]
    if public:
        raise InvalidInput(
            f"{label}: its control plane has no public address, and no client reaches it from {', '.join(public)}",
            hint=f"Give {_OPTION} ranges of networks that are connected with the cluster's, such as 10.0.0.0/8, or []; "
            "private_endpoint: false opens it to the internet",
        )


def _of(config: Body | None) -> Body:
    found: Body = (config or {}).get("ipEndpointsConfig") or {}
    return found


def merged_networks(live: Body | None, asked: Body) -> Body:
    """Merge the live value into the request, because GKE replaces the networks as a whole."""
    networks = asked["ipEndpointsConfig"].get("authorizedNetworksConfig")
    if networks is None:
        return asked
    now: dict[str, t.Any] = _of(live).get("authorizedNetworksConfig") or {}
    return {"ipEndpointsConfig": {**asked["ipEndpointsConfig"], "authorizedNetworksConfig": {**now, **networks}}}
