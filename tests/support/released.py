# SPDX-License-Identifier: GPL-3.0-or-later
"""A released manifest of an operator that does not exist: all that the overlay of Muster looks at, and no schema of another project."""

import hashlib
from pathlib import Path
from typing import Any

import yaml

Body = dict[str, Any]


def manifest(name: str, crds: dict[str, str], webhooks: dict[str, str] | None = None) -> list[Body]:
    """Objects in namespace NAME-system. CRDS: name -> kind; WEBHOOKS: name -> the API group of what it validates."""
    home = f"{name}-system"
    service = {"name": f"{name}-webhook-service", "namespace": home, "path": "/convert"}
    account = {"kind": "ServiceAccount", "name": f"{name}-controller-manager", "namespace": home}
    only = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", home]}]}
    container = {
        "name": "manager", "image": f"example.com/{name}:v1", "args": ["--config=/controller_manager_config.yaml"],
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2", "memory": "512Mi"}}, "imagePullPolicy": "Always",
    }  # fmt: skip
    hooks = [
        {
            "name": hook, "rules": [{"apiGroups": [group]}], "namespaceSelector": only,
            "clientConfig": {"service": service},
        }
        for hook, group in (webhooks or {}).items()
    ]  # fmt: skip
    config = "integrations:\n  frameworks: [batch/job, pod]\nleaderElection: {leaderElect: true}\n"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}},
        *(definition(crd, kind, service) for crd, kind in crds.items()),
        _object("v1", "ServiceAccount", account["name"], home),
        {
            **_object("rbac.authorization.k8s.io/v1", "RoleBinding", f"{name}-auth-reader", "kube-system"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "extension-apiserver-authentication-reader"},
            "subjects": [account],
        },
        {**_object("v1", "ConfigMap", f"{name}-manager-config", home), "data": {"controller_manager_config.yaml": config}},
        {
            **_object("apps/v1", "Deployment", account["name"], home),
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}},
        },
        {**_object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", f"{name}-validating"), "webhooks": hooks},
    ]  # fmt: skip


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Body:
    space = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **space}}


def definition(crd: str, kind: str, service: Body) -> Body:
    plural, _dot, group = crd.partition(".")
    version = group.partition("/")[2] or "v1"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    group = group.partition("/")[0]
    return {
        **_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}"),
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": anything}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}},
        },
    }  # fmt: skip


def written(folder: Path, objects: list[Body]) -> dict[str, str]:
    """The manifest as a file, and the options that name it."""
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return {"manifest": str(path), "manifest_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
