# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of a broker: nodes, alarms, listeners, queues, and one message that is published and consumed; what the doctor says of it."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import typing as t

from ..._core.brief import listed
from ..._core.clock import Deadline
from ..._core.conditions import is_true
from ..._core.errors import Failed, MusterError
from ..._core.metrics import Figures, named, samples
from ..._core.pool import OnProgress, Progress
from ..._core.waiting import fixed_interval, wait_for
from ..._doctor.findings import Finding
from ..._doctor.reading import Snapshot
from ..._kube.objects import Manifest, labels_of, ref_of
from .api import ManagementApi
from .inside import management
from .manifests import RabbitmqCluster, read_live

_NODE = ("name", "running", "being_drained", "partitions", "mem_used", "mem_limit", "disk_free", "disk_free_limit")
_QUEUE = ("vhost", "name", "type", "state", "messages", "messages_ready", "messages_unacknowledged", "consumers")
_ALARM = ("node", "resource")
_PAUSE = 1.0
_PROBE_EXPIRES_MS = 60_000
"""The expiry of a probe's queue: the broker removes it after a minute without use, even if this process was killed."""
_ANSWER = 5.0
_MORE = {"memory": "raise the memory limit of the broker's pods", "disk": "make the broker's claim larger"}
"""Resource of an alarm with the way to more of it."""

Row = dict[str, t.Any]
FIGURES = Figures(
    prefix="rabbitmq_",
    paths=dict.fromkeys(("/metrics", "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count"), samples),
    model="queue",
    counts={
        "messages_ready": named("rabbitmq_detailed_queue_messages_ready"),
        "messages_unacked": named("rabbitmq_detailed_queue_messages_unacked"),
        "consumers": named("rabbitmq_detailed_queue_consumers"),
        "alarms": lambda one: one.name.startswith("rabbitmq_alarms_"),
        "free_bytes": named("rabbitmq_disk_space_available_bytes"),
    },
)
"""The figures of a broker, which need no login; those of a queue are at the second path only, alarms at the first."""


def survey(api: ManagementApi, vhost: str | None = None) -> Row:
    """Return the broker's reports and its problems. Queues are those of one vhost, or all that the user may see."""
    overview = api.get("overview") or {}
    nodes = [_picked(row, _NODE) for row in api.get("nodes", columns=",".join(_NODE)) or []]
    # Alarms are reported at once, unlike the numbers of a node, which are updated every 5 seconds. Status 503: there are alarms.
    alarms = api.call("GET", ("health", "checks", "alarms"), answers=(503,)).get("alarms", [])
    where = ("queues", vhost) if vhost else ("queues",)
    queues = [_picked(row, _QUEUE) for row in api.get(*where, columns=",".join(_QUEUE)) or []]
    return {
        "version": overview.get("rabbitmq_version", ""),
        "erlang_version": overview.get("erlang_version", ""),
        "cluster_name": overview.get("cluster_name", ""),
        "nodes": nodes,
        "listeners": [_listener(row) for row in overview.get("listeners", [])],
        "queues": sorted(queues, key=lambda row: (row["vhost"], row["name"])),
        "alarms": [_picked(row, _ALARM) for row in alarms],
        "problems": problems(nodes, queues, alarms),
    }


def problems(nodes: t.Sequence[Row], queues: t.Sequence[Row], alarms: t.Sequence[Row]) -> list[str]:
    """Return the problems of the broker, as clauses like ``node a: has a memory alarm``."""
    found = []
    known = {node["name"]: node for node in nodes}
    for alarm in alarms:
        numbers = _numbers(alarm["resource"], known.get(alarm["node"], {}))
        found.append(f"node {alarm['node']}: has a {alarm['resource']} alarm{numbers}: publishers are stopped")
    for node in nodes:
        found += [f"node {node['name']}: {clause}" for clause in _node_problems(node)]
    # A queue that was just declared has no state yet.
    bad = [row for row in queues if row["state"] not in (None, "running", "idle", "flow", "live")]
    return found + [f"queue {row['name']} in vhost {row['vhost']}: is {row['state']}" for row in bad]


def _numbers(resource: str, node: Row) -> str:
    """The numbers behind an alarm, if the node has reported them."""
    if resource == "memory" and node.get("mem_limit") is not None:
        return f" ({node['mem_used']} of {node['mem_limit']} bytes)"
    if resource.startswith("disk") and node.get("disk_free") is not None:
        return f" ({node['disk_free']} bytes free, {node['disk_free_limit']} needed)"
    return ""


