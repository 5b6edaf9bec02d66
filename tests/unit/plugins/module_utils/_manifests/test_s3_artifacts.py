# SPDX-License-Identifier: GPL-3.0-or-later
"""The service account whose pods read the bucket."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.s3_artifacts import S3Artifacts, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]


@pytest.mark.parametrize("identity", ["pod_identity", "irsa"])
def test_an_identity(golden: Golden, identity: str) -> None:
    role = "arn:aws:iam::123456789012:role/muster-artifacts-read"
    account = S3Artifacts(namespace="ml", service_account="elastic", identity=identity, role_arn=role)
    golden(f"s3_artifacts_{identity}", manifests(account))


def test_a_plan_for_an_empty_account_has_no_role_yet() -> None:
    (account,) = manifests(S3Artifacts(namespace="ml", service_account="elastic", identity="irsa"))
    assert account["metadata"]["annotations"] == {}
