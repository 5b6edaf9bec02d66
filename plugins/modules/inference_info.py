#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inference_info
short_description: List servers with their requests, queues and latencies
description:
  - Reads the metrics of each replica that is ready of the servers of M(muster.ml.triton_server), M(muster.ml.vllm_server),
    M(muster.ml.rabbitmq_cluster), M(muster.ml.nats_cluster), M(muster.ml.etcd_cluster) (also of a member that is not ready, because one
    without a leader is not) and M(muster.ml.studioml_runner), all side by side, by forwarded ports, with the rights of the kubeconfig.
    Of those of M(muster.ml.object_store) the kubelet tells the volume. A replica has five seconds.
  - What a server does not tell is left out. A replica that does not answer is named with the cause, and nothing fails.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  namespace:
    description: Namespace of the servers. Defaults to all namespaces.
    type: str
  earlier:
    description: File with an earlier C(servers) as JSON, such as C(muster_status_file), for the rates since then. It may be missing.
    type: path
seealso:
  - module: muster.ml.inference_check
"""

EXAMPLES = r"""
- name: Read what the servers of models have done
  muster.ml.inference_info:
    namespace: ml
  register: inference

- name: Show it
  ansible.builtin.debug:
    msg: "{{ inference.servers | map(attribute='line') }}"
"""

RETURN = r"""
servers:
  description:
    - Servers, each with C(system) (C(triton), C(vllm), C(rabbitmq), C(nats), C(object-store), C(etcd) or C(studioml-runner)),
      C(namespace), C(name), the number of replicas that are C(ready) and C(wanted), and the figures that it has of the replicas which are
      there. C(line) is all of it as one text, C(at) the time in seconds since 1970.
    - C(served) and C(failed) are requests since the replicas started, C(running) and C(waiting) those of now, C(cache_percent) is the use
      of the fullest KV cache, C(requests_per_s) is since the reading in O(earlier), of replicas that are in both.
    - C(latency_ms) has C(mean), and C(queue), the mean time in the queue, since the start. C(p50) and C(p99) of vLLM are since the start,
      too, estimated from its histogram; those of Triton are of its sliding window of time, of the slowest model at the slowest replica.
    - C(models) has the figures of each model with its C(name), C(pods) the requests that each replica has served, and C(unread) the
      replicas that do not tell their metrics, with the cause.
    - A broker has C(messages_ready), C(messages_unacked), C(consumers), C(alarms) and C(free_bytes), and C(queues) the same of each queue.
      NATS has C(connections), C(in_msgs), C(out_msgs) and C(slow_consumers), a store C(used_bytes) and C(free_bytes) of its volume.
    - etcd has the number of C(members) that answer, C(leader), its pod, or empty, C(alarm), empty or the first of C(NOSPACE) and
      C(CORRUPT), the number of C(keys) of the v3 API, and C(used_bytes) of C(quota_bytes) of the largest database.
    - StudioML's runners have the experiments that are C(running) and those that have C(ended) since they started, well or not, and
      C(waiting), the messages in the queues that they take, where their broker is one of C(servers).
    - C(history) has the latest 60 readings of what C(plots) shows, each with its time, those of O(earlier) among them.
  returned: success
  type: list
  elements: dict
  sample:
    - system: triton
      namespace: ml
      name: triton
      line: 1 of 1 ready, 63 served, 0 failed, 2 waiting, mean 21.9 ms, queue 0.065 ms, p50 20.5 ms, p99 39.6 ms, models add
      ready: 1
      wanted: 1
      at: 1795854600
      served: 63
      failed: 0
      waiting: 2
      latency_ms: {mean: 21.929, queue: 0.065, p50: 20.5, p99: 39.561}
      models: [{name: add, served: 63, failed: 0, waiting: 2, latency_ms: {mean: 21.929, queue: 0.065, p50: 20.5, p99: 39.561}}]
      pods: {triton-6b7c8d9e0f-x2v9k: 63}
      history: []
      plots: []
      unread: []
unread:
  description: Servers that could not be listed, with the right that is missing.
  returned: success
  type: list
  elements: str
  sample: []
