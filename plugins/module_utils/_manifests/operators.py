# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the operators that Muster installs have in common: their options, their Deployment and its pod."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from .meta import ANNOTATION_SERVES, ANNOTATION_USES, Manifest, compact, metadata
from .pods import READ_ONLY_CONTAINER, resources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operator:
    """Where an operator runs and from which image. Field names are the options' names; nested values are the API's."""

    namespace: str
    image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[Mapping[str, t.Any]] = ()
    resources: Mapping[str, t.Any] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, t.Any]] = ()


def operator_labels(name: str) -> dict[str, str]:
    """Labels of everything that belongs to the operator."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "operator"}


def operator_selector(name: str) -> dict[str, str]:
    """The labels that select the pods of the operator."""
    return {"app.kubernetes.io/name": name}


def operator_deployment(
    name: str,
    operator: Operator,
    workload: Mapping[str, t.Any],
    pod: Manifest,
    *,
    serves: Sequence[str] = (),
    uses: Sequence[str] = (),
) -> Manifest:
    """The Deployment: WORKLOAD holds replicas and strategy, POD is what operator_pod makes.

    SERVES, USES: words of the annotations that keep the operator, and what it uses, from deletion while they are used.
    """
    labels = operator_labels(name)
    notes = {key: " ".join(words) for key, words in ((ANNOTATION_SERVES, serves), (ANNOTATION_USES, uses)) if words}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata(name, operator.namespace, labels), **({"annotations": notes} if notes else {})},
        "spec": {
            **workload,
            "selector": {"matchLabels": operator_selector(name)},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": name, **pod}},
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
            "imagePullSecrets": [dict(secret) for secret in operator.image_pull_secrets],
            "nodeSelector": operator.node_selector,
            "tolerations": [dict(entry) for entry in operator.tolerations],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": user,
                "runAsGroup": user,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [compact(main)],
            **more,
        }
    )
