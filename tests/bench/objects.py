# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects for the apply benchmark: many kinds, none of which starts a pod, so that only applying is measured."""

import typing as t

Manifest = dict[str, t.Any]
KINDS = 8


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


def _kinds(index: int, revision: int) -> tuple[tuple[str, str, Manifest], ...]:
    """Version and name of each kind, and what an object of it has besides its metadata."""
    selector = {"bench/index": str(index)}
    pods = {"replicas": 0, "selector": {"matchLabels": selector}, "template": _pod_template(index)}
    ports = [{"name": "http", "port": 8080, "targetPort": "http"}]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    return (
        ("v1", "ConfigMap", {"data": {"settings.yml": f"index: {index}\nrevision: {revision}\n" + "key: value\n" * 20}}),
        ("v1", "Service", {"spec": {"clusterIP": "None", "selector": selector, "ports": ports}}),
        ("v1", "ServiceAccount", {}),
        ("rbac.authorization.k8s.io/v1", "Role", {"rules": rules}),
        ("apps/v1", "Deployment", {"spec": pods}),
        ("apps/v1", "StatefulSet", {"spec": {**pods, "serviceName": f"bench-service-{index}", "podManagementPolicy": "Parallel"}}),
        ("v1", "Secret", {"stringData": {"token": f"bench-{index}"}}),
        ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": {"matchLabels": selector}}}),
    )


def _manifest(index: int, revision: int) -> Manifest:
    version, kind, rest = _kinds(index, revision)[index % KINDS]
    metadata = {
        "name": f"bench-{kind.lower()}-{index}",
        "labels": {"app.kubernetes.io/name": "bench", "bench/index": str(index)},
        "annotations": {"bench/revision": str(revision)},
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def manifests(count: int, *, changed: range = range(0), dropped: range = range(0)) -> list[Manifest]:
    """Return `count` objects, kinds in turn.

    changed: indexes that carry another annotation than in the first version.
    dropped: indexes left out, for pruning.
    """
    return [_manifest(index, 1 if index in changed else 0) for index in range(count) if index not in dropped]
