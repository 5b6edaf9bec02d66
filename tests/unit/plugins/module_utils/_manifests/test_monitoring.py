# SPDX-License-Identifier: GPL-3.0-or-later

"""Alerts of systems. tests/alerts asks promtool what they do."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests import monitoring
from ansible_collections.muster.ml.tests.unit.fakes import alerts


def test_the_alerts_of_every_system(golden: t.Callable[..., None]) -> None:
    golden("alerts", [monitoring.rules("ServiceMonitor", {"name": name, "namespace": "ml"}, rules) for name, rules in alerts.every().items()])


@pytest.mark.parametrize("name", alerts.every())
def test_each_alert_names_the_doctor_and_its_namespace(name: str) -> None:
    for rule in alerts.every()[name]:
        assert "muster.ml.doctor -e muster_namespace={{ $labels.namespace }}" in rule["annotations"]["description"]
        assert 'namespace="ml"' in rule["expr"]
        assert rule["labels"]["severity"] in ("warning", "critical")
