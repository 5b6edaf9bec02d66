# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrite the user's manifests to those that are sent. Pure functions."""

from __future__ import annotations

import base64
import hashlib
import json
import typing as t

from .._core.sensitive import Sensitive, revealed
from . import redact
from .objects import (
    ANNOTATION_APPLIED,
    ANNOTATION_NOT_KEPT,
    CONFIG_MAP,
    FIELD_MANAGER,
    LABEL_HOME,
    LABEL_MANAGED_BY,
    SECRET,
    Manifest,
    annotations_of,
    deep_copy,
    group_kind,
    location_digest,
    owner_labels,
    owner_on,
    ref_of,
)
from .quantities import with_canonical_quantities

# Fields that the server sets. Objects that were read from a cluster or generated have them, and they mean nothing in input.
_SERVER_METADATA = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
                    "resourceVersion", "selfLink", "uid")  # fmt: skip
_DIGEST_VERSION = "2"
_PUBLIC = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), default=lambda value: None if isinstance(value, Sensitive) else str(value)
)
_BYTES = {SECRET: ("data",), CONFIG_MAP: ("binaryData",)}
_COUNTED = {("apps", "Deployment"): ("deployment.kubernetes.io/revision",),
            ("apps", "DaemonSet"): ("deprecated.daemonset.template.generation",)}  # fmt: skip
"""Annotations whose values controllers count up, which an exported object has (pkg/controller/deployment, pkg/registry/apps/daemonset)."""
_CLUSTER_ROLE = ("rbac.authorization.k8s.io", "ClusterRole")
_LABELLED_AS_PODS = (("batch", "Job"), ("", "ReplicationController"))
"""Kinds that get the labels of their pods where they have none (SetDefaults_Job and SetDefaults_ReplicationController of pkg/apis)."""


def flatten(objects: t.Iterable[t.Any]) -> list[t.Any]:
    """Objects that are lists (List, ConfigMapList, ...) taken apart, empty documents dropped.

    A list is what has a list of items, whatever its kind, as for kubectl (IsList of k8s.io/apimachinery/pkg/apis/meta/v1/unstructured).
    """
    found: list[t.Any] = []
    for item in objects:
        if item is None:
            continue
        if isinstance(item, dict) and isinstance(item.get("items"), list):
            found += flatten(_of_list(part, item) for part in item["items"])
        else:
            found.append(item)
    return found


def _of_list(item: t.Any, listing: Manifest) -> t.Any:
    """The item, of the kind that the list names, if it says none itself (decodeToList, in the same package)."""
    kind = str(listing.get("kind", "")).removesuffix("List")
    if not kind or not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {"apiVersion": listing.get("apiVersion"), "kind": kind, **item}


def prepare(manifest: Manifest, *, owner: str, namespaced: bool, namespace: str) -> Manifest:
    """The object as it is sent: with our label, in a namespace if its kind has one, and with its digest."""
    desired = {key: deep_copy(value) for key, value in manifest.items() if key != "status"}
    metadata = {key: value for key, value in desired["metadata"].items() if key not in _SERVER_METADATA}
    desired["metadata"], what = metadata, group_kind(desired)
    if namespaced:
        metadata["namespace"] = metadata.get("namespace") or namespace
    else:
        metadata.pop("namespace", None)
    # LABEL_MANAGED_BY is the user's to change; we find our objects by LABEL_OWNER.
    given = metadata.get("labels") or (_labels_of_pods(desired) if what in _LABELLED_AS_PODS else {})
    labels = {LABEL_MANAGED_BY: FIELD_MANAGER, **given}
    labels.pop(LABEL_HOME, None)
    metadata["labels"] = labels | owner_labels(owner)
    if what == SECRET:
        _encode(desired)
    for part in _BYTES.get(what, ()):
        if isinstance(desired.get(part), dict):
            desired[part] = {key: _canonical_base64(value) for key, value in desired[part].items()}
    for key in _COUNTED.get(what, ()):
        if key in annotations_of(desired):
            metadata["annotations"] = {name: value for name, value in metadata["annotations"].items() if name != key}
    if what == _CLUSTER_ROLE and desired.get("aggregationRule"):
        desired.pop("rules", None)  # pkg/controller/clusterroleaggregation writes them
    return with_apply_record(redact.seal_everything(desired))


def _labels_of_pods(desired: Manifest) -> dict[str, str]:
    """The labels in the template, which the server would give the object itself, had it not ours."""
    found: t.Any = desired
    for key in ("spec", "template", "metadata", "labels"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def with_apply_record(desired: Manifest) -> Manifest:
    """The object with an annotation that records its digest, its owner and its place."""
    annotations = {key: value for key, value in annotations_of(desired).items() if key not in (ANNOTATION_APPLIED, ANNOTATION_NOT_KEPT)}
    bare = {**desired, "metadata": {**desired["metadata"], "annotations": annotations}}
    place = location_digest(owner_on(desired), ref_of(desired))
    return with_annotation(bare, ANNOTATION_APPLIED, f"{digest(bare)}:{place}")


def with_annotation(manifest: Manifest, key: str, value: str) -> Manifest:
    """A copy (shallow but for the annotations) with one more annotation."""
    metadata = {**manifest["metadata"], "annotations": {**annotations_of(manifest), key: value}}
    return {**manifest, "metadata": metadata}


def digest(desired: Manifest) -> str:
    """A digest of a desired object. It leaves out secret values, because annotations are readable without the right to read Secrets."""
    return f"{_DIGEST_VERSION}:{hashlib.sha256(_PUBLIC.encode(with_canonical_quantities(desired)).encode()).hexdigest()[:40]}"


def _canonical_base64(value: t.Any) -> t.Any:
    """The text that the server makes of base64, which may have line breaks (encoding/base64 of Go skips them)."""
    text = revealed(value)
    try:
        same = base64.b64encode(base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)).decode()
    except (AttributeError, ValueError):  # for the server to refuse
        return value
    return Sensitive(same) if isinstance(value, Sensitive) else same


def _encode(secret: Manifest) -> None:
    """Replace ``stringData``, which is write-only and would always seem to be missing, by the ``data`` that the server makes of it."""
    plain = secret.pop("stringData", None) or {}
    texts = {key: "" if value is None else revealed(value) for key, value in plain.items()}  # as the server reads null
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    if encoded or secret.get("data") is not None:
        secret["data"] = {**(secret.get("data") or {}), **encoded}
