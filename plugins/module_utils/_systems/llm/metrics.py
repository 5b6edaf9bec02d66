# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a vLLM server, by the names of 0.32.0 (tests/unit/recorded/metrics.json). They need no key.

Each request is counted when it ends, by its reason; of these only ``error`` is a failure (vllm/v1/engine/__init__.py,
FINISH_REASON_STRINGS). A request that is refused is in none of them. With ``--disable-log-stats`` there are none at all.
"""

from __future__ import annotations

from ..._core.metrics import Figures, Sample, named
from ..._manifests.meta import Manifest
from ..._manifests.monitoring import RequestAlerts, alert

_ENDED = "vllm:request_success_total"
_LATENCY = "vllm:e2e_request_latency_seconds"
_QUEUED = "vllm:request_queue_time_seconds"
_CACHE = "vllm:kv_cache_usage_perc"
_CACHE_FULL = 0.95


def _ended(*, failed: bool, one: Sample) -> bool:
    return one.name == _ENDED and (one.labels.get("finished_reason") == "error") is failed


FIGURES = Figures(
    prefix="vllm:",
    model="model_name",
    counts={
        "served": lambda one: _ended(failed=False, one=one),
        "failed": lambda one: _ended(failed=True, one=one),
        "running": named("vllm:num_requests_running"),
        "waiting": named("vllm:num_requests_waiting"),
    },
    means={"mean": (f"{_LATENCY}_sum", f"{_LATENCY}_count"), "queue": (f"{_QUEUED}_sum", f"{_QUEUED}_count")},
    latency=_LATENCY,
    in_ms=1000,
    largest={"cache_percent": (_CACHE, 100)},
)


def alerts_of(name: str, namespace: str, alerts: RequestAlerts) -> list[Manifest]:
    """The alerts by the metrics of a server."""
    of = f'namespace="{namespace}",job="{name}"'

    def rate(metric: str, more: str = "") -> str:
        return f"sum by (namespace, job, model_name) (rate({metric}{{{of}{more}}}[5m]))"

    wait_ms = f"1000 * {rate(f'{_QUEUED}_sum')} / ({rate(f'{_QUEUED}_count')} > 0)"
    errors = rate(_ENDED, ',finished_reason="error"')
    return [
        alert("VllmQueueTime", f"{wait_ms} > {alerts.queue_time_ms:g}", alerts.after, "warning",
              "Requests for model {{ $labels.model_name }} wait {{ $value | printf \"%.0f\" }} ms in the queue.",
              "More replicas or a smaller max_model_len would shorten it."),
        alert("VllmFailures", f"{errors} / ({rate(_ENDED)} > 0) > {alerts.failure_ratio:g}", alerts.after, "critical",
              "{{ $value | humanizePercentage }} of the requests for model {{ $labels.model_name }} fail.", "The server's log says why."),
        alert("VllmCacheFull", f"max by (namespace, job, pod) ({_CACHE}{{{of}}}) > {_CACHE_FULL}", alerts.after, "warning",
              "{{ $value | humanizePercentage }} of the KV cache of {{ $labels.pod }} are in use.",
              "Requests wait or are computed again: more replicas, or a smaller max_model_len."),
    ]  # fmt: skip
