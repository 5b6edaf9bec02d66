# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON types of the fields of Kubernetes objects that the collection reads, and of options that contain such fields.

Ansible checks an option only down to ``type: dict``, and manifests not at all. The shapes here are checked before any other code reads
a value. Fields without a shape are left to the API server, which knows all of them.

Source: the API reference of Kubernetes 1.36, https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import quantity
from .sensitive import revealed


@dataclasses.dataclass(frozen=True)
class Each:
    """A mapping with any keys, whose values have one shape."""

    shape: Shape


Shape = t.Any
"""``str``, ``int``, NUMBER or QUANTITY; a dict is a mapping with the shapes of some of its keys, a list of one shape is a list."""

QUANTITY: t.Final = (str, int, float)
_NAMES: t.Final = {str: "a string", int: "a whole number", QUANTITY: "a quantity"}

TEXTS = Each(str)
NAMED = {"name": str}
META = {
    "labels": Each(object),
    "annotations": Each(object),
    "ownerReferences": [{"kind": str, "name": str, "uid": str}],
    "finalizers": [str],
}
REQUIREMENTS = [{"key": str, "operator": str, "values": [str]}]
SELECTOR = {"matchLabels": TEXTS, "matchExpressions": REQUIREMENTS}
_TERM = {"matchExpressions": REQUIREMENTS, "matchFields": REQUIREMENTS}
_POD_TERM = {"labelSelector": SELECTOR, "namespaceSelector": SELECTOR, "namespaces": [str], "topologyKey": str}
_POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "podAffinityTerm": _POD_TERM}],
}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "preference": _TERM}],
    },
    "podAffinity": _POD_AFFINITY,
    "podAntiAffinity": _POD_AFFINITY,
}
RESOURCES = {"limits": Each(QUANTITY), "requests": Each(QUANTITY), "claims": [NAMED]}
TOLERATIONS = [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}]
SPREAD = [{"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": SELECTOR}]
_KEY = {"name": str, "key": str}
VALUE_FROM = {
    "secretKeyRef": _KEY,
    "configMapKeyRef": _KEY,
    "fieldRef": {"fieldPath": str},
    "resourceFieldRef": {"resource": str},
}
MOUNTS = [{"name": str, "mountPath": str, "subPath": str}]
CONTAINER = {
    "name": str, "image": str, "command": [object], "args": [object], "env": [{"name": str, "valueFrom": VALUE_FROM}],
    "envFrom": [{"secretRef": NAMED, "configMapRef": NAMED}], "ports": [{"name": str, "containerPort": int, "protocol": str}],
    "resources": RESOURCES, "restartPolicy": str, "securityContext": {}, "volumeMounts": MOUNTS,
    "livenessProbe": {}, "readinessProbe": {}, "startupProbe": {}, "lifecycle": {},
}  # fmt: skip
CLAIM_SPEC = {
    "accessModes": [str], "resources": RESOURCES, "selector": SELECTOR, "storageClassName": str, "volumeMode": str, "volumeName": str,
}  # fmt: skip
CLAIM = {"metadata": META, "spec": CLAIM_SPEC}
_ITEMS = [{"key": str, "path": str}]
VOLUME = {
    "name": str, "persistentVolumeClaim": {"claimName": str}, "secret": {"secretName": str, "items": _ITEMS}, "hostPath": {"path": str},
    "configMap": {"name": str, "items": _ITEMS}, "emptyDir": {"medium": str, "sizeLimit": QUANTITY},
    "ephemeral": {"volumeClaimTemplate": CLAIM}, "projected": {"sources": [{"secret": NAMED, "configMap": NAMED}]},
}  # fmt: skip
POD_SPEC = {
    "affinity": AFFINITY, "containers": [CONTAINER], "initContainers": [CONTAINER], "imagePullSecrets": [NAMED], "nodeName": str,
    "nodeSelector": TEXTS, "overhead": Each(QUANTITY), "priorityClassName": str, "resources": RESOURCES, "restartPolicy": str,
    "runtimeClassName": str, "schedulerName": str, "schedulingGates": [NAMED], "securityContext": {}, "serviceAccountName": str,
    "terminationGracePeriodSeconds": int, "tolerations": TOLERATIONS, "topologySpreadConstraints": SPREAD, "volumes": [VOLUME],
}  # fmt: skip
TEMPLATE = {"metadata": META, "spec": POD_SPEC}
_WORKLOAD = {"replicas": int, "selector": SELECTOR, "template": TEMPLATE}
_JOB = {"completions": int, "parallelism": int, "backoffLimit": int, "template": TEMPLATE}
_ROLE = [{"apiGroups": [str], "resources": [str], "verbs": [str], "resourceNames": [str], "nonResourceURLs": [str]}]
_BINDING = {"roleRef": {"kind": str, "name": str}, "subjects": [{"kind": str, "name": str, "namespace": str}]}
PEERS = [{"podSelector": SELECTOR, "namespaceSelector": SELECTOR, "ipBlock": {"cidr": str, "except": [str]}}]
_WEBHOOKS = {
    "webhooks": [{"name": str, "clientConfig": {"service": {"name": str, "namespace": str}, "url": str}, "rules": [{}]}]
}

