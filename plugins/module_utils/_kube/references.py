# SPDX-License-Identifier: GPL-3.0-or-later
"""The needs of pods before they can start: the objects that they name, storage for their claims, and images with valid names.

The API server stores a workload whatever its pods name, and the pods then wait for ever. So it is refused before anything is written.
"""

from __future__ import annotations

import collections
import re
import typing as t
from collections.abc import Iterator, Sequence

from .._core.errors import Forbidden, InvalidInput, MusterError, NotFound
from .._core.pool import PARALLEL, raise_all, run_all
from . import storage
from .cluster import Cluster
from .objects import CLAIM, DEPLOYMENT, JOB, POD, STATEFUL_SET, Manifest, Ref, group_kind, ref_of
from .served import Promised, objects_among
from .uses import FIELDS, TRAININGS

_WITH_PODS = {
    POD, JOB, DEPLOYMENT, STATEFUL_SET, ("apps", "DaemonSet"), ("apps", "ReplicaSet"), ("batch", "CronJob"), *TRAININGS,
    ("trainer.kubeflow.org", "TrainingRuntime"), ("resource.k8s.io", "ResourceClaimTemplate"),
}  # fmt: skip
_VERSIONS = {
    "PriorityClass": "scheduling.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1",
    **dict.fromkeys(("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"), "resource.k8s.io/v1"),
}  # fmt: skip
"""API versions; the other kinds are in v1."""
_WITHOUT_NAMESPACE = ("DeviceClass", "PriorityClass", "RuntimeClass")
_OF_DEVICES = ("deviceClassName", "resourceClaimName", "resourceClaimTemplateName")
_NAMES = {field: FIELDS[field] for field in (*_OF_DEVICES, "priorityClassName", "runtimeClassName", "serviceAccountName")}
"""Fields of a pod with the name of an object."""
_PULLS = "imagePullSecrets"
"""The field whose objects may be missing: the kubelet warns, and pulls without them (getPullSecretsForPod, kubelet_pods.go, 1.36)."""
_FROM = ("configMap", "configMapKeyRef", "configMapRef", _PULLS, "secret", "secretKeyRef", "secretRef")
_SOURCES = {"persistentVolumeClaim": CLAIM[1], **{field: FIELDS[field] for field in _FROM}}
"""Fields of a pod with an object that names another one, and may name keys of it."""
_BY_ITSELF = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
"""Objects that controllers of Kubernetes create in every namespace."""
_HINTS = {
    "DeviceClass": "Correct its name, or install the driver of the devices, which brings it.",
    "PersistentVolumeClaim": "Correct the name of the claim, or set its size, with which it is created.",
    "Secret": "Correct its name, or create it first (`kubectl create secret`, or module muster.ml.training_secret).",
}
_LISTED = 8
"""Number of existing objects that a message names."""

# The grammar of github.com/distribution/reference v0.6.0 (regexp.go), by which the kubelet and container runtimes read names of images.
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@{_DIGEST})?")


class Need(t.NamedTuple):
    """An object that the pods of another one need, by the field that names it. ``keys``: those that it must have."""

    kind: str
    name: str
    field: str
    keys: tuple[str, ...] = ()


