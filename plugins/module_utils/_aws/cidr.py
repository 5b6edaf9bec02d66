# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Address ranges as AWS keeps them. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from .._core.errors import InvalidInput

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]  # noqa: UP007
# Ranges that no request from the internet comes from (RFC 1918, 6598, 1122, 3927). EKS refuses them for the public endpoint.
RESERVED = tuple(
    ipaddress.IPv4Network(one)
    for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16")
)


def normalised(option: str, ranges: t.Iterable[str]) -> list[str]:
    """The ranges as networks, each once: 203.0.113.7/24 is 203.0.113.0/24, an address alone is its /32."""
    return sorted({str(_network(option, one)) for one in ranges})


def public(option: str, ranges: t.Iterable[str]) -> list[str]:
    """The same, for requests from the internet: reserved ranges are refused."""
    found = normalised(option, ranges)
    wrong = [one for one in found if any(_is_in(ipaddress.ip_network(one), other) for other in RESERVED)]
    if wrong:
        raise InvalidInput(
            f"{option}: no request from the internet comes from {', '.join(wrong)}, and EKS refuses such ranges",
            hint="Give the address by which the internet knows the caller, as https://checkip.amazonaws.com shows it",
        )
    return found


def _network(option: str, one: str) -> Network:
    try:
        return ipaddress.ip_network(one.strip(), strict=False)
    except ValueError as error:
        raise InvalidInput(f"{option}: {error}", hint="Write a range as 203.0.113.0/24") from error


def _is_in(network: Network, other: ipaddress.IPv4Network) -> bool:
    return isinstance(network, ipaddress.IPv4Network) and network.subnet_of(other)