_MANIFESTS: dict[tuple[str, str], Shape] = {
    ("", "Pod"): {"spec": POD_SPEC},
    ("", "PodTemplate"): {"template": TEMPLATE},
    ("", "ReplicationController"): {"spec": {**_WORKLOAD, "selector": TEXTS}},
    ("", "PersistentVolumeClaim"): {"spec": CLAIM_SPEC},
    ("", "PersistentVolume"): {"spec": {"capacity": Each(QUANTITY), "claimRef": NAMED, "storageClassName": str}},
    ("", "ResourceQuota"): {"spec": {"hard": Each(QUANTITY), "scopes": [str]}},
    ("", "LimitRange"): {"spec": {"limits": [{"type": str, "default": Each(QUANTITY), "defaultRequest": Each(QUANTITY)}]}},
    ("", "Service"): {"spec": {"selector": TEXTS, "ports": [{"name": str, "port": int, "protocol": str}], "type": str}},
    ("", "ServiceAccount"): {"imagePullSecrets": [NAMED], "secrets": [NAMED]},
    ("", "Namespace"): {"spec": {}},
    ("", "Node"): {"spec": {}},
    ("apps", "DaemonSet"): {"spec": _WORKLOAD},
    ("apps", "Deployment"): {"spec": _WORKLOAD},
    ("apps", "ReplicaSet"): {"spec": _WORKLOAD},
    ("apps", "StatefulSet"): {"spec": {**_WORKLOAD, "serviceName": str, "volumeClaimTemplates": [CLAIM]}},
    ("batch", "Job"): {"spec": _JOB},
    ("batch", "CronJob"): {"spec": {"schedule": str, "jobTemplate": {"metadata": META, "spec": _JOB}}},
    ("networking.k8s.io", "NetworkPolicy"): {
        "spec": {"podSelector": SELECTOR, "ingress": [{"from": PEERS, "ports": [{}]}], "egress": [{"to": PEERS, "ports": [{}]}]}
    },
    ("policy", "PodDisruptionBudget"): {"spec": {"selector": SELECTOR}},
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "spec": {"scaleTargetRef": {"kind": str, "name": str}, "minReplicas": int, "maxReplicas": int, "metrics": [{}]}
    },
    ("rbac.authorization.k8s.io", "Role"): {"rules": _ROLE},
    ("rbac.authorization.k8s.io", "ClusterRole"): {"rules": _ROLE, "aggregationRule": {}},
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "spec": {"group": str, "scope": str, "names": {"plural": str, "kind": str}, "versions": [{"name": str, "schema": {}}], "conversion": {}}
    },
    ("apiregistration.k8s.io", "APIService"): {"spec": {"group": str, "version": str, "service": {"name": str, "namespace": str}}},
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("storage.k8s.io", "StorageClass"): {"provisioner": str, "parameters": TEXTS},
}  # fmt: skip

OPTIONS: dict[str, Shape] = {
    "absent": Each([{}]),
    "affinity": AFFINITY,
    "brokers": Each([str]),
    "cleanup_policies": Each({}),
    "init_containers": [CONTAINER],
    "network_policy_from": PEERS,
    "node_selector": TEXTS,
    "overrides": {"metadata": META, "spec": {}},
    "resources": RESOURCES,
    "template": TEMPLATE,
    "tolerations": TOLERATIONS,
    "trusted": Each({}),
    "topology_spread_constraints": SPREAD,
    "value_from": VALUE_FROM,
    "volume_claim_templates": [CLAIM],
    "volume_mounts": MOUNTS,
    "volumes": [VOLUME],
}
"""Of options by name, which mean the same in all modules."""


def problems(value: t.Any, shape: Shape, path: str) -> t.Iterator[str]:
    """What differs from the shape, each with its path. Null is an unset field, as in the API."""
    value = revealed(value)
    if value is None or shape is object:
        return
    if isinstance(shape, Each | dict):
        yield from _mapping_problems(value, shape, path)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{path} is not a list but {type(value).__name__}"
            return
        for index, item in enumerate(value):
            if item is None:
                yield f"{path}[{index}] is null"
            yield from problems(item, shape[0], f"{path}[{index}]")
    elif shape is QUANTITY and isinstance(value, str):
        try:
            quantity.parse(value)
        except ValueError as exc:
            yield f"{path}: {exc}"
    elif isinstance(value, bool) or not isinstance(value, shape):
        quotes = "; put it in quotes" if shape is str and not isinstance(value, dict | list) else ""
        yield f"{path} is not {_NAMES[shape]} but {type(value).__name__}{quotes}"


def _mapping_problems(value: t.Any, shape: Each | dict[str, Shape], path: str) -> t.Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path} is not a mapping but {type(value).__name__}"
        return
    for key, item in value.items():
        if item is None and isinstance(shape, Each) and shape.shape is not object:
            yield f"{path}.{key} is null"
        below = shape.shape if isinstance(shape, Each) else shape.get(key, object)
        yield from problems(item, below, f"{path}.{key}" if path else str(key))


def of_manifest(manifest: t.Mapping[str, t.Any]) -> list[str]:
    """What differs in an object from the shape of its kind. Objects of other kinds only need metadata as all have it."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    shape = _MANIFESTS.get((group, str(manifest.get("kind", ""))), {})
    return list(problems(dict(manifest), {**shape, "metadata": META}, ""))
