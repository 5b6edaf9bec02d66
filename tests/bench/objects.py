# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects for the apply benchmark: many kinds, none of which starts a pod, so that only applying is measured."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

Manifest = dict[str, t.Any]


def _meta(kind: str, index: int, revision: int) -> Manifest:
    return {
        "name": f"bench-{kind}-{index}",
        "labels": {"app.kubernetes.io/name": "bench", "bench/index": str(index)},
        "annotations": {"bench/revision": str(revision)},
    }


def _pod_template(index: int) -> Manifest:
    labels = {"bench/index": str(index)}
    container = {
        "name": "main",
        "image": "registry.invalid/bench:1",
        "args": ["--index", str(index)],
        "env": [{"name": "INDEX", "value": str(index)}, {"name": "MODE", "value": "bench"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "0.5Gi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/bench"}],
    }
    volumes = [{"name": "config", "configMap": {"name": f"bench-configmap-{index}", "optional": True}}]
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}


def _config_map(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta("configmap", index, revision),
        "data": {"settings.yml": f"index: {index}\nrevision: {revision}\n" + "key: value\n" * 20},
    }


def _service(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta("service", index, revision),
        "spec": {
            "clusterIP": "None",
            "selector": {"bench/index": str(index)},
            "ports": [{"name": "http", "port": 8080, "targetPort": "http"}],
        },
    }


def _service_account(index: int, revision: int) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("serviceaccount", index, revision)}


def _role(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": _meta("role", index, revision),
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    }


def _deployment(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta("deployment", index, revision),
        "spec": {"replicas": 0, "selector": {"matchLabels": {"bench/index": str(index)}}, "template": _pod_template(index)},
    }


def _stateful_set(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _meta("statefulset", index, revision),
        "spec": {
            "replicas": 0,
            "serviceName": f"bench-service-{index}",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"bench/index": str(index)}},
            "template": _pod_template(index),
        },
    }


def _secret(index: int, revision: int) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _meta("secret", index, revision), "stringData": {"token": f"bench-{index}"}}


def _disruption_budget(index: int, revision: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta("pdb", index, revision),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"bench/index": str(index)}}},
    }


BUILDERS: tuple[Callable[[int, int], Manifest], ...] = (
    _config_map,
    _service,
    _service_account,
    _role,
    _deployment,
    _stateful_set,
    _secret,
    _disruption_budget,
)


def manifests(count: int, *, changed: range = range(0), dropped: range = range(0)) -> list[Manifest]:
    """Return `count` objects, kinds in turn.

    changed: indexes that carry another annotation than in the first version.
    dropped: indexes left out, for pruning.
    """
    return [BUILDERS[index % len(BUILDERS)](index, 1 if index in changed else 0) for index in range(count) if index not in dropped]
