# SPDX-License-Identifier: GPL-3.0-or-later
"""prometheus_adapter: one owner of the API, and a certificate that the API server verifies."""

from __future__ import annotations

import base64
import typing as t

import pytest
from cryptography import x509

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, InvalidInput
from ansible_collections.muster.ml.plugins.modules import prometheus_adapter
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions

RULE = {"seriesQuery": "up", "metricsQuery": "up", "name": {"as": "up"}}
GIVEN: dict[str, t.Any] = {"namespace": "default", "prometheus_url": "http://prometheus:9090", "rules": [RULE]}


def run(cluster: FakeCluster, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
    return tasks.run(prometheus_adapter, cluster, {**GIVEN, **params}, check=check, warn=lambda _said: None, diff=True)


def api(version: str, service: dict[str, str] | None) -> dict[str, t.Any]:
    metadata = {"name": f"{version}.custom.metrics.k8s.io"}
    spec = {"group": "custom.metrics.k8s.io", "version": version, **({"service": service} if service else {})}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}


def test_nonsense_is_refused_before_anybody_is_asked(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidInput, match="is not a URL"):
        run(cluster, prometheus_url="prometheus")
    assert not cluster.requests


def test_an_adapter_is_made_once(cluster: FakeCluster) -> None:
    planned = run(cluster, check=True)
    assert planned["changed"]
    assert not cluster.writes
    made = actions(run(cluster))
    assert set(made.values()) == {"created"}
    assert made == actions(planned)
    assert set(actions(run(cluster)).values()) == {"unchanged"}
    assert set(actions(run(cluster, state="absent")).values()) == {"deleted"}
    assert not cluster.stored("Secret", "prometheus-adapter-tls", "default")


def test_the_api_server_trusts_the_certificate_that_the_adapter_has(cluster: FakeCluster) -> None:
    run(cluster)
    secret, service = (
        cluster.stored("Secret", "prometheus-adapter-tls", "default"),
        cluster.stored("APIService", "v1beta2.custom.metrics.k8s.io"),
    )
    assert secret
    assert service
    assert "insecureSkipTLSVerify" not in service["spec"]
    trusted = x509.load_pem_x509_certificate(base64.b64decode(service["spec"]["caBundle"]))
    serving = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
    serving.verify_directly_issued_by(trusted)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["prometheus-adapter.default.svc"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_second_adapter_is_refused_and_the_first_is_named(cluster: FakeCluster, version: str) -> None:
    cluster.add(api(version, {"namespace": "custom-metrics", "name": "stackdriver"}), manager="kubectl")
    with pytest.raises(Conflict) as caught:
        run(cluster)
    for word in (f"{version}.custom.metrics.k8s.io", "Service custom-metrics/stackdriver", "made by kubectl"):
        assert word in caught.value.message
    assert "prometheus_adapter_manage: false" in str(caught.value.hint)
    assert not cluster.writes
    run(cluster, state="absent")
    assert cluster.stored("APIService", f"{version}.custom.metrics.k8s.io")


def test_one_of_ours_in_another_namespace_is_the_first_one_too(cluster: FakeCluster) -> None:
    run(cluster)
    before = len(cluster.writes)
    with pytest.raises(Conflict, match=r"made by prometheus_adapter\.default\.prometheus-adapter"):
        run(cluster, namespace="kube-system")
    assert len(cluster.writes) == before
