# SPDX-License-Identifier: GPL-3.0-or-later
"""The stable built-in kinds and how they are served, so that the common case needs no discovery; and the reader of discovery documents."""

from __future__ import annotations

import difflib
import typing as t

from .objects import GroupKind, Manifest, ServedKind, group_of
from .order import BUILT_IN_GROUPS

_NAMESPACED = {
    "v1": "ConfigMap:configmaps Endpoints:endpoints Event:events LimitRange:limitranges PersistentVolumeClaim:persistentvolumeclaims "
    "Pod:pods PodTemplate:podtemplates ReplicationController:replicationcontrollers ResourceQuota:resourcequotas Secret:secrets "
    "Service:services ServiceAccount:serviceaccounts",
    "apps/v1": "ControllerRevision:controllerrevisions DaemonSet:daemonsets Deployment:deployments ReplicaSet:replicasets "
    "StatefulSet:statefulsets",
    "autoscaling/v2": "HorizontalPodAutoscaler:horizontalpodautoscalers",
    "batch/v1": "CronJob:cronjobs Job:jobs",
    "coordination.k8s.io/v1": "Lease:leases",
    "discovery.k8s.io/v1": "EndpointSlice:endpointslices",
    "networking.k8s.io/v1": "Ingress:ingresses NetworkPolicy:networkpolicies",
    "policy/v1": "PodDisruptionBudget:poddisruptionbudgets",
    "rbac.authorization.k8s.io/v1": "Role:roles RoleBinding:rolebindings",
}
_CLUSTER_WIDE = {
    "v1": "Namespace:namespaces Node:nodes PersistentVolume:persistentvolumes",
    "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration:mutatingwebhookconfigurations "
    "ValidatingWebhookConfiguration:validatingwebhookconfigurations",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition:customresourcedefinitions",
    "apiregistration.k8s.io/v1": "APIService:apiservices",
    "networking.k8s.io/v1": "IngressClass:ingressclasses",
    "node.k8s.io/v1": "RuntimeClass:runtimeclasses",
    "rbac.authorization.k8s.io/v1": "ClusterRole:clusterroles ClusterRoleBinding:clusterrolebindings",
    "scheduling.k8s.io/v1": "PriorityClass:priorityclasses",
    "storage.k8s.io/v1": "CSIDriver:csidrivers CSINode:csinodes StorageClass:storageclasses",
}


def _table() -> dict[tuple[str, str], ServedKind]:
    found = {}
    for rows, namespaced in ((_NAMESPACED, True), (_CLUSTER_WIDE, False)):
        for api_version, pairs in rows.items():
            for pair in pairs.split():
                kind, plural = pair.split(":")
                found[api_version, kind] = ServedKind(plural, namespaced)
    return found


BUILT_IN: dict[tuple[str, str], ServedKind] = _table()

# Created by controllers, never by us (except simulated nodes), and expensive to list in a big cluster.
NEVER_OURS: frozenset[GroupKind] = frozenset({
    ("", "ComponentStatus"), ("", "Endpoints"), ("", "Event"), ("apps", "ControllerRevision"), ("apps", "ReplicaSet"),
    ("coordination.k8s.io", "Lease"), ("discovery.k8s.io", "EndpointSlice"), ("events.k8s.io", "Event"),
    ("metrics.k8s.io", "NodeMetrics"), ("metrics.k8s.io", "PodMetrics"), ("networking.k8s.io", "IPAddress"),
    ("storage.k8s.io", "CSINode"), ("storage.k8s.io", "VolumeAttachment"),
})  # fmt: skip

# Deleting these loses nothing: they only report.
REPORTS: frozenset[GroupKind] = frozenset({
    ("", "Event"), ("events.k8s.io", "Event"), ("metrics.k8s.io", "NodeMetrics"), ("metrics.k8s.io", "PodMetrics"),
})  # fmt: skip

# The label by which a controller of Kubernetes marks what it made of a Service. Other values are those of clients that made such an
# object themselves (the documentation of the label suggests "staff" to people). Kubernetes 1.36: ControllerName in
# pkg/controller/endpoint, pkg/controller/endpointslice and pkg/controller/endpointslicemirroring.
MADE_BY_CONTROLLERS: dict[GroupKind, tuple[str, frozenset[str]]] = {
    ("", "Endpoints"): ("endpoints.kubernetes.io/managed-by", frozenset({"endpoint-controller"})),
    ("discovery.k8s.io", "EndpointSlice"): (
        "endpointslice.kubernetes.io/managed-by",
        frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}),
    ),
}

