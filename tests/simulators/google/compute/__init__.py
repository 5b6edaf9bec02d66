# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute Engine: networks, addresses, machines and what GKE makes of them."""

from . import addresses, firewalls, images, instances, lists, networks, operations, places, routers, subnetworks

__all__ = [
    "addresses", "firewalls", "images", "instances", "lists", "networks", "operations", "places", "routers", "subnetworks",
]  # fmt: skip
