# SPDX-License-Identifier: GPL-3.0-or-later
"""One hierarchy of errors, each with its why, and one way in which all of them fail a task."""

from __future__ import annotations

import pytest

from ansible_collections.muster.ml.plugins.module_utils._cloud.errors import CallRefused
from ansible_collections.muster.ml.plugins.module_utils._core import errors
from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError, Rejected, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import failure
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref


@pytest.mark.parametrize(
    ("message", "hint", "said"),
    [
        ("It is gone.", None, "It is gone."),
        ("It is gone.", "Run again.", "It is gone. Run again."),
        ("EKS cluster x is FAILED", "Delete it and run again", "EKS cluster x is FAILED. Delete it and run again"),
        ("It failed", "\nCorrect the cause.", "It failed \nCorrect the cause."),
    ],
)
def test_message_and_hint_are_sentences(message: str, hint: str | None, said: str) -> None:
    assert str(MusterError(message, hint)) == said


@pytest.mark.parametrize("kind", [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)])
def test_every_error_says_what_it_is_for(kind: type[Exception]) -> None:
    assert issubclass(kind, MusterError)
    assert (kind.__doc__ and kind.__doc__ != MusterError.__doc__) or kind is MusterError


def test_the_result_has_the_details_and_the_object() -> None:
    ref = Ref("v1", "Pod", "a", "ml")
    found = failure(WaitTimeout("Not there.", "Wait.", last_seen=["it starts"], ref=ref, details={"seen": "x"}))
    assert found["msg"] == "Not there. Wait."
    assert (found["last_seen"], found["seen"], found["object"]["name"]) == (["it starts"], "x", "a")


def test_what_aws_refuses_is_refused() -> None:
    refused = CallRefused("EKS cluster x: no", "Ask", code="AccessDenied")
    assert isinstance(refused, Rejected)
    assert failure(refused) == {"msg": "EKS cluster x: no. Ask", "code": "AccessDenied"}


@pytest.mark.parametrize(
    ("missing", "package"),
    [
        ("cryptography.x509", "cryptography"), ("yaml", "PyYAML"), ("botocore.exceptions", "botocore"), ("google.protobuf", "protobuf"),
        ("google.cloud.storage", "google-cloud-storage"), ("tritonclient", "tritonclient[grpc]"),
    ],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_package(missing: str, package: str) -> None:
    assert f"Python library ({package}>=" in failure(ImportError("no", name=missing))["msg"]


def test_a_bug_stays_a_bug() -> None:
    with pytest.raises(ImportError):
        failure(ImportError("no", name="our_own"))
    with pytest.raises(ImportError):
        failure(ImportError("no", name="yamlike"))
    with pytest.raises(KeyError):
        failure(KeyError("x"))
