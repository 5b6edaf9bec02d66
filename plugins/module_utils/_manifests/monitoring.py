# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that have metrics collected, and alerts raised, by whichever Prometheus a cluster has.

Pure: only the standard library, no Ansible, no Kubernetes client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .meta import Manifest

MONITORS = {"PodMonitoring": "monitoring.googleapis.com/v1", "ServiceMonitor": "monitoring.coreos.com/v1"}
"""Kinds that have metrics collected, in the order in which the first that the cluster serves is taken."""
RULES = {"PodMonitoring": "Rules", "ServiceMonitor": "PrometheusRule"}
"""The kinds of the same API versions that raise alerts."""


def monitor(kind: str, metadata: Manifest, selector: Mapping[str, str], *, port: str = "metrics", interval: str = "30s") -> Manifest:
    """Have the PORT of that name collected. PodMonitoring selects pods, ServiceMonitor their Service; SELECTOR: labels of both."""
    spec = {"selector": {"matchLabels": dict(selector)}, "endpoints": [{"port": port, "interval": interval}]}
    return {"apiVersion": MONITORS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def rules(kind: str, metadata: Manifest, groups: Sequence[Manifest]) -> Manifest:
    """Groups of rules, for the Prometheus that KIND of MONITORS belongs to."""
    return {"apiVersion": MONITORS[kind], "kind": RULES[kind], "metadata": metadata, "spec": {"groups": list(groups)}}
