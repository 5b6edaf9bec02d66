# SPDX-License-Identifier: GPL-3.0-or-later
"""A survey of a cluster for trainings: its capabilities, and the user's permissions. Only reads; what may not be read is noted."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import Forbidden
from .._core.pool import PARALLEL, run_all
from . import nodes, storage
from .cluster import Cluster
from .objects import Manifest, Ref, group_of

OPERATORS = {
    "gateway.networking.k8s.io": "gateway_api",
    "jobset.x-k8s.io": "jobset",
    "kubeflow.org": "training_operator",
    "kueue.x-k8s.io": "kueue",
    "leaderworkerset.x-k8s.io": "lws",
    "nats.io": "nats_operator",
    "persia.com": "persia_operator",
    "trainer.kubeflow.org": "trainer",
}
"""API groups with the role that installs what serves them; of gateway_api it is traefik, or another implementation."""
_TPU = ("cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology")
"""Labels of GKE's nodes with TPUs (documentation of GKE, "Plan TPUs in GKE")."""
_REVIEW = "authorization.k8s.io/v1"


def survey(cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """The cluster as the module returns it. RULES: those of a Role, of which the ones that the user lacks are named."""
    unread: list[str] = []

    def listed(api_version: str, kind: str, home: str | None = None) -> Sequence[Manifest]:
        try:
            return cluster.list(api_version, kind, home)
        except Forbidden as error:
            unread.append(error.message)
            return []

    found = [nodes.describe(node) for node in listed("v1", "Node")]
    quotas = listed("v1", "ResourceQuota", namespace)
    classes = listed("storage.k8s.io/v1", "StorageClass")
    default = storage.class_of(classes, None)
    groups = {group_of(api_version) for api_version, _kind, _resource in cluster.kinds()}
    lacking, exists = lacking_rights(cluster, namespace, rules), _exists(cluster, namespace)
    return {
        "server_version": cluster.version(),
        "namespace": {"name": namespace, "exists": exists},
        "nodes": {"ready": sum(one["ready"] for one in found), "total": len(found)},
        "devices": _devices(found),
        "tpus": _tpus(found),
        "storage_classes": [_storage_class(row, default) for row in classes],
        "operators": sorted(name for group, name in OPERATORS.items() if group in groups),
        "quotas": [{"name": one["metadata"]["name"], **{key: one["status"].get(key, {}) for key in ("hard", "used")}} for one in quotas],
        "lacking_rights": lacking,
        "unread": unread,
    }


def _exists(cluster: Cluster, namespace: str) -> bool | None:
    try:
        return cluster.get(Ref("v1", "Namespace", namespace)) is not None
    except Forbidden:
        return None


def _devices(found: Sequence[Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The extended resources of the nodes, such as nvidia.com/gpu."""
    amounts = collections.defaultdict[str, list[int]](list)
    for node in found:
        for name, amount in node["allocatable"].items():
            if "/" in name and str(amount).isdecimal() and int(amount):
                amounts[name].append(int(amount))
    return [{"name": name, "nodes": len(rows), "amount": sum(rows)} for name, rows in sorted(amounts.items())]


def _tpus(found: Sequence[Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The slices of TPUs by type and topology, with the number of their nodes."""
    counts = collections.Counter(tuple(node["labels"][label] for label in _TPU) for node in found if set(_TPU) <= set(node["labels"]))
    return [{"type": kind, "topology": topology, "nodes": number} for (kind, topology), number in sorted(counts.items())]


def _storage_class(row: Manifest, default: Manifest | None) -> dict[str, t.Any]:
    return {
        "name": row["metadata"]["name"],
        "provisioner": row["provisioner"],
        "default": row is default,
        "shared": storage.is_shared(row["provisioner"]),
    }


def lacking_rights(cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]]) -> list[str]:
    """The rights among these rules that the user lacks, as ``VERB RESOURCE.GROUP``. Each is asked with a SelfSubjectAccessReview."""
    asked = [
        (verb, resource, group, None if rule.get("cluster_wide") else namespace)
        for rule in rules
        for group in rule["api_groups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]

    def ask(right: tuple[str, str, str, str | None]) -> str:
        verb, plain, group, home = right
        resource, _slash, subresource = plain.partition("/")
        attributes = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            **({"namespace": home} if home else {}),
        }
        review = {"apiVersion": _REVIEW, "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {"resourceAttributes": attributes}}
        allowed = cluster.create(review, dry_run=False)["status"]["allowed"]
        return "" if allowed else f"{verb} {plain}{f'.{group}' if group else ''}"

    answers, failures = run_all(ask, asked, parallel=PARALLEL)
    return [*dict.fromkeys(filter(None, answers)), *dict.fromkeys(f"(could not be asked: {error.message})" for error in failures)]
