# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts from the metrics of a Triton server, and its figures.

Seen with 2.51.0: each loaded version of a model has its counters, which go when it is unloaded. So a model that one replica has and
another lacks is a difference of counts. The queue's time is a sum of microseconds over all requests that succeeded.
An error that a model of the Python backend answers is one of these. Quantiles are of a sliding window of time, and only there with
``--metrics-config summary_latencies=true``.
"""

from __future__ import annotations

from ..._core.metrics import Figures, named
from ..._manifests.meta import Manifest
from ..._manifests.monitoring import RequestAlerts, alert

FIGURES = Figures(
    prefix="nv_",
    model="model",
    counts={
        "served": named("nv_inference_request_success"),
        "failed": named("nv_inference_request_failure"),
        "waiting": named("nv_inference_pending_request_count"),
    },
    means={
        "mean": ("nv_inference_request_duration_us", "nv_inference_request_success"),
        "queue": ("nv_inference_queue_duration_us", "nv_inference_request_success"),
    },
    latency="nv_inference_request_summary_us",
    in_ms=0.001,
)

_RANGE = "5m"
_BY = "namespace, job, model"


def _rate(metric: str, of: str) -> str:
    return f"sum by ({_BY}) (rate({metric}{{{of}}}[{_RANGE}]))"


def queue_time_ms(of: str) -> str:
    """Mean milliseconds of a request in the queue, by model."""
    return f"{_rate('nv_inference_queue_duration_us', of)} / ({_rate('nv_inference_request_success', of)} > 0) / 1000"


def failure_ratio(of: str) -> str:
    """Share of the requests that failed, by model. A replica has a counter of failures for each reason."""
    failed, good = _rate("nv_inference_request_failure", of), _rate("nv_inference_request_success", of)
    return f"{failed} / ({failed} + {good} > 0)"


def missing_at(of: str) -> str:
    """The number of replicas that respond and lack a model which others have, by model."""
    have = f"count by ({_BY}) (count by ({_BY}, instance) (nv_inference_request_success{{{of}}}))"
    return f"count by (namespace, job) (up{{{of}}} == 1) - on (namespace, job) group_right {have} > 0"


def alerts_of(name: str, namespace: str, alerts: RequestAlerts) -> list[Manifest]:
    """The alerts by the metrics of a server."""
    of = f'namespace="{namespace}",job="{name}"'
    return [
        alert("TritonQueueTime", f"{queue_time_ms(of)} > {alerts.queue_time_ms:g}", alerts.after, "warning",
              "Requests for model {{ $labels.model }} wait {{ $value | printf \"%.0f\" }} ms in the queue.",
              "More replicas, more instances of the model, or a larger batch would shorten it."),
        alert("TritonFailures", f"{failure_ratio(of)} > {alerts.failure_ratio:g}", alerts.after, "critical",
              "{{ $value | humanizePercentage }} of the requests for model {{ $labels.model }} fail.", "The server's log says why."),
        alert("TritonModelNotReady", missing_at(of), alerts.after, "critical",
              "{{ $value }} replicas of {{ $labels.job }} do not have model {{ $labels.model }}, which others have.",
              "Module triton_model brings it to every replica, or says why one refuses it."),
        alert("TritonDown", f"up{{{of}}} == 0", alerts.after, "critical",
              "Triton at {{ $labels.instance }} does not answer.", "Module triton_server with wait: true says why."),
    ]  # fmt: skip
