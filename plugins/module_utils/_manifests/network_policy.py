# SPDX-License-Identifier: GPL-3.0-or-later
"""A NetworkPolicy for connections to pods that do not authenticate them.

Outgoing connections are not restricted, because only the user knows where data and checkpoints are. Policies add up, so users can
allow more with their own. A cluster whose network does not enforce policies only stores them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import Manifest, refuse_unknown_keys

API_VERSION = "networking.k8s.io/v1"
KIND = "NetworkPolicy"
# In the namespace of the policy.
EVERY_POD: Manifest = {"podSelector": {}}


@dataclasses.dataclass(frozen=True)
class Flow:
    """Peers that may connect, and the ports. Without peers: every client, also from outside of the cluster. Without ports: every port."""

    peers: Sequence[Mapping[str, object]] | None
    ports: Sequence[int] = ()


def labelled(labels: Mapping[str, str]) -> Manifest:
    """The pods of the same namespace with these labels."""
    return {"podSelector": {"matchLabels": dict(labels)}}


def network_policy(metadata: Manifest, selector: Mapping[str, str], flows: Sequence[Flow]) -> Manifest:
    """Admits only FLOWS to the pods of SELECTOR, and what their node sends, such as probes."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {"podSelector": {"matchLabels": dict(selector)}, "policyTypes": ["Ingress"], "ingress": [_rule(flow) for flow in flows]},
    }


def own_pods(metadata: Manifest, selector: Mapping[str, str], others: Sequence[Mapping[str, object]]) -> Manifest:
    """Admits the pods of SELECTOR, and OTHERS, to the pods of SELECTOR, on every port, because trainings choose their ports."""
    return network_policy(metadata, selector, [Flow([labelled(selector), *others])])


def _rule(flow: Flow) -> Manifest:
    rule: Manifest = {}
    if flow.peers is not None:
        for peer in flow.peers:
            refuse_unknown_keys(peer, ("podSelector", "namespaceSelector", "ipBlock"), "network_policy_from")
            if not peer:
                raise InvalidInput(
                    "network_policy_from: an empty entry names no client.", "An empty namespaceSelector means every pod of all namespaces."
                )
        rule["from"] = [dict(peer) for peer in flow.peers]
    if flow.ports:
        rule["ports"] = [{"port": port, "protocol": "TCP"} for port in flow.ports]
    return rule
