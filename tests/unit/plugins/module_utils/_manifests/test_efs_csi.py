# SPDX-License-Identifier: GPL-3.0-or-later
"""The claim on EFS, its class or volume, and the Jobs that verify it."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.efs_csi import EfsCsi, manifests

Golden = t.Callable[[str, list[dict[str, t.Any]]], None]
CLAIM = {"namespace": "ml", "claim_name": "efs-claim"}
FILE_SYSTEM = {"file_system_id": "fs-0123456789abcdef0"}


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("dynamic", {**FILE_SYSTEM, "base_path": "/training"}),
        ("existing", {"storage_class_name": "local-path"}),
        ("static", {**FILE_SYSTEM, "provisioning": "static", "path": "/data", "access_point_id": "fsap-1", "iam": True}),
        ("verify", {"verify": True, "verify_image": "docker.io/library/busybox:1.37.0"}),
    ],
)
def test_a_variant(golden: Golden, variant: str, options: dict[str, t.Any]) -> None:
    golden(f"efs_csi_{variant}", manifests(EfsCsi(**CLAIM, **options)))


@pytest.mark.parametrize(
    ("options", "handle"),
    [
        ({}, "fs-0123456789abcdef0"),
        ({"path": "/data"}, "fs-0123456789abcdef0:/data"),
        ({"access_point_id": "fsap-1"}, "fs-0123456789abcdef0::fsap-1"),
    ],
)
def test_what_the_driver_mounts(options: dict[str, str], handle: str) -> None:
    volume, _claim = manifests(EfsCsi(**CLAIM, **FILE_SYSTEM, provisioning="static", **options))
    assert volume["spec"]["csi"]["volumeHandle"] == handle
    assert volume["spec"]["mountOptions"] == ["tls"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"provisioning": "static"}, "file_system_id is missing"), ({"claim_size": "5 GB"}, "'5 GB' is not a quantity")],
)
def test_a_mistake_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        manifests(EfsCsi(**CLAIM, **options))
