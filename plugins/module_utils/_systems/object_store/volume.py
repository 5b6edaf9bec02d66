# SPDX-License-Identifier: GPL-3.0-or-later
"""The size of a store's volume."""

from __future__ import annotations

from ..._core.metrics import Figures, Sample, named
from ..._kube.cluster import Cluster
from ..._kube.objects import Ref

FIGURES = Figures(prefix="volume_", counts={"used_bytes": named("volume_usedBytes"), "free_bytes": named("volume_availableBytes")})
"""The figures of the kubelet, because the store has no metrics."""


def volumes_of(cluster: Cluster, pod: Ref, within: float) -> list[Sample]:
    """Read from the kubelet the sizes of the claims of a pod: none where their plugin measures none, such as a folder of the node."""
    node = ((cluster.get(pod) or {}).get("spec") or {}).get("nodeName")
    told = cluster.read(f"/api/v1/nodes/{node}/proxy/stats/summary", timeout=within)
    volumes = [volume for one in told.get("pods") or () if one["podRef"]["name"] == pod.name and one["podRef"]["namespace"] == pod.namespace
               for volume in one.get("volume") or () if "pvcRef" in volume]  # fmt: skip
    return [Sample(f"volume_{key}", {}, volume[key]) for volume in volumes for key in ("usedBytes", "availableBytes") if key in volume]
