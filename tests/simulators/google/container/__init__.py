# SPDX-License-Identifier: GPL-3.0-or-later
"""GKE: clusters, node pools, and the machines that they make in the project."""

from . import clusters, nodepools, operations, poolupdates, setters, updates, versions

__all__ = ["clusters", "nodepools", "operations", "poolupdates", "setters", "updates", "versions"]
