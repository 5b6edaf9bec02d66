# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may connect to pods that ask nobody who he is: a NetworkPolicy of what comes in.

What goes out is left alone: only the user knows where data and checkpoints are. Policies add up, so that a user can allow more by one
of his own. A cluster whose network does not enforce them stores them and does nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import Manifest, refuse_unknown_keys

API_VERSION = "networking.k8s.io/v1"
KIND = "NetworkPolicy"
# Of the policy's own namespace.
EVERY_POD: Manifest = {"podSelector": {}}


@dataclasses.dataclass(frozen=True)
class Flow:
    """Who may connect to which ports. No peers: everybody, with an address outside of the cluster too. No ports: every port."""

    peers: Sequence[Mapping[str, object]] | None
    ports: Sequence[int] = ()


def labelled(labels: Mapping[str, str]) -> Manifest:
    """The pods of the same namespace with these labels."""
    return {"podSelector": {"matchLabels": dict(labels)}}


def network_policy(metadata: Manifest, selector: Mapping[str, str], flows: Sequence[Flow]) -> Manifest:
    """Lets FLOWS in to the pods of SELECTOR, and nothing else but what the node itself sends, which is how probes come."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress"],
            "ingress": [_rule(flow) for flow in flows],
        },
    }


def own_pods(metadata: Manifest, selector: Mapping[str, str], others: Sequence[Mapping[str, object]]) -> Manifest:
    """Lets the pods of SELECTOR, and OTHERS, in to the pods of SELECTOR, on every port: processes of trainings choose theirs."""
    return network_policy(metadata, selector, [Flow([labelled(selector), *others])])


def _rule(flow: Flow) -> Manifest:
    rule: Manifest = {}
    if flow.peers is not None:
        for peer in flow.peers:
            refuse_unknown_keys(peer, ("podSelector", "namespaceSelector", "ipBlock"), "network_policy_from")
            if not peer:
                raise InvalidInput(
                    "network_policy_from: an empty entry names nobody.",
                    "An empty namespaceSelector means every pod of all namespaces.",
                )
        rule["from"] = [dict(peer) for peer in flow.peers]
    if flow.ports:
        rule["ports"] = [{"port": port, "protocol": "TCP"} for port in flow.ports]
    return rule
