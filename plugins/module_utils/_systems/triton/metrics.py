# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts from the metrics of a Triton server, and its figures.

Seen with 2.51.0: each loaded version of a model has its counters, which go when it is unloaded. So a model that one replica has and
another lacks is a difference of counts. The queue's time is a sum of microseconds over all requests that succeeded.
An error that a model of the Python backend answers is one of these. Quantiles are of a sliding window of time, and only there with
``--metrics-config summary_latencies=true``.

Of a decoupled model all of these end when the backend has taken the request, and whatever it answers is a success. vLLM's backend has the
times of the answers, in seconds, where the model's configuration has REPORT_CUSTOM_METRICS (tests/unit/recorded/vllm_backend.json).
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from ..._core.metrics import Figures, Sample, named
from ..._manifests.meta import Manifest
from ..._manifests.monitoring import RequestAlerts, alert

_MEAN = ("nv_inference_request_duration_us", "nv_inference_request_success")
_SUMMARY = "nv_inference_request_summary_us"
_OF_VLLM = "vllm:e2e_request_latency_seconds"


class _Figures(Figures):
    """The figures of a server, with vLLM's own times of answers where it tells them."""

    def of(self, found: Sequence[Sample]) -> dict[str, t.Any]:
        return super().of([*_answered(found)])


def _answered(found: Sequence[Sample]) -> Iterator[Sample]:
    """The samples, in which the times of a model of vLLM are those of its answers."""

    def total(name: str, model: str) -> float:
        return sum(one.value for one in found if one.name == name and one.labels.get("model") == model)

    models = {one.labels.get("model", "") for one in found if one.name == f"{_OF_VLLM}_count" and one.value}
    for one in found:
        if one.name.startswith(_OF_VLLM):
            bound = {"le": str(float(one.labels["le"]) * 1e6)} if "le" in one.labels else {}
            yield one._replace(name=one.name.replace(_OF_VLLM, _SUMMARY), labels={**one.labels, **bound})
        elif one.name != _MEAN[0] or one.labels.get("model") not in models:
            yield one
    for model in sorted(models):
        mean_us = 1e6 * total(f"{_OF_VLLM}_sum", model) / total(f"{_OF_VLLM}_count", model)
        yield Sample(_MEAN[0], {"model": model}, mean_us * total(_MEAN[1], model))


FIGURES = _Figures(
    prefix="nv_",
    model="model",
    counts={
        "served": named("nv_inference_request_success"),
        "failed": named("nv_inference_request_failure"),
        "waiting": named("nv_inference_pending_request_count"),
    },
    means={
        "mean": _MEAN,
        "queue": ("nv_inference_queue_duration_us", "nv_inference_request_success"),
    },
    latency=_SUMMARY,
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