def require(cluster: Cluster, written: Sequence[Manifest], desired: Sequence[Manifest], promised: Promised) -> list[str]:
    """Raise if pods of the objects that are to be WRITTEN would never start; return warnings.

    The warnings name missing pull secrets, and what could not be checked for want of rights. DESIRED: all objects that will be there after
    this run, and PROMISED: what check mode counts as there.
    """
    makers = [item for item in written if group_kind(item) in _WITH_PODS]
    problems: list[MusterError] = [
        _bad_image(ref_of(item), name) for item in makers for name in images_of(item) if not _IMAGE.fullmatch(name)
    ]
    coming = {ref_of(item).key: item for item in desired}
    there = promised.objects | objects_among(desired)
    users: dict[Ref, list[tuple[Ref, Need]]] = collections.defaultdict(list)
    for item in makers:
        for need in dict.fromkeys(_walk(item.get("spec"), "")):
            namespace = None if need.kind in _WITHOUT_NAMESPACE else ref_of(item).namespace
            wanted = Ref(_VERSIONS.get(need.kind, "v1"), need.kind, need.name, namespace)
            if wanted.key in coming:
                problems += _without_keys(wanted, coming[wanted.key], [(ref_of(item), need)])
            elif wanted.key not in there and (need.kind, need.name) not in _BY_ITSELF:
                users[wanted].append((ref_of(item), need))
    found, failures = run_all(lambda ref: (ref, cluster.get(ref)), list(users), parallel=PARALLEL)
    raise_all([exc for exc in failures if not isinstance(exc, Forbidden)])
    warnings: list[str] = []
    for ref, live in found:
        strict = [user for user in users[ref] if user[1].field != _PULLS]
        if live is not None:
            problems += _without_keys(ref, live, strict)
        elif strict:
            problems.append(_missing(cluster, ref, *strict[0]))
        else:
            warnings.append(f"{users[ref][0][0]} names {ref} ({_PULLS}), which does not exist: images that need a login cannot be pulled.")
    unread = list(dict.fromkeys(exc.message for exc in failures))
    unread += storage.check_claims(cluster, _claims(written), promised, problems)
    raise_all(problems)
    return [*warnings, *([f"What pods name could not all be checked: {' '.join(unread)}"] if unread else [])]


def images_of(value: t.Any, key: str = "") -> Iterator[str]:
    """The names of the images in an object that makes pods."""
    if isinstance(value, dict):
        for field, inner in value.items():
            yield from images_of(inner, field)
    elif isinstance(value, list):
        for inner in value:
            yield from images_of(inner)
    elif key == "image" and isinstance(value, str):
        yield value


def _walk(value: t.Any, key: str) -> Iterator[Need]:
    if isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key)
    elif isinstance(value, dict):
        name = value.get("secretName") or value.get("claimName") or value.get("name")
        if key in _SOURCES and isinstance(name, str) and value.get("optional") is not True:
            items = value.get("items") or ([value] if "key" in value else [])
            yield Need(_SOURCES[key], name, key, tuple(str(row["key"]) for row in items))
        for field, inner in value.items():
            yield from _walk(inner, field)
    elif key in _NAMES and isinstance(value, str) and value:
        yield Need(_NAMES[key], value, key)


def _claims(written: Sequence[Manifest]) -> Iterator[tuple[Ref, Manifest]]:
    """The claims among the objects, and the first claim of each template of a StatefulSet, with their specs."""
    for item in written:
        ref = ref_of(item)
        if ref.group_kind == CLAIM:
            yield ref, item["spec"]
        elif ref.group_kind == STATEFUL_SET:
            for template in item["spec"].get("volumeClaimTemplates") or ():
                yield Ref("v1", CLAIM[1], f"{template['metadata']['name']}-{ref.name}-0", ref.namespace), template["spec"]


def _bad_image(user: Ref, name: str) -> MusterError:
    return InvalidInput(
        f"{user}: {name!r} is no name of an image.",
        "It is REGISTRY/PATH:TAG or REGISTRY/PATH@sha256:DIGEST, the path in lower case and without spaces. Nothing was changed.",
        ref=user,
    )


def _missing(cluster: Cluster, ref: Ref, user: Ref, need: Need) -> MusterError:
    try:
        names = sorted(item["metadata"]["name"] for item in cluster.list_metadata(ref.api_version, ref.kind, ref.namespace, limit=50))
    except MusterError:  # it only helps to say more
        names = []
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    there = f" There are: {', '.join(names[:_LISTED])}{more}." if names else ""
    return NotFound(
        f"{user} names {ref} ({need.field}), which does not exist, so its pods would not start.",
        f"{_HINTS.get(ref.kind, 'Correct its name, or create it first.')}{there} Nothing was changed.",
        ref=ref,
    )


def _without_keys(ref: Ref, item: Manifest, users: Sequence[tuple[Ref, Need]]) -> Iterator[MusterError]:
    """An error for each key that the object must have and has not."""
    keys = {key for part in ("data", "binaryData", "stringData") for key in item.get(part) or ()}
    for user, need in users:
        for key in need.keys:
            if key not in keys:
                there = f"It has: {', '.join(sorted(keys))}." if keys else "It has none."
                yield NotFound(
                    f"{user} names key {key} of {ref} ({need.field}), which has no such key, so its pods would not start.",
                    f"{there} Nothing was changed.",
                    ref=ref,
                )
