#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: inference_info
short_description: List servers of models with their requests, queues and latencies
description:
  - Reads the metrics of each replica that is ready of the servers of M(muster.ml.triton_server) and M(muster.ml.vllm_server), all side by
    side, by forwarded ports, with the rights of the kubeconfig. A replica has five seconds.
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
    - Servers, each with C(system) (C(triton) or C(vllm)), C(namespace), C(name), the number of replicas that are C(ready) and C(wanted),
      and the figures that it has of the replicas which are there. C(line) is all of it as one text, C(at) the time in seconds since 1970.
    - C(served) and C(failed) are requests since the replicas started, C(running) and C(waiting) those of now, C(cache_percent) is the use
      of the fullest KV cache, C(requests_per_s) is since the reading in O(earlier), of replicas that are in both.
    - C(latency_ms) has C(mean), and C(queue), the mean time in the queue, since the start. C(p50) and C(p99) of vLLM are since the start,
      too, estimated from its histogram; those of Triton are of its sliding window of time, of the slowest model at the slowest replica.
    - C(models) has the figures of each model with its C(name), C(pods) the requests that each replica has served, and C(unread) the
      replicas that do not tell their metrics, with the cause.
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
from ansible_collections.muster.ml.plugins.module_utils._core.brief import listed
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.json_http import OK, JsonClient
from ansible_collections.muster.ml.plugins.module_utils._core.pool import PARALLEL, run_all_or_raise
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, Manifest, Ref, selector_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import DEPLOYMENT
from ansible_collections.muster.ml.plugins.module_utils._manifests.replicas import Replicas
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.metrics import FIGURES as OF_VLLM
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.server import PORT, VllmServer
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import FIGURES as OF_TRITON
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.replicas import pods_ready_now, reached_by
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import PORTS, TritonServer

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {"namespace": {"type": "str"}, "earlier": {"type": "path"}}

WITHIN_S = 5.0
MOST = 8 << 20
"""Letters of metrics that are read. A hundred models have a hundredth of that."""
_TEXTS = ("served", "failed", "running", "waiting")


class Kind(t.NamedTuple):
    """A kind of servers, the port of their metrics, and what these tell."""

    server: type[Replicas]
    port: int
    figures: metrics.Figures


class Server(t.NamedTuple):
    """A server, and its pods that are ready."""

    kind: Kind
    live: Manifest
    pods: list[Ref]


KINDS = (Kind(TritonServer, PORTS["metrics"], OF_TRITON), Kind(VllmServer, PORT, OF_VLLM))


def servers_of(ctx: Context, kind: Kind) -> list[Server]:
    """The servers of a kind."""
    selector = f"{LABEL_OWNER},{selector_of({'app.kubernetes.io/name': kind.server.app})}"
    found = [(live, live["metadata"]) for live in ctx.cluster.list(*DEPLOYMENT, ctx.params["namespace"], selector)]
    return [Server(kind, live, pods_ready_now(ctx.cluster, meta["name"], meta["namespace"], kind.server)) for live, meta in found]


def told(ctx: Context, kind: Kind, pod: Ref) -> list[metrics.Sample] | str:
    """The samples of a replica, or why there are none."""
    speaking = functools.partial(JsonClient, timeout=WITHIN_S)
    try:
        with reached_by(ctx.cluster, pod, kind.port, speaking, kind.server, WITHIN_S) as client:
            status, text = client.text("/metrics")
    except MusterError as error:
        return error.message.rstrip(".")
    if status != OK:
        return f"{pod} answers {status} to /metrics at port {kind.port}"
    found = [one._replace(labels={**one.labels, "pod": pod.name}) for one in metrics.samples(text[:MOST])]
    known = any(one.name.startswith(kind.figures.prefix) for one in found)
    return found if known else f"{pod} has no metrics of {kind.server.title} at port {kind.port}"


def earlier_of(path: str | None) -> dict[tuple[str, ...], tuple[int, dict[str, float]]]:
    """Time and counts of each server in an earlier reading; nothing if there is none."""
    try:
        rows = json.loads(pathlib.Path(path or "").read_text(encoding="utf-8"))["servers"]
        return {_key(row): (int(row["at"]), {pod: float(served) for pod, served in row["pods"].items()}) for row in rows}
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
        "models": kind.figures.by_model(every),
        "pods": {name: served for name, served in counts.items() if served is not None},
        "unread": [found for found in answers if isinstance(found, str)],
    }


def line_of(row: dict[str, t.Any]) -> str:
    """The row as one text."""
    parts = [f"{row['ready']} of {row['wanted']} ready", *(f"{row[name]} {name}" for name in _TEXTS if name in row)]
    parts += [f"KV cache {row['cache_percent']} %"] if "cache_percent" in row else []
    parts += [f"{row['requests_per_s']:.3g} a second"] if "requests_per_s" in row else []
    parts += [f"{name} {ms:.3g} ms" if ms < 1000 else f"{name} {ms / 1000:.3g} s" for name, ms in row["latency_ms"].items()]
    parts += [f"models {listed([one['name'] for one in row['models']])}"] if row["models"] else []
    text = ", ".join(parts) + (f": {listed(row['unread'])}" if row["unread"] else "")
    return " ".join(text.split())  # a name may have other ends of lines


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read the metrics of all replicas."""
    servers, unread, now = [], [], int(ctx.clock.time())
    for kind in KINDS:
        try:
            servers += servers_of(ctx, kind)
        except Forbidden as error:
            unread.append(f"{kind.server.title}: {error.message}")
    asked = [(server.kind, pod) for server in servers for pod in server.pods]
    answers = iter(run_all_or_raise(lambda one: told(ctx, *one), asked, parallel=PARALLEL))
    rows, earlier = [], earlier_of(ctx.params["earlier"])
    for server in servers:
        row = row_of(server, [next(answers) for _pod in server.pods], now)
        before, counts = earlier.get(_key(row), (now, {}))
        rate = metrics.rate(row["pods"], counts, now - before)
        row |= {} if rate is None else {"requests_per_s": rate}
        rows.append({**row, "line": line_of(row)})
    return {"changed": False, "servers": rows, "unread": unread}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
