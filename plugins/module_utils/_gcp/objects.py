# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of google-cloud-storage for the objects of a bucket, and its errors in one form."""

from __future__ import annotations

import contextlib
import typing as t
from collections.abc import Iterator

from .._core.errors import Failed, Forbidden, MusterError, NotFound, ServerError, Unauthorized
from .errors import library_errors, refusal

_PATIENCE_S = 60.0
"""The limit for one request with all its retries; a large file is many requests."""


def client(credentials: t.Any) -> t.Any:
    """Return a storage client, which is a context manager; sends no request. Objects need no project."""
    import google.cloud.storage as library

    return library.Client(project=None, credentials=credentials)


def retries() -> t.Any:
    """The library's own retry rule, with a limit short enough for a waiting user. A write of a whole object may be repeated."""
    from google.cloud.storage.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(_PATIENCE_S)


@contextlib.contextmanager
def errors(doing: str, bucket: str) -> Iterator[None]:
    """Errors of the library as ours. They are not chained: they may quote what was sent."""
    from google.api_core import exceptions
    from google.cloud.storage.exceptions import DataCorruption

    try:
        with library_errors():
            try:
                yield
            except exceptions.RetryError as error:  # what was repeated until the end
                raise (error.cause or error) from None
    except exceptions.GoogleAPICallError as error:
        raise _refused(doing, bucket, error) from None
    except DataCorruption as error:
        raise Failed(f"It failed to {doing} in bucket {bucket}: {error}.", "Run again.") from None


def _refused(doing: str, bucket: str, error: t.Any) -> MusterError:
    try:
        answer = error.response.json()
    except (AttributeError, ValueError):
        answer = {"error": {"message": error.message}}
    status = int(error.code or 0)
    said = refusal(f"bucket {bucket}: to {doing}", "storage", status, answer)
    if status == 404 and doing.startswith("list"):
        return NotFound(f"There is no bucket {bucket}.", "Create it first, such as with module gcs_bucket.")
    kind: type[MusterError] = {401: Unauthorized, 403: Forbidden, 404: NotFound}.get(status, Failed)
    return (ServerError if status >= 500 else kind)(said.message, said.hint)
