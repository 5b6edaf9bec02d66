# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""Find alarms of brokers, and nodes and queues that do not work, by what the broker itself says: publishers wait without an error."""

from __future__ import annotations

from collections.abc import Iterator

from ..._core.brief import listed
from ..._core.conditions import is_true
from ..._core.errors import MusterError
from ..._doctor.findings import Finding
from ..._doctor.reading import Snapshot
from ..._kube.objects import Manifest, labels_of, ref_of
from . import health
from .inside import management
from .manifests import RabbitmqCluster, read_live

_TIMEOUT = 5.0
_MORE = {"memory": "raise the memory limit of the broker's pods", "disk": "make the broker's claim larger"}
"""Resource of an alarm with the way to more of it."""


def faults(seen: Snapshot) -> Iterator[Finding]:
    """Ask each broker that module rabbitmq_cluster made, as its administrator. Why no node is ready is a finding about its pod."""
    for item in seen.of("StatefulSet"):
        broker = read_live(item) if labels_of(item).get("app.kubernetes.io/name") == RabbitmqCluster.app else None
        pods = seen.pods_of(broker.labels) if broker and broker.admin_secret else []
        ready = [pod for pod in pods if is_true(pod, "Ready")]
        if broker is None or not ready:
            continue
        try:
            with management(seen.cluster, broker, timeout=_TIMEOUT, startup_timeout=0) as api:
                found = health.survey(api)
        except MusterError as error:
            seen.unread.append(error.message)
        else:
            yield from _told(item, found, whole=len(ready) == broker.size)


def _told(item: Manifest, found: health.Row, *, whole: bool) -> Iterator[Finding]:
    """WHOLE: whether all nodes are ready. While one is made again it does not run, and neither do some queues."""
    for alarm in found["alarms"]:
        evidence, resource = health.problems(found["nodes"], [], [alarm])[0], alarm["resource"].partition(" ")[0]
        advice = f"Consume or delete messages, or {_MORE.get(resource, 'see its log')}. The broker takes no messages until then."
        yield Finding("error", str(ref_of(item)), f"broker has a {resource} alarm", evidence, advice)
    if whole and (wrong := listed(health.problems(found["nodes"], found["queues"], []))):
        yield Finding(
            "error", str(ref_of(item)), "nodes or queues of the broker do not work", wrong, "See the log of the node that is named."
        )
