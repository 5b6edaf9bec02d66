# SPDX-License-Identifier: GPL-3.0-or-later
"""The common parts of the operators that Muster installs: their options, their Deployment and its pod.

ReleasedOperator is one whose project releases a manifest: all of it is installed, and only what the options say differs.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .merge import apply_overrides
from .meta import ANNOTATION_CONFIG_HASH, ANNOTATION_SERVES, ANNOTATION_USES, DEPLOYMENT, Manifest, compact, metadata, spec_hash
from .pods import READ_ONLY_CONTAINER, PullPolicy, resources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operator:
    """The namespace, placement and image of an operator. Field names are the options' names; nested values are the API's."""

    namespace: str
    image: str
    image_pull_policy: PullPolicy = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    resources: Mapping[str, t.Any] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, t.Any]] = ()


def operator_labels(name: str) -> dict[str, str]:
    """Labels of everything that belongs to the operator."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "operator"}


def operator_selector(name: str) -> dict[str, str]:
    """The labels that select the pods of the operator."""
    return {"app.kubernetes.io/name": name}


def operator_service(name: str, operator: Operator, ports: Mapping[str, tuple[int, int | str]], kind: str | None = None) -> Manifest:
    """The Service of the operator. PORTS: name -> port, and port of the pods; KIND: its type."""
    rows = [{"name": word, "port": port, "targetPort": target, "protocol": "TCP"} for word, (port, target) in ports.items()]
    spec = compact({"type": kind, "selector": operator_selector(name), "ports": rows})
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, operator.namespace, operator_labels(name)), "spec": spec}


def operator_deployment(
    name: str, operator: Operator, workload: Mapping[str, t.Any], pod: Manifest, *, serves: Sequence[str] = (), uses: Sequence[str] = (),
    hashed: t.Any = None,
) -> Manifest:  # fmt: skip
    """The Deployment: WORKLOAD holds replicas and strategy, POD is what operator_pod makes.

    SERVES, USES: words of the annotations that keep the operator, and what it uses, from deletion while they are used. HASHED: a value
    whose change restarts the pods.
    """
    labels = operator_labels(name)
    notes = {key: " ".join(words) for key, words in ((ANNOTATION_SERVES, serves), (ANNOTATION_USES, uses)) if words}
    restart = {} if hashed is None else {ANNOTATION_CONFIG_HASH: spec_hash(hashed)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata(name, operator.namespace, labels), **({"annotations": notes} if notes else {})},
        "spec": {
            **workload,
            "selector": {"matchLabels": operator_selector(name)},
            "template": {"metadata": compact({"labels": labels, "annotations": restart}), "spec": {"serviceAccountName": name, **pod}},
        },
    }


def operator_pod(operator: Operator, container: Mapping[str, t.Any], *, user: int, **more: t.Any) -> Manifest:
    """A pod with one container that may write nowhere and runs as USER; MORE are further fields of the pod."""
    main = {
        "image": operator.image,
        "imagePullPolicy": operator.image_pull_policy,
        "resources": resources(operator.resources, "resources"),
        "securityContext": READ_ONLY_CONTAINER,
        **container,
    }
    return compact(
        {
            "imagePullSecrets": [{"name": name} for name in operator.image_pull_secrets],
            "nodeSelector": operator.node_selector,
            "tolerations": [dict(entry) for entry in operator.tolerations],
            "securityContext": {"runAsNonRoot": True, "runAsUser": user, "runAsGroup": user, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [compact(main)],
            **more,
        }
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedOperator:
    """An operator as its project released it. ``manifest``: URL or path; ``overrides``: a strategic merge patch of its Deployment."""

    manifest: str
    manifest_sha256: str
    namespace: str
    image: str
    resources: Mapping[str, t.Any] | None = None
    overrides: Mapping[str, t.Any] | None = None


NAMESPACE = ("v1", "Namespace")
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def type_of(one: Manifest) -> tuple[str, str]:
    """API version and kind of an object."""
    return one["apiVersion"], one["kind"]


def definitions(released: Sequence[Manifest]) -> list[Manifest]:
    """The CustomResourceDefinitions of a released manifest."""
    return [one for one in released if type_of(one) == DEFINITION]


def overlaid(released: Sequence[Manifest], operator: ReleasedOperator, deployment: str) -> list[Manifest]:
    """The objects of a released manifest in the namespace, and with the image and resources, of OPERATOR.

    DEPLOYMENT: name of the one that runs the operator. The Namespace is left out, because role namespace makes it.
    """
    there = [one for one in released if (type_of(one), one["metadata"]["name"]) == (DEPLOYMENT, deployment)]
    if not there:
        raise InvalidInput(f"{operator.manifest} has no Deployment {deployment}.", hint="Give the manifest of a supported version.")
    serves = " ".join(f"instances:{one['metadata']['name']}" for one in definitions(released))
    (container, *_others) = there[0]["spec"]["template"]["spec"]["containers"]
    main = compact({
        "name": container["name"],
        "image": operator.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"$patch": "replace", **resources(operator.resources, "resources")} if operator.resources else None,
    })  # fmt: skip
    patch = {
        "metadata": {"annotations": {ANNOTATION_SERVES: serves}} if serves else {},
        "spec": {"template": {"spec": {"containers": [main]}}},
    }
    patched = apply_overrides(apply_overrides(there[0], patch), operator.overrides)
    objects = [patched if one is there[0] else one for one in released if type_of(one) != NAMESPACE]
    home = there[0]["metadata"]["namespace"]
    return objects if home == operator.namespace else [_moved(one, home, operator.namespace) for one in objects]


def _moved(value: t.Any, old: str, new: str, key: str = "") -> t.Any:
    """VALUE with namespace NEW instead of OLD: where a field is called so, and in the values of a selector of namespaces."""
    if isinstance(value, Mapping):
        return {name: _moved(item, old, new, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, old, new, key) for item in value]
    return new if value == old and key in {"namespace", "values"} else value
