# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the API server counts a cluster as ready. Pure."""

from __future__ import annotations

import typing as t

from .._core.conditions import condition, is_true

Object = t.Mapping[str, t.Any]


def why_not_ready(desired: t.Sequence[str], version: str, nodes: t.Iterable[Object], dns_pods: t.Iterable[Object]) -> str | None:
    """Return what is missing until every desired node (kubelet of VERSION) and one pod of cluster DNS are Ready; None if nothing is."""
    by_name = {node["metadata"]["name"]: node for node in nodes}
    for name in desired:
        if name not in by_name:
            return f"Node {name} has not registered"
        if not is_true(by_name[name], "Ready"):
            ready = condition(by_name[name], "Ready")
            return f"Node {name} is not Ready: {ready.get('message') or 'no condition yet'}"
        if (kubelet := by_name[name]["status"]["nodeInfo"]["kubeletVersion"]) != version:
            return f"Node {name} has kubelet {kubelet}, not {version}"
    # A pod of a node that died can still be in the list, so one that works is enough.
    return None if any(is_true(pod, "Ready") for pod in dns_pods) else "no pod of CoreDNS is Ready"