"""

import functools
import json
import pathlib
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core import metrics
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.json_http import JsonClient
from ansible_collections.muster.ml.plugins.module_utils._core.pool import PARALLEL, run_all_or_raise
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, Manifest, Ref, selector_of
from ansible_collections.muster.ml.plugins.module_utils._manifests import servers as manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.figures import FIGURES as OF_ETCD
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import METRICS_PORT as ETCD_METRICS_PORT
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import EtcdCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.metrics import FIGURES as OF_VLLM
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.server import PORT, VllmServer
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.nats.manifests import MONITOR_PORT, NatsCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store import volume
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store.manifests import ObjectStore
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import health
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.manifests import METRICS_PORT, RabbitmqCluster
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner import METRICS_PORT as RUNNER_METRICS_PORT
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner import Runner
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner_metrics import FIGURES as OF_RUNNER
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner_metrics import waiting
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import FIGURES as OF_TRITON
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.replicas import pods_ready_now, reached_by
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import PORTS, TritonServer
from ansible_collections.muster.ml.plugins.module_utils._training.plots import plot_of

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {"namespace": {"type": "str"}, "earlier": {"type": "path"}}

WITHIN_S = 5.0
MOST = 8 << 20
"""Letters of metrics that are read. A hundred models have a hundredth of that."""
_LATEST = 60


class Kind(t.NamedTuple):
    """A kind of servers, the port of their metrics, and what these tell."""

    server: type[manifests.Server]
    port: int
    figures: metrics.Figures
    load: str
    """The figure that is plotted."""
    parts: str = ""
    """The key of the figures of its models or queues."""
    unready: bool = False
    """Whether pods that are not ready are asked, too."""


class Server(t.NamedTuple):
    """A server, and its pods that are asked."""

    kind: Kind
    live: Manifest
    pods: list[Ref]


# Brokers are before the runners, whose queues they have.
KINDS = (
    Kind(TritonServer, PORTS["metrics"], OF_TRITON, "requests_per_s", "models"),
    Kind(VllmServer, PORT, OF_VLLM, "requests_per_s", "models"),
    Kind(RabbitmqCluster, METRICS_PORT, health.FIGURES, "messages_ready", "queues"),
    Kind(NatsCluster, MONITOR_PORT, nats.FIGURES, "connections"),
    Kind(ObjectStore, 0, volume.FIGURES, "used_bytes"),
    Kind(EtcdCluster, ETCD_METRICS_PORT, OF_ETCD, "used_bytes", unready=True),
    Kind(Runner, RUNNER_METRICS_PORT, OF_RUNNER, "running"),
)


def servers_of(ctx: Context, kind: Kind, workload: tuple[str, str]) -> list[Server]:
    """The servers of a kind whose pods a kind of WORKLOAD makes."""
    selector = f"{LABEL_OWNER},{selector_of({'app.kubernetes.io/name': kind.server.app})}"
    found = [(live, live["metadata"]) for live in ctx.cluster.list(*workload, ctx.params["namespace"], selector)]
    of = kind.server, kind.unready
    return [Server(kind, live, pods_ready_now(ctx.cluster, meta["name"], meta["namespace"], *of)) for live, meta in found]


def told(ctx: Context, kind: Kind, pod: Ref) -> list[metrics.Sample] | str:
    """The samples of a replica, or why there are none."""
    speaking = functools.partial(JsonClient, timeout=WITHIN_S)
    prefix, found = kind.figures.prefix, []
    try:
        if not kind.port:
            return volume.volumes_of(ctx.cluster, pod, WITHIN_S) or f"the kubelet does not measure the volume of {pod}"
        with reached_by(ctx.cluster, pod, kind.port, speaking, kind.server, WITHIN_S, unready=kind.unready) as client:
            for path, read in kind.figures.paths.items():
                status, text = client.text(path)
                if status not in kind.figures.answers:
                    return f"{pod} answers {status} to {path} at port {kind.port}"
                found += [one._replace(labels={**one.labels, "pod": pod.name}) for one in read(text[:MOST])]
    except MusterError as error:
        return error.message.rstrip(".")
    known = any(one.name.startswith(prefix) for one in found)
    return found if known else f"{pod} has no metrics of {kind.server.title} at port {kind.port}"


class Earlier(t.NamedTuple):
    """An earlier reading of a server."""

    at: int
    pods: dict[str, float]
    history: list[tuple[float, float]]


def earlier_of(path: str | None) -> dict[tuple[str, ...], Earlier]:
    """Time, counts and history of each server in an earlier reading; nothing if there is none."""
    try:
        rows = json.loads(pathlib.Path(path or "").read_text(encoding="utf-8"))["servers"]
        return {
            _key(row): Earlier(int(row["at"]), {pod: float(served) for pod, served in row["pods"].items()},
                               [(float(at), float(value)) for at, value in row.get("history", ())])
            for row in rows
        }  # fmt: skip
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _key(row: dict[str, t.Any]) -> tuple[str, ...]:
    return (row["system"], row["namespace"], row["name"])


def row_of(server: Server, answers: list[list[metrics.Sample] | str], now: int) -> dict[str, t.Any]:
    """The row of a server, with what its replicas have reported."""
    kind, live = server.kind, server.live
    answered = {pod.name: found for pod, found in zip(server.pods, answers, strict=True) if not isinstance(found, str)}
    every = [one for found in answered.values() for one in found]
    counts = {name: kind.figures.of(found).get("served") for name, found in answered.items()}
    return {
        "system": kind.server.app,
        **{key: live["metadata"][key] for key in ("namespace", "name")},
        "ready": int((live.get("status") or {}).get("readyReplicas") or 0),
        "wanted": int(live["spec"].get("replicas", 1)),
        "at": now,
        **kind.figures.of(every),
        **({kind.parts: kind.figures.by_model(every)} if kind.parts else {}),
        "pods": {name: served for name, served in counts.items() if served is not None},
        "unread": [found for found in answers if isinstance(found, str)],
    }


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read the metrics of all replicas."""
    servers, unread, now = [], [], int(ctx.clock.time())
    for kind, workload in [(one, workload) for one in KINDS for workload in one.server.workloads]:
        try:
            servers += servers_of(ctx, kind, workload)
        except Forbidden as error:
            unread.append(f"{kind.server.title}: {error.message}")
    asked = [(server.kind, pod) for server in servers for pod in server.pods]
    answers = iter(run_all_or_raise(lambda one: told(ctx, *one), asked, parallel=PARALLEL))
    rows: list[dict[str, t.Any]] = []
    earlier = earlier_of(ctx.params["earlier"])
    for server in servers:
        row = row_of(server, [next(answers) for _pod in server.pods], now)
        before, load = earlier.get(_key(row), Earlier(now, {}, [])), server.kind.load
        rate = metrics.rate(row["pods"], before.pods, now - before.at)
        row |= {} if rate is None else {"requests_per_s": rate}
        row |= waiting(server.live, rows) if server.kind.server is Runner else {}
        history = [*before.history, *([(now, row[load])] if load in row else [])][-_LATEST:]
        rows.append({**row, "line": metrics.line_of(row), "history": history, "plots": plot_of(load.replace("_", " "), history)})
    return {"changed": False, "servers": rows, "unread": unread}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
