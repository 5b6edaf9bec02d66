# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts of a Triton server. docs/systems/triton.md tells what a real Prometheus made of them."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.metrics import samples
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import RequestAlerts
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import FIGURES, alerts_of
from ansible_collections.muster.ml.tests.unit.fakes.triton import RECORDED


def test_every_alert_is_about_this_server_and_has_the_thresholds() -> None:
    made = alerts_of("triton", "ml", RequestAlerts(queue_time_ms=50, failure_ratio=0.2, after="2m"))
    rules = {rule["alert"]: rule for rule in made}
    assert set(rules) == {"TritonQueueTime", "TritonFailures", "TritonModelNotReady", "TritonDown"}
    assert all('namespace="ml",job="triton"' in rule["expr"] and rule["for"] == "2m" for rule in rules.values())
    assert rules["TritonQueueTime"]["expr"].endswith("/ 1000 > 50")
    # A replica that is down lacks nothing: TritonDown tells of it.
    assert "== 1) - on" in rules["TritonModelNotReady"]["expr"]
    assert rules["TritonFailures"]["expr"].endswith("> 0.2")


def test_times_of_vllm_are_those_of_its_answers() -> None:
    recorded = RECORDED["metrics"]
    found = FIGURES.of([*samples(recorded)])
    assert (found["served"], found["failed"], found["waiting"]) == (14, 0, 0)
    # 1.8859 s of ten answers, all of them in the first second. Triton itself says 3.2 ms.
    assert found["latency_ms"] == {"mean": 188.59, "queue": 0.511, "p50": 500.0, "p99": 990.0}
    other = 'nv_inference_request_success{model="add"} 14\nnv_inference_request_duration_us{model="add"} 14000\n'
    both = [*samples(recorded + other)]
    assert FIGURES.of(both)["latency_ms"]["mean"] == 94.795
    assert [(row["name"], row["latency_ms"]["mean"]) for row in FIGURES.by_model(both)] == [("add", 1.0), ("chat", 188.59)]


@pytest.mark.parametrize("wrong", [{"queue_time_ms": 0}, {"failure_ratio": 0}, {"free_ratio": 1}, {"after": "5 minutes"}])
def test_a_threshold_that_is_always_or_never_reached_is_refused(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match=f"alerts.{next(iter(wrong))}"):
        RequestAlerts(**wrong)
