# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a vLLM server, by the names of 0.32.0 (tests/unit/recorded/metrics.json). They need no key.

Each request is counted when it ends, by its reason; of these only ``error`` is a failure (vllm/v1/engine/__init__.py,
FINISH_REASON_STRINGS). A request that is refused is in none of them. With ``--disable-log-stats`` there are none at all.
"""

from __future__ import annotations

from ..._core.metrics import Figures, Sample, named

_ENDED = "vllm:request_success_total"
_LATENCY = "vllm:e2e_request_latency_seconds"
_QUEUED = "vllm:request_queue_time_seconds"


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
    share="vllm:kv_cache_usage_perc",
)
