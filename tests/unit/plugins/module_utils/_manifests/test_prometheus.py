# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus and its adapter: the objects, and what is refused."""

import json
import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests import metrics_adapter, prometheus
from ansible_collections.muster.ml.plugins.module_utils._manifests.metrics_adapter import MetricsAdapter
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import RequestAlerts
from ansible_collections.muster.ml.plugins.module_utils._manifests.prometheus import Prometheus
from ansible_collections.muster.ml.plugins.module_utils._systems.llm import server as llm
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.metrics import alerts_of
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.server import METRIC

ROOT = Path(__file__).resolve().parents[5]
RULES = yaml.safe_load((ROOT / "roles" / "prometheus_adapter" / "defaults" / "main.yml").read_text(encoding="utf-8"))[
    "prometheus_adapter_rules"
]
SERVER: dict[str, t.Any] = {"namespace": "monitoring", "image": "docker.io/prom/prometheus:v3.15.1"}
ADAPTER: dict[str, t.Any] = {
    "namespace": "prometheus-adapter",
    "image": "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0",
    "prometheus_url": "http://prometheus.monitoring.svc:9090",
    "rules": RULES,
}


def found(objects: list[dict[str, t.Any]], kind: str) -> list[dict[str, t.Any]]:
    return [one for one in objects if one["kind"] == kind]


def test_a_prometheus(golden: t.Callable[..., None]) -> None:
    groups = [{"name": "muster-triton", "rules": alerts_of("triton", "ml", RequestAlerts())}]
    server = Prometheus(**SERVER, namespaces=["ml", "serving"], rule_groups=groups, storage_size="8Gi")
    golden("prometheus", prometheus.manifests(server))


def test_an_adapter(golden: t.Callable[..., None]) -> None:
    golden("prometheus_adapter", metrics_adapter.manifests(MetricsAdapter(**ADAPTER), "Q0E="))


def test_without_a_claim_what_was_collected_goes_with_the_pod() -> None:
    objects = prometheus.manifests(Prometheus(**SERVER, network_policy=False))
    assert {one["kind"] for one in objects} == {
        "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Service", "Deployment",
    }  # fmt: skip
    (deployment,) = found(objects, "Deployment")
    assert {"name": "data", "emptyDir": {}} in deployment["spec"]["template"]["spec"]["volumes"]


def test_it_may_only_find_pods_and_only_where_it_was_told() -> None:
    objects = prometheus.manifests(Prometheus(**SERVER, namespaces=["ml", "serving", "ml"]))
    roles = found(objects, "Role")
    assert [role["metadata"]["namespace"] for role in roles] == ["ml", "serving"]
    assert [role["rules"] for role in roles] == [prometheus.READ_PODS] * 2
    assert not found(objects, "ClusterRole")
    assert {one["subjects"][0]["namespace"] for one in found(objects, "RoleBinding")} == {"monitoring"}


def test_a_change_of_the_configuration_starts_a_new_pod() -> None:
    def template(**options: t.Any) -> dict[str, t.Any]:
        (deployment,) = found(prometheus.manifests(Prometheus(**SERVER, **options)), "Deployment")
        return t.cast("dict[str, t.Any]", deployment["spec"]["template"])

    assert template() == template()
    assert template() != template(scrape_interval="30s")
    assert template() != template(rule_groups=[{"name": "a", "rules": []}])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"image": "prom/prometheus"}, "is not pinned"),
        ({"scrape_interval": "15"}, "scrape_interval: '15' is not a time"),
        ({"retention": "a day"}, "retention: 'a day' is not a time"),
        ({"namespaces": ["Ml"]}, "'Ml' is not a valid name"),
        ({"storage_size": "8 GB"}, "is not a quantity"),
        ({"rule_groups": [{"rules": []}]}, "each needs a name"),
        ({"rule_groups": [{"name": "a"}, {"name": "a"}]}, "each needs a name"),
    ],
)
def test_a_prometheus_that_cannot_work_is_refused(options: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        prometheus.manifests(Prometheus(**{**SERVER, **options}))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"image": "adapter:latest"}, "is not pinned"),
        ({"prometheus_url": "prometheus:9090"}, "is not a URL"),
        ({"rules": []}, "it has no metric"),
        ({"rules": [{"seriesQuery": "up"}]}, r"rules\[0\]: it has no metricsQuery"),
    ],
)
def test_an_adapter_that_cannot_work_is_refused(options: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        metrics_adapter.check(MetricsAdapter(**{**ADAPTER, **options}))


def test_the_rule_of_the_role_makes_the_metric_of_the_autoscaler() -> None:
    assert [rule["name"]["as"] for rule in RULES] == [METRIC, llm.METRIC]
    config = found(metrics_adapter.manifests(MetricsAdapter(**ADAPTER), "Q0E="), "ConfigMap")[0]["data"]["config.yaml"]
    assert json.loads(config) == {"rules": RULES}