# The annotation by which client-go's leader election notes the leader in an Endpoints object that it makes for that alone, as
# nats-operator 0.8.3 does (LeaderElectionRecordAnnotationKey, tools/leaderelection/resourcelock/interface.go; locks of kind Endpoints
# until client-go 0.23). It stays when the operator goes.
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"

_NEAR = 0.75
"""Least likeness of two names of kinds, as difflib counts it, of which one may be meant by the other."""


class Kinds(list[tuple[str, str, ServedKind]]):
    """The (apiVersion, kind, resource) that can be listed and deleted. ``unknown``: API groups and versions whose discovery failed."""

    def __init__(self, found: t.Iterable[tuple[str, str, ServedKind]] = (), unknown: t.Iterable[str] = ()) -> None:
        super().__init__(found)
        self.unknown = list(unknown)

    def of_definition(self, name: str) -> list[tuple[str, str]]:
        """(apiVersion, kind) that a CustomResourceDefinition defines; its name is <plural>.<group>."""
        return [(api, kind) for api, kind, resource in self if f"{resource.plural}.{group_of(api)}" == name]


def nearest(known: t.Iterable[tuple[str, str, ServedKind]], api_version: str, kind: str) -> str:
    """The kind that is probably meant, as ``Secret (v1)``: one with that name in another group or version, or with one like it.

    Empty where none is near.
    """

    def likeness(found: tuple[str, str, ServedKind]) -> float:
        asked = "".join(kind.split()).casefold()
        name = max(_ratio(asked, found[1].casefold()), _ratio(asked, found[2].plural))
        return name + (0.1 if group_of(found[0]) == group_of(api_version) else 0)

    best = max(known, key=likeness, default=None)
    return f"{best[1]} ({best[0]})" if best and likeness(best) >= _NEAR else ""


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def misspelt(known: t.Iterable[tuple[str, str, ServedKind]], api_version: str, kind: str) -> bool:
    """Whether an unknown kind is one that is served, but for its version, for upper and lower case, or for one letter.

    Only the same API group counts, of which the definition of one kind may be gone while those of others stay; and where that is one of
    Kubernetes itself, which has no definitions, any other of these.
    """
    group = group_of(api_version)
    groups = BUILT_IN_GROUPS if group in BUILT_IN_GROUPS else {group}
    asked = "".join(kind.split()).casefold()
    return any(
        _is_one_slip(asked, name)
        for served, other, resource in known
        if group_of(served) in groups and (served, other) != (api_version, kind)
        for name in (other.casefold(), resource.plural)
    )


def _is_one_slip(one: str, other: str) -> bool:
    """Whether two words are the same, or differ by a letter that is missing, another one, or swapped with the next."""
    short, long = sorted((one, other), key=len)
    while short and short[0] == long[0]:
        short, long = short[1:], long[1:]
    return short == long[1:] or short[1:] == long[1:] or short[1::-1] + short[2:] == long


def resources_of(listing: Manifest) -> dict[str, ServedKind]:
    """kind -> resource of an APIResourceList (``/apis/<group>/<version>``)."""
    return {
        item["kind"]: ServedKind(item["name"], bool(item["namespaced"]), "patch" in (item.get("verbs") or ["patch"]))
        for item in listing.get("resources") or []
        if "/" not in item["name"]
    }


def discovered_kinds(aggregated: Manifest) -> t.Iterator[tuple[str, str, ServedKind]]:
    """(apiVersion, kind, resource) of an APIGroupDiscoveryList: what can be listed and deleted, preferred version first."""
    for group in aggregated.get("items") or []:
        name = (group.get("metadata") or {}).get("name") or ""
        seen: set[str] = set()
        for version in group.get("versions") or []:
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for item in version.get("resources") or []:
                kind = (item.get("responseKind") or {}).get("kind") or ""
                if {"list", "delete"} <= set(item.get("verbs") or ()) and kind not in seen:
                    seen.add(kind)
                    yield api_version, kind, ServedKind(item["resource"], item.get("scope") == "Namespaced")


def unavailable_groups(aggregated: Manifest) -> list[str]:
    """Group/version of an APIGroupDiscoveryList whose server did not answer when the list was made, so that its kinds are unknown."""
    return [
        f"{(group.get('metadata') or {}).get('name')}/{version.get('version')}"
        for group in aggregated.get("items") or []
        for version in group.get("versions") or []
        if version.get("freshness") == "Stale"
    ]
