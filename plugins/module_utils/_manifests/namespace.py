# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of role namespace: a namespace with its Pod Security labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .meta import Manifest, compact


@dataclasses.dataclass(frozen=True, kw_only=True)
class Namespace:
    """A namespace, and the Pod Security level that the API server enforces in it."""

    name: str
    pod_security: str = "baseline"
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


def manifests(namespace: Namespace) -> list[Manifest]:
    """The namespace. It warns of what the strictest level would refuse, whichever level it enforces."""
    levels = {"enforce": namespace.pod_security, "warn": namespace.pod_security, "audit": "restricted"}
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in levels.items()}
    metadata = {"name": namespace.name, "labels": {**labels, **namespace.labels}, "annotations": namespace.annotations}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": compact(metadata)}]
