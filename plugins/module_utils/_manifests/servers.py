# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts that every group of servers needs around its pods: Services, a disruption budget, nodes of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .meta import Manifest


def client_service(
    metadata: Manifest,
    selector: Mapping[str, str],
    ports: Mapping[str, int],
    app_protocols: Mapping[str, str] | None = None,
) -> Manifest:
    """The Service for clients: pods that are ready. PORTS: name -> number, APP_PROTOCOLS: name -> what is spoken there."""
    return _service(metadata, {"type": "ClusterIP"}, selector, ports, app_protocols or {})


def headless_service(metadata: Manifest, selector: Mapping[str, str], ports: Mapping[str, int]) -> Manifest:
    """The Service that gives every pod a DNS name, ready or not, because pods meet while they start."""
    return _service(metadata, {"clusterIP": "None", "publishNotReadyAddresses": True}, selector, ports, {})


def _service(
    metadata: Manifest,
    kind: Manifest,
    selector: Mapping[str, str],
    ports: Mapping[str, int],
    app_protocols: Mapping[str, str],
) -> Manifest:
    rows: list[Manifest] = [
        {
            "name": name,
            "port": port,
            "targetPort": port,
            "protocol": "TCP",
            **({"appProtocol": app_protocols[name]} if name in app_protocols else {}),
        }
        for name, port in ports.items()
    ]
    spec = {**kind, "selector": dict(selector), "ports": rows}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def stateful_set(
    metadata: Manifest,
    selector: Mapping[str, str],
    template: Manifest,
    *,
    replicas: int,
    service: str,
    claims: Sequence[Manifest] = (),
) -> Manifest:
    """The pods, which start together: they meet while they start, and one that never got ready is replaced when its template changes."""
    spec = {
        "replicas": replicas,
        "serviceName": service,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": dict(selector)},
        "template": template,
        **({"volumeClaimTemplates": list(claims)} if claims else {}),
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def disruption_budget(metadata: Manifest, selector: Mapping[str, str]) -> Manifest:
    """Let node drains stop one pod at a time."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def prefer_own_nodes(selector: Mapping[str, str]) -> Manifest:
    """The affinity that avoids two of the pods on one node if there are enough nodes."""
    preferred = [{"weight": 100, "podAffinityTerm": _same_node(selector)}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def require_own_nodes(selector: Mapping[str, str]) -> Manifest:
    """The affinity that never puts two of the pods on one node."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_same_node(selector)]}}


def _same_node(selector: Mapping[str, str]) -> Manifest:
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(selector)}}
