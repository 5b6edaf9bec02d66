# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of module prometheus_adapter: prometheus-adapter, which serves metrics of a Prometheus as an API of Kubernetes.

Pure: only the standard library, no Ansible, no Kubernetes client.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .access import binding, cluster_access, rule, service_account
from .meta import Manifest, metadata, pinned_tag
from .operators import Operator, operator_deployment, operator_labels, operator_pod, operator_service
from .shared import config_map

NAME = "prometheus-adapter"
AUTHORITY = f"{NAME}-ca"
CERTIFICATE = f"{NAME}-tls"
METRICS_GROUP = "custom.metrics.k8s.io"
VERSIONS = ("v1beta1", "v1beta2")
API_SERVICE = "apiregistration.k8s.io/v1", "APIService"
USER = 65534
_PORT = 6443
_CONFIG, _SERVING = "/etc/adapter", "/var/run/serving-cert"
_URL = re.compile(r"https?://[^/\s]+(/\S*)?")
_RULE_KEYS = ("seriesQuery", "metricsQuery")

EVERYWHERE = [
    # The pods of an autoscaler, by their labels.
    rule([""], ["pods"], ["list"]),
    # It asks the API server who its clients are and what they may do.
    rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
    rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetricsAdapter(Operator):
    """An adapter: its placement, its Prometheus and its metrics. Field names are the options' names."""

    prometheus_url: str
    rules: Sequence[Mapping[str, t.Any]]
    relist_interval: str = "30s"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The name that the API server connects to."""
        return (f"{NAME}.{self.namespace}.svc",)


def check(adapter: MetricsAdapter) -> None:
    """Refuse options that cannot work."""
    pinned_tag(adapter.image, "Give it a version, such as registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0.")
    if not _URL.fullmatch(adapter.prometheus_url):
        raise InvalidInput(f"prometheus_url: '{adapter.prometheus_url}' is not a URL.", "http://prometheus.ml.svc:9090 is one.")
    if not adapter.rules:
        raise InvalidInput("rules: without one it has no metric.", "The documentation of prometheus-adapter describes them.")
    for number, one in enumerate(adapter.rules):
        missing = [key for key in _RULE_KEYS if not one.get(key)]
        if missing:
            raise InvalidInput(f"rules[{number}]: it has no {' and no '.join(missing)}.")


def api_name(version: str) -> str:
    """The name of the APIService of a version."""
    return f"{version}.{METRICS_GROUP}"


def manifests(adapter: MetricsAdapter, ca_bundle: str) -> list[Manifest]:
    """The adapter, its account and what that may do, and the API. CA_BUNDLE: base64, what the API server trusts."""
    check(adapter)
    labels = operator_labels(NAME)
    meta = metadata(NAME, adapter.namespace, labels)
    account = service_account(NAME, adapter.namespace, labels)
    config = config_map(meta, {"config.yaml": json.dumps({"rules": list(adapter.rules)}, indent=2) + "\n"})
    return [
        account,
        *cluster_access(NAME, account, EVERYWHERE),
        _authentication(account),
        config,
        operator_service(NAME, adapter, {"https": (443, _PORT)}),
        _deployment(adapter, config["data"]),
        *(_api(version, adapter.namespace, ca_bundle) for version in VERSIONS),
    ]


def _authentication(account: Manifest) -> Manifest:
    """It reads there which certificates are those of the API server and its clients."""
    meta = {**account["metadata"], "namespace": "kube-system"}
    return binding("Role", "extension-apiserver-authentication-reader", meta, account)


def _api(version: str, namespace: str, ca_bundle: str) -> Manifest:
    return {
        "apiVersion": API_SERVICE[0],
        "kind": API_SERVICE[1],
        "metadata": metadata(api_name(version), None, operator_labels(NAME)),
        "spec": {
            "group": METRICS_GROUP,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100 + VERSIONS.index(version),
            "service": {"name": NAME, "namespace": namespace, "port": 443},
            "caBundle": ca_bundle,
        },
    }


def _deployment(adapter: MetricsAdapter, config: Mapping[str, str]) -> Manifest:
    container = {
        "name": NAME,
        # Arguments and no command: the entrypoint of the image is the program. It reads its certificate again when that changes.
        "args": [
            f"--prometheus-url={adapter.prometheus_url}",
            f"--config={_CONFIG}/config.yaml",
            f"--metrics-relist-interval={adapter.relist_interval}",
            # A server whose first model was asked a while ago still has the metric.
            "--metrics-max-age=5m",
            f"--secure-port={_PORT}",
            f"--tls-cert-file={_SERVING}/tls.crt",
            f"--tls-private-key-file={_SERVING}/tls.key",
        ],
        "ports": [{"name": "https", "containerPort": _PORT, "protocol": "TCP"}],
        "startupProbe": {**_health("/readyz"), "periodSeconds": 2, "failureThreshold": 60},
        "readinessProbe": {**_health("/readyz"), "periodSeconds": 5},
        "livenessProbe": {**_health("/livez"), "periodSeconds": 20},
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "certificate", "mountPath": _SERVING, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    volumes = [
        {"name": "config", "configMap": {"name": NAME}},
        {"name": "certificate", "secret": {"secretName": CERTIFICATE}},
        {"name": "tmp", "emptyDir": {}},
    ]
    pod = operator_pod(adapter, container, user=USER, volumes=volumes, terminationGracePeriodSeconds=10)
    pod["securityContext"]["fsGroup"] = USER
    # Without an interruption of the API: a new one answers before the old one ends.
    workload = {"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    # The metrics of pods and of other objects, which HorizontalPodAutoscalers ask custom.metrics.k8s.io for.
    return operator_deployment(NAME, adapter, workload, pod, serves=["metrics:Pods", "metrics:Object"], hashed=config)


def _health(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}}
