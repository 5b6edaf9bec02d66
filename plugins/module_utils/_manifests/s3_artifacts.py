# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of role s3_artifacts: the service account whose pods read the bucket."""

from __future__ import annotations

import dataclasses

from .meta import Manifest


@dataclasses.dataclass(frozen=True, kw_only=True)
class S3Artifacts:
    """The service account, and the IAM role that its pods get."""

    namespace: str
    service_account: str
    identity: str = "pod_identity"
    role_arn: str = ""


def manifests(artifacts: S3Artifacts) -> list[Manifest]:
    """The service account. With IRSA an annotation names its role; with Pod Identity EKS knows it."""
    named = artifacts.identity == "irsa" and artifacts.role_arn
    metadata = {
        "name": artifacts.service_account,
        "namespace": artifacts.namespace,
        "annotations": {"eks.amazonaws.com/role-arn": artifacts.role_arn} if named else {},
    }
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}]
