# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON types of the fields of Kubernetes objects that the collection reads, and of options that contain such fields.

Ansible checks an option only down to ``type: dict``, and manifests not at all. The shapes here are checked before any other code reads
a value. Fields without a shape are left to the API server, which knows all of them.

Source: the API reference of Kubernetes 1.36, https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import quantity
from .sensitive import Sensitive, revealed


@dataclasses.dataclass(frozen=True)
class Each:
    """A mapping with any keys, whose values have one shape."""

    shape: Shape


Shape = t.Any
"""``str``, ``int``, ``dict`` or QUANTITY; a dict is a mapping with the shapes of some of its keys, a list of one shape is a list."""

QUANTITY: t.Final = (str, int, float)
_NAMES: t.Final = {str: "a string", int: "a whole number", QUANTITY: "a quantity", dict: "a mapping"}
TEXTS, AMOUNTS, NAMED = Each(str), Each(QUANTITY), {"name": str}
_KEY = {"name": str, "key": str}
SELECTOR = {"matchLabels": TEXTS, "matchExpressions": [{"key": str, "operator": str, "values": [str]}]}
_TERM = {"matchExpressions": SELECTOR["matchExpressions"], "matchFields": SELECTOR["matchExpressions"]}
_REQUIRED, _PREFERRED = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
_POD_TERM = {"labelSelector": SELECTOR, "namespaceSelector": SELECTOR, "namespaces": [str], "topologyKey": str}
_POD_AFFINITY = {_REQUIRED: [_POD_TERM], _PREFERRED: [{"weight": int, "podAffinityTerm": _POD_TERM}]}
_NODE_AFFINITY = {_REQUIRED: {"nodeSelectorTerms": [_TERM]}, _PREFERRED: [{"weight": int, "preference": _TERM}]}
_META = {"labels": dict, "annotations": dict, "ownerReferences": [{"uid": str}], "finalizers": [str]}
_RESOURCES = {"limits": AMOUNTS, "requests": AMOUNTS, "claims": [NAMED]}
_CLAIM = {
    "metadata": _META,
    "spec": {"accessModes": [str], "resources": _RESOURCES, "selector": SELECTOR, "storageClassName": str, "volumeName": str},
}
_PEERS = [{"podSelector": SELECTOR, "namespaceSelector": SELECTOR, "ipBlock": {"cidr": str, "except": [str]}}]

