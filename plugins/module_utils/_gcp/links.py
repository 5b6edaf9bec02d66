# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of options and of resources as requests want them, and addresses as Google spells them."""

from __future__ import annotations

import ipaddress
import typing as t

from .._core.errors import InvalidInput


def link(place: str, collection: str, name: str) -> str:
    """The link of what is named; a link stays as it is. PLACE: ``projects/p/regions/r``."""
    return name if "/" in name else f"{place}/{collection}/{name}"


def network_link(project: str, name: str) -> str:
    """The link of a network, which may be a Shared VPC of another project."""
    return link(f"projects/{project}/global", "networks", name)


def range_of(option: str, text: str) -> str:
    """An address or a range as Google shows it. One with host bits is refused, as it may be a typing error."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise InvalidInput(f"{option}: {text} is no address range: {error}", hint=_suggestion(text)) from error


def _suggestion(text: str) -> str:
    try:
        return f"Write {ipaddress.ip_network(text, strict=False)}, if that is meant"
    except ValueError:
        return "Write it in CIDR notation, such as 10.0.0.0/16"


def ranges_of(option: str, texts: t.Sequence[str] | None) -> list[str] | None:
    """The ranges as Google shows them, each once."""
    return None if texts is None else list(dict.fromkeys(range_of(option, text) for text in texts))