def _node_problems(node: Row) -> t.Iterator[str]:
    if not node["running"]:
        yield "does not run"
        return
    if node["partitions"]:
        yield f"is cut off from {', '.join(node['partitions'])}"
    if node["being_drained"]:
        yield "is being drained"


def wait(api: ManagementApi, vhost: str | None, timeout: float, progress: OnProgress) -> Row:
    """Wait until there are no problems. The wait repeats its requests, so single requests are not retried."""
    api.address = dataclasses.replace(api.address, startup_timeout=0)

    def observe() -> tuple[Row, str | None]:
        found = survey(api, vhost)
        return found, listed(found["problems"])

    return wait_for(
        observe, goal=f"The broker at {api.address} is not healthy", deadline=Deadline(timeout, api.clock),
        pause=fixed_interval(_PAUSE, api.clock), progress=Progress(progress, api.clock), hint="Its log says why.",
    )  # fmt: skip


def probe(api: ManagementApi, vhost: str) -> Row:
    """Publish one message to a temporary queue, consume it, and remove the queue."""
    token, queue = secrets.token_hex(16), f"muster-probe-{secrets.token_hex(8)}"
    path = ("queues", vhost, queue)
    arguments = {"x-expires": _PROBE_EXPIRES_MS, "x-queue-type": "classic"}
    api.call("PUT", path, {"durable": True, "auto_delete": False, "arguments": arguments})
    try:
        _deliver(api, vhost, queue, token)
    except BaseException:
        with contextlib.suppress(MusterError):
            api.call("DELETE", path)
        raise
    api.call("DELETE", path)
    return {"vhost": vhost, "queue": queue, "delivered": True}


def _deliver(api: ManagementApi, vhost: str, queue: str, token: str) -> None:
    message = {"properties": {}, "routing_key": queue, "payload": token, "payload_encoding": "string"}
    sent = api.call("POST", ("exchanges", vhost, "amq.default", "publish"), message)
    if not sent["routed"]:
        raise Failed(f"The broker at {api.address} took a message in vhost {vhost} and routed it to no queue.")
    order = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    got = api.call("POST", ("queues", vhost, queue, "get"), order)
    if [row["payload"] for row in got] != [token]:
        raise Failed(f"The broker at {api.address} took a message in vhost {vhost} and does not give it out.")


def _picked(row: Row, fields: t.Sequence[str]) -> Row:
    return {field: row.get(field) for field in fields}


def _listener(row: Row) -> Row:
    """Return a listener; the protocol's name tells whether it uses TLS (amqp/ssl, https)."""
    protocol = row["protocol"]
    return {
        "node": row.get("node", ""),
        "protocol": protocol,
        "address": row.get("ip_address", ""),
        "port": row["port"],
        "tls": protocol.endswith("/ssl") or protocol == "https",
    }


def faults(seen: Snapshot) -> t.Iterator[Finding]:
    """Ask each broker that module rabbitmq_cluster made, as its administrator. Why no node is ready is a finding about its pod."""
    for item in seen.of("StatefulSet"):
        broker = read_live(item) if labels_of(item).get("app.kubernetes.io/name") == RabbitmqCluster.app else None
        pods = seen.pods_of(broker.labels) if broker and broker.admin_secret else []
        ready = [pod for pod in pods if is_true(pod, "Ready")]
        if broker is None or not ready:
            continue
        try:
            with management(seen.cluster, broker, request_timeout=_ANSWER, startup_timeout=0) as api:
                found = survey(api)
        except MusterError as error:
            seen.unread.append(error.message)
        else:
            yield from _told(item, found, whole=len(ready) == broker.replicas)


def _told(item: Manifest, found: Row, *, whole: bool) -> t.Iterator[Finding]:
    """WHOLE: whether all nodes are ready. While one is made again it does not run, and neither do some queues."""
    for alarm in found["alarms"]:
        evidence, resource = problems(found["nodes"], [], [alarm])[0], alarm["resource"].partition(" ")[0]
        advice = f"Consume or delete messages, or {_MORE.get(resource, 'see its log')}. The broker takes no messages until then."
        yield Finding("error", str(ref_of(item)), f"broker has a {resource} alarm", evidence, advice)
    if whole and (wrong := listed(problems(found["nodes"], found["queues"], []))):
        yield Finding(
            "error", str(ref_of(item)), "nodes or queues of the broker do not work", wrong, "See the log of the node that it names."
        )
