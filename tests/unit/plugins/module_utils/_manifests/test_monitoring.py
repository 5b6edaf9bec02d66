# SPDX-License-Identifier: GPL-3.0-or-later

"""Alerts of systems. tests/alerts asks promtool what they do."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.metrics import samples
from ansible_collections.muster.ml.plugins.module_utils._manifests import monitoring
from ansible_collections.muster.ml.tests.unit.fakes import alerts

RECORDED = Path(__file__).parents[3] / "recorded"
SERVERS = json.loads((RECORDED / "metrics.json").read_text(encoding="utf-8"))
TEXTS = [(RECORDED / "exposition.txt").read_text(encoding="utf-8"), SERVERS["triton"]["busy"], SERVERS["vllm"]["text"]]
OF_PROMETHEUS = {"namespace", "job", "exported_namespace"}
"""Labels that Prometheus adds to what it collects from a server."""


def test_alerts_of_a_training_and_of_a_broker(golden: t.Callable[..., None]) -> None:
    made = [
        monitoring.rules("ServiceMonitor", {"name": name, "namespace": "ml"}, rules)
        for name, rules in alerts.every().items()
        if name in ("elastic", "rabbitmq")
    ]
    golden("alerts", made)


@pytest.mark.parametrize("name", alerts.every())
def test_each_alert_names_the_doctor_and_its_namespace(name: str) -> None:
    for rule in alerts.every()[name]:
        assert "muster.ml.doctor -e muster_namespace={{ $labels.namespace }}" in rule["annotations"]["description"]
        assert 'namespace="ml"' in rule["expr"]
        assert rule["labels"]["severity"] in ("warning", "critical")


@pytest.mark.parametrize("name", alerts.every())
def test_programs_have_the_metrics_that_alerts_ask_for(name: str) -> None:
    known = {one.name: set(one.labels) | OF_PROMETHEUS for text in TEXTS for one in samples(text)}
    known["up"] = OF_PROMETHEUS
    known |= dict.fromkeys((f"{one}_{end}" for one in SERVERS["vllm_names"]["names"] for end in ("sum", "count")), OF_PROMETHEUS)
    asked = [one for rule in alerts.every()[name] for one in re.findall(r"([a-z_:]+)\{([^}]*)\}", rule["expr"])]
    missing = [(metric, label) for metric, labels in asked for label in re.findall(r"(\w+)=", labels) if label not in known[metric]]
    assert asked
    assert not missing
