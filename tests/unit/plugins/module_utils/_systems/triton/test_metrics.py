# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts of a Triton server. docs/systems/triton.md tells what a real Prometheus made of them."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import RequestAlerts
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import alerts_of


def test_every_alert_is_about_this_server_and_has_the_thresholds() -> None:
    made = alerts_of("triton", "ml", RequestAlerts(queue_time_ms=50, failure_ratio=0.2, after="2m"))
    rules = {rule["alert"]: rule for rule in made}
    assert set(rules) == {"TritonQueueTime", "TritonFailures", "TritonModelNotReady", "TritonDown"}
    assert all('namespace="ml",job="triton"' in rule["expr"] and rule["for"] == "2m" for rule in rules.values())
    assert rules["TritonQueueTime"]["expr"].endswith("/ 1000 > 50")
    # A replica that is down lacks nothing: TritonDown tells of it.
    assert "== 1) - on" in rules["TritonModelNotReady"]["expr"]
    assert rules["TritonFailures"]["expr"].endswith("> 0.2")


@pytest.mark.parametrize("wrong", [{"queue_time_ms": 0}, {"failure_ratio": 0}, {"free_ratio": 1}, {"after": "5 minutes"}])
def test_a_threshold_that_is_always_or_never_reached_is_refused(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match=f"alerts.{next(iter(wrong))}"):
        RequestAlerts(**wrong)
