# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the objects that an object names: references in its spec, addresses in its variables and arguments, resources, queues. No I/O."""

from __future__ import annotations

import re
import typing as t

from .._manifests.meta import ANNOTATION_SERVES, ANNOTATION_USES, LABEL_QUEUE, LABEL_QUEUE_PRIORITY
from .objects import (
    CLAIM,
    CONFIG_MAP,
    DEFINITION,
    LEADER_WORKER_SET,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    GroupKind,
    Manifest,
    Ref,
    annotations_of,
    group_of,
    labels_of,
)
from .order import BUILT_IN_GROUPS


class Name(t.NamedTuple):
    """The name by which users refer to an object.

    ``word``: its kind, or one of ADDRESS, RESOURCE, METRICS, INSTANCES. ``namespace``: empty if it has none. ``group``: its API group; None
    in a reference that has none, as most, and may mean kinds of several groups: an object goes by its name with and without.
    """

    word: str
    namespace: str
    name: str
    group: str | None = None


ADDRESS, RESOURCE, METRICS, INSTANCES = "address", "resource", "metrics", "instances"
"""A host name in the cluster; an extended resource of nodes; metrics of a kind for autoscalers; all objects of a definition."""

CLUSTER_WIDE: frozenset[GroupKind] = frozenset({
    ("storage.k8s.io", "CSIDriver"), ("kueue.x-k8s.io", "ClusterQueue"), DEFINITION, ("gateway.networking.k8s.io", "GatewayClass"),
    ("resource.k8s.io", "DeviceClass"), ("networking.k8s.io", "IngressClass"), ("", "PersistentVolume"),
    ("scheduling.k8s.io", "PriorityClass"), ("kueue.x-k8s.io", "ResourceFlavor"), ("node.k8s.io", "RuntimeClass"),
    ("storage.k8s.io", "StorageClass"), ("kueue.x-k8s.io", "WorkloadPriorityClass"),
})  # fmt: skip
_WORDS_CLUSTER_WIDE = frozenset(word for _group, word in CLUSTER_WIDE)
_DEVICES = frozenset({("resource.k8s.io", "ResourceClaim"), ("resource.k8s.io", "ResourceClaimTemplate")})
_NAMEABLE = frozenset({CONFIG_MAP, CLAIM, SECRET, SERVICE, SERVICE_ACCOUNT}) | _DEVICES | CLUSTER_WIDE
TRAININGS: dict[GroupKind, set[str]] = {
    ("persia.com", "PersiaJob"): set(),
    ("kubeflow.org", "PyTorchJob"): {"Succeeded", "Failed"},
    ("jobset.x-k8s.io", "JobSet"): {"Completed", "Failed"},
    ("trainer.kubeflow.org", "TrainJob"): {"Complete", "Failed"},
    LEADER_WORKER_SET: set(),
}
"""Kinds of other projects that make the pods of a training or of servers, with the types of the conditions that say that it has ended."""

FIELDS = {
    "backendRefs": "Service",
    "claimName": "PersistentVolumeClaim",
    "clusterQueue": "ClusterQueue",
    "configMap": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "configMapRef": "ConfigMap",
    "deviceClassName": "DeviceClass",
    "flavors": "ResourceFlavor",
    "gateways": "Gateway",
    "gatewayClassName": "GatewayClass",
    "imagePullSecrets": "Secret",
    "ingressClassName": "IngressClass",
    "parentRefs": "Gateway",
    "priorityClassName": "PriorityClass",
    "queueName": "LocalQueue",
    "resourceClaimName": "ResourceClaim",
    "resourceClaimTemplateName": "ResourceClaimTemplate",
    "runtimeClassName": "RuntimeClass",
    "secret": "Secret",
    "secretKeyRef": "Secret",
    "secretName": "Secret",
    "secretRef": "Secret",
    "service": "Service",
    "serviceAccountName": "ServiceAccount",
    "storageClassName": "StorageClass",
}
"""The field that holds a name, or an object (or a list of them) with a name -> the kind that it names where it says none."""
_LABELS = {LABEL_QUEUE: "LocalQueue", LABEL_QUEUE_PRIORITY: "WorkloadPriorityClass"}
# Fields whose text is no address although it may look like one.
_NO_ADDRESS = frozenset({"annotations", "image", "kind", "labels", "matchLabels", "mountPath", "name", "namespace", "path"})
_HOST_VARIABLE = re.compile(r"(ADDR|ADDRESS|BROKER|ENDPOINT|HOST|HOSTNAME|SERVER|SERVERS|URI|URL)S?$", re.IGNORECASE)
"""Names of variables whose value may be a host name alone."""
_HOST = re.compile(r"(?<![\w.-])(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)\.?(?P<port>:\d{1,5}(?!\d))?(?![\w-])", re.IGNORECASE)


def is_nameable(ref: Ref, item: Manifest) -> bool:
    """Whether others may use an object by its name, or by what its annotation says that it serves."""
    return ref.group_kind in _NAMEABLE or ref.group not in BUILT_IN_GROUPS or ANNOTATION_SERVES in annotations_of(item)


