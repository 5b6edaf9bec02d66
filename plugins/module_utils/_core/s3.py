# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of boto3's for S3-compatible stores, and its errors in one form."""

from __future__ import annotations

import contextlib
import functools
import typing as t
from collections.abc import Iterator, Mapping

from .clock import LEAST_FOR_AN_ANSWER
from .errors import Failed, Forbidden, InvalidInput, MusterError, NotFound, ServerError, Unauthorized, Unreachable
from .sensitive import Sensitive

BAD_LOGIN = {
    "AuthorizationHeaderMalformed": "does not take the signature of access_key",
    "InvalidAccessKeyId": "does not know access_key, or it is disabled",
    "InvalidSecurity": "does not take access_key",
    # versitygw
    "XAdminUserNotFound": "does not know access_key, or it is disabled",
    "SignatureDoesNotMatch": "does not take secret_key with this access_key",
}
"""Codes of answers to a wrong login, and what they mean."""
NO_BUCKET = "NoSuchBucket"
_MISSING = ("404", "NoSuchKey", "NotFound")
_PATIENCE = 10 * LEAST_FOR_AN_ANSWER


@functools.cache
def _session() -> t.Any:
    """One for the process: it keeps the description of S3, which its first client takes 150 ms to read. No login is in it."""
    import boto3

    return boto3.session.Session()


def client(
    endpoint: str | None, access_key: Sensitive | None, secret_key: Sensitive | None, *, region: str | None,
    ca_cert: str | None = None, direct: bool = False,
) -> t.Any:  # fmt: skip
    """A client; nothing is sent yet. ``direct``: past the proxies of the environment, as to a port of this machine.

    Without an endpoint it is that of AWS, and without keys they are those that boto3 finds.
    """
    import botocore.config
    import botocore.exceptions

    # Sums that botocore adds by itself since 1.36 are refused by Google Cloud Storage and others.
    config = botocore.config.Config(
        signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 3, "mode": "standard"},
        connect_timeout=_PATIENCE, request_checksum_calculation="when_required", response_checksum_validation="when_required",
        proxies={} if direct else None,
    )  # fmt: skip
    try:
        return _session().client(
            "s3", endpoint_url=endpoint, aws_access_key_id=access_key and access_key.reveal(),
            aws_secret_access_key=secret_key and secret_key.reveal(), region_name=region, config=config, verify=ca_cert,
        )  # fmt: skip
    except (botocore.exceptions.BotoCoreError, ValueError) as exc:
        raise InvalidInput(f"No client for S3 is possible: {exc}.", "Correct endpoint_url and region.") from exc


@contextlib.contextmanager
def errors(refused: t.Callable[[Mapping[str, t.Any]], MusterError], unreachable: t.Callable[[str], MusterError]) -> Iterator[None]:
    """Errors of boto3 as those of REFUSED (an answer) and UNREACHABLE (the reason). They are not chained: they may quote what they sent."""
    import boto3.exceptions
    import botocore.exceptions

    try:
        yield
    except botocore.exceptions.ClientError as error:
        raise refused(error.response) from None  # it may quote what it sent
    except boto3.exceptions.S3UploadFailedError as error:
        cause = error.__context__
        raise refused(getattr(cause, "response", {})) from None  # it may quote what it sent
    except botocore.exceptions.BotoCoreError as error:
        raise unreachable(type(error).__name__) from None  # it may quote what it sent


def code_of(answer: Mapping[str, t.Any]) -> tuple[str, str, int]:
    """Code, message and status of an answer that refuses."""
    error = answer.get("Error") or {}
    status = (answer.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
    return str(error.get("Code", "")), str(error.get("Message", "")).rstrip("."), int(status)


class Way(t.Protocol):
    """A forwarded port."""

    @property
    def trouble(self) -> MusterError | None:
        """The error that ended it; None while there is none."""


class Bucket:
    """A bucket with errors by meaning. ``endpoint``: that of its store, empty for AWS; ``login``: what to check if its login is refused."""

    login = ""

    def __init__(self, boto_client: t.Any, name: str, endpoint: str | None, way: Way | None = None) -> None:
        self.name, self._client, self._way = name, boto_client, way
        self._of = f" of {endpoint}" if endpoint else ""
        self._store = f"The store at {endpoint}" if endpoint else "The store"

    def listed(self, prefix: str, doing: str) -> list[Mapping[str, t.Any]]:
        """The objects whose keys begin with PREFIX."""
        with self.errors(doing):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
            return [row for page in pages for row in page.get("Contents") or []]

    def errors(self, doing: str) -> contextlib.AbstractContextManager[None]:
        """The errors of one action."""
        return errors(functools.partial(self._refused, doing), self._unreachable)

    def _unreachable(self, reason: str) -> MusterError:
        trouble = self._way.trouble if self._way else None
        return trouble or Unreachable(f"{self._store} gives no answer: {reason}.", "Check its address, and its authority if it has TLS.")

    def _refused(self, doing: str, answer: Mapping[str, t.Any]) -> MusterError:
        code, said, status = code_of(answer)
        where, details = f"bucket {self.name}{self._of}", {"code": code}
        if code == NO_BUCKET or (code in _MISSING and doing.startswith("list")):
            hint = "Create it first, such as with module object_store or s3_bucket, or correct its name or its address."
            return NotFound(f"There is no {where}.", hint, details=details)
        if code in _MISSING:
            return NotFound(f"Cannot {doing} in {where}: it does not exist.", details=details)
        if code in BAD_LOGIN:
            return Unauthorized(f"{self._store} {BAD_LOGIN[code]} ({code}).", self.login, details=details)
        if status in (401, 403):
            hint = f"It needs to list, read and write objects of the bucket. {self.login}"
            return Forbidden(f"The key may not {doing} in {where}: {said or code}.", hint, details=details)
        kind, verb = (ServerError, "failed") if status >= 500 else (Failed, "refuses")
        return kind(f"{self._store} {verb} to {doing} in {where}: {said or code} (status {status}).", details=details)
