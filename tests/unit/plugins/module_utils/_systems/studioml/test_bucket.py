# SPDX-License-Identifier: GPL-3.0-or-later
"""What a store answers, as errors by meaning; tests/studioml asks a real one."""

from __future__ import annotations

import io
import types
import typing as t

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError, ConnectTimeoutError

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    Forbidden,
    MusterError,
    NotFound,
    ServerError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import bucket
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.experiment import Storage

STORAGE = Storage("store", "https://s3.example", "eu", Sensitive("canary-access"), Sensitive("canary-secret"))


class Client:
    """A client that only fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get_paginator(self, _name: str) -> Client:
        return self

    def fail(self, *_args: t.Any, **_options: t.Any) -> t.NoReturn:
        raise self.error

    paginate = download_fileobj = delete_object = fail

    def upload_fileobj(self, *_args: t.Any) -> None:
        try:
            raise self.error
        except ClientError as error:
            raise S3UploadFailedError(f"Failed to upload: {error}") from error


def refused(code: str, status: int, said: str = "as the store says.") -> ClientError:
    response: t.Any = {"Error": {"Code": code, "Message": said}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "Operation")


def at(error: Exception, way: t.Any = None) -> bucket.S3Bucket:
    return bucket.S3Bucket(Client(error), STORAGE.bucket, STORAGE.endpoint, way)


CASES: dict[str, tuple[Exception, type[MusterError], str]] = {
    "no bucket": (refused("NoSuchBucket", 404), NotFound, "There is no bucket store of https://s3.example"),
    "unknown or disabled key": (
        refused("InvalidAccessKeyId", 403), Unauthorized, "does not know access_key, or it is disabled (InvalidAccessKeyId)",
    ),
    "unknown key at versitygw": (refused("XAdminUserNotFound", 404), Unauthorized, "does not know access_key"),
    "wrong secret": (refused("SignatureDoesNotMatch", 403), Unauthorized, "does not take secret_key with this access_key"),
    "no permission": (refused("AccessDenied", 403), Forbidden, "The key may not list a/ in bucket store of https://s3.example: as"),
    "failing": (refused("InternalError", 500), ServerError, "failed to list a/"),
    "something else": (refused("Strange", 400), Failed, "refuses to list a/"),
    "no answer": (ConnectTimeoutError(endpoint_url="https://canary-secret@s3.example"), Unreachable, "no answer: ConnectTimeoutError"),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_each_refusal_has_its_class_and_reason(what: str) -> None:
    error, meaning, reason = CASES[what]
    with pytest.raises(MusterError) as caught:
        at(error).look("a/")
    assert caught.type is meaning
    assert reason in str(caught.value)
    assert "canary" not in str(caught.value)


def test_an_object_that_is_missing_is_no_error_and_a_bucket_is() -> None:
    assert not at(refused("404", 404)).get("a", io.BytesIO())
    assert not at(refused("NoSuchKey", 404)).get("a", io.BytesIO())
    with pytest.raises(NotFound, match="There is no bucket"):
        at(refused("NoSuchBucket", 404)).get("a", io.BytesIO())


def test_an_upload_that_fails_has_the_reason_of_the_store() -> None:
    with pytest.raises(Forbidden, match="may not write a in bucket store"):
        at(refused("AccessDenied", 403)).put("a", io.BytesIO())


def test_no_sums_are_sent_that_google_refuses() -> None:
    """botocore 1.36 and newer send them by default, in a form that Google Cloud Storage refuses."""
    config = bucket.connect(STORAGE, None)._client.meta.config
    assert (config.request_checksum_calculation, config.response_checksum_validation) == ("when_required", "when_required")
    assert config.s3["addressing_style"] == "path"


def test_what_went_wrong_on_the_way_is_told() -> None:
    """A client at a forwarded port only sees that its connection ended."""
    way: t.Any = types.SimpleNamespace(address="127.0.0.1:1234", trouble=Forbidden("User u may not create pods/portforward."))
    error = ConnectTimeoutError(endpoint_url="http://127.0.0.1:1234")
    with pytest.raises(Forbidden, match="pods/portforward"):
        at(error, way).look("a/")
    way.trouble = None
    with pytest.raises(Unreachable, match=r"The store at https://s3\.example gives no answer"):
        at(error, way).look("a/")


def test_a_forwarded_port_is_reached_past_proxies() -> None:
    way: t.Any = types.SimpleNamespace(address="127.0.0.1:1234", trouble=None)
    meta = bucket.connect(STORAGE, None, way)._client.meta
    assert (meta.endpoint_url, meta.config.proxies) == ("http://127.0.0.1:1234", {})
    assert bucket.connect(STORAGE, None)._client.meta.config.proxies is None