OPTIONS: dict[str, Shape] = {
    "absent": Each([dict]), "affinity": {"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_AFFINITY},
    "brokers": Each([str]), "cleanup_policies": Each(dict), "network_policy_from": _PEERS, "node_selector": TEXTS,
    "overrides": {"metadata": _META, "spec": dict}, "resources": _RESOURCES, "trusted": Each(dict), "volume_claim_templates": [_CLAIM],
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "topology_spread_constraints": [{"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": SELECTOR}],
    "value_from": {"secretKeyRef": _KEY, "configMapKeyRef": _KEY, "fieldRef": {"fieldPath": str}, "resourceFieldRef": {"resource": str}},
    "volume_mounts": [{"name": str, "mountPath": str, "subPath": str}],
    "volumes": [{
        "name": str, "persistentVolumeClaim": {"claimName": str}, "secret": {"secretName": str, "items": [dict]}, "hostPath": {"path": str},
        "configMap": {"name": str, "items": [dict]}, "emptyDir": {"medium": str, "sizeLimit": QUANTITY},
        "ephemeral": {"volumeClaimTemplate": _CLAIM}, "projected": {"sources": [{"secret": NAMED, "configMap": NAMED}]},
    }],
}  # fmt: skip
"""The shapes of options by name, which mean the same in all modules."""
_CONTAINERS = OPTIONS["init_containers"] = [{
    "name": str, "image": str, "command": [object], "args": [object], "env": [{"name": str, "valueFrom": OPTIONS["value_from"]}],
    "envFrom": [{"secretRef": NAMED, "configMapRef": NAMED}], "ports": [{"name": str, "containerPort": int, "protocol": str}],
    "resources": _RESOURCES, "restartPolicy": str, "securityContext": dict, "volumeMounts": OPTIONS["volume_mounts"],
}]  # fmt: skip
_POD = {"metadata": _META, "spec": {
    "affinity": OPTIONS["affinity"], "containers": _CONTAINERS, "initContainers": _CONTAINERS, "imagePullSecrets": [NAMED],
    "nodeName": str, "nodeSelector": TEXTS, "overhead": AMOUNTS, "priorityClassName": str, "resources": _RESOURCES, "restartPolicy": str,
    "runtimeClassName": str, "schedulerName": str, "schedulingGates": [NAMED], "securityContext": dict, "serviceAccountName": str,
    "terminationGracePeriodSeconds": int, "tolerations": OPTIONS["tolerations"], "volumes": OPTIONS["volumes"],
    "topologySpreadConstraints": OPTIONS["topology_spread_constraints"],
}}  # fmt: skip
OPTIONS["template"] = _POD
_WORKLOAD = {"spec": {"replicas": int, "selector": SELECTOR, "serviceName": str, "template": _POD, "volumeClaimTemplates": [_CLAIM]}}
_JOB = {"metadata": _META, "spec": {"completions": int, "parallelism": int, "template": _POD}}
_BINDING = {"roleRef": {"kind": str, "name": str}, "subjects": [{"kind": str, "name": str, "namespace": str}]}
_DEFINITION = {
    "group": str,
    "scope": str,
    "names": {"plural": str, "kind": str},
    "versions": [{"name": str, "schema": dict}],
    "conversion": dict,
}
_MANIFESTS: dict[tuple[str, str], Shape] = {
    ("", "Pod"): _POD, ("", "PersistentVolumeClaim"): _CLAIM, ("batch", "Job"): _JOB,
    ("", "Service"): {"spec": {"selector": TEXTS, "ports": [{"name": str, "port": int, "protocol": str}]}},
    **{("apps", kind): _WORKLOAD for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    ("batch", "CronJob"): {"spec": {"jobTemplate": _JOB}},
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {"spec": _DEFINITION},
    ("apiregistration.k8s.io", "APIService"): {"spec": {"group": str, "version": str}},
    **{("rbac.authorization.k8s.io", kind): _BINDING for kind in ("RoleBinding", "ClusterRoleBinding")},
}  # fmt: skip


def problems(value: t.Any, shape: Shape, path: str) -> t.Iterator[str]:
    """The differences from the shape, each with its path. Null is an unset field, as in the API."""
    if isinstance(value, Sensitive):
        value = revealed(value)
    if value is None or shape is object:
        return
    if isinstance(shape, (Each, dict)):
        if not isinstance(value, dict):
            yield f"{path} is not a mapping but {type(value).__name__}"
            return
        every, known = (shape.shape, {}) if isinstance(shape, Each) else (None, shape)
        for key, item in value.items():
            below = known.get(key, object) if every is None else every
            if below is object or below is item.__class__:  # as most are
                continue
            if item is None and every is not None:
                yield f"{path}.{key} is null"
            else:
                yield from problems(item, below, f"{path}.{key}" if path else str(key))
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{path} is not a list but {type(value).__name__}"
            return
        for index, item in enumerate(value):
            if item is None:
                yield f"{path}[{index}] is null"
            elif item.__class__ is not shape[0]:
                yield from problems(item, shape[0], f"{path}[{index}]")
    elif shape is QUANTITY and isinstance(value, str):
        try:
            quantity.parse(value)
        except ValueError as exc:
            yield f"{path}: {exc}"
    elif isinstance(value, bool) or not isinstance(value, shape):
        quotes = "; put it in quotes" if shape is str and not isinstance(value, dict | list) else ""
        yield f"{path} is not {_NAMES[shape]} but {type(value).__name__}{quotes}"


def of_manifest(manifest: t.Mapping[str, t.Any]) -> list[str]:
    """The differences of an object from the shape of its kind. Objects of other kinds only need the metadata that all have."""
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    shape = _MANIFESTS.get((group, str(manifest.get("kind", ""))), {})
    return list(problems(dict(manifest), {**shape, "metadata": _META}, ""))
