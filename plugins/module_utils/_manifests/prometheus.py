# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of role prometheus: one Prometheus that scrapes the pods of some namespaces, and evaluates rules.

Pure: only the standard library, no Ansible, no Kubernetes client.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from . import servers, storage
from .access import namespace_access, rule, service_account
from .meta import Manifest, check_name, metadata, pinned_tag
from .monitoring import DURATION
from .network_policy import EVERY_POD, Flow, network_policy
from .operators import Operator, operator_deployment, operator_labels, operator_pod, operator_selector
from .shared import config_map

NAME = "prometheus"
PORT = 9090
USER = 65534
_CONFIG = "/etc/prometheus"
_DATA = "/prometheus"
_POD_LABEL = "__meta_kubernetes_pod_label_app_kubernetes_io_instance"

READ_PODS = [rule([""], ["pods"], ["get", "list", "watch"])]
"""The access that it needs in each namespace whose pods it discovers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prometheus(Operator):
    """A Prometheus: its placement and its targets. Field names are the options' names."""

    namespaces: Sequence[str] = ()
    """The namespaces with pods to scrape; its own if there is none."""
    scrape_interval: str = "15s"
    retention: str = "1d"
    rule_groups: Sequence[Mapping[str, t.Any]] = ()
    storage_size: str = ""
    storage_class_name: str = ""
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()


def manifests(prometheus: Prometheus) -> list[Manifest]:
    """The server with its account, what that may read, its configuration and Service."""
    pinned_tag(prometheus.image, "Give it a version, such as docker.io/prom/prometheus:v3.15.1, or a digest.")
    for value, option in ((prometheus.scrape_interval, "scrape_interval"), (prometheus.retention, "retention")):
        if not DURATION.fullmatch(value):
            raise InvalidInput(f"{option}: '{value}' is not a time.", "15s, 5m, 12h and 2d are some.")
    namespaces = _namespaces(prometheus)
    labels, selector = operator_labels(NAME), operator_selector(NAME)
    meta = metadata(NAME, prometheus.namespace, labels)
    account = service_account(NAME, prometheus.namespace, labels)
    config = config_map(meta, {"prometheus.yml": _config(prometheus, namespaces), "rules.yml": _rules(prometheus)})
    objects = [
        *_claim(prometheus, labels),
        account,
        # A Role in each namespace, and none for the cluster.
        *(one for namespace in namespaces for one in namespace_access(account, READ_PODS, namespace)),
        config,
        servers.client_service(meta, selector, {"http": PORT}),
        _deployment(prometheus, config["data"]),
    ]
    if prometheus.network_policy:
        objects.append(network_policy(meta, selector, [Flow([EVERY_POD, *prometheus.network_policy_from], [PORT])]))
    return objects


def _namespaces(prometheus: Prometheus) -> list[str]:
    names = list(dict.fromkeys(prometheus.namespaces or (prometheus.namespace,)))
    return [check_name(name, "namespaces") for name in names]


def _claim(prometheus: Prometheus, labels: Mapping[str, str]) -> list[Manifest]:
    if not prometheus.storage_size:
        return []
    wanted = storage.Storage(
        claim_name=NAME,
        size=prometheus.storage_size,
        storage_class_name=prometheus.storage_class_name or None,
        access_modes=("ReadWriteOnce",),
    )
    return storage.storage_claim(wanted, prometheus.namespace, dict(labels))


def _config(prometheus: Prometheus, namespaces: Sequence[str]) -> str:
    """Render the configuration as JSON, which is YAML. Our pods serve metrics at a port named metrics or http-metrics."""
    port = "__meta_kubernetes_pod_container_port_name"
    pods = {
        "job_name": "pods",
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": list(namespaces)}}],
        "relabel_configs": [
            {"source_labels": [port], "regex": "(http-)?metrics", "action": "keep"},
            {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Succeeded|Failed", "action": "drop"},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            # As with a ServiceMonitor, where it is the name of the Service, which is that of the server.
            {"source_labels": [_POD_LABEL], "regex": "(.+)", "target_label": "job"},
        ],
    }
    interval = prometheus.scrape_interval
    config = {
        "global": {"scrape_interval": interval, "evaluation_interval": interval},
        "rule_files": [f"{_CONFIG}/rules.yml"],
        "scrape_configs": [pods],
    }
    return json.dumps(config, indent=2) + "\n"


def _rules(prometheus: Prometheus) -> str:
    names = [str(group.get("name", "")) for group in prometheus.rule_groups]
    if "" in names or len(names) != len(set(names)):
        raise InvalidInput("rule_groups: each needs a name of its own.", "They are groups of rules as in Prometheus.")
    return json.dumps({"groups": list(prometheus.rule_groups)}, indent=2) + "\n"


def _deployment(prometheus: Prometheus, config: Mapping[str, str]) -> Manifest:
    data = {"persistentVolumeClaim": {"claimName": NAME}} if prometheus.storage_size else {"emptyDir": {}}
    container = {
        "name": NAME,
        # Arguments and no command: published images and ours have the program at different places.
        "args": [
            f"--config.file={_CONFIG}/prometheus.yml",
            f"--storage.tsdb.path={_DATA}",
            f"--storage.tsdb.retention.time={prometheus.retention}",
        ],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        # With data on its volume it first reads what it has not yet written in blocks.
        "startupProbe": {**_health("/-/ready"), "periodSeconds": 2, "failureThreshold": 150},
        "readinessProbe": {**_health("/-/ready"), "periodSeconds": 5},
        "livenessProbe": {**_health("/-/healthy"), "periodSeconds": 20},
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG, "readOnly": True}, {"name": "data", "mountPath": _DATA}],
    }
    pod = operator_pod(
        prometheus,
        container,
        user=USER,
        volumes=[{"name": "config", "configMap": {"name": NAME}}, {"name": "data", **data}],
        terminationGracePeriodSeconds=60,
    )
    pod["securityContext"] |= {"fsGroup": USER, "fsGroupChangePolicy": "OnRootMismatch"}
    # Two cannot write to one folder.
    return operator_deployment(NAME, prometheus, {"replicas": 1, "strategy": {"type": "Recreate"}}, pod, hashed=config)


def _health(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "http"}}