def names_of(ref: Ref, item: Manifest) -> set[Name]:
    """The names by which others refer to the object."""
    space = "" if ref.group_kind in CLUSTER_WIDE else ref.namespace or ""
    found = {Name(ref.kind, space, ref.name), Name(ref.kind, space, ref.name, ref.group)}
    # An operator gives the servers that it makes a Service of the same name as their custom resource (nats-operator 0.8.3 does).
    made = ref.group not in BUILT_IN_GROUPS and ref.group_kind not in TRAININGS
    if space and (ref.group_kind == SERVICE or made):
        found.add(Name(ADDRESS, space, ref.name))
    return found | {word for word in _words(item, ANNOTATION_SERVES) if word.word}


def named_by(item: Manifest) -> dict[Name, str]:
    """The names in the object, each with its place: the variable of a container, or the field."""
    metadata = item["metadata"]
    space = metadata.get("namespace") or ""
    found: dict[Name, str] = {}
    for label, kind in _LABELS.items():
        if label in labels_of(item):
            found[_name(kind, space, labels_of(item)[label])] = f"label {label}"
    for word in _words(item, ANNOTATION_USES):
        if word.word:
            found[word] = f"annotation {ANNOTATION_USES}"
        else:
            _addresses(word.name, space, f"annotation {ANNOTATION_USES}", found, alone=True)
    # An operator needs the definitions of what it serves.
    served = [word.name for word in _words(item, ANNOTATION_SERVES) if word.word == INSTANCES]
    found.update({Name(DEFINITION[1], "", name): f"annotation {ANNOTATION_SERVES}" for name in served})
    for key, value in item.items():
        if key not in ("apiVersion", "kind", "metadata", "status"):
            _walk(value, key, space, found)
    return found


def _words(item: Manifest, annotation: str) -> list[Name]:
    """The words of an annotation; those without a kind are host names."""
    found = []
    for word in annotations_of(item).get(annotation, "").split():
        what, _colon, name = word.rpartition(":")
        if what == INSTANCES:
            namespace, _slash, name = name.rpartition("/")
            found.append(Name(what, namespace, name))
        elif what in ("", RESOURCE, METRICS):
            found.append(Name(what, "", name))
        else:
            found.append(_name(what, item["metadata"].get("namespace") or "", name))
    return found


def _name(word: str, namespace: str, name: str, group: str | None = None) -> Name:
    cluster_wide = word in _WORDS_CLUSTER_WIDE if group is None else (group, word) in CLUSTER_WIDE
    return Name(word, "" if cluster_wide else namespace, name, group)


def _group(reference: dict[str, t.Any]) -> str | None:
    """The API group that a reference names, None where it names none."""
    if isinstance(reference.get("apiVersion"), str):
        return group_of(reference["apiVersion"])
    for key in ("apiGroup", "group"):
        found = reference.get(key)
        # In a custom resource, a field "group" may name a group of users.
        if isinstance(found, str) and ("." in found or found in BUILT_IN_GROUPS):
            return found
    return None


def _walk(value: t.Any, key: str, space: str, found: dict[Name, str]) -> None:
    if isinstance(value, list):
        for entry in value:
            _walk(entry, key, space, found)
    elif isinstance(value, dict):
        _walk_map(value, key, space, found)
    elif isinstance(value, str):
        if key in FIELDS:
            namespace, _slash, name = value.rpartition("/")  # Istio writes both as one
            found.setdefault(_name(FIELDS[key], namespace or space, name), key)
        elif key not in _NO_ADDRESS:
            _addresses(value, space, key, found, alone=key in ("externalName", "host"))


def _walk_map(value: dict[str, t.Any], key: str, space: str, found: dict[Name, str]) -> None:
    if value.get("weight") == 0 and key in ("backendRefs", "route"):
        return  # a backend that gets no request
    name = value.get("name")
    if isinstance(name, str):
        kind = value.get("kind") or FIELDS.get(key)
        if isinstance(kind, str):
            found.setdefault(_name(kind, str(value.get("namespace") or space), name, _group(value)), key)
        if isinstance(value.get("value"), str):  # a variable
            alone = bool(_HOST_VARIABLE.search(name))
            _addresses(value["value"], space, f"variable {name}", found, alone=alone)
    if key in ("limits", "requests"):
        found.update({Name(RESOURCE, "", str(resource)): key for resource in value if "/" in str(resource)})
    if key == "metrics" and isinstance(value.get("type"), str):
        found[Name(METRICS, "", value["type"])] = key
    for label, kind in _LABELS.items():
        if key == "labels" and isinstance(value.get(label), str):
            found.setdefault(_name(kind, space, value[label]), f"label {label}")
    for field, inner in value.items():
        if not (field == "value" and isinstance(name, str)):
            _walk(inner, str(field), space, found)


def _addresses(text: str, space: str, where: str, found: dict[Name, str], *, alone: bool = False) -> None:
    """Add the host names in a text. A short one counts with a port, after ``//`` or ``@``, or if the text is one (``alone``)."""
    for match in _HOST.finditer(text):
        host, before = match["host"].lower(), text[: match.start()]
        words = host.split(".")
        sure = alone or bool(match["port"]) or before.endswith(("//", "@"))
        if "svc" in words[2:4]:
            at = words.index("svc", 2)
            pairs = [(words[at - 2], words[at - 1])]
        elif not sure:
            pairs = []
        elif len(words) == 1:
            pairs = [(host, space)]
        else:  # of a Service with its namespace, or of a pod of a Service (with the namespace)
            pairs = [(words[0], words[1]), (words[1], space), *([(words[1], words[2])] if len(words) == 3 else [])]
        for service, namespace in pairs:
            found.setdefault(Name(ADDRESS, namespace, service), where)
