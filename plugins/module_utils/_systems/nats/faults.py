# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""Find NATS clusters whose servers have fewer routes than other servers: messages between clients of two servers are lost there."""

from __future__ import annotations

from collections.abc import Iterator

from ..._core.brief import listed
from ..._core.conditions import condition
from ..._doctor.findings import Finding
from ..._doctor.reading import Snapshot
from ..._kube.objects import Manifest, labels_of, ref_of
from ..._manifests.pods import PodSettings
from .manifests import CLUSTER_PORT, NatsCluster, problems
from .servers import OPERATOR_HINT, views

_SETTLED = 30.0
"""Seconds that a server has been ready for, in which the others connect to it."""


def faults(seen: Snapshot) -> Iterator[Finding]:
    """Ask the servers of each cluster by their monitoring port. Why a server is not ready is a finding about its pod."""
    for item in (*seen.of("StatefulSet"), *seen.of("NatsCluster")):
        spec, name = item["spec"], item["metadata"]["name"]
        size = int(spec.get("size" if item["kind"] == "NatsCluster" else "replicas") or 0)
        nats = NatsCluster(name=name, namespace=seen.namespace, pod=PodSettings(image=""), size=size)
        if item["kind"] == "StatefulSet" and not nats.labels.items() <= labels_of(spec["template"]).items():
            continue
        pods = [pod for pod in seen.pods_of(nats.labels) if not pod["metadata"].get("deletionTimestamp")]
        if pods and all(_is_settled(seen, pod) for pod in pods):
            yield from _judged(seen, item, nats, pods)


def _judged(seen: Snapshot, item: Manifest, nats: NatsCluster, pods: list[Manifest]) -> Iterator[Finding]:
    found = views(seen.cluster, pods)
    silent = [f"NATS server {view.pod}: {view.error}" for view in found if view.varz is None]
    seen.unread += silent
    wrong = listed(problems(nats, found, payload=False))
    if wrong and not silent:
        advice = f"Port {CLUSTER_PORT} must be open between the servers (NetworkPolicy), and their log tells what they try."
        hint = OPERATOR_HINT if item["kind"] == "NatsCluster" else ""
        yield Finding("error", str(ref_of(item)), "NATS servers are not connected", wrong, f"{advice} {hint}".strip())


def _is_settled(seen: Snapshot, pod: Manifest) -> bool:
    ready = condition(pod, "Ready")
    return ready.get("status") == "True" and seen.age(ready.get("lastTransitionTime")) > _SETTLED
