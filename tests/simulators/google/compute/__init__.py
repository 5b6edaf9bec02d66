# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute Engine: networks, addresses, machines and what GKE makes of them."""

from . import addresses, firewalls, images, instances, lists, networks, operations, routers, subnetworks

__all__ = [
    "addresses", "firewalls", "images", "instances", "lists", "networks", "operations", "routers", "subnetworks",
]  # fmt: skip
