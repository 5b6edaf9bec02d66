# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for NetworkPolicies; the same as NETWORK in module_utils/_edge/groups.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  network_policy:
    description:
      - Create a NetworkPolicy for incoming connections, which allows only the clients that need to connect.
      - It has an effect only if the cluster's network plugin enforces policies.
      - V(false) removes the NetworkPolicy.
    type: bool
    default: true
  network_policy_from:
    description:
      - Additional clients that may connect, such as a Prometheus of another namespace. Entries are as in C(ingress.from) of a
        NetworkPolicy, with C(namespaceSelector), C(podSelector) or C(ipBlock).
    type: list
    elements: dict
    default: []
"""
