# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of what has a NetworkPolicy; twin of NETWORK in module_utils/_edge/groups.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  network_policy:
    description:
      - Make a NetworkPolicy that lets in only those who have to connect. It is about incoming connections only.
      - It does something where the cluster's network enforces policies, and nothing elsewhere.
      - V(false) removes the one that was made.
    type: bool
    default: true
  network_policy_from:
    description:
      - Who else may connect, such as clients or a Prometheus of another namespace. Entries are as in C(ingress.from) of a NetworkPolicy,
        with C(namespaceSelector), C(podSelector) or C(ipBlock).
    type: list
    elements: dict
    default: []
"""
