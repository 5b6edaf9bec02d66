# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A client of boto3's for S3-compatible stores, and its errors in one form."""

from __future__ import annotations

import contextlib
import functools
import typing as t
from collections.abc import Iterator, Mapping

from .clock import LEAST_FOR_AN_ANSWER
from .errors import InvalidInput, MusterError
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
        raise InvalidInput(f"No client for S3 is possible: {exc}.", "Correct endpoint and region.") from None


@contextlib.contextmanager
def errors(refused: t.Callable[[Mapping[str, t.Any]], MusterError], unreachable: t.Callable[[str], MusterError]) -> Iterator[None]:
    """Errors of boto3 as those of REFUSED (an answer) and UNREACHABLE (the reason). They are not chained: they may quote what they sent."""
    import boto3.exceptions
    import botocore.exceptions

    try:
        yield
    except botocore.exceptions.ClientError as error:
        raise refused(error.response) from None
    except boto3.exceptions.S3UploadFailedError as error:
        cause = error.__context__
        raise refused(getattr(cause, "response", {})) from None
    except botocore.exceptions.BotoCoreError as error:
        raise unreachable(type(error).__name__) from None


def code_of(answer: Mapping[str, t.Any]) -> tuple[str, str, int]:
    """Code, message and status of an answer that refuses."""
    error = answer.get("Error") or {}
    status = (answer.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
    return str(error.get("Code", "")), str(error.get("Message", "")).rstrip("."), int(status)
