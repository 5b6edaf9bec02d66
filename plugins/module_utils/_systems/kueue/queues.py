# SPDX-License-Identifier: GPL-3.0-or-later
"""The queues of Kueue: ResourceFlavors, ClusterQueues with quotas, ProvisioningRequests, LocalQueues and priorities. No I/O."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest, compact, metadata, quantity

API_GROUP = "kueue.x-k8s.io"
API_VERSION = f"{API_GROUP}/v1beta2"
# A pod that requests something that its queue has no quota of is never admitted, and nearly every pod requests these.
_ALWAYS = ("cpu", "memory")
# The controller that answers an AdmissionCheck by a ProvisioningRequest (Kueue's docs, "Provisioning Admission Check Controller").
_PROVISIONER = f"{API_GROUP}/provisioning-request"
_LABELS = {"app.kubernetes.io/name": "kueue", "app.kubernetes.io/component": "queue"}


def queue_objects(
    resource_flavors: Sequence[Mapping[str, t.Any]],
    cluster_queues: Sequence[Mapping[str, t.Any]],
    local_queues: Sequence[Mapping[str, t.Any]],
    priority_classes: Sequence[Mapping[str, t.Any]],
    provisioning_requests: Sequence[Mapping[str, t.Any]],
) -> list[Manifest]:
    """Return all queues with the objects that they refer to. References to other objects are allowed: these may exist already."""
    for what, given in (
        ("resource_flavors", resource_flavors),
        ("cluster_queues", cluster_queues),
        ("local_queues", local_queues),
        ("priority_classes", priority_classes),
        ("provisioning_requests", provisioning_requests),
    ):
        _check_unique(what, given)
    return [
        *(_flavor(row) for row in resource_flavors),
        *(manifest for row in provisioning_requests for manifest in _provisioning(row)),
        *(_cluster_queue(row) for row in cluster_queues),
        *(_object("LocalQueue", row, spec={"clusterQueue": row["cluster_queue"]}) for row in local_queues),
        *(_object("WorkloadPriorityClass", row, value=row["value"], description=row.get("description")) for row in priority_classes),
    ]


def _check_unique(what: str, rows: Sequence[Mapping[str, t.Any]]) -> None:
    names = [(row.get("namespace"), row["name"]) for row in rows]
    for namespace, name in names:
        if names.count((namespace, name)) > 1:
            raise InvalidInput(f"{what}: {name} is there twice.")


def _object(kind: str, row: Mapping[str, t.Any], **fields: t.Any) -> Manifest:
    described = metadata(row["name"], row.get("namespace"), _LABELS)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": described, **compact(fields)}


def _flavor(row: Mapping[str, t.Any]) -> Manifest:
    spec = {"nodeLabels": row.get("node_labels"), "nodeTaints": row.get("node_taints"), "tolerations": row.get("tolerations")}
    return {**_object("ResourceFlavor", row), "spec": compact(spec)}


def _provisioning(row: Mapping[str, t.Any]) -> list[Manifest]:
    """The AdmissionCheck that holds a training until nodes for all of its pods are provisioned, and its ProvisioningRequestConfig."""
    targets = [{"key": label, "valueFromProvisioningClassDetail": detail} for label, detail in (row.get("node_selector") or {}).items()]
    config = {
        "provisioningClassName": row["class_name"],
        "parameters": {name: str(value) for name, value in (row.get("parameters") or {}).items()} or None,
        "managedResources": row.get("managed_resources"),
        "retryStrategy": row.get("retry_strategy"),
        "podSetUpdates": {"nodeSelector": targets} if targets else None,
    }
    kind = "ProvisioningRequestConfig"
    check = {"controllerName": _PROVISIONER, "parameters": {"apiGroup": API_GROUP, "kind": kind, "name": row["name"]}}
    return [_object(kind, row, spec=compact(config)), _object("AdmissionCheck", row, spec=check)]


def _cluster_queue(row: Mapping[str, t.Any]) -> Manifest:
    name, flavors = row["name"], row["flavors"]
    resources = list(dict.fromkeys(resource for flavor in flavors for resource in flavor["nominal_quota"]))
    if missing := [resource for resource in _ALWAYS if resource not in resources]:
        raise InvalidInput(
            f"cluster_queues: {name} has no quota of {' and '.join(missing)}, so that no pod which requests that is ever admitted.",
            "Give each of its flavors a nominal_quota of cpu and memory, such as all that its nodes have.",
        )
    if not row.get("cohort_name") and any(flavor.get("borrowing_limit") for flavor in flavors):
        raise InvalidInput(f"cluster_queues: {name} has a borrowing_limit and no cohort_name, so no queue to borrow from.")
    checks = [{"name": check} for check in row.get("admission_checks") or ()]
    group = {"coveredResources": resources, "flavors": [_quotas(name, flavor, resources) for flavor in flavors]}
    spec = {
        "cohortName": row.get("cohort_name"),
        "queueingStrategy": row.get("queueing_strategy"),
        "preemption": row.get("preemption"),
        "flavorFungibility": row.get("flavor_fungibility"),
        "stopPolicy": row.get("stop_policy"),
        "admissionChecksStrategy": {"admissionChecks": checks} if checks else None,
        "resourceGroups": [group],
    }
    # Without a selector no namespace may use it; an empty one selects all.
    selector = {"namespaceSelector": row.get("namespace_selector") or {}}
    return _object("ClusterQueue", row, spec={**compact(spec), **selector})


def _quotas(queue: str, flavor: Mapping[str, t.Any], resources: Iterable[str]) -> Manifest:
    """Return quotas of each resource for each flavor of a queue; a quota that is not given is 0."""
    fields = {"nominal_quota": "nominalQuota", "borrowing_limit": "borrowingLimit", "lending_limit": "lendingLimit"}
    for option in fields:
        for resource, value in (flavor.get(option) or {}).items():
            where = f"cluster_queues: {queue}: {flavor['name']}: {option}.{resource}"
            quantity(value, where)
            if resource not in resources:
                raise InvalidInput(f"{where}: no flavor of the queue has a nominal_quota of it.")
    rows = []
    for resource in resources:
        given = {field: (flavor.get(option) or {}).get(resource) for option, field in fields.items()}
        told = {field: str(value) for field, value in given.items() if value is not None}
        rows.append({"name": resource, "nominalQuota": "0", **told})
    return {"name": flavor["name"], "resources": rows}
